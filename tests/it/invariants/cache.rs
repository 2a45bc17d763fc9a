//! I8 to I10: hits, tenants, and what is stored.

use gw_types::{CacheState, Money};

use crate::support::{Ask, Events, House, Toml, said};

const CACHED: &str = "cache = { exact = true, ttl_s = 300 }";
const NEAR: &str = "cache = { exact = true, ttl_s = 300, semantic = { threshold = 0.9 } }";

fn toml(cache: &str, steps: &[&str]) -> Toml {
    Toml::new()
        .scripted_with("up", steps, "model_version = \"v7\"")
        .scripted("spare", &["ok text=spare"])
        .route_with("m", &["up", "spare"], cache)
        .tenant("a", "requests_per_minute = 100\ntokens_per_minute = 10_000")
        .tenant("b", "")
}

#[tokio::test(start_paused = true)]
async fn i08_a_hit_costs_nothing_calls_nobody_and_names_who_answered() {
    let house = House::new(&toml(CACHED, &["429", "ok text=never"])).await;
    let ask = Ask::of("a", "m", "hello");
    let first = house.ask(&ask).await.unwrap();
    assert_eq!((first.head.cache, first.head.attempts), (CacheState::Miss, 2));
    let tokens = house.snapshot("a").tokens.unwrap().remaining;
    for form in 0..2 {
        let head = if form == 0 {
            let hit = house.ask(&ask).await.unwrap();
            assert_eq!(hit.body, first.body);
            hit.head
        } else {
            let hit = house.tell(&ask.clone().with("stream", true)).await.unwrap();
            let events = Events::read(&hit.body);
            assert_eq!((events.text(), events.done), (said(&first.body), true));
            hit.head
        };
        assert_eq!((head.cache, head.cost, head.attempts), (CacheState::Exact, Money::ZERO, 0));
        assert_eq!(head.deployment.unwrap().as_str(), "spare");
        let record = house.last_record().await;
        assert_eq!((record.cost, record.attempts.len()), (Money::ZERO, 0));
        assert_eq!(record.serving.unwrap().as_str(), "spare");
        assert_eq!(record.primary.unwrap().as_str(), "up");
        assert_eq!(record.usage.total().get(), 0);
    }
    let after = house.snapshot("a");
    assert_eq!(after.tokens.unwrap().remaining, tokens, "a hit gets its tokens back");
    assert_eq!(after.requests.unwrap().remaining, 97, "a hit is load");
}

#[tokio::test(start_paused = true)]
async fn i09_no_cache_crosses_a_tenant() {
    let house = House::new(&toml(NEAR, &["ok text=of a", "ok text=of b", "ok text=another"])).await;
    let question = "please tell me how the weather in the town of York will be tomorrow morning";
    let near = "please tell me how the weather in the town of York will be tomorrow morning!";
    let ask = |tenant, text| Ask::of(tenant, "m", text);
    assert_eq!(said(&house.ask(&ask("a", question)).await.unwrap().body), "of a");
    let of_b = house.ask(&ask("b", question)).await.unwrap();
    assert_eq!((said(&of_b.body).as_str(), of_b.head.cache), ("of b", CacheState::Miss));
    assert_eq!(said(&house.ask(&ask("a", question)).await.unwrap().body), "of a");
    let similar = house.ask(&ask("b", near)).await.unwrap();
    assert_eq!((said(&similar.body).as_str(), similar.head.cache), ("of b", CacheState::Semantic));
    let records = house.records().await;
    assert_ne!(records[0].decision.cache_key, records[1].decision.cache_key);
    assert!(records[3].decision.similarity_milli.is_some_and(|milli| milli >= 900));
}

/// Asks three times: whatever the first answer was, the second call must reach the provider, and its whole answer is
/// what the third one gets.
async fn is_not_stored(first: &str, change: impl Fn(Ask) -> Ask, stream: bool) {
    let house = House::new(&toml(CACHED, &[first, "ok text=full", "ok text=again"])).await;
    let ask = change(Ask::of("a", "m", "hello").with("max_tokens", 2));
    for (round, expected) in [(0, None), (1, Some("full")), (2, Some("full"))] {
        let text = if stream {
            house.tell(&ask).await.map(|told| Events::read(&told.body).text())
        } else {
            house.ask(&ask).await.map(|given| said(&given.body))
        };
        if let Some(expected) = expected {
            assert_eq!(text.ok().as_deref(), Some(expected), "round {round} after {first}");
        }
    }
    assert_eq!(house.last_record().await.cache, CacheState::Exact, "{first}");
}

#[tokio::test(start_paused = true)]
async fn i10_only_a_complete_stop_answer_is_stored() {
    for stream in [false, true] {
        // Cut at the request's own bound: finish reason `length`.
        is_not_stored("ok text=one two three", |ask| ask, stream).await;
        is_not_stored("400 code=content_filter", |ask| ask, stream).await;
        is_not_stored("ok text=", |ask| ask, stream).await;
    }
}

#[tokio::test(start_paused = true)]
async fn i10_a_stream_that_broke_off_or_was_left_is_not_stored() {
    let house = House::new(&toml(CACHED, &["truncate", "ok text=whole answer", "ok text=other"])).await;
    let ask = Ask::of("a", "m", "hello");
    let broken = Events::read(&house.tell(&ask).await.unwrap().body);
    assert!(broken.error.is_some() && !broken.done && broken.finishes().is_empty());
    drop(house.open(&ask).await.unwrap());
    let third = house.tell(&ask).await.unwrap();
    assert_eq!((Events::read(&third.body).text().as_str(), third.head.cache), ("other", CacheState::Miss));
    assert_eq!(house.tell(&ask).await.unwrap().head.cache, CacheState::Exact);
}

#[tokio::test(start_paused = true)]
async fn i10_what_may_not_be_cached_is_neither_read_nor_stored() {
    let house = House::new(&toml(CACHED, &["ok text=one", "ok text=two", "ok text=three"])).await;
    let ask = Ask::of("a", "m", "hello");
    let private = ask.clone().context(|context| context.cache = gw_types::CacheControl::NoStore);
    let acting = ask.clone().context(|context| context.side_effecting = true);
    assert_eq!(house.ask(&private).await.unwrap().head.cache, CacheState::Bypass);
    assert_eq!(house.ask(&acting).await.unwrap().head.cache, CacheState::Bypass);
    let third = house.ask(&ask).await.unwrap();
    assert_eq!((said(&third.body).as_str(), third.head.cache), ("three", CacheState::Miss));
}
