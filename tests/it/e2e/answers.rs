//! Plain and streamed answers, and the headers that go with them.

use gw_testkit::{FakeProvider, FaultScript, ok};
use http::Method;
use serde_json::json;

use crate::support::{Events, Gw, Toml, chat, key_of};

async fn provider() -> FakeProvider {
    FakeProvider::start(FaultScript::of(ok("hello to you").usage(11, 3))).await.unwrap()
}

#[tokio::test]
async fn a_plain_answer_passes_with_its_evidence() {
    let provider = provider().await;
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", "price = { input = 2_000_000, output = 8_000_000 }")
        .route_with("m", &["up"], "cache = { exact = true }")
        .tenant("a", "requests_per_minute = 6\ntokens_per_minute = 10_000");
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).header("x-request-id", "mine-1").send().await;
    assert_eq!((answer.said().as_str(), answer.header("content-type")), ("hello to you", "application/json"));
    for (name, value) in [
        ("x-gw-deployment", "up"),
        ("x-gw-route", "m"),
        ("x-gw-attempts", "1"),
        ("x-gw-cache", "miss"),
        ("x-gw-cost-micros", "46"),
        ("x-ratelimit-limit-requests", "6"),
        ("x-ratelimit-remaining-requests", "5"),
        ("x-ratelimit-limit-tokens", "10000"),
        ("cache-control", "no-store"),
        ("x-gw-loss", ""),
        ("retry-after", ""),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    // 14 tokens were used; up to one may have come back meanwhile for each 6 ms.
    let remaining: u64 = answer.header("x-ratelimit-remaining-tokens").parse().unwrap();
    assert!((9_986..=10_000).contains(&remaining), "{remaining}");
    assert!(answer.header("x-ratelimit-reset-requests").ends_with('s'));
    assert!(answer.header("x-gw-latency-ms").parse::<u64>().is_ok());
    assert_eq!(answer.header("x-gw-config").len(), 32);
    let id = answer.header("x-request-id").to_owned();
    let record = gw.admin(&format!("/admin/v1/records/{id}")).send().await.json();
    assert_eq!((record["id"].as_str(), record["client_request_id"].as_str()), (Some(&*id), Some("mine-1")));
    assert_eq!(record["config"], answer.header("x-gw-config"));

    let hit = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!(hit.body, answer.body);
    for (name, value) in [("x-gw-cache", "exact"), ("x-gw-attempts", "0"), ("x-gw-cost-micros", "0")] {
        assert_eq!(hit.header(name), value, "{name}");
    }
    assert_ne!(hit.header("x-request-id"), id);
    assert_eq!(provider.calls().len(), 1);
    let sent = &provider.calls()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer sk-upstream-key-of-the-gateway"));
    assert_eq!(
        (sent.json()["model"].as_str(), sent.path.as_str()),
        (Some("up-model"), "/v1/chat/completions")
    );
}

#[tokio::test]
async fn a_stream_passes_and_its_usage_shows_only_where_it_was_asked_for() {
    let provider = provider().await;
    let gw = Gw::start(&Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "")).await;
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    let plain = gw.chat("a", &body).stream().await;
    assert_eq!((plain.status, plain.header("x-gw-attempts")), (200, "1"));
    assert_eq!(plain.header("content-type"), "text/event-stream; charset=utf-8");
    assert!(
        plain.header("cache-control").contains("no-transform") && plain.header("content-length").is_empty()
    );
    let events = Events::read(&plain.rest().await);
    assert_eq!((events.text().as_str(), events.done, events.usages().len()), ("hello to you", true, 0));
    assert_eq!(events.finishes(), ["stop"]);
    body["stream_options"] = json!({"include_usage": true});
    let events = Events::read(&gw.chat("a", &body).stream().await.rest().await);
    assert_eq!(events.usages(), [&json!({"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14})]);
    for call in provider.calls() {
        assert_eq!(call.json()["stream_options"]["include_usage"], true);
    }
    for record in gw.records(2).await {
        assert_eq!(
            (record["usage"]["input"].as_u64(), record["usage"]["output"].as_u64()),
            (Some(11), Some(3))
        );
        assert_eq!(
            (record["usage"]["estimated"].as_bool(), record["outcome"].as_str()),
            (Some(false), Some("ok"))
        );
        assert_eq!(record["cost"].as_u64(), Some(17_000_000));
    }
}

#[tokio::test]
async fn models_are_those_that_the_caller_may_ask_for() {
    let provider = provider().await;
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("open", &["up"])
        .route_with("closed", &["up"], "match = { models = [\"closed/one\"], tenants = [\"b\"] }\n")
        .route_with("glob", &["up"], "match = { models = [\"gpt-*\"] }\n")
        .tenant("a", "")
        .tenant("b", "");
    let gw = Gw::start(&toml).await;
    let get = |tenant: &str, path: &str| gw.call(Method::GET, path).key(&key_of(tenant)).send();
    let ids = |page: serde_json::Value| -> Vec<String> {
        assert_eq!(page["object"], "list");
        let models = page["data"].as_array().unwrap();
        models.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(get("a", "/v1/models").await.json()), ["open"]);
    assert_eq!(ids(get("b", "/v1/models").await.json()), ["closed/one", "open"]);
    let one = get("b", "/v1/models/closed/one").await.json();
    assert_eq!((one["id"].as_str(), one["object"].as_str()), (Some("closed/one"), Some("model")));
    assert_eq!(get("b", "/v1/models/closed%2Fone").await.status, 200);
    let none = get("a", "/v1/models/closed/one").await;
    assert_eq!((none.status, none.error()["code"].as_str()), (404, Some("model_not_found")));
    let asked = gw.chat("a", &chat("closed/one", "hello")).send().await;
    assert_eq!((asked.status, asked.error()["code"].as_str()), (404, Some("model_not_found")));
    assert_eq!(gw.chat("a", &chat("gpt-anything", "hello")).send().await.status, 200);
    assert_eq!(gw.call(Method::GET, "/v1/models").send().await.status, 401);
}
