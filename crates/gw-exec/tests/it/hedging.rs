//! Hedging: when a second call is begun, who wins, and what the other one costs.

use std::{
    collections::VecDeque,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt;
use gw_exec::{RelayItem, RoutePolicy, StreamBody, Target};
use gw_limits::{BudgetConfig, Window};
use gw_types::{
    AccountingRecord, Adapter, Answer, AttemptPlan, Deployment, ErrorKind as K, GatewayError, Money,
    NormalizedRequest, Outcome, Prepared, StreamAnswer,
};
use parking_lot::Mutex;

use crate::support::{
    DropCount, House, Plan, content, deployment, prepared, stop, streaming, terminal, usage, used,
};

const FAST: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_millis(800);
/// Calls after which a deployment's time to the first word is known, and a hedge is saved up.
const KNOWN: usize = 40;

/// What one call does: it waits, and then answers or fails.
type Step = (Duration, Option<GatewayError>);

/// A provider whose streams begin as late as they are told, and fast where nothing is told.
#[derive(Debug, Default)]
struct Runner {
    steps: Mutex<VecDeque<Step>>,
    calls: AtomicUsize,
    /// Calls that were dropped before their first word.
    dropped: Arc<AtomicUsize>,
}

#[async_trait]
impl Adapter for Runner {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (after, error) = self.steps.lock().pop_front().unwrap_or((FAST, None));
        let count = DropCount(&self.dropped);
        tokio::time::sleep(after).await;
        std::mem::forget(count);
        match error {
            Some(error) => Err(error),
            None if !prepared.stream => Ok(crate::support::answer()),
            None => {
                let items = [content("hi"), stop(), used(usage()), terminal()];
                let items = Box::pin(futures_util::stream::iter(items.map(Ok)));
                Ok(Answer::Stream(StreamAnswer { items, upstream_request_id: None }))
            }
        }
    }
}

struct Race {
    house: House,
    runners: [Arc<Runner>; 2],
}

fn plan() -> Plan {
    let mut plan = Plan::new(Vec::new());
    plan.route = RoutePolicy { hedge: true, ..RoutePolicy::default() };
    let budget = BudgetConfig { limit: Money::from_micros(1_000_000), window: Window::Day };
    plan.limits.budget = Some(budget);
    plan
}

async fn race_with(plan: Plan) -> Race {
    let runners: [Arc<Runner>; 2] = [Arc::default(), Arc::default()];
    let target =
        |name: &str, at: usize| Target::new(Arc::new(deployment(name)), Arc::<Runner>::clone(&runners[at]));
    let targets = vec![target("ptu", 0), target("eu", 1)];
    let race = Race { house: plan.build_with(targets), runners };
    for _ in 0..KNOWN {
        race.ask(streaming()).await.unwrap();
    }
    race.runners[0].calls.store(0, Ordering::Relaxed);
    race
}

async fn race() -> Race {
    race_with(plan()).await
}

fn error(kind: K) -> GatewayError {
    GatewayError::new(kind, "scripted")
}

impl Race {
    fn next(&self, at: usize, step: Step) {
        self.runners[at].steps.lock().push_back(step);
    }

    /// Asks and reads to the end.
    async fn ask(&self, request: NormalizedRequest) -> Result<u32, K> {
        let reply = self.house.ask_stream(request).await.map_err(|failure| failure.error.kind())?;
        let StreamBody::Relay(relay) = reply.body else { panic!("no relay") };
        let items: Vec<RelayItem> = relay.collect().await;
        assert!(matches!(items.last(), Some(RelayItem::Done)), "{items:?}");
        Ok(reply.head.attempts)
    }

    fn calls(&self) -> [usize; 2] {
        [0, 1].map(|at| self.runners[at].calls.swap(0, Ordering::Relaxed))
    }

    fn dropped(&self) -> [usize; 2] {
        [0, 1].map(|at| self.runners[at].dropped.load(Ordering::Relaxed))
    }

