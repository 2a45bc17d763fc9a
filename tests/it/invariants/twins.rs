//! I13: two gateways built alike.

use std::{sync::Arc, time::Duration};

use gw_config::Composition;
use gw_server::{Listeners, Metrics, Server, ServerParts};
use gw_types::{ManualClock, UtcTime};

use crate::support::{Ask, House, Raw, Toml, chat, cost_by, raw_chat};

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

/// Serves a house on a port of its own, asks for plain answers and streams, and returns the bytes that came back, but for
/// the date, which the HTTP library takes from the system.
async fn answered() -> Vec<String> {
    let toml = Toml::new()
        .scripted("first", &["429 retry-after=1", "ok text=of the first", "503", "truncate", "ok"])
        .scripted("second", &["ok text=of the second"])
        .route_with("m", &["first", "second"], "cache = { exact = true }")
        .tenant("a", "requests_per_minute = 7\nbudget = { limit_micros = 50_000, window = \"hour\" }");
    let clock = ManualClock::new(UtcTime::from_micros(1_893_456_000_000_000));
    let house = House::with_clock(&toml, Arc::new(clock.clone())).await;
    let Composition { gateway, key_store: keys, ledger, server: settings, .. } = house.composition;
    let listeners = Listeners::bind(&settings).await.unwrap();
    let (data, admin) =
        (listeners.data.local_addr().unwrap(), listeners.admin.as_ref().unwrap().local_addr().unwrap());
    let server =
        Server::new(ServerParts { gateway, keys, ledger, metrics: Arc::new(Metrics::default()), settings });
    let serving = tokio::spawn(server.run(listeners, std::future::pending()));
    let mut answers = Vec::new();
    for round in 0..9 {
        let mut body = chat("m", ["hello", "good morning", "what is new"][round % 3]);
        body["max_tokens"] = (20 + round / 6).into();
        body["stream"] = (round % 2 == 1).into();
        let mut raw = Raw::connect(data).await;
        raw.send(raw_chat("a", b"", body.to_string().as_bytes())).await;
        answers.push(raw.rest().await);
        clock.advance(Duration::from_millis(250));
    }
    let mut raw = Raw::connect(admin).await;
    raw.send("GET /admin/v1/records HTTP/1.1\r\nhost: gw\r\nconnection: close\r\n\r\n").await;
    answers.push(raw.rest().await);
    serving.abort();
    let dateless = |answer: String| -> String {
        answer.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
    };
    answers.into_iter().map(dateless).collect()
}

#[tokio::test]
async fn i13_two_servers_built_alike_answer_the_same_bytes() {
    let (first, second) = (answered().await, answered().await);
    assert_eq!(first, second);
    let all = first.concat();
    for part in
        ["x-gw-cache: exact", "x-gw-attempts: 2", "429 Too Many", "data: [DONE]", "\"outcome\":\"refused\""]
    {
        assert!(all.contains(part), "the run did not come to `{part}`");
    }
}
