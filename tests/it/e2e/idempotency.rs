//! `Idempotency-Key`: one call for one key, whatever happens to client, provider and gateway.

use gw_testkit::{CallOutcome, FakeProvider, Fault, FaultScript, ok, status};
use serde_json::Value;

use crate::support::{Answer, Events, Gw, Toml, chat, eventually};

fn toml(provider: &FakeProvider) -> Toml {
    Toml::new()
        .server("drain_grace_ms = 0")
        .upstream("up", provider)
        .route("m", &["up"])
        .tenant("a", "")
        .tenant("b", "")
        .sqlite()
}

async fn start(script: FaultScript) -> (FakeProvider, Gw) {
    let provider = FakeProvider::start(script).await.unwrap();
    let gw = Gw::start(&toml(&provider)).await;
    (provider, gw)
}

async fn ask(gw: &Gw, tenant: &str, key: &str, body: &Value) -> Answer {
    gw.chat(tenant, body).header("idempotency-key", key).send().await
}

fn streaming(text: &str) -> Value {
    let mut body = chat("m", text);
    body["stream"] = true.into();
    body
}

#[tokio::test]
async fn the_same_key_and_body_get_the_stored_answer() {
    let (provider, gw) = start(FaultScript::of(ok("first")).then(ok("second"))).await;
    let first = ask(&gw, "a", "k", &chat("m", "hello")).await;
    let again = ask(&gw, "a", "k", &chat("m", "hello")).await;
    assert_eq!((first.said().as_str(), first.body.clone()), ("first", again.body.clone()));
    assert_eq!(again.header("x-gw-replay-of"), first.header("x-request-id"));
    assert_eq!((again.header("x-gw-attempts"), again.header("x-gw-cost-micros")), ("0", "0"));
    assert_eq!((again.header("x-gw-deployment"), first.header("x-gw-replay-of")), ("up", ""));
    assert_eq!(provider.calls().len(), 1);
    let records = gw.records(2).await;
    assert_eq!(records[1]["replay_of"], records[0]["id"]);
    assert_eq!((records[1]["outcome"].as_str(), records[1]["cost"].as_u64()), (Some("ok"), Some(0)));
    // Another tenant's key is another key.
    assert_eq!(ask(&gw, "b", "k", &chat("m", "hello")).await.said(), "second");
    let other = ask(&gw, "a", "k", &chat("m", "something else")).await;
    assert_eq!((other.status, other.error()["code"].as_str()), (422, Some("idempotency_conflict")));
    assert_eq!((provider.calls().len(), other.header("x-should-retry")), (2, "false"));
}

#[tokio::test]
async fn a_key_stands_for_an_answer_from_the_cache_too() {
    let provider = FakeProvider::start(FaultScript::of(ok("first")).then(ok("second"))).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route_with("m", &["up"], "cache = { exact = true, ttl_s = 60 }")
        .tenant("a", "")
        .sqlite();
    let gw = Gw::start(&toml).await;
    for body in [chat("m", "hello"), streaming("hello")] {
        gw.chat("a", &body).send().await;
        let key = if body["stream"] == true { "s" } else { "k" };
        let hit = ask(&gw, "a", key, &body).await;
        assert_eq!((hit.header("x-gw-cache"), hit.header("x-gw-replay-of")), ("exact", ""));
        let again = ask(&gw, "a", key, &body).await;
        assert_eq!((again.status, again.header("x-gw-replay-of")), (200, hit.header("x-request-id")));
        assert!(again.text().contains("first"), "{}", again.text());
        assert_eq!(ask(&gw, "a", key, &chat("m", "something else")).await.status, 422);
    }
    assert_eq!(provider.calls().len(), 1);
}

#[tokio::test]
async fn a_stream_is_given_again_as_it_was() {
    let (provider, gw) = start(FaultScript::of(ok("one two three"))).await;
    let call = || gw.chat("a", &streaming("hello")).header("idempotency-key", "k");
    let first = call().stream().await.rest().await;
    let again = call().stream().await;
    assert_eq!((again.status, again.header("content-type")), (200, "text/event-stream; charset=utf-8"));
    assert!(!again.header("x-gw-replay-of").is_empty());
    let again = again.rest().await;
    assert_eq!(first, again);
    let events = Events::read(&again);
    assert_eq!((events.text().as_str(), events.done), ("one two three", true));
    assert_eq!(provider.calls().len(), 1);
}

#[tokio::test]
async fn a_key_in_flight_is_a_conflict() {
    let (provider, gw) = start(FaultScript::of(ok("one two").gate_after(1))).await;
    let mut stream = gw.chat("a", &streaming("hello")).header("idempotency-key", "k").stream().await;
    stream.until("one").await;
    let meanwhile = ask(&gw, "a", "k", &streaming("hello")).await;
    assert_eq!((meanwhile.status, meanwhile.error()["code"].as_str()), (409, Some("idempotency_conflict")));
    assert!(meanwhile.error().get("outcome").is_none());
    provider.open_gate();
    assert!(Events::read(&stream.rest().await).done);
    assert_eq!(provider.calls().len(), 1);
}

