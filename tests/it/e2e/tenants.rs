//! Quotas, rates and caches of tenants.

use gw_testkit::{FakeProvider, FaultScript, ok};

use crate::support::{Gw, Toml, chat};

#[tokio::test]
async fn a_quota_refuses_at_its_boundary_without_a_call() {
    let provider = FakeProvider::start(FaultScript::of(ok("a b c d e").usage(9, 5))).await.unwrap();
    let price = "price = { input = 0, output = 1_000_000 }";
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", price)
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 10, window = \"day\" }");
    let gw = Gw::start(&toml).await;
    let mut body = chat("m", "hello");
    body["max_tokens"] = 5.into();
    for spent in [5, 10] {
        assert_eq!(gw.chat("a", &body).send().await.header("x-gw-cost-micros"), "5");
        let budget = gw.tenant("a").await["budget"].clone();
        assert_eq!(
            (budget["spent_micros"].as_u64(), budget["reserved_micros"].as_u64()),
            (Some(spent), Some(0))
        );
    }
    body["max_tokens"] = 1.into();
    let refused = gw.chat("a", &body).send().await;
    assert_eq!((refused.status, refused.error()["type"].as_str()), (429, Some("insufficient_quota")));
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!(seconds <= 86_400 && refused.header("x-gw-attempts") == "0");
    assert_eq!(provider.calls().len(), 2);
    let record = &gw.records(3).await[2];
    assert_eq!(
        (record["outcome"].as_str(), record["error"].as_str()),
        (Some("refused"), Some("quota_exceeded"))
    );
}

#[tokio::test]
async fn two_tenants_with_the_same_prompt_share_no_answer() {
    let script = FaultScript::of(ok("of a")).then(ok("of b"));
    let provider = FakeProvider::start(script).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route_with("m", &["up"], "cache = { exact = true, semantic = { threshold = 0.9 } }")
        .tenant("a", "")
        .tenant("b", "");
    let gw = Gw::start(&toml).await;
    let body = chat("m", "the very same prompt");
    for (tenant, text, cache, calls) in [
        ("a", "of a", "miss", 1),
        ("b", "of b", "miss", 2),
        ("a", "of a", "exact", 2),
        ("b", "of b", "exact", 2),
    ] {
        let answer = gw.chat(tenant, &body).send().await;
        assert_eq!((answer.said().as_str(), answer.header("x-gw-cache")), (text, cache), "{tenant}");
        assert_eq!(provider.calls().len(), calls);
    }
}

#[tokio::test]
async fn a_rate_refuses_with_true_values_and_a_wait() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml =
        Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "requests_per_minute = 2");
    let gw = Gw::start(&toml).await;
    for remaining in ["1", "0"] {
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        assert_eq!((answer.status, answer.header("x-ratelimit-remaining-requests")), (200, remaining));
    }
    let refused = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((refused.status, refused.error()["type"].as_str()), (429, Some("rate_limit_error")));
    let millis: u64 = refused.header("retry-after-ms").parse().unwrap();
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!(millis <= 30_000 && seconds == millis.div_ceil(1_000), "{seconds} s, {millis} ms");
    assert_eq!((refused.header("x-should-retry"), provider.calls().len()), ("", 2));
}
