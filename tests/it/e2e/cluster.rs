//! Two gateways that limit together, in front of a real Redis server.

use futures_util::future::join_all;
use gw_testkit::{FakeProvider, FaultScript, RedisServer, ok};

use crate::support::{Gw, Toml, chat, eventually, metric};

/// A tenant with a budget of 50 answers, and one with five requests a minute.
fn toml(provider: &FakeProvider) -> Toml {
    let price = "price = { input = 0, output = 1_000_000 }\nmax_output_tokens = 100";
    Toml::new()
        .upstream_with("up", &provider.base_url(), "", price)
        .route_with("m", &["up"], "default_max_output_tokens = 10")
        .tenant("money", "budget = { limit_micros = 500, window = \"month\" }")
        .tenant("rate", "requests_per_minute = 5")
        .part("[cluster]\nredis = { env = \"TEST_REDIS_URL\" }\ntimeout_ms = 100")
}

async fn status(gw: &Gw, tenant: &str) -> u16 {
    gw.chat(tenant, &chat("m", "hello")).send().await.status
}

async fn ready(gw: &Gw) -> String {
    gw.admin("/readyz").send().await.json()["status"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_keep_one_budget_and_survive_the_loss_of_its_store() {
    let redis = RedisServer::start().unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("hello"))).await.unwrap();
    let (toml, url) = (toml(&provider), redis.url());
    let variables = [("TEST_REDIS_URL", url.as_str())];
    let gateways =
        [Gw::start_with(&toml, &[], &variables).await, Gw::start_with(&toml, &[], &variables).await];

    let asked = join_all((0..12).map(|n| status(&gateways[n % 2], "rate"))).await;
    assert_eq!(asked.iter().filter(|status| **status == 200).count(), 5, "{asked:?}");
    assert_eq!(asked.iter().filter(|status| **status == 429).count(), 7, "{asked:?}");

    // Whatever each holds at once, together they never spend more than there is.
    let mut served = 0;
    for _ in 0..6 {
        let asked = join_all((0..40).map(|n| status(&gateways[n % 2], "money"))).await;
        served += asked.iter().filter(|status| **status == 200).count();
    }
    let spent = |id: usize| {
        let gw = &gateways[id];
        async move { gw.settled("money").await["budget"]["spent_pico"].as_u64().unwrap() }
    };
    let mut total = 0;
    for id in 0..2 {
        total += spent(id).await;
    }
    assert!(total <= 500_000_000, "{total}");
    assert!(served > 0);
    assert_eq!(ready(&gateways[0]).await, "ready");

    // Frozen: it takes the question and does not answer.
    redis.signal("-STOP").unwrap();
    for _ in 0..5 {
        let answer = gateways[0].chat("money", &chat("m", "hello")).send().await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(answer.text().contains("limiter is unavailable"), "{}", answer.text());
    }
    assert_eq!(ready(&gateways[0]).await, "degraded");
    let page = gateways[0].metrics().await;
    assert_eq!(metric(&page, "gw_shared_limits_lost"), 1);
    assert!(metric(&page, "gw_shared_limits_failures_total") >= 3, "{page}");
    redis.signal("-CONT").unwrap();
    eventually("the store is found again", || async {
        // Its own bucket was emptied above, by five requests at one replica or the other.
        let status = status(&gateways[0], "rate").await;
        (matches!(status, 200 | 429) && ready(&gateways[0]).await == "ready").then_some(())
    })
    .await;
}