#[tokio::test]
async fn what_a_provider_declined_or_never_saw_leaves_the_key_free() {
    for fault in [status(429), status(400)] {
        let (provider, gw) = start(FaultScript::of(fault).then(ok("now"))).await;
        assert!(ask(&gw, "a", "k", &chat("m", "hello")).await.status >= 400);
        assert_eq!(ask(&gw, "a", "k", &chat("m", "hello")).await.said(), "now");
        assert_eq!(provider.calls().len(), 2);
    }
}

#[tokio::test]
async fn an_unknown_result_is_ambiguous_for_whoever_asks_again() {
    let (provider, gw) = start(FaultScript::of(Fault::ResetBeforeHead).then(ok("never"))).await;
    let call = gw.chat("a", &chat("m", "hello")).header("x-gw-side-effecting", "true");
    let first = call.header("idempotency-key", "k").send().await;
    let attempt = format!("{}.1", first.header("x-request-id"));
    assert_eq!((first.status, first.error()["attempt"].as_str()), (502, Some(attempt.as_str())));
    let again = ask(&gw, "a", "k", &chat("m", "hello")).await;
    assert_eq!((again.status, again.error()["outcome"].as_str()), (409, Some("ambiguous")));
    assert_eq!(again.error()["attempt"], attempt);
    assert_eq!((provider.calls().len(), again.header("x-should-retry")), (1, "false"));
    let records = gw.records(2).await;
    assert_eq!([&records[0]["outcome"], &records[1]["outcome"]], ["ambiguous", "refused"]);
}

#[tokio::test]
async fn a_client_that_leaves_leaves_an_unknown_result_behind() {
    let (provider, gw) = start(FaultScript::of(ok("one two").gate_after(1)).then(ok("never"))).await;
    let mut stream = gw.chat("a", &streaming("hello")).header("idempotency-key", "k").stream().await;
    stream.until("one").await;
    drop(stream);
    assert_eq!(provider.wait_for_client_gone(1).await[0].outcome, CallOutcome::ClientGone);
    gw.records(1).await;
    let again = ask(&gw, "a", "k", &streaming("hello")).await;
    assert_eq!((again.status, again.error()["outcome"].as_str()), (409, Some("ambiguous")));
    assert_eq!(provider.calls().len(), 1);
}

#[tokio::test]
async fn after_kill_9_a_key_whose_call_had_no_end_is_ambiguous_and_never_called_for_again() {
    let provider = FakeProvider::start(
        FaultScript::of(ok("answered")).then(status(429)).then(Fault::HangBeforeHead).then(ok("never")),
    )
    .await
    .unwrap();
    let toml = toml(&provider);
    let gw = Gw::start(&toml).await;
    assert_eq!(ask(&gw, "a", "answered", &chat("m", "hello")).await.said(), "answered");
    assert_eq!(ask(&gw, "a", "declined", &chat("m", "hello")).await.status, 429);
    let hanging = gw.chat("a", &chat("m", "hello")).header("idempotency-key", "hanging");
    let hanging = tokio::spawn(hanging.try_send());
    eventually("the third call", || async { (provider.calls().len() == 3).then_some(()) }).await;
    let folder = gw.kill().await;
    assert!(hanging.await.unwrap().is_none());

    let gw = Gw::start_again(folder, &toml).await;
    let again = ask(&gw, "a", "hanging", &chat("m", "hello")).await;
    assert_eq!((again.status, again.error()["outcome"].as_str()), (409, Some("ambiguous")));
    assert!(again.error()["attempt"].as_str().is_some_and(|attempt| attempt.ends_with(".1")));
    assert_eq!(ask(&gw, "a", "hanging", &chat("m", "other")).await.status, 422);
    // Its answer was content, which no ledger holds; that it was given is known.
    let answered = ask(&gw, "a", "answered", &chat("m", "hello")).await;
    assert_eq!((answered.status, answered.error().get("outcome")), (409, None));
    assert_eq!(provider.calls().len(), 3);
    assert_eq!(ask(&gw, "a", "declined", &chat("m", "hello")).await.said(), "never");
}

#[tokio::test]
async fn i18_neither_key_nor_answer_stands_in_the_ledger() {
    let (_provider, gw) = start(FaultScript::of(ok("canary-answer"))).await;
    assert_eq!(ask(&gw, "a", "canary-key", &chat("m", "canary-prompt")).await.status, 200);
    let folder = gw.stop().await;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "{}", path.display());
    }
}
