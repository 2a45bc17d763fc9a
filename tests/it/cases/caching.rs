//! Kind `caching`.

use gw_testkit::{FakeProvider, ok};
use gw_types::CacheState;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Ask, Gw, House, Toml, chat, key_of};

/// An upstream whose answers number its calls.
async fn counter() -> FakeProvider {
    FakeProvider::start_with(|call| ok(&format!("answer {}", call.number)).into()).await.unwrap()
}

#[tokio::test]
async fn cache_never_crosses_tenants() {
    let provider = counter().await;
    let keys = "keys = [{ name = \"one\", secret = { env = \"KEY_ONE\" } }, { name = \"two\", secret = { env = \"KEY_TWO\" } }]";
    let toml = Toml::new()
        .upstream("up", &provider)
        .route_with("m", &["up"], "cache = { exact = true, semantic = { threshold = 0.9 } }")
        .part(&format!("[tenants.t1]\n{keys}"))
        .var("KEY_ONE", "key-of-tenant-t1")
        .var("KEY_TWO", "second-key-of-t1")
        .tenant("t2", "");
    let gw = Gw::start(&toml).await;
    let r = "what is the tallest mountain of the whole continent of South America";
    let near = "what is the tallest mountain of the whole continent of South America?";
    let ask = |key: String, text: &'static str| {
        let mut body = chat("m", text);
        body["temperature"] = 0.into();
        let call = gw.call(Method::POST, "/v1/chat/completions").key(&key).json(&body);
        async { call.send().await }
    };
    for (step, key, text, answer, calls) in [
        ("T1 sends R", key_of("t1"), r, "answer 1", 1),
        ("T2 sends R", key_of("t2"), r, "answer 2", 2),
        ("T1 sends R", key_of("t1"), r, "answer 1", 2),
        ("T2 sends a near-duplicate", key_of("t2"), near, "answer 2", 2),
        ("T1's second key sends R", "second-key-of-t1".to_owned(), r, "answer 1", 2),
    ] {
        let given = ask(key, text).await;
        assert_eq!((given.said().as_str(), provider.calls().len()), (answer, calls), "{step}");
        assert!(given.header("cache-control").contains("no-store"), "{step}");
        assert_eq!(given.header("age"), "", "{step}");
    }
    let records = gw.records(5).await;
    let key = |at: usize| records[at]["decision"]["cache_key"].as_str().unwrap().to_owned();
    assert_ne!(key(0), key(1), "the digest says nothing about another tenant's");
    assert_eq!(key(0), key(4));
}

#[tokio::test(start_paused = true)]
async fn cache_never_crosses_tenants_whose_names_run_into_each_other() {
    let scripted = |toml: Toml| toml.scripted("up", &["ok text=one", "ok text=two", "ok text=three"]);
    let toml = scripted(Toml::new())
        .route_with(
            "b:c",
            &["up"],
            "match = { models = [\"m\"], tenants = [\"a\"] }\ncache = { exact = true }",
        )
        .route_with(
            "c",
            &["up"],
            "match = { models = [\"m\"], tenants = [\"a:b\"] }\ncache = { exact = true }",
        )
        .tenant("a", "")
        .part("[tenants.\"a:b\"]\nkeys = [{ name = \"dev\", secret = { env = \"KEY_AB\" } }]")
        .var("KEY_AB", "another-key");
    let house = House::new(&toml).await;
    for tenant in ["a", "a:b"] {
        let given = house.ask(&Ask::of(tenant, "m", "hello")).await.unwrap();
        assert_eq!(given.head.cache, CacheState::Miss, "{tenant}");
    }
}

