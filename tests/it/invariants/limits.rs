//! I4 to I7: refusals, buckets, quotas.

use std::{sync::Arc, time::Duration};

use gw_types::{Clock, ErrorKind, ManualClock, Money, Outcome, Random, SeededRandom, UtcTime};

use crate::support::{Ask, House, Toml};

/// A script whose answers number the calls.
fn counting() -> Toml {
    Toml::new()
        .scripted_with(
            "up",
            &["ok text=one", "ok text=two", "ok text=three", "ok text=four"],
            "price = { input = 0, output = 1_000_000 }",
        )
        .route("m", &["up"])
}

#[tokio::test(start_paused = true)]
async fn i04_a_refusal_by_one_limit_consumes_nothing_of_the_others() {
    let toml = counting()
        .tenant("a", "requests_per_minute = 10\ntokens_per_minute = 10_000\nmax_concurrency = 1\nbudget = { limit_micros = 100, window = \"day\" }")
        .tenant("b", "");
    let house = House::new(&toml).await;
    let full = house.snapshot("a");
    let ask = Ask::of("a", "m", "hello").with("max_tokens", 5);
    let image = serde_json::json!([{"type": "image_url", "image_url": {"url": "https://a.example/i.png"}}]);
    let seen = serde_json::json!([{"role": "user", "content": image}]);
    for (refused, kind, by) in [
        (ask.clone().with("max_tokens", 20_000), ErrorKind::RateLimited, "tenant:a.tokens_per_minute"),
        (ask.clone().with("max_tokens", 101), ErrorKind::QuotaExceeded, "tenant:a.budget"),
        (ask.clone().with("model", "nobody-knows"), ErrorKind::UnknownModel, ""),
        (ask.clone().with("messages", seen), ErrorKind::NoRouteAvailable, ""),
        (
            ask.clone().context(|context| context.cache = gw_types::CacheControl::OnlyIfCached),
            ErrorKind::NotCached,
            "",
        ),
    ] {
        let failure = house.ask(&refused).await.unwrap_err();
        assert_eq!(failure.error.kind(), kind);
        if kind == ErrorKind::QuotaExceeded {
            assert_eq!(failure.error.subject(), Some(by));
        } else if kind == ErrorKind::RateLimited {
            assert_eq!(house.last_record().await.decision.limiter.unwrap().refused_by[0].as_str(), by);
        }
        assert_eq!(house.snapshot("a"), full, "{kind}");
    }
    // The concurrency cap refuses behind the rates: what they gave goes back.
    let admitted = house.open(&ask).await.unwrap();
    let held = house.snapshot("a");
    assert_eq!(house.ask(&ask).await.unwrap_err().error.kind(), ErrorKind::RateLimited);
    assert_eq!(house.snapshot("a"), held);
    drop(admitted);
    house.holds_nothing("a");
}

#[test]
fn i05_buckets_stay_in_range_for_any_clock() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let clock = ManualClock::new(UtcTime::from_micros(1_893_456_000_000_000));
        let toml = counting().tenant("a", "requests_per_minute = 60\ntokens_per_minute = 600");
        let house = House::with_clock(&toml, Arc::new(clock.clone())).await;
        let random = SeededRandom::new(7);
        let (mut requests, mut tokens) = (0_u64, 0_u64);
        for step in 0..600 {
            match random.below(4) {
                0 => clock.advance(Duration::from_millis(random.below(2_000))),
                1 => clock.step_utc(Duration::from_secs(random.below(100_000)), random.below(2) == 0),
                _ => {
                    let ask = Ask::of("a", "m", "hi").with("max_tokens", 1 + random.below(40));
                    if house.ask(&ask).await.is_ok() {
                        requests += 1;
                        tokens += house.last_record().await.usage.total().get();
                    }
                }
            }
            let snapshot = house.snapshot("a");
            let (by_requests, by_tokens) = (snapshot.requests.unwrap(), snapshot.tokens.unwrap());
            assert!(by_requests.remaining <= 60 && by_tokens.remaining <= 600, "step {step}");
            let minted_millis = clock.now().nanos() / 1_000_000;
            assert!(requests <= 60 + minted_millis / 1_000, "step {step}: {requests} requests");
            assert!(tokens <= 600 + minted_millis / 100, "step {step}: {tokens} tokens");
        }
        assert!(requests > 100, "the run says nothing with {requests} requests");
    });
}

#[tokio::test(start_paused = true)]
async fn i06_a_quota_refuses_at_its_boundary() {
    let toml = Toml::new()
        .scripted_with("up", &["ok text=a b c d e"], "price = { input = 0, output = 1_000_000 }")
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 10, window = \"hour\" }");
    let house = House::new(&toml).await;
    let ask = Ask::of("a", "m", "hello").with("max_tokens", 5);
    for spent in [5, 10] {
        house.ask(&ask).await.unwrap();
        assert_eq!(house.snapshot("a").budget.unwrap().spent, Money::from_micros(spent));
    }
    // Spent is equal to the limit: even a request that could cost next to nothing is refused.
    let failure = house.ask(&ask.clone().with("max_tokens", 1)).await.unwrap_err();
    assert_eq!(failure.error.kind(), ErrorKind::QuotaExceeded);
    assert_eq!(failure.error.retry_after(), Some(Duration::from_secs(3_600)));
    tokio::time::advance(Duration::from_secs(3_599)).await;
    assert!(house.ask(&ask).await.is_err());
    tokio::time::advance(Duration::from_secs(1)).await;
    house.ask(&ask).await.unwrap();
    assert_eq!(house.snapshot("a").budget.unwrap().spent, Money::from_micros(5));
}

#[tokio::test(start_paused = true)]
async fn i07_refusals_by_quota_and_rate_call_no_provider() {
    let toml = counting()
        .tenant("poor", "budget = { limit_micros = 4, window = \"day\" }")
        .tenant("slow", "requests_per_minute = 1");
    let house = House::new(&toml).await;
    let poor = Ask::of("poor", "m", "hello").with("max_tokens", 5);
    let slow = Ask::of("slow", "m", "hello").with("max_tokens", 5);
    assert_eq!(house.ask(&poor).await.unwrap_err().error.kind(), ErrorKind::QuotaExceeded);
    assert_eq!(crate::support::said(&house.ask(&slow).await.unwrap().body), "one");
    for _ in 0..3 {
        assert_eq!(house.ask(&slow).await.unwrap_err().error.kind(), ErrorKind::RateLimited);
        assert!(house.tell(&poor).await.is_err());
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    // The script goes on where the last call left it: nothing has been called in between.
    assert_eq!(crate::support::said(&house.ask(&slow).await.unwrap().body), "two");
    for record in house.records().await {
        assert_eq!(record.attempts.is_empty(), record.outcome == Outcome::Refused);
    }
}
