//! The figures that limits must reach, in virtual time: they follow from the estimator, and nothing else knows them.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use futures_util::{StreamExt, future::join_all};
use gw_exec::{Relay, RelayItem, StreamBody};
use gw_limits::{
    BudgetEstimate, QuotaConfig, QuotaWindow, ScopesConfig, TenantLimitsConfig, TenantScopeConfig, Window,
    Zone,
};
use gw_types::{
    Deployment, Money, NormalizedRequest, OutputField, Price, Pricing, RequestedOutput, TextClasses,
    TokenCount,
};

use crate::{
    provider::Provider,
    support::{House, Plan, caller, deployment, other, request},
};

/// Ten tokens as the provider counts them, five of output: one cent.
const PROMPT: &str = "one two three";
const PIECES: [&str; 5] = ["Four", " five", " six", " seven", "."];
const CENT: u64 = 10_000;

fn dear() -> Deployment {
    let mut dear = deployment("up");
    dear.pricing = Pricing::PerToken(Box::new(Price::new(500_000_000, 1_000_000_000)));
    dear
}

fn ask(max_tokens: Option<u64>, stream: bool) -> NormalizedRequest {
    let mut asked = request();
    asked.facts.text_bytes = PROMPT.len() as u64;
    asked.facts.text_classes = TextClasses::of(PROMPT);
    asked.facts.stream = stream;
    let (span, field) = (asked.facts.model_span, OutputField::MaxTokens);
    asked.facts.output =
        max_tokens.map(|tokens| RequestedOutput { tokens: TokenCount::new(tokens), span, field });
    asked
}

async fn read(mut relay: Box<Relay>) -> RelayItem {
    loop {
        match relay.next().await.unwrap() {
            RelayItem::Bytes(_) => {}
            end => return end,
        }
    }
}

/// Asks once; returns whether it was let through.
async fn once(house: &House, asked: NormalizedRequest) -> bool {
    if !asked.facts.stream {
        return house.ask(asked).await.is_ok();
    }
    let Ok(reply) = house.ask_stream(asked).await else { return false };
    let StreamBody::Relay(relay) = reply.body else { panic!("no cache here") };
    assert!(matches!(read(relay).await, RelayItem::Done));
    true
}

/// A budget of half a dollar: 50 requests of a cent.
fn half_a_dollar(estimate: BudgetEstimate, default_bound: Option<u64>) -> (House, Arc<Provider>) {
    let window = QuotaWindow::Calendar { window: Window::Day, zone: Zone::UTC };
    let budget = QuotaConfig { limit: Money::from_micros(50 * CENT), window, estimate };
    let mut plan = Plan::new(Vec::new());
    plan.scopes = ScopesConfig {
        tenants: vec![(caller().tenant, TenantScopeConfig { parent: None, budgets: vec![budget] })],
        ..ScopesConfig::default()
    };
    plan.route.default_max_output_tokens = default_bound.map(TokenCount::new);
    plan.pool_capacity = 1_000;
    let provider = Arc::new(Provider::new(10, &PIECES));
    (plan.build_with(vec![provider.at(dear())]), provider)
}

/// Lets answers be seen that nothing limits.
async fn warm(house: &House) {
    for _ in 0..50 {
        house.ask_as(&other(), ask(Some(5), false)).await.unwrap();
    }
}

/// Sends 200 at once; returns how many were let through, having checked the books.
async fn at_once(house: &House, asked: NormalizedRequest) -> usize {
    let before = house.records().len();
    let admitted = join_all((0..200).map(|_| once(house, asked.clone()))).await;
    let admitted = admitted.into_iter().filter(|admitted| *admitted).count();
    let records = house.records().split_off(before);
    assert_eq!(records.iter().map(|record| record.cost).sum::<Money>(), house.spent());
    assert_eq!(house.spent(), Money::from_micros(admitted as u64 * CENT));
    assert!(records.iter().all(|record| record.overrun.is_zero()));
    house.holds_nothing();
    admitted
}

