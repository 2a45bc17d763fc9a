//! What happens when a provider fails.

use std::time::Duration;

use gw_testkit::{FakeProvider, Fault, FaultScript, content_filter, ok, status};

use crate::support::{Events, Gw, Toml, chat};

/// Two upstreams in one chain.
async fn two(first: impl Into<Fault>) -> (FakeProvider, FakeProvider, Toml) {
    let one = FakeProvider::start(FaultScript::of(first)).await.unwrap();
    let two = FakeProvider::start(FaultScript::of(ok("of the second"))).await.unwrap();
    let toml =
        Toml::new().upstream("one", &one).upstream("two", &two).route("m", &["one", "two"]).tenant("a", "");
    (one, two, toml)
}

#[tokio::test]
async fn a_429_falls_over_to_the_next_deployment() {
    let (one, two, toml) = two(status(429).retry_after(60)).await;
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((answer.said().as_str(), answer.header("x-gw-deployment")), ("of the second", "two"));
    assert_eq!(answer.header("x-gw-attempts"), "2");
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    // The first one rests for as long as it asked for.
    let stream = gw.chat("a", &body).stream().await;
    assert_eq!(stream.header("x-gw-attempts"), "1");
    assert_eq!(Events::read(&stream.rest().await).text(), "of the second");
    assert_eq!((one.calls().len(), two.calls().len()), (1, 2));
    let records = gw.records(2).await;
    let out = serde_json::json!([{"route": "m", "deployment": "one", "reason": "cooldown"}]);
    assert_eq!(records[1]["decision"]["exclusions"], out);
    let record = &records[0];
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!(
        (attempts[0]["deployment"].as_str(), attempts[0]["status"].as_u64()),
        (Some("one"), Some(429))
    );
    assert_eq!(attempts[0]["upstream_request_id"], "req-fake-1");
    assert_eq!((record["primary"].as_str(), record["serving"].as_str()), (Some("one"), Some("two")));
}

#[tokio::test]
async fn a_content_filter_does_not_fall_over() {
    let (one, two, toml) = two(content_filter()).await;
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((answer.status, answer.error()["code"].as_str()), (400, Some("content_filter")));
    assert_eq!((answer.header("x-should-retry"), answer.header("x-gw-attempts")), ("false", "1"));
    assert_eq!((one.calls().len(), two.calls().len()), (1, 0));
}

#[tokio::test]
async fn a_side_effecting_request_is_tried_once() {
    let (one, two, toml) = two(status(503)).await;
    let gw = Gw::start(&toml).await;
    let call = gw.chat("a", &chat("m", "hello")).header("x-gw-side-effecting", "true");
    let answer = call.send().await;
    assert_eq!((answer.status, answer.header("x-gw-attempts")), (503, "1"));
    assert_eq!((one.calls().len(), two.calls().len()), (1, 0));
}

#[tokio::test]
async fn a_side_effecting_request_without_a_known_result_is_ambiguous() {
    let (one, two, toml) = two(Fault::ResetBeforeHead).await;
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).header("x-gw-side-effecting", "true").send().await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (502, "false"));
    assert_eq!((one.calls().len(), two.calls().len()), (1, 0));
    assert_eq!(answer.error()["outcome"], "ambiguous");
    assert_eq!(gw.records(1).await[0]["outcome"], "ambiguous");
}

#[tokio::test]
async fn a_request_without_side_effects_is_never_ambiguous() {
    // Nothing was changed anywhere, so a repeat is the client's to decide, and record and answer say the same.
    for fault in [Fault::ResetBeforeHead, Fault::HangBeforeHead] {
        let (one, _two, _) = two(fault).await;
        let lines = "attempt_timeout_ms = 100";
        let toml =
            Toml::new().upstream_with("one", &one.base_url(), "", lines).route("m", &["one"]).tenant("a", "");
        let gw = Gw::start(&toml).await;
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        assert!(matches!(answer.status, 502 | 504), "{}", answer.text());
        assert_eq!(gw.records(1).await[0]["outcome"], "failed");
        assert!(answer.error().get("outcome").is_none(), "{}", answer.text());
        assert_eq!(answer.header("x-should-retry"), "");
    }
}

#[tokio::test]
async fn a_deadline_shorter_than_the_provider_ends_the_request_and_the_call() {
    let (one, _two, _) = two(Fault::HangBeforeHead).await;
    let gw = Gw::start(&Toml::new().upstream("one", &one).route("m", &["one"]).tenant("a", "")).await;
    let answer = gw.chat("a", &chat("m", "hello")).header("x-gw-deadline-ms", "150").send().await;
    assert_eq!(answer.status, 504);
    one.wait_for_client_gone(1).await;
    let record = &gw.records(1).await[0];
    assert_eq!(record["facts"]["deadline_ms"], 150);
    let took = Duration::from_micros(record["latency"]["total_us"].as_u64().unwrap());
    assert!(took >= Duration::from_millis(150), "{took:?}");
    // It was the caller's deadline and not the provider's own limit: the error must say so.
    assert_eq!(answer.error()["code"], "deadline_exceeded");
}

#[tokio::test]
async fn a_stream_that_outlives_its_deadline_ends_with_an_error_in_band() {
    let provider = FakeProvider::start(FaultScript::of(ok("one two three").gate_after(1))).await.unwrap();
    let gw = Gw::start(&Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "")).await;
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    let stream = gw.chat("a", &body).header("x-gw-deadline-ms", "1000").stream().await;
    assert_eq!(stream.status, 200);
    let events = Events::read(&stream.rest().await);
    assert_eq!((events.text().as_str(), events.done, events.finishes().len()), ("one ", false, 0));
    assert_eq!(events.error.unwrap()["code"], "deadline_exceeded");
    provider.wait_for_client_gone(1).await;
    let record = &gw.records(1).await[0];
    assert_eq!(
        (record["outcome"].as_str(), record["error"].as_str()),
        (Some("failed"), Some("deadline_exceeded"))
    );
    assert!(record["usage"]["estimated"].as_bool().unwrap());
}

#[tokio::test]
async fn a_failure_behind_the_last_candidate_is_the_last_error() {
    let (one, second, _) = two(status(503)).await;
    drop(second);
    let gone = FakeProvider::start(FaultScript::of(Fault::RefuseConnection)).await.unwrap();
    let toml =
        Toml::new().upstream("one", &one).upstream("two", &gone).route("m", &["one", "two"]).tenant("a", "");
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((answer.status, answer.header("x-gw-attempts")), (502, "2"));
    assert_eq!(answer.header("x-should-retry"), "false", "the attempts are spent");
    let attempts = gw.records(1).await[0]["attempts"].clone();
    assert_eq!(
        (attempts[0]["error"].as_str(), attempts[1]["error"].as_str()),
        (Some("provider_unavailable"), Some("transport"))
    );
}