    /// Returns the last record; nothing is held, and what was spent is what the records say.
    fn record(&self) -> AccountingRecord {
        self.house.holds_nothing();
        let mut records = self.house.records();
        let spent = |record: &AccountingRecord| {
            record.side_costs.iter().fold(record.cost, |sum, side| sum.saturating_add(side.cost))
        };
        let sum = records.iter().map(spent).fold(Money::ZERO, Money::saturating_add);
        assert_eq!(self.house.spent(), sum);
        records.pop().unwrap()
    }
}

fn attempts(record: &AccountingRecord) -> Vec<(&str, Option<K>)> {
    record.attempts.iter().map(|attempt| (attempt.deployment.as_str(), attempt.error)).collect()
}

#[tokio::test(start_paused = true)]
async fn who_speaks_first_is_relayed_and_the_other_is_cancelled_and_settled() {
    let race = race().await;
    race.next(0, (SLOW, None));
    assert_eq!(race.ask(streaming()).await, Ok(2));
    assert_eq!((race.calls(), race.dropped()), ([1, 1], [1, 0]));
    let record = race.record();
    assert_eq!(attempts(&record), [("ptu", Some(K::Cancelled)), ("eu", None)]);
    assert_eq!(record.serving.unwrap().as_str(), "eu");
    // The second call begins at the 95th percentile, and both ended when it had spoken.
    let [lost, won] = &record.attempts[..] else { panic!() };
    assert_eq!((lost.start_us, lost.duration_us), (won.start_us - 10_000, 20_000));
    let side = &record.side_costs;
    assert_eq!((side.len(), side[0].purpose.as_str(), side[0].deployment.as_str()), (1, "hedge", "ptu"));
    assert!(!side[0].cost.is_zero() && side[0].cost < record.cost);
    assert_eq!(race.house.records().len(), KNOWN + 1);
}

#[tokio::test(start_paused = true)]
async fn a_hedge_that_is_slower_is_the_one_that_is_cancelled() {
    let race = race().await;
    race.next(0, (FAST * 2, None));
    race.next(1, (SLOW, None));
    assert_eq!(race.ask(streaming()).await, Ok(2));
    assert_eq!((race.calls(), race.dropped()), ([1, 1], [0, 1]));
    let record = race.record();
    assert_eq!(attempts(&record), [("eu", Some(K::Cancelled)), ("ptu", None)]);
    assert_eq!((record.serving.unwrap().as_str(), record.side_costs.len()), ("ptu", 1));
}

#[tokio::test(start_paused = true)]
async fn i17_hedges_are_at_most_a_twentieth_of_the_requests() {
    let race = race().await;
    for at in 0..1_000 {
        if at % 16 == 0 {
            race.next(0, (SLOW, None));
        }
        race.ask(streaming()).await.unwrap();
    }
    let [first, hedges] = race.calls();
    assert_eq!(first, 1_000);
    assert!((30..=1_040 / 20).contains(&hedges), "{hedges}");
    race.record();
}

/// Asks where the first call is slow; no second one must be begun.
async fn is_not_hedged(plan: Plan, request: NormalizedRequest) {
    let race = race_with(plan).await;
    race.next(0, (SLOW, None));
    let stream = request.facts.stream;
    if stream {
        assert_eq!(race.ask(request).await, Ok(1));
    } else {
        assert_eq!(race.house.ask(request).await.unwrap().head.attempts, 1);
    }
    assert_eq!((race.calls(), race.dropped()), ([1, 0], [0, 0]));
    race.record();
}

#[tokio::test(start_paused = true)]
async fn only_pure_streams_of_routes_that_ask_are_hedged() {
    is_not_hedged(plan(), crate::support::request()).await;
    let mut changes = streaming();
    changes.context.side_effecting = true;
    is_not_hedged(plan(), changes).await;
    let mut off = plan();
    off.route.hedge = false;
    is_not_hedged(off, streaming()).await;
    let mut once = plan();
    once.route.max_attempts = NonZeroU32::MIN;
    is_not_hedged(once, streaming()).await;
}

