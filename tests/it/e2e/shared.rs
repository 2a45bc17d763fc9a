//! Equal requests in flight.

use gw_testkit::{FakeProvider, FaultScript, ok};
use serde_json::{Value, json};

use crate::support::{Events, Gw, Toml, chat, metric};

const CALLERS: usize = 50;

async fn gate() -> FakeProvider {
    FakeProvider::start(FaultScript::of(ok("one two three").usage(11, 3).gate_after(1))).await.unwrap()
}

fn toml(provider: &FakeProvider) -> Toml {
    Toml::new().upstream("up", provider).route_with("m", &["up"], "cache = { exact = true }").tenant("a", "")
}

/// Says that one request has paid for one call, and the others for none.
async fn one_pays(gw: &Gw) {
    let records = gw.records(CALLERS).await;
    let of = |state: &str| records.iter().filter(|record| record["cache"] == state).count();
    assert_eq!((of("miss"), of("coalesced")), (1, CALLERS - 1));
    let leader = &records.iter().find(|record| record["cache"] == "miss").unwrap()["id"];
    for record in &records {
        let leads = record["cache"] == "miss";
        assert_eq!(&record["origin"], if leads { &Value::Null } else { leader }, "{record}");
        assert_eq!(record["attempts"].as_array().unwrap().len(), usize::from(leads), "{record}");
        assert_eq!(record["cost"] != json!(0), leads, "{record}");
        assert_eq!((record["outcome"].as_str(), record["serving"].as_str()), (Some("ok"), Some("up")));
    }
    let page = gw.metrics().await;
    assert_eq!(metric(&page, "gw_cache_total{state=\"coalesced\"}"), u64::try_from(CALLERS).unwrap() - 1);
}

fn streaming() -> Value {
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    body
}

#[tokio::test]
async fn fifty_identical_streams_in_flight_make_one_provider_call() {
    let provider = gate().await;
    let gw = Gw::start(&toml(&provider)).await;
    // The head of a stream is there as soon as it says something, and this one waits at the gate behind a word.
    let opening: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(gw.chat("a", &streaming()).stream())).collect();
    let mut streams = Vec::new();
    for stream in opening {
        streams.push(stream.await.unwrap());
    }
    let states: Vec<String> = streams.iter().map(|stream| stream.header("x-gw-cache").to_owned()).collect();
    assert_eq!(states.iter().filter(|state| *state == "miss").count(), 1, "{states:?}");
    assert_eq!(states.iter().filter(|state| *state == "coalesced").count(), CALLERS - 1, "{states:?}");
    provider.open_gate();
    for stream in streams {
        let events = Events::read(&stream.rest().await);
        assert_eq!((events.text().as_str(), events.done), ("one two three", true));
    }
    assert_eq!(provider.calls().len(), 1);
    one_pays(&gw).await;
    let hit = gw.chat("a", &streaming()).stream().await;
    assert_eq!(hit.header("x-gw-cache"), "exact");
    assert_eq!(Events::read(&hit.rest().await).text(), "one two three");
}

#[tokio::test]
async fn streams_go_on_without_the_one_that_began_the_call() {
    let provider = gate().await;
    let gw = Gw::start(&toml(&provider)).await;
    let mut leader = gw.chat("a", &streaming()).stream().await;
    leader.until("one").await;
    let follower = gw.chat("a", &streaming()).stream().await;
    assert_eq!((leader.header("x-gw-cache"), follower.header("x-gw-cache")), ("miss", "coalesced"));
    drop(leader);
    provider.open_gate();
    assert_eq!(Events::read(&follower.rest().await).text(), "one two three");
    assert_eq!(provider.calls().len(), 1);
    let records = gw.records(2).await;
    let led = records.iter().find(|record| record["cache"] == "miss").unwrap();
    assert_ne!(led["cost"], json!(0), "who began the call pays it: {led}");
}
