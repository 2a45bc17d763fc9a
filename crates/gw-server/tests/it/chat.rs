//! Answers, streams and their evidence.

use crate::support::{CONFIG, ask, ask_stream, start};

#[tokio::test]
async fn an_answer_carries_its_evidence() {
    let running = start(CONFIG).await;
    let reply = running.chat_with("x-request-id: mine\r\n", &ask("echo")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["object"], "chat.completion");
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("x-request-id", "req_00000000000000000000000000000001"),
        ("x-gw-deployment", "echo"),
        ("x-gw-route", "echo"),
        ("x-gw-attempts", "1"),
        ("x-gw-cache", "bypass"),
        ("x-gw-latency-ms", "0"),
        ("x-ratelimit-limit-requests", "600"),
        ("x-ratelimit-remaining-requests", "599"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert!(reply.header("x-gw-cost-micros").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(reply.header("x-gw-config").map(str::len), Some(32));
    assert!(reply.header("content-length").is_some() && reply.header("x-gw-loss").is_none());
    let record = running.admin("/admin/v1/records/req_00000000000000000000000000000001").await.json();
    assert_eq!((record["seq"].as_u64(), record["client_request_id"].as_str()), (Some(1), Some("mine")));
}

#[tokio::test]
async fn a_stream_ends_with_the_final_marker() {
    let running = start(CONFIG).await;
    let reply = running.chat(&ask_stream("echo")).await;
    assert_eq!(reply.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-gw-attempts", "1"),
        ("transfer-encoding", "chunked"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    for name in ["content-length", "x-gw-cost-micros", "x-gw-latency-ms"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    assert!(reply.body.starts_with("data: {"), "{}", reply.body);
    assert!(reply.body.ends_with("data: [DONE]\n\n"), "{}", reply.body);
    assert!(!reply.body.contains(r#""error""#));
}

#[tokio::test]
async fn a_failover_shows_in_the_attempts() {
    let running = start(CONFIG).await;
    let reply = running.chat(&ask("flaky")).await;
    assert_eq!(reply.status, 200);
    assert_eq!((reply.header("x-gw-attempts"), reply.header("x-gw-deployment")), (Some("2"), Some("echo")));
}

#[tokio::test]
async fn spent_attempts_tell_the_client_not_to_try_again() {
    for body in [ask("down"), ask_stream("down")] {
        // A second request would find both of them resting, and ask only one.
        let running = start(CONFIG).await;
        let reply = running.chat(&body).await;
        assert_eq!((reply.status, &*reply.error_type()), (429, "rate_limit_error"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("x-gw-attempts"), Some("2"));
        assert_eq!(reply.header("x-should-retry"), Some("false"));
        assert_eq!((reply.header("retry-after"), reply.header("retry-after-ms")), (Some("7"), Some("7000")));
    }
}

#[tokio::test]
async fn a_remembered_answer_is_replayed_in_both_forms() {
    let running = start(CONFIG).await;
    let body = ask("cached").replace(r#"{"model""#, r#"{"temperature":0,"model""#);
    let first = running.chat(&body).await;
    assert_eq!((first.status, first.header("x-gw-cache")), (200, Some("miss")));
    let again = running.chat(&body).await;
    assert_eq!((again.status, again.header("x-gw-cache")), (200, Some("exact")));
    assert_eq!((again.header("x-gw-attempts"), again.header("x-gw-cost-micros")), (Some("0"), Some("0")));
    let content = |reply: &crate::support::Reply| reply.json()["choices"][0]["message"]["content"].clone();
    assert_eq!(content(&first), content(&again));
    let streamed = running.chat(&body.replace(r#"{"temperature""#, r#"{"stream":true,"temperature""#)).await;
    assert_eq!((streamed.status, streamed.header("x-gw-cache")), (200, Some("exact")));
    assert!(streamed.body.ends_with("data: [DONE]\n\n"), "{}", streamed.body);
}

#[tokio::test]
async fn models_are_listed_and_found() {
    let running = start(CONFIG).await;
    let list = running.get("/v1/models").await;
    let ids: Vec<String> = list.json()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["cached", "down", "echo", "flaky", "slow", "team/echo"]);
    for path in ["/v1/models/echo", "/v1/models/team/echo", "/v1/models/team%2Fecho"] {
        let reply = running.get(path).await;
        assert_eq!((reply.status, &reply.json()["object"]), (200, &"model".into()), "{path}");
    }
    let missing = running.get("/v1/models/other").await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &"model_not_found".into()));
}
