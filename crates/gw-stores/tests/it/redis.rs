//! Shared limits in a Redis server that the test starts.

use std::time::Duration;

use gw_limits::{
    Scope, SharedLimit, SharedLimits, SharedLost, SharedSettlement, SharedTake, SharedUse, SharedVerdict,
};
use gw_stores::RedisLimits;
use gw_testkit::RedisServer;
use gw_types::{Money, Secret, TenantId, TokenCount, UtcTime};

const HOLD: Duration = Duration::from_secs(60);

/// Returns the limits of a server once it answers.
async fn limits_of(server: &RedisServer) -> RedisLimits {
    let limits = RedisLimits::new(&Secret::new(&server.url()).unwrap()).unwrap();
    for _ in 0..200 {
        if limits.take(0, &[], HOLD).await.is_ok() {
            return limits;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server does not answer");
}

fn limit(tenant: &str, take: SharedTake) -> SharedLimit {
    SharedLimit { scope: Scope::Tenant(TenantId::new(tenant).unwrap()), take }
}

fn budget(tenant: &str, most: Money, amount: Money) -> SharedLimit {
    // Far ahead: the window is that of no clock here.
    let end = UtcTime::from_micros(4_102_444_800_000_000);
    let start = UtcTime::from_micros(4_102_358_400_000_000);
    limit(tenant, SharedTake::Budget { limit: most, amount, start, end })
}

fn requests(tenant: &str, per_minute: u64) -> SharedLimit {
    limit(tenant, SharedTake::Requests { per_minute })
}

fn tokens(tenant: &str, per_minute: u64, amount: u64) -> SharedLimit {
    limit(tenant, SharedTake::Tokens { per_minute, amount })
}

async fn takes(store: &RedisLimits, id: u128, limits: &[SharedLimit]) -> bool {
    store.take(id, limits, HOLD).await.unwrap() == SharedVerdict::Taken
}

async fn settle(store: &RedisLimits, id: u128, limits: &[SharedLimit], used: SharedUse) {
    store.settle(&SharedSettlement { id, limits: limits.to_vec(), used }).await.unwrap();
}

async fn refused(store: &RedisLimits, limits: &[SharedLimit]) -> Vec<(usize, Option<Duration>)> {
    match store.take(9, limits, HOLD).await.unwrap() {
        SharedVerdict::Refused(refused) => refused,
        SharedVerdict::Taken => Vec::new(),
    }
}

/// One server for all of it: starting one costs more than asking it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_in_a_real_server() {
    let server = RedisServer::start().unwrap();
    let store = limits_of(&server).await;
    money_is_exact_to_the_pico(&store).await;
    buckets_are_shared(&store).await;
    all_is_taken_or_nothing(&store).await;
    a_hundred_at_once_pass_no_limit(&store).await;
    drop(server);
    let lost = tokio::time::timeout(Duration::from_secs(30), store.take(1, &[requests("z", 1)], HOLD)).await;
    assert_eq!(lost.unwrap(), Err(SharedLost));
}

async fn money_is_exact_to_the_pico(store: &RedisLimits) {
    let most = SharedLimit::BUDGET_MAX;
    let pico = Money::from_pico(1);
    let nearly = [budget("money", most, Money::from_pico(most.pico() - 1))];
    assert!(takes(store, 1, &nearly).await);
    assert!(takes(store, 2, &[budget("money", most, pico)]).await, "the limit itself is inside");
    let one = [budget("money", most, pico)];
    assert_eq!(refused(store, &one).await, [(0, Some(Duration::from_secs(1)))], "held, not spent");
    settle(store, 2, &one, SharedUse::Nothing).await;
    settle(store, 2, &one, SharedUse::Nothing).await;
    assert!(takes(store, 3, &one).await, "what goes back twice is back once");
    settle(store, 1, &nearly, SharedUse::Used(TokenCount::ZERO, most)).await;
    let spent = refused(store, &one).await;
    assert!(
        spent[0].1.is_some_and(|wait| wait > Duration::from_secs(86_400)),
        "until the window ends: {spent:?}"
    );
    let other = [budget("money", Money::from_micros(1), Money::from_micros(2))];
    assert_eq!(refused(store, &other).await, [(0, None)], "more than the window ever holds");
}

async fn buckets_are_shared(store: &RedisLimits) {
    let five = [requests("rate", 5)];
    for id in 10..15 {
        assert!(takes(store, id, &five).await);
    }
    let wait = refused(store, &five).await[0].1.unwrap();
    assert!(wait > Duration::from_secs(11) && wait <= Duration::from_secs(12), "{wait:?}");
    settle(store, 14, &five, SharedUse::Used(TokenCount::new(7), Money::ZERO)).await;
    assert!(!takes(store, 16, &five).await, "a request that was made counts");
    settle(store, 13, &five, SharedUse::Nothing).await;
    assert!(takes(store, 17, &five).await, "one that was not is given back");
    assert_eq!(refused(store, &[tokens("rate", 100, 101)]).await, [(0, None)]);
    let all = [tokens("rate", 100, 100)];
    assert!(takes(store, 18, &all).await);
    settle(store, 18, &all, SharedUse::Used(TokenCount::new(40), Money::ZERO)).await;
    assert!(takes(store, 19, &[tokens("rate", 100, 60)]).await);
    assert!(!takes(store, 20, &[tokens("rate", 100, 60)]).await);
}

async fn all_is_taken_or_nothing(store: &RedisLimits) {
    let limit = Money::from_micros(10);
    let both = [requests("both", 100), tokens("both", 10, 11), budget("both", limit, Money::from_micros(11))];
    assert_eq!(refused(store, &both).await, [(1, None), (2, None)], "every one that refuses is named");
    for id in 30..130 {
        assert!(takes(store, id, &[requests("both", 100)]).await, "{id}: the refusal took nothing");
    }
}

async fn a_hundred_at_once_pass_no_limit(store: &RedisLimits) {
    let limit = Money::from_micros(500_000);
    let asks = (1_000..1_200_u128).map(|id| {
        let one = [budget("burst", limit, Money::from_micros(10_000))];
        async move { takes(store, id, &one).await }
    });
    let taken = futures_util::future::join_all(asks).await.into_iter().filter(|taken| *taken).count();
    assert_eq!(taken, 50);
}

#[tokio::test]
async fn an_address_is_told_from_something_else_and_not_repeated() {
    for address in ["hunter2", "http://:hunter2@127.0.0.1", "rediss://:hunter2@127.0.0.1:1"] {
        let refused = RedisLimits::new(&Secret::new(address).unwrap()).unwrap_err().to_string();
        assert!(refused.contains("redis://HOST:PORT") && !refused.contains("hunter2"), "{refused}");
    }
}
