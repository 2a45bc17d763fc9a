//! Faults that users of such gateways reported, as far as the pipeline decides them.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use futures_util::{StreamExt, future::join_all};
use gw_exec::{Failure, Relay, RelayItem, Reply, StreamBody, Target};
use gw_limits::{BudgetConfig, TenantLimitsConfig, Window};
use gw_types::{
    AccountingRecord, ErrorKind as K, GatewayError, Money, NormalizedRequest, Outcome, Price, Pricing,
    StreamItem, TokenCount, Usage,
};

use crate::{
    provider::Provider,
    support::{
        Hanging, House, MockProvider, Plan, caller, content, deployment, fails, provider, request, stalling,
        stop, stream, streaming, terminal, usage, used,
    },
};

fn budget(micros: u64) -> Option<BudgetConfig> {
    Some(BudgetConfig { limit: Money::from_micros(micros), window: Window::Day })
}

fn bounded(tokens: u64) -> NormalizedRequest {
    let mut bounded = request();
    bounded.facts.output = bounded
        .facts
        .output
        .map(|output| gw_types::RequestedOutput { tokens: TokenCount::new(tokens), ..output });
    bounded
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_cannot_overspend_a_hard_budget() {
    // 47 tokens at 1 and 100 at 3.53 micro-USD are at most 400; the answers cost 300.
    let mut up = deployment("up");
    up.pricing = Pricing::PerToken(Box::new(Price::new(1_000_000, 3_530_000)));
    let mut provider = Provider::new(300, &[]);
    provider.usage = Usage { input: TokenCount::new(300), ..Usage::default() };
    let provider = Arc::new(provider);
    let mut plan = Plan::new(Vec::new());
    plan.limits = TenantLimitsConfig { budget: budget(1_100), ..TenantLimitsConfig::default() };
    let house = plan.build_with(vec![provider.at(up)]);
    let within = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let budget = house.gateway.tenant_snapshot(&caller().tenant).unwrap().budget.unwrap();
        assert_eq!((budget.spent, budget.reserved), (Money::ZERO, Money::from_micros(800)));
    };
    let (replies, ()) =
        futures_util::future::join(join_all((0..50).map(|_| house.ask(request()))), within).await;
    let refused: Vec<_> = replies.into_iter().filter_map(Result::err).collect();
    assert_eq!((refused.len(), provider.calls()), (48, 2));
    for failure in refused {
        assert_eq!((failure.error.kind(), failure.head.attempts), (K::QuotaExceeded, 0));
        assert_eq!(failure.error.subject(), Some("tenant:wholesale.budget"));
    }
    assert_eq!(house.spent(), Money::from_micros(600));
    house.holds_nothing();
    house.ask(request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_request_uses_up_no_other_limit() {
    let provider = Arc::new(Provider::new(60, &["word"; 20]));
    let mut plan = Plan::new(Vec::new());
    plan.limits = TenantLimitsConfig {
        max_concurrency: Some(1),
        requests_per_minute: Some(2),
        tokens_per_minute: Some(1_000),
        budget: budget(10_000),
        ..TenantLimitsConfig::default()
    };
    let house = plan.build_with(vec![provider.at(deployment("up"))]);
    let named = |failure: Failure| (failure.error.kind(), failure.error.subject().map(str::to_owned));
    let (a, b) = futures_util::future::join(house.ask(bounded(83)), house.ask(bounded(83))).await;
    a.unwrap();
    let b = b.unwrap_err();
    assert!(b.error.retry_after().is_some());
    assert_eq!(named(b), (K::RateLimited, Some("tenant:wholesale.max_concurrency".to_owned())));
    let c = house.ask(bounded(1_983)).await.unwrap_err();
    // Above what the bucket can ever hold: told so, and not told to wait.
    assert_eq!((c.error.retry_after(), c.error.forbids_retry()), (None, true));
    assert_eq!(named(c), (K::RateLimited, Some("tenant:wholesale.tokens_per_minute".to_owned())));
    let d = house.ask(bounded(83)).await.unwrap().head;
    // A and D have used 80 each, and in 200 ms three tokens have come.
    assert_eq!((d.requests.unwrap().remaining, d.tokens.unwrap().remaining), (0, 1_000 - 160 + 3));
    let e = house.ask(bounded(83)).await.unwrap_err();
    assert!(e.error.retry_after().is_some_and(|wait| wait <= Duration::from_secs(30)));
    assert_eq!(named(e), (K::RateLimited, Some("tenant:wholesale.requests_per_minute".to_owned())));
    assert_eq!(provider.calls(), 2);
    house.holds_nothing();
}

/// A tenant with one slot over a provider; every other limit is there too.
fn one_at_once(mock: MockProvider) -> House {
    plan_one_at_once(vec![(deployment("up"), mock)]).build()
}

fn plan_one_at_once(targets: Vec<(gw_types::Deployment, MockProvider)>) -> Plan {
    let mut plan = Plan::new(targets);
    plan.limits = TenantLimitsConfig {
        max_concurrency: Some(1),
        requests_per_minute: Some(10_000),
        tokens_per_minute: Some(10_000_000),
        budget: budget(1_000_000_000),
        ..TenantLimitsConfig::default()
    };
    plan
}

const ROUNDS: usize = 100;

fn relay(reply: Result<Reply<StreamBody>, Failure>) -> Box<Relay> {
    match reply.unwrap().body {
        StreamBody::Relay(relay) => relay,
        StreamBody::Completion(_) | StreamBody::Kept(_) => panic!("nothing is remembered here"),
    }
}

fn slots(house: &House) -> u32 {
    house.gateway.tenant_snapshot(&caller().tenant).unwrap().concurrency.in_use
}

#[tokio::test(start_paused = true)]
async fn concurrency_slot_returns_on_every_exit_of_a_stream() {
    let words = || vec![content("a"), content("b"), content("c")];
    let house = one_at_once(provider(ROUNDS, move || Ok(stalling(words()))));
    for _ in 0..ROUNDS {
        let mut relay = relay(house.ask_stream(streaming()).await);
        for _ in 0..2 {
            relay.next().await.unwrap();
        }
        assert_eq!(slots(&house), 1);
        drop(relay);
        assert_eq!(slots(&house), 0);
    }
    // An error in the middle; and a client that leaves right after the end.
    let broken = || vec![Ok(content("a")), Err(GatewayError::new(K::MalformedResponse, "scripted"))];
    let house = one_at_once(provider(ROUNDS, move || Ok(stream(broken()))));
    for _ in 0..ROUNDS {
        let mut relay = relay(house.ask_stream(streaming()).await);
        while !matches!(relay.next().await.unwrap(), RelayItem::Failed(_)) {}
        assert_eq!(slots(&house), 0);
    }
    let whole = || vec![Ok(content("a")), Ok(stop()), Ok(used(usage())), Ok(terminal())];
    let house = one_at_once(provider(ROUNDS, move || Ok(stream(whole()))));
    for _ in 0..ROUNDS {
        let mut relay = relay(house.ask_stream(streaming()).await);
        while !matches!(relay.next().await.unwrap(), RelayItem::Done) {}
        assert_eq!(slots(&house), 0);
    }
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn concurrency_slot_returns_on_every_exit_of_a_call() {
    let refused = GatewayError::new(K::Transport, "scripted");
    let house = one_at_once(fails(ROUNDS, refused));
    for _ in 0..ROUNDS {
        assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::Transport);
        assert_eq!(slots(&house), 0);
    }
    // The client leaves before the head; the attempt times out.
    let adapter = Arc::new(Hanging::default());
    let target = Target::new(Arc::new(deployment("up")), Arc::<Hanging>::clone(&adapter));
    let house = plan_one_at_once(Vec::new()).build_with(vec![target]);
    for _ in 0..ROUNDS {
        let left = tokio::time::timeout(Duration::from_millis(10), house.ask_stream(streaming())).await;
        assert!(left.is_err());
        assert_eq!(slots(&house), 0);
        assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::DeadlineExceeded);
        assert_eq!(slots(&house), 0);
    }
    assert_eq!(adapter.dropped.load(Ordering::Relaxed), 2 * ROUNDS);
    // A translation that is refused after admission.
    let mut mock = MockProvider::new();
    mock.expect_prepare()
        .times(ROUNDS)
        .returning(|_, _, _| Err(GatewayError::new(K::TranslationLoss, "scripted")));
    let house = one_at_once(mock);
    for _ in 0..ROUNDS {
        assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::TranslationLoss);
        assert_eq!(slots(&house), 0);
    }
    assert_eq!(house.spent(), Money::ZERO);
    house.holds_nothing();
}

