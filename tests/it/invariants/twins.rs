//! I13: two gateways built alike.

use std::time::Duration;

use crate::support::{Ask, House, Toml, cost_by};

/// Retries with jitter, failover, streams, a cache, refusals: everything that could differ.
fn toml() -> Toml {
    Toml::new()
        .scripted_with(
            "first",
            &["503", "delay=30 ok", "429 retry-after=1", "503", "truncate", "delay=5 ok text=once more"],
            "max_attempts = 2",
        )
        .scripted("second", &["delay=20 ok text=of the second", "ok"])
        .route_with(
            "m",
            &["first", "second"],
            "cache = { exact = true, semantic = { threshold = 0.9 } }\nmax_attempts = 4",
        )
        .tenant("a", "requests_per_minute = 8\nbudget = { limit_micros = 5_000, window = \"hour\" }")
        .tenant("b", "tokens_per_minute = 2_000")
}

/// Plays one script of requests; returns everything that can be seen from outside, in order.
async fn played() -> (Vec<String>, Vec<String>) {
    let house = House::new(&toml()).await;
    let mut seen = Vec::new();
    for round in 0..12_u64 {
        let tenant = if round % 3 == 2 { "b" } else { "a" };
        let ask = Ask::of(
            tenant,
            "m",
            ["hello", "good morning", "what is new"][usize::try_from(round % 3).unwrap()],
        )
        .with("max_tokens", 20 + round / 6);
        seen.push(if round % 2 == 0 {
            format!("{:?}", house.ask(&ask).await.map(|given| (given.head, given.body)))
        } else {
            format!("{:?}", house.tell(&ask).await.map(|told| (told.head, told.body)))
        });
        tokio::time::advance(Duration::from_millis(700 * round)).await;
    }
    let records = house.records().await;
    seen.push(format!("{:?}", cost_by(&records, |record| record.tenant.to_string())));
    (seen, records.iter().map(|record| serde_json::to_string(record).unwrap()).collect())
}

#[test]
fn i13_two_gateways_built_alike_give_identical_responses_and_records() {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(played())
    };
    let (first, second) = (run(), run());
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
    assert_eq!(first.1.len(), 12);
    assert!(first.1.iter().any(|record| !record.contains("\"draws\":[]")), "chance took part");
    assert!(first.1.iter().any(|record| record.contains("\"cache\":\"exact\"")), "the cache took part");
}
