//! Limits that replicas share, and what happens when their store is lost.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use gw_exec::{LossPolicy, SharedConfig};
use gw_limits::{
    BudgetConfig, SharedLimit, SharedLimits, SharedLost, SharedSettlement, SharedTake, SharedUse,
    SharedVerdict, TenantLimitsConfig, Window,
};
use gw_types::{ErrorKind as K, KeyIdentity, Money, TokenCount, Usage};
use parking_lot::Mutex;

use crate::{
    provider::Provider,
    support::{House, Plan, caller, deployment, other, request},
};

/// How the store is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Up,
    /// Takes the question and never answers.
    Frozen,
    Refusing,
}

/// A store that counts exactly and never refills: enough for what a minute sees.
#[derive(Debug)]
struct Store {
    mode: Mutex<Mode>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: HashMap<String, u128>,
    held: HashMap<u128, Vec<SharedLimit>>,
    asked: usize,
}

fn amount(take: &SharedTake) -> (u128, u128) {
    match *take {
        SharedTake::Requests { per_minute } => (1, u128::from(per_minute)),
        SharedTake::Tokens { per_minute, amount } => (u128::from(amount), u128::from(per_minute)),
        SharedTake::Budget { limit, amount, .. } => (amount.pico(), limit.pico()),
    }
}

impl Store {
    fn new() -> Arc<Self> {
        Arc::new(Self { mode: Mutex::new(Mode::Up), state: Mutex::default() })
    }

    async fn reached(&self) -> Result<(), SharedLost> {
        self.state.lock().asked += 1;
        let mode = *self.mode.lock();
        match mode {
            Mode::Up => Ok(()),
            Mode::Frozen => std::future::pending().await,
            Mode::Refusing => Err(SharedLost),
        }
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    fn used(&self, limit: &str) -> u128 {
        self.state.lock().used.get(limit).copied().unwrap_or_default()
    }

    fn holds(&self) -> usize {
        self.state.lock().held.len()
    }

    fn asked(&self) -> usize {
        self.state.lock().asked
    }
}

/// One replica's way to the store. The ids of two replicas differ, as random ones do.
#[derive(Debug)]
struct Door(Arc<Store>, u128);

#[async_trait]
impl SharedLimits for Door {
    async fn take(
        &self,
        id: u128,
        limits: &[SharedLimit],
        hold: Duration,
    ) -> Result<SharedVerdict, SharedLost> {
        self.0.take(id | self.1 << 64, limits, hold).await
    }

    async fn settle(&self, settlement: &SharedSettlement) -> Result<(), SharedLost> {
        let id = settlement.id | self.1 << 64;
        self.0.settle(&SharedSettlement { id, ..settlement.clone() }).await
    }
}

impl Store {
    async fn take(&self, id: u128, limits: &[SharedLimit], _: Duration) -> Result<SharedVerdict, SharedLost> {
        self.reached().await?;
        let mut state = self.state.lock();
        let refuses = |limit: &SharedLimit| {
            let (amount, most) = amount(&limit.take);
            state.used.get(&limit.named().to_string()).copied().unwrap_or_default() + amount > most
        };
        let refused: Vec<_> = (0..limits.len()).filter(|at| refuses(&limits[*at])).collect();
        if !refused.is_empty() {
            let wait = Some(Duration::from_secs(12));
            return Ok(SharedVerdict::Refused(refused.into_iter().map(|at| (at, wait)).collect()));
        }
        for limit in limits {
            *state.used.entry(limit.named().to_string()).or_default() += amount(&limit.take).0;
        }
        state.held.insert(id, limits.to_vec());
        Ok(SharedVerdict::Taken)
    }