#[tokio::test(start_paused = true)]
async fn two_hundred_at_once_on_a_budget_of_fifty_by_the_bound() {
    for stream in [false, true] {
        let (house, _) = half_a_dollar(BudgetEstimate::Bound, None);
        // 13 bytes, 4 a message and 3 are at most 20 tokens: a cent and a half.
        assert_eq!(at_once(&house, ask(Some(5), stream)).await, 33);
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_at_once_on_a_budget_of_fifty_by_the_calibrated_estimate() {
    for stream in [false, true] {
        let (house, _) = half_a_dollar(BudgetEstimate::Calibrated, None);
        warm(&house).await;
        let admitted = at_once(&house, ask(Some(5), stream)).await;
        assert!((48..=50).contains(&admitted), "{admitted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_calibrated_budget_reserves_the_bound_until_enough_is_known() {
    let (house, _) = half_a_dollar(BudgetEstimate::Calibrated, None);
    assert_eq!(at_once(&house, ask(Some(5), false)).await, 33);
}

#[tokio::test(start_paused = true)]
async fn without_max_tokens_the_routes_default_is_sent_and_reserved() {
    let (house, provider) = half_a_dollar(BudgetEstimate::Calibrated, Some(6));
    warm(&house).await;
    let admitted = at_once(&house, ask(None, false)).await;
    assert!((40..=50).contains(&admitted), "{admitted}");
    assert_eq!(provider.bounds.lock().last(), Some(&Some(TokenCount::new(6))));
    let (house, _) = half_a_dollar(BudgetEstimate::Bound, Some(6));
    // 20 tokens and 6: 1.6 cents of which 31 fit; what the bound admits with the true length is 33.
    assert_eq!(at_once(&house, ask(None, false)).await, 31);
}

/// 300 tokens a minute, hit by a burst of 100 requests of 15 tokens.
async fn burst(warmed: bool) -> usize {
    let mut plan = Plan::new(Vec::new());
    plan.limits = TenantLimitsConfig { tokens_per_minute: Some(300), ..TenantLimitsConfig::default() };
    plan.other = TenantLimitsConfig { tokens_per_minute: Some(1_000_000), ..TenantLimitsConfig::default() };
    plan.pool_capacity = 1_000;
    let house = plan.build_with(vec![Arc::new(Provider::new(10, &PIECES)).at(dear())]);
    if warmed {
        warm(&house).await;
    }
    let admitted = join_all((0..100).map(|_| house.ask(ask(Some(5), false)))).await;
    for failure in admitted.iter().filter_map(|result| result.as_ref().err()) {
        assert!(failure.error.retry_after().is_some_and(|wait| wait > Duration::ZERO));
    }
    house.holds_nothing();
    admitted.iter().filter(|result| result.is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn a_burst_on_a_window_of_tokens() {
    let cold = burst(false).await;
    assert!((16..=20).contains(&cold), "{cold}");
    assert_eq!(burst(true).await, 20);
}

#[tokio::test(start_paused = true)]
async fn a_burst_on_twenty_requests_a_minute() {
    let mut plan = Plan::new(Vec::new());
    plan.limits = TenantLimitsConfig { requests_per_minute: Some(20), ..TenantLimitsConfig::default() };
    plan.pool_capacity = 1_000;
    let provider = Arc::new(Provider::new(10, &PIECES));
    let house = plan.build_with(vec![provider.at(dear())]);
    let admitted = join_all((0..100).map(|_| house.ask(ask(Some(5), false)))).await;
    assert_eq!(admitted.iter().filter(|result| result.is_ok()).count(), 20);
    assert_eq!(provider.calls(), 20);
    // A refusal consumes nothing: as soon as it says, the next one is let through.
    let wait = house.ask(ask(Some(5), false)).await.unwrap_err().error.retry_after().unwrap();
    tokio::time::sleep(wait).await;
    house.ask(ask(Some(5), false)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn four_of_forty_streams_are_cancelled_and_pay_for_what_was_sent() {
    let mut plan = Plan::new(Vec::new());
    plan.deadline = Duration::from_secs(60);
    let provider = Arc::new(Provider::new(10, &[" word"; 20]));
    let house = plan.build_with(vec![provider.at(dear())]);
    for number in 0..40 {
        let before = provider.sent.load(Ordering::Relaxed);
        let reply = house.ask_stream(ask(Some(20), true)).await.unwrap();
        let StreamBody::Relay(mut relay) = reply.body else { panic!("no cache here") };
        if number % 10 == 9 {
            for _ in 0..(3 + number / 10 * 4) {
                relay.next().await.unwrap();
            }
            drop(relay);
        } else {
            assert!(matches!(read(relay).await, RelayItem::Done));
        }
        let record = house.records().pop().unwrap();
        let sent = (provider.sent.load(Ordering::Relaxed) - before) as u64;
        assert_eq!((record.usage.output.get(), record.usage.estimated), (sent, number % 10 == 9));
        let total = record.usage.total().get();
        assert!(total.abs_diff(10 + sent) <= 1, "{total} for {sent}");
    }
}