#[tokio::test(start_paused = true)]
async fn i16_a_hedge_takes_only_what_nobody_misses() {
    let mut capped = plan();
    capped.limits.max_concurrency = Some(1);
    is_not_hedged(capped, streaming()).await;
    let mut narrow = plan();
    narrow.pool_capacity = 2;
    is_not_hedged(narrow, streaming()).await;
    let mut poor = plan();
    // Enough for all that was asked and one call more, but not for the input of a second one.
    let each = 41 + 2 * 13;
    let one = 40 + 7 + 2 * 100;
    let limit = Money::from_micros(each * KNOWN as u64 + one);
    poor.limits.budget = Some(BudgetConfig { limit, window: Window::Day });
    is_not_hedged(poor, streaming()).await;
    // A slot that the tenant has reserved is nobody else's.
    let mut reserved = plan();
    (reserved.pool_capacity, reserved.limits.reserved_concurrency) = (3, 2);
    let race = race_with(reserved).await;
    race.next(0, (SLOW, None));
    assert_eq!(race.ask(streaming()).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_second_call_takes_over_from_one_that_fails() {
    let race = race().await;
    race.next(0, (FAST * 2, Some(error(K::ProviderUnavailable))));
    race.next(1, (SLOW, None));
    assert_eq!(race.ask(streaming()).await, Ok(2));
    assert_eq!((race.calls(), race.dropped()), ([1, 1], [0, 0]));
    let record = race.record();
    assert_eq!(attempts(&record), [("ptu", Some(K::ProviderUnavailable)), ("eu", None)]);
    assert!(record.side_costs.is_empty());
}

#[tokio::test(start_paused = true)]
async fn i01_what_never_moves_is_not_answered_by_the_second_call_either() {
    let race = race().await;
    race.next(0, (FAST * 2, Some(error(K::ContentFiltered))));
    race.next(1, (SLOW, None));
    assert_eq!(race.ask(streaming()).await, Err(K::ContentFiltered));
    assert_eq!((race.calls(), race.dropped()), ([1, 1], [0, 1]));
    assert_eq!(attempts(&race.record()), [("eu", Some(K::Cancelled)), ("ptu", Some(K::ContentFiltered))]);
}

#[tokio::test(start_paused = true)]
async fn a_second_call_that_fails_changes_nothing() {
    let race = race().await;
    race.next(0, (SLOW, None));
    race.next(1, (FAST, Some(error(K::ProviderUnavailable))));
    assert_eq!(race.ask(streaming()).await, Ok(2));
    assert_eq!((race.calls(), race.dropped()), ([1, 1], [0, 0]));
    assert_eq!(attempts(&race.record()), [("eu", Some(K::ProviderUnavailable)), ("ptu", None)]);
    // And where both fail there is nobody left to ask.
    let race = self::race().await;
    race.next(0, (SLOW, Some(error(K::ProviderUnavailable))));
    race.next(1, (FAST, Some(error(K::ProviderUnavailable))));
    assert_eq!(race.ask(streaming()).await, Err(K::ProviderUnavailable));
    assert_eq!(race.calls(), [1, 1]);
    race.record();
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_unwell_is_not_hedged() {
    for unwell in [0, 1] {
        let race = race().await;
        if unwell == 1 {
            race.next(0, (FAST, Some(error(K::ProviderUnavailable))));
            race.next(1, (FAST, Some(error(K::ProviderUnavailable))));
        } else {
            race.next(0, (FAST, Some(error(K::ProviderUnavailable))));
        }
        let _ends = race.ask(streaming()).await;
        race.calls();
        race.next(0, (SLOW, None));
        assert_eq!(race.ask(streaming()).await, Ok(1));
        assert_eq!(race.calls(), [1, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_both_calls_and_leaves_one_record() {
    let race = race().await;
    race.next(0, (SLOW, None));
    race.next(1, (SLOW, None));
    let asking = tokio::time::timeout(FAST * 5, race.house.ask_stream(streaming())).await;
    assert!(asking.is_err());
    assert_eq!((race.calls(), race.dropped()), ([1, 1], [1, 1]));
    let record = race.record();
    assert_eq!(record.outcome, Outcome::Cancelled);
    assert_eq!(attempts(&record), [("eu", Some(K::Cancelled)), ("ptu", Some(K::Cancelled))]);
    assert_eq!(record.side_costs.len(), 1);
}