    async fn settle(&self, settlement: &SharedSettlement) -> Result<(), SharedLost> {
        self.reached().await?;
        let mut state = self.state.lock();
        if state.held.remove(&settlement.id).is_none() {
            return Ok(());
        }
        for limit in &settlement.limits {
            let used = match (settlement.used, limit.take) {
                (SharedUse::Nothing, _) => 0,
                (SharedUse::Used(..), SharedTake::Requests { .. }) => 1,
                (SharedUse::Used(tokens, _), SharedTake::Tokens { .. }) => u128::from(tokens.get()),
                (SharedUse::Used(_, money), SharedTake::Budget { .. }) => money.pico(),
            };
            let counter = state.used.entry(limit.named().to_string()).or_default();
            *counter = *counter + used - amount(&limit.take).0;
        }
        Ok(())
    }
}

const BUDGET: &str = "tenant:wholesale.budget";

/// A replica: the caller has a budget of 1,100 micro-USD, the other five requests a minute. An answer costs 300.
fn replica(store: &Arc<Store>, provider: &Arc<Provider>, number: u128) -> House {
    let mut plan = Plan::new(Vec::new());
    let budget = Some(BudgetConfig { limit: Money::from_micros(1_100), window: Window::Day });
    plan.limits = TenantLimitsConfig { budget, ..TenantLimitsConfig::default() };
    plan.other = TenantLimitsConfig { requests_per_minute: Some(5), ..TenantLimitsConfig::default() };
    plan.shared = Some(SharedConfig {
        store: Arc::new(Door(Arc::clone(store), number)),
        timeout: Duration::from_millis(100),
        budget_on_loss: LossPolicy::Closed,
        rate_on_loss: LossPolicy::Local,
    });
    plan.build_with(vec![provider.at(deployment("up"))])
}

fn priced() -> Arc<Provider> {
    let mut provider = Provider::new(300, &[]);
    provider.usage = Usage { input: TokenCount::new(300), ..Usage::default() };
    Arc::new(provider)
}

async fn outcome(house: &House, identity: &KeyIdentity) -> Result<(), (K, Duration)> {
    let began = tokio::time::Instant::now();
    house.ask_as(identity, request()).await.map(|_| ()).map_err(|failure| {
        assert!(failure.error.retry_after().is_some());
        (failure.error.kind(), began.elapsed())
    })
}

#[tokio::test(start_paused = true)]
async fn replicas_spend_one_budget_together() {
    let (store, provider) = (Store::new(), priced());
    let houses = [replica(&store, &provider, 1), replica(&store, &provider, 2)];
    let asks = (0..40).map(|n| houses[n % 2].ask(request()));
    let served = join_all(asks).await.into_iter().filter(Result::is_ok).count();
    tokio::time::sleep(Duration::from_millis(10)).await;
    // Each holds 247 micro-USD in flight: four fit, whichever replica they reach.
    assert_eq!((served, provider.calls()), (4, 4));
    assert_eq!((store.used(BUDGET), store.holds()), (Money::from_micros(1_200).pico(), 0));
    houses.iter().for_each(House::holds_nothing);
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_before_a_call_goes_back_to_the_store() {
    let (store, provider) = (Store::new(), priced());
    let house = replica(&store, &provider, 1);
    store.set(Mode::Frozen);
    let left = tokio::time::timeout(Duration::from_millis(50), house.ask(request())).await;
    assert!(left.is_err(), "the caller leaves while the store is asked");
    store.set(Mode::Up);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!((store.used(BUDGET), store.holds(), provider.calls()), (0, 0, 0));
    let record = house.only_record();
    assert_eq!(record.cost, Money::ZERO);
}

async fn counter_store_outage_is_bounded_and_named(mode: Mode) {
    let (store, provider) = (Store::new(), priced());
    let house = replica(&store, &provider, 1);
    outcome(&house, &caller()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    store.set(mode);
    let calls = provider.calls();
    for _ in 0..10 {
        let (kind, waited) = outcome(&house, &caller()).await.unwrap_err();
        assert_eq!(kind, K::Overloaded);
        assert!(waited <= Duration::from_millis(250), "{waited:?}");
    }
    assert_eq!(provider.calls(), calls, "money is not spent on a guess");
    for n in 0..10 {
        let decided = outcome(&house, &other()).await.map_err(|(kind, _)| kind);
        assert_eq!(decided, if n < 5 { Ok(()) } else { Err(K::RateLimited) }, "{n}");
    }
    let seen = house.gateway.snapshot().shared_limits.unwrap();
    assert!(seen.lost && (3..=20).contains(&seen.failures), "{seen:?}");
    let asked = store.asked();
    for _ in 0..100 {
        let (_, waited) = outcome(&house, &caller()).await.unwrap_err();
        assert!(waited <= Duration::from_millis(100), "{waited:?}");
    }
    assert!(store.asked() <= asked + 2, "the store is left alone");
    let last = house.records().pop().unwrap().decision.limiter.unwrap();
    assert!(last.degraded && !last.admitted && last.refused_by[0].as_str() == BUDGET);
    store.set(Mode::Up);
    tokio::time::sleep(Duration::from_secs(5)).await;
    outcome(&house, &caller()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let seen = house.gateway.snapshot().shared_limits.unwrap();
    assert_eq!((store.holds(), seen.lost, seen.pending), (0, false, 0));
    assert_eq!(store.used(BUDGET), Money::from_micros(600).pico());
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn counter_store_outage_is_bounded_and_named_frozen() {
    counter_store_outage_is_bounded_and_named(Mode::Frozen).await;
}

/// A store that refuses connections, and one that answers reads but fails writes: taking is a write.
#[tokio::test(start_paused = true)]
async fn counter_store_outage_is_bounded_and_named_refusing() {
    counter_store_outage_is_bounded_and_named(Mode::Refusing).await;
}
