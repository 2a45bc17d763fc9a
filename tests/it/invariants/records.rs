//! I12: one record of every request that was let in.

use std::{collections::BTreeSet, time::Duration};

use gw_types::{ErrorKind, GatewayError, Money, Outcome};

use crate::support::{Ask, House, Toml};

fn toml() -> Toml {
    Toml::new()
        .scripted("up", &["ok text=hello there"])
        .scripted("busy", &["429"])
        .scripted("down", &["503"])
        .scripted("filter", &["400 code=content_filter"])
        .scripted_with("silent", &["hang"], "attempt_timeout_ms = 200")
        .scripted("broken", &["truncate"])
        .route_with("ok", &["up"], "cache = { exact = true }")
        .route("falls-over", &["busy", "up"])
        .route("down", &["down"])
        .route("filter", &["filter"])
        .route("silent", &["silent"])
        .route("broken", &["broken"])
        .tenant("a", "budget = { limit_micros = 1_000_000, window = \"day\" }")
        .tenant("slow", "requests_per_minute = 1")
}

/// Leaves a request in the middle: the future of the answer is dropped.
async fn left(house: &House, ask: &Ask) {
    let answer = house.ask(ask);
    let gone = tokio::time::timeout(Duration::from_millis(50), answer).await;
    assert!(gone.is_err(), "it was answered");
}

#[tokio::test(start_paused = true)]
async fn i12_every_way_out_leaves_exactly_one_record() {
    let house = House::new(&toml()).await;
    let ask = |model| Ask::of("a", model, "hello");
    let mut expected = Vec::new();
    house.ask(&ask("ok")).await.unwrap();
    house.ask(&ask("ok")).await.unwrap();
    house.tell(&ask("falls-over")).await.unwrap();
    expected.extend([(Outcome::Ok, None); 3]);
    for (model, outcome, kind) in [
        ("nobody-knows", Outcome::Refused, ErrorKind::UnknownModel),
        ("down", Outcome::Failed, ErrorKind::ProviderUnavailable),
        ("filter", Outcome::of(ErrorKind::ContentFiltered), ErrorKind::ContentFiltered),
        ("silent", Outcome::Failed, ErrorKind::ProviderTimeout),
    ] {
        assert_eq!(house.ask(&ask(model)).await.unwrap_err().error.kind(), kind, "{model}");
        expected.push((outcome, Some(kind)));
    }
    house.tell(&ask("broken")).await.unwrap();
    expected.push((Outcome::Failed, Some(ErrorKind::StreamInterrupted)));
    left(&house, &ask("silent")).await;
    drop(house.open(&ask("ok").with("seed", 1)).await.unwrap());
    drop(house.admit("a"));
    expected.extend([(Outcome::Cancelled, Some(ErrorKind::Cancelled)); 3]);
    let unread = GatewayError::new(ErrorKind::InvalidRequest, "the body is no JSON");
    house.admit("a").refuse(unread).await;
    expected.push((Outcome::Refused, Some(ErrorKind::InvalidRequest)));
    house.ask(&Ask::of("slow", "ok", "hello")).await.unwrap();
    assert!(house.ask(&Ask::of("slow", "ok", "hello")).await.is_err());
    expected.extend([(Outcome::Ok, None), (Outcome::Refused, Some(ErrorKind::RateLimited))]);

    let records = house.records().await;
    let found: Vec<_> = records.iter().map(|record| (record.outcome, record.error)).collect();
    assert_eq!(found, expected);
    let ids: BTreeSet<_> = records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids.len(), records.len(), "every record has an id of its own");
    for record in &records {
        let split = record.latency;
        let parts = split.queue_us
            + split.backoff_us
            + split.upstream_first_byte_us
            + split.upstream_rest_us
            + split.own_us;
        assert_eq!(parts, split.total_us, "{}", record.id);
    }
    let of_silence = &records[6];
    assert!(of_silence.latency.total_us >= 200_000, "a request that waited says so");
    house.holds_nothing("a");
    house.holds_nothing("slow");
    let spent: Money = records
        .iter()
        .filter(|record| record.tenant.as_str() == "a")
        .map(|record| record.side_costs.iter().fold(record.cost, |sum, side| sum.saturating_add(side.cost)))
        .sum();
    assert_eq!(house.snapshot("a").budget.unwrap().spent, spent, "the records add up to what was spent");
}
