//! Callers of one wire format at providers of another, through the real program.

use gw_testkit::{FakeProvider, FaultScript, ok};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Call, Gw, Toml, key_of};

fn messages(gw: &Gw, model: &str) -> Call {
    let body = json!({"model": model, "max_tokens": 16, "top_k": 5, "messages": [{"role": "user", "content": "hello"}]});
    gw.call(Method::POST, "/v1/messages?beta=true").header("x-api-key", &key_of("a")).json(&body)
}

async fn house(route: &str) -> (Gw, FakeProvider) {
    let provider = FakeProvider::start(FaultScript::of(ok("hello to you").usage(11, 3))).await.unwrap();
    let toml = Toml::new().sqlite().upstream("up", &provider).route_with("m", &["up"], route).tenant("a", "");
    (Gw::start(&toml).await, provider)
}

#[tokio::test]
async fn a_claude_client_talks_to_an_openai_deployment_and_hears_what_was_lost() {
    let (gw, provider) = house("").await;
    let answer = messages(&gw, "m").send().await;
    let said = answer.json();
    assert_eq!((answer.status, &said["type"]), (200, &json!("message")), "{}", answer.text());
    assert_eq!(said["content"], json!([{"type": "text", "text": "hello to you"}]));
    assert_eq!((&said["stop_reason"], &said["usage"]["output_tokens"]), (&json!("end_turn"), &json!(3)));
    assert_eq!((answer.header("x-gw-loss"), answer.header("x-gw-attempts")), ("1", "1"));
    assert_eq!(answer.header("request-id"), answer.header("x-request-id"));
    let record = &gw.records(1).await[0];
    assert_eq!((&record["loss"], &record["facts"]["operation"]), (&json!(["top_k"]), &json!("messages")));
    let sent: Value = serde_json::from_slice(&provider.calls()[0].body).unwrap();
    assert_eq!(sent["messages"], json!([{"role": "user", "content": "hello"}]));
}

#[tokio::test]
async fn a_claude_client_gets_its_own_events() {
    let (gw, _provider) = house("").await;
    let body = json!({"model": "m", "max_tokens": 16, "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let call = gw.call(Method::POST, "/v1/messages").header("x-api-key", &key_of("a")).json(&body);
    let stream = call.stream().await;
    assert_eq!(stream.header("x-gw-loss"), "");
    let text = stream.rest().await;
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!((names.first(), names.last()), (Some(&"message_start"), Some(&"message_stop")), "{text}");
    assert!(!text.contains("[DONE]") && text.contains(r#""stop_reason":"end_turn""#), "{text}");
}

#[tokio::test]
async fn strict_translation_refuses_before_any_call() {
    for (route, header) in [("", "strict"), ("translation = \"strict\"", "")] {
        let (gw, provider) = house(route).await;
        let call = messages(&gw, "m");
        let call = if header.is_empty() { call } else { call.header("x-gw-translation", header) };
        let answer = call.send().await;
        let error = answer.json();
        assert_eq!((answer.status, &error["error"]["type"]), (400, &json!("invalid_request_error")));
        assert!(error["error"]["message"].as_str().unwrap().contains("top_k"), "{error}");
        assert_eq!((answer.header("x-gw-attempts"), provider.calls().len()), ("0", 0));
    }
}

#[tokio::test]
async fn every_path_answers_from_the_built_in_models() {
    let gw = Gw::start_without_a_file().await;
    let message = json!([{"role": "user", "content": "hello"}]);
    for (path, body, field) in [
        ("/v1/messages", json!({"model": "demo-echo", "max_tokens": 9, "messages": message}), "content"),
        ("/v1/responses", json!({"model": "demo-echo", "input": "hello"}), "output"),
        ("/v1/chat/completions", json!({"model": "demo-echo", "messages": message}), "choices"),
    ] {
        let answer = gw.call(Method::POST, path).json(&body).send().await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(answer.json()[field].is_array(), "{path}: {}", answer.text());
    }
}
