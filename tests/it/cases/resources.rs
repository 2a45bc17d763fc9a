//! Kind `resources`.

use std::{sync::Arc, time::Duration};

use gw_exec::SystemClock;
use gw_testkit::{FakeProvider, FakeStream, Fault, FaultScript, Step, ok, status};

use crate::support::{Ask, House, Toml, eventually, within};

/// Connections that the provider's pool may hold.
const CONNECTIONS: u32 = 4;

async fn house() -> (FakeProvider, House) {
    let endless = FakeStream { status: 500, ..FakeStream::new([Step::text("{\"error\":"), Step::Hang]) };
    let script = FaultScript::of(ok("fine"))
        .for_model("unread", status(429).body("x".repeat(1 << 20)))
        .for_model("endless", endless)
        .for_model("silent", Fault::HangBeforeHead)
        .for_model("paused", ok("one two three").gate_after(1));
    let provider = FakeProvider::start(script).await.unwrap();
    let mut toml = Toml::new()
        .part(&format!(
            "[providers.up]\nkind = \"openai-compatible\"\nbase_url = \"{}\"\nmax_connections = {CONNECTIONS}\n\
             pool_wait_timeout_ms = 1_000",
            provider.base_url()
        ))
        .tenant("a", "");
    for model in ["fine", "unread", "endless", "silent", "paused", "late"] {
        let name = if model == "late" { "silent" } else { model };
        let timeout = if model == "late" { 50 } else { 20_000 };
        let lines = format!("model = \"{name}\"\nattempt_timeout_ms = {timeout}");
        toml = toml.deployment(model, "up", &lines).route(model, &[model]);
    }
    let house = House::with_clock(&toml, Arc::new(SystemClock::default())).await;
    (provider, house)
}

fn in_use(house: &House) -> u32 {
    house.composition.deployments()[0].transport.as_ref().unwrap().connections_in_use
}

/// Asks for so many streams at once and gives each of them so long.
async fn at_once(house: &House, model: &str, patience: Duration) {
    let one = || async {
        let ask = Ask::of("a", model, "hello");
        let _left = tokio::time::timeout(patience, async {
            let opened = house.open(&ask).await;
            assert!(opened.is_err() || model == "paused", "{model} was answered");
            opened
        })
        .await;
    };
    tokio::join!(one(), one(), one(), one());
}

#[tokio::test]
async fn unread_upstream_answers_give_their_connection_back() {
    let (_provider, house) = house().await;
    for (model, patience) in [
        ("unread", Duration::from_secs(30)),
        ("endless", Duration::from_secs(30)),
        ("silent", Duration::from_millis(50)),
        ("paused", Duration::from_secs(30)),
        ("late", Duration::from_secs(30)),
    ] {
        for _ in 0..if model == "endless" { 1 } else { 4 } {
            at_once(&house, model, patience).await;
            assert!(in_use(&house) <= CONNECTIONS, "{model}");
            eventually("the connections", || async { (in_use(&house) == 0).then_some(()) }).await;
        }
    }
    let ask = Ask::of("a", "fine", "hello");
    let healthy = || house.ask(&ask);
    let answers =
        within("4 healthy answers", async { tokio::join!(healthy(), healthy(), healthy(), healthy()) }).await;
    assert!(answers.0.is_ok() && answers.1.is_ok() && answers.2.is_ok() && answers.3.is_ok());
    // Whoever finds no connection is told that it was gw's, and not the provider's, fault.
    let held = Ask::of("a", "silent", "hello");
    let hold = || house.ask(&held);
    let fifth = async {
        eventually("a full pool", || async { (in_use(&house) == CONNECTIONS).then_some(()) }).await;
        house.ask(&ask).await
    };
    let refused = tokio::select! {
        refused = fifth => refused.unwrap_err(),
        _ = async { tokio::join!(hold(), hold(), hold(), hold()) } => panic!("a silent provider answered"),
    };
    assert_eq!(refused.error.http_status(gw_types::Dialect::OpenAi), 503, "{:?}", refused.error);
}