/// The request of the case, with one change: each is another question.
fn changed() -> Vec<(&'static str, Value)> {
    let mut base = chat("m", "hi");
    base["temperature"] = 0.into();
    let with = |field: &str, value: Value| {
        let mut body = base.clone();
        body[field] = value;
        body
    };
    let tool = |about: &str| json!([{"type": "function", "function": {"name": "f", "description": about, "parameters": {}}}]);
    let schema = |name: &str| json!({"type": "json_schema", "json_schema": {"name": name, "schema": {"type": "object"}}});
    let image = |url: &str| {
        let parts = json!([{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": url}}]);
        json!([{"role": "user", "content": parts}])
    };
    let (system, user) =
        (json!({"role": "system", "content": "be brief"}), json!({"role": "user", "content": "hi"}));
    vec![
        ("max_tokens", with("max_tokens", json!(16))),
        ("top_p", with("top_p", json!(0.5))),
        ("stop", with("stop", json!(["x"]))),
        ("n", with("n", json!(2))),
        ("seed", with("seed", json!(1))),
        ("tools", with("tools", tool("one"))),
        ("tools with another description", with("tools", tool("two"))),
        ("tool_choice", with("tool_choice", json!("none"))),
        ("parallel_tool_calls", with("parallel_tool_calls", json!(false))),
        ("a schema", with("response_format", schema("s1"))),
        ("another schema", with("response_format", schema("s2"))),
        ("reasoning_effort", with("reasoning_effort", json!("low"))),
        ("logit_bias", with("logit_bias", json!({"1": 5}))),
        ("a system message", with("messages", json!([system, user]))),
        ("messages in another order", with("messages", json!([user, system]))),
        ("an image", with("messages", image("https://example.com/1.png"))),
        ("another image", with("messages", image("https://example.com/2.png"))),
        ("an unknown field", with("x_new", json!(1))),
        ("another alias of the same target", with("model", json!("alias"))),
    ]
}

async fn exact() -> (FakeProvider, Toml) {
    let provider = counter().await;
    let toml = Toml::new()
        .upstream("up", &provider)
        .route_with(
            "m",
            &["up"],
            "match = { models = [\"m\", \"alias\"] }\ncache = { exact = true, temperature = \"zero\" }",
        )
        .tenant("a", "");
    (provider, toml)
}

#[tokio::test]
async fn exact_key_covers_everything_that_changes_the_answer() {
    let (provider, toml) = exact().await;
    let gw = Gw::start(&toml).await;
    let ask = |body: String| async {
        let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a")).bytes(body);
        let answer = call.send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("x-gw-cache").to_owned()
    };
    let base = r#"{"model":"m","temperature":0,"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!((ask(base.to_owned()).await.as_str(), ask(base.to_owned()).await.as_str()), ("miss", "exact"));
    assert_eq!(provider.calls().len(), 1);
    for (at, (what, body)) in changed().into_iter().enumerate() {
        assert_eq!(ask(body.to_string()).await, "miss", "{what}");
        assert_eq!(provider.calls().len(), at + 2, "{what}");
        assert_eq!(ask(body.to_string()).await, "exact", "{what}");
    }
    let calls = provider.calls().len();
    for (what, body) in [
        (
            "another order of the keys",
            r#"{"messages":[{"content":"hi","role":"user"}],"temperature":0,"model":"m"}"#,
        ),
        (
            "white space",
            "{ \"model\" : \"m\",\n\"temperature\":\t0, \"messages\":[ {\"role\":\"user\",\"content\":\"hi\"} ] }\n",
        ),
        ("temperature 0.0", r#"{"model":"m","temperature":0.0,"messages":[{"role":"user","content":"hi"}]}"#),
        ("escapes", r#"{"model":"m","temperature":0,"messages":[{"role":"user","content":"h\u0069"}]}"#),
    ] {
        assert_eq!(ask(body.to_owned()).await, "exact", "{what}");
    }
    assert_eq!(provider.calls().len(), calls);
    let warm = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    for _ in 0..2 {
        assert_eq!(ask(warm.to_owned()).await, "bypass", "V2: no temperature is not temperature 0");
    }
    assert_eq!(provider.calls().len(), calls + 2);
    for (control, cache) in [("no-store", "bypass"), ("no-cache", "bypass"), ("only-if-cached", "exact")] {
        let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a")).bytes(base);
        let answer = call.header("x-gw-cache", control).send().await;
        assert_eq!((answer.status, answer.header("x-gw-cache")), (200, cache), "{control}");
    }
    let call =
        gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a")).bytes(base.replace("hi", "ho"));
    let answer = call.header("x-gw-cache", "only-if-cached").send().await;
    assert_eq!((answer.status, answer.error()["code"].as_str()), (504, Some("not_cached")));
}

#[tokio::test]
async fn exact_key_covers_everything_and_nothing_of_the_process() {
    let (_provider, toml) = exact().await;
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let gw = Gw::start(&toml).await;
        let mut body = chat("m", "hi");
        body["temperature"] = 0.into();
        gw.chat("a", &body).send().await;
        keys.insert(gw.records(1).await[0]["decision"]["cache_key"].as_str().unwrap().to_owned());
    }
    assert_eq!(keys.len(), 1, "a key does not depend on a seed of the process: {keys:?}");
}