/// A stream that says these items and then nothing more, read so far; then the client goes away.
async fn cut_after(items: Vec<StreamItem>, reads: usize) -> AccountingRecord {
    let mut asked = streaming();
    // 33 tokens and the frame of a message: 40 by the estimator.
    asked.facts.text_bytes = 132;
    let house = one_at_once(provider(1, move || Ok(stalling(items.clone()))));
    let reply = tokio::time::timeout(Duration::from_millis(10), house.ask_stream(asked)).await;
    if let Ok(reply) = reply {
        let mut relay = relay(reply);
        for _ in 0..reads {
            relay.next().await.unwrap();
        }
        let more = tokio::time::timeout(Duration::from_millis(10), relay.next()).await;
        assert!(more.is_err());
    }
    let record = house.only_record();
    assert_eq!((record.outcome, house.spent()), (Outcome::Cancelled, record.cost));
    record
}

#[tokio::test(start_paused = true)]
async fn stream_cut_by_the_client_is_still_charged() {
    let estimated = |output| Usage {
        input: TokenCount::new(40),
        output: TokenCount::new(output),
        estimated: true,
        ..Usage::default()
    };
    // Five events of text that counts twelve tokens.
    let events =
        || ["0123456789", "0123456789", "0123456789", "0123456789", "01234567"].map(content).to_vec();
    let v1 = cut_after(events(), 5).await;
    assert_eq!((v1.usage, v1.cost), (estimated(12), Money::from_micros(64)));
    let v2 = cut_after(Vec::new(), 0).await;
    assert_eq!((v2.usage, v2.cost), (estimated(0), Money::from_micros(40)));
    // A report is never replaced by an estimate, not even one of nothing.
    let reported = |usage| events().into_iter().chain([used(usage)]).collect::<Vec<_>>();
    let v3 = cut_after(reported(usage()), 5).await;
    assert_eq!((v3.usage, v3.cost), (usage(), Money::from_micros(67)));
    let v4 = cut_after(reported(Usage::default()), 5).await;
    assert_eq!((v4.usage, v4.cost), (Usage::default(), Money::ZERO));
}

