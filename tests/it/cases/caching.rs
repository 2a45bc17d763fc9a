//! Kind `caching`.

use gw_testkit::{ChatEnd, FakeProvider, FakeStream, Fault, Step, content_filter, ok, status};
use gw_types::CacheState;
use http::Method;
use serde_json::{Value, json};

use super::streaming::content;
use crate::support::{Ask, Events, Gw, House, Toml, chat, key_of};

/// An upstream whose answers number its calls.
async fn counter() -> FakeProvider {
    // An answer in the form that a schema asks for, where one does.
    let answer = |number: u64, has_schema: bool| match has_schema {
        true => format!("{{\"answer\": {number}}}"),
        false => format!("answer {number}"),
    };
    FakeProvider::start_with(move |call| {
        ok(&answer(call.number, call.json()["response_format"].is_object())).into()
    })
    .await
    .unwrap()
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

const NEAR: &str = "cache = { exact = true, semantic = { threshold = 0.9 }, temperature = \"zero\" }";

/// An upstream that does something else once, and then answers `full`.
async fn once(first: impl Into<Fault>) -> (FakeProvider, Gw) {
    let first = first.into();
    let provider = FakeProvider::start_with(move |call| match call.number {
        1 => first.clone(),
        _ => ok("full").into(),
    })
    .await
    .unwrap();
    let toml = Toml::new().upstream("up", &provider).route_with("m", &["up"], NEAR).tenant("a", "");
    let gw = Gw::start(&toml).await;
    (provider, gw)
}

fn asking(stream: bool) -> Value {
    let mut body = chat("m", "what is the tallest mountain of the whole continent of South America");
    (body["temperature"], body["stream"]) = (0.into(), stream.into());
    body
}

/// Asks and returns what was said, if it was said to its end, and what the cache did.
async fn ask(gw: &Gw, stream: bool) -> (Option<String>, String) {
    let call = gw.chat("a", &asking(stream));
    if stream {
        let told = call.stream().await;
        let (status, cache) = (told.status, told.header("x-gw-cache").to_owned());
        let text = told.rest().await;
        let events = (status == 200).then(|| Events::read(&text)).filter(|events| events.done);
        (events.map(|events| events.text()), cache)
    } else {
        let given = call.send().await;
        ((given.status == 200).then(|| given.said()), given.header("x-gw-cache").to_owned())
    }
}

async fn is_not_stored(what: &str, first: impl Into<Fault>, stream: bool) {
    let (provider, gw) = once(first).await;
    let (said, cache) = ask(&gw, stream).await;
    assert_eq!(cache, "miss", "{what}: {said:?}");
    for (calls, cache) in [(2, "miss"), (2, "exact")] {
        assert_eq!(ask(&gw, stream).await, (Some("full".to_owned()), cache.to_owned()), "{what}");
        assert_eq!(provider.calls().len(), calls, "{what}");
    }
}

fn stream_of(steps: impl IntoIterator<Item = Step>) -> FakeStream {
    FakeStream::new(steps)
}

#[tokio::test]
async fn incomplete_or_failed_answers_are_not_stored() {
    is_not_stored("V1", ok("one two").end(ChatEnd::EndAfter(2)), true).await;
    is_not_stored("V2", stream_of([content("one"), super::streaming::done()]), true).await;
    let error = json!({"error": {"message": "no", "type": "server_error", "code": null, "param": null}});
    let in_band = status(200).body(error.to_string());
    let tool = json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{
        "index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
    let tool_event = Step::event(
        r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}"#,
    );
    let called =
        Step::event(r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#);
    for stream in [false, true] {
        is_not_stored("V3", ok("one two").finish("length"), stream).await;
        is_not_stored("V4", ok("one two").finish("content_filter"), stream).await;
        is_not_stored("V4, refused", content_filter(), stream).await;
        is_not_stored("V7", ok(""), stream).await;
        is_not_stored("V8", status(500), stream).await;
    }
    is_not_stored("V5", in_band, false).await;
    is_not_stored("V5", stream_of([Step::event(&error.to_string())]), true).await;
    is_not_stored("V9", status(200).body(tool.to_string()), false).await;
    is_not_stored("V9", stream_of([tool_event, called, super::streaming::done()]), true).await;
}

#[tokio::test]
async fn incomplete_or_failed_answers_are_not_stored_v6() {
    let (provider, gw) = once(ok("one two three").gate_after(1)).await;
    let mut left = gw.chat("a", &asking(true)).stream().await;
    left.until("one").await;
    drop(left);
    provider.wait_for_client_gone(1).await;
    for (calls, cache) in [(2, "miss"), (2, "exact")] {
        assert_eq!(ask(&gw, true).await, (Some("full".to_owned()), cache.to_owned()));
        assert_eq!(provider.calls().len(), calls);
    }
}

#[tokio::test]
async fn incomplete_or_failed_answers_are_not_stored_v10() {
    // Both forms: one fails before its head, the other behind events that say nothing yet.
    let role = Step::event(
        r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}"#,
    );
    let faults: [(bool, Fault); 2] = [
        (false, Fault::AtGate { then: Box::new(status(500).into()) }),
        (true, Fault::AtGate { then: Box::new(stream_of([role]).into()) }),
    ];
    for (stream, first) in faults {
        let (provider, gw) = once(first).await;
        let leader = ask(&gw, stream);
        let follower = async {
            provider.wait_for_calls(1).await;
            let waiting = ask(&gw, stream);
            let opening = async { provider.open_gate() };
            tokio::join!(waiting, opening).0
        };
        let ((led, _), (followed, cache)) = tokio::join!(leader, follower);
        assert_eq!((led, followed.as_deref(), cache.as_str()), (None, Some("full"), "miss"));
        assert_eq!(provider.calls().len(), 2);
        assert_eq!(ask(&gw, stream).await.1, "exact");
    }
}
