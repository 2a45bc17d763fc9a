//! SIGTERM: what is in flight, what comes meanwhile, and how it ends.

use gw_testkit::{CallOutcome, FakeProvider, Fault, FaultScript, ok};
use serde_json::Value;

use crate::support::{Events, Gw, Toml, chat, eventually};

fn streaming() -> Value {
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    body
}

fn toml(provider: &FakeProvider, server: &str) -> Toml {
    Toml::new().server(server).upstream("up", provider).route("m", &["up"]).tenant("a", "").sqlite()
}

async fn gated() -> FakeProvider {
    FakeProvider::start(FaultScript::of(ok("one two three").gate_after(1)).then(ok("at once"))).await.unwrap()
}

async fn readiness(gw: &Gw) -> u16 {
    gw.admin("/readyz").send().await.status
}

/// Waits until the signal has been seen.
async fn draining(gw: &Gw) {
    eventually("the drain", || async { (readiness(gw).await == 503).then_some(()) }).await;
}

#[tokio::test]
async fn new_requests_are_served_within_the_grace_and_streams_complete() {
    let provider = gated().await;
    // A grace that no test outlives: everything here happens inside it.
    let mut gw = Gw::start(&toml(&provider, "drain_grace_ms = 3_000\ndrain_timeout_ms = 60_000")).await;
    let mut stream = gw.chat("a", &streaming()).stream().await;
    stream.until("one").await;
    gw.terminate().await;
    draining(&gw).await;
    assert_eq!(gw.admin("/healthz").send().await.status, 200, "alive, though not ready");
    let meanwhile = gw.chat("a", &chat("m", "meanwhile")).send().await;
    assert_eq!(meanwhile.said(), "at once");
    provider.open_gate();
    let events = Events::read(&stream.rest().await);
    assert_eq!((events.text().as_str(), events.done), ("one two three", true));
    assert_eq!(gw.ended().await.code(), Some(0), "{}", gw.stderr());
    assert_eq!(outcomes(&gw), ["ok", "ok"]);
}

#[tokio::test]
async fn behind_the_grace_new_requests_are_refused_while_old_ones_complete() {
    let provider = gated().await;
    let mut gw = Gw::start(&toml(&provider, "drain_grace_ms = 0\ndrain_timeout_ms = 60_000")).await;
    let mut stream = gw.chat("a", &streaming()).stream().await;
    stream.until("one").await;
    gw.terminate().await;
    draining(&gw).await;
    let refused = eventually("a refusal", || async {
        let answer = gw.chat("a", &chat("m", "too late")).send().await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!((refused.status, refused.error()["code"].as_str()), (503, Some("overloaded")));
    assert!(refused.header("retry-after").parse::<u64>().is_ok());
    provider.open_gate();
    let events = Events::read(&stream.rest().await);
    assert_eq!((events.text().as_str(), events.done), ("one two three", true));
    assert_eq!(gw.ended().await.code(), Some(0), "{}", gw.stderr());
}

#[tokio::test]
async fn what_is_left_at_the_end_of_the_window_gets_an_error_in_band_and_a_record() {
    let provider = gated().await;
    let mut gw = Gw::start(&toml(&provider, "drain_grace_ms = 0\ndrain_timeout_ms = 300")).await;
    let mut stream = gw.chat("a", &streaming()).stream().await;
    stream.until("one").await;
    gw.terminate().await;
    let events = Events::read(&stream.rest().await);
    assert_eq!((events.text().as_str(), events.done, events.finishes().len()), ("one ", false, 0));
    assert!(events.error_text().contains("shutting down"), "{}", events.error_text());
    assert_eq!(gw.ended().await.code(), Some(0), "{}", gw.stderr());
    assert_eq!(provider.wait_for_client_gone(1).await[0].outcome, CallOutcome::ClientGone);
    let outcomes = outcomes(&gw);
    assert!(outcomes.len() == 1 && outcomes[0] != "ok", "settled and recorded: {outcomes:?}");
}

#[tokio::test]
async fn a_plain_request_that_the_end_of_the_window_ends_is_not_the_clients_doing() {
    let provider = FakeProvider::start(FaultScript::of(Fault::HangBeforeHead)).await.unwrap();
    let mut gw = Gw::start(&toml(&provider, "drain_grace_ms = 0\ndrain_timeout_ms = 300")).await;
    let waiting = tokio::spawn(gw.chat("a", &chat("m", "hello")).send());
    eventually("the call", || async { (provider.calls().len() == 1).then_some(()) }).await;
    gw.terminate().await;
    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.error()["code"].as_str()), (503, Some("overloaded")));
    assert_eq!(gw.ended().await.code(), Some(0), "{}", gw.stderr());
    let records = crate::e2e::ledger::records(&gw.folder());
    let how = (records[0]["outcome"].as_str(), records[0]["error"].as_str());
    assert_eq!((how, records.len()), ((Some("failed"), Some("overloaded")), 1));
}

#[tokio::test]
async fn an_idle_gateway_ends_at_once() {
    let provider = gated().await;
    let gw = Gw::start(&toml(&provider, "drain_grace_ms = 0\ndrain_timeout_ms = 60_000")).await;
    gw.stop().await;
}

/// Reads the outcomes of the records out of the ledger's file, oldest first.
fn outcomes(gw: &Gw) -> Vec<String> {
    crate::e2e::ledger::records(&gw.folder())
        .iter()
        .map(|record| record["outcome"].as_str().unwrap().to_owned())
        .collect()
}