#[tokio::test(start_paused = true)]
async fn stream_cut_by_the_client_is_still_charged_once_where_it_has_ended() {
    let whole = || vec![Ok(content("a")), Ok(stop()), Ok(used(usage())), Ok(terminal())];
    let house = one_at_once(provider(1, move || Ok(stream(whole()))));
    let mut relay = relay(house.ask_stream(streaming()).await);
    while !matches!(relay.next().await.unwrap(), RelayItem::Done) {}
    drop(relay);
    let record = house.only_record();
    assert_eq!((record.outcome, record.usage, house.spent()), (Outcome::Ok, usage(), Money::from_micros(67)));
}

#[tokio::test(start_paused = true)]
async fn stream_cut_by_the_client_is_not_charged_while_it_waits_for_admission() {
    let mut plan = plan_one_at_once(Vec::new());
    plan.tenant.queue.max_queue = 5;
    plan.deadline = Duration::from_secs(30);
    let provider = Arc::new(Provider::new(10, &["word"; 10]));
    let house = plan.build_with(vec![provider.at(deployment("up"))]);
    let running = relay(house.ask_stream(streaming()).await);
    let left = tokio::time::timeout(Duration::from_millis(10), house.ask_stream(streaming())).await;
    assert!(left.is_err());
    let records = house.gateway.snapshot();
    assert_eq!((records.pool.waiting, provider.calls()), (0, 1));
    drop(running);
    let cancelled = house.records().remove(0);
    assert_eq!(
        (cancelled.outcome, cancelled.usage, cancelled.cost),
        (Outcome::Cancelled, Usage::default(), Money::ZERO)
    );
    house.holds_nothing();
}
