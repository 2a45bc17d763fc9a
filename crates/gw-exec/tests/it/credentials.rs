//! Several credentials of one deployment: whose refusal concerns whom.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gw_exec::{BreakerState, RoutePolicy, Target, TargetCredential};
use gw_types::{
    Adapter, Answer, AttemptPlan, Deployment, ErrorKind as K, GatewayError, NormalizedRequest, Prepared,
};
use parking_lot::Mutex;

use crate::support::{House, Plan, answer, deployment, prepared, request};

/// What a provider says to one credential.
#[derive(Debug, Default)]
struct Account {
    says: Mutex<Option<GatewayError>>,
    calls: AtomicUsize,
}

#[async_trait]
impl Adapter for Account {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, _prepared: Prepared) -> Result<Answer, GatewayError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.says.lock().clone().map_or_else(|| Ok(answer()), Err)
    }
}

/// A deployment with two credentials, and one without several behind it.
struct Bank {
    house: House,
    accounts: Vec<Arc<Account>>,
}

fn bank() -> Bank {
    bank_with(Plan::new(Vec::new()))
}

fn bank_with(plan: Plan) -> Bank {
    let accounts: Vec<Arc<Account>> = (0..3).map(|_| Arc::default()).collect();
    let adapter = |at: usize| -> Arc<dyn Adapter> { Arc::<Account>::clone(&accounts[at]) };
    let credentials = [("a", 0), ("b", 1)];
    let credentials =
        credentials.map(|(name, at)| TargetCredential { name: name.parse().unwrap(), adapter: adapter(at) });
    let first =
        Target { credentials: credentials.into(), ..Target::new(Arc::new(deployment("ptu")), adapter(0)) };
    let other = Target::new(Arc::new(deployment("eu")), adapter(2));
    Bank { house: plan.build_with(vec![first, other]), accounts }
}

fn error(kind: K) -> GatewayError {
    GatewayError::new(kind, "scripted")
}

impl Bank {
    fn says(&self, at: usize, error: Option<GatewayError>) {
        *self.accounts[at].says.lock() = error;
    }

    /// Asks once; returns the calls with each credential.
    async fn ask(&self) -> Vec<usize> {
        let _ends = self.house.ask(request()).await;
        self.house.holds_nothing();
        self.accounts.iter().map(|account| account.calls.swap(0, Ordering::Relaxed)).collect()
    }

    fn states(&self) -> (BreakerState, Vec<BreakerState>) {
        let deployment = self.house.gateway.snapshot().deployments.remove(0);
        let credentials = deployment.credentials.iter().map(|one| one.breaker.state).collect();
        (deployment.breaker.state, credentials)
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_rests_and_the_next_one_is_used() {
    for kind in [K::ProviderAuth, K::ProviderRateLimited] {
        let bank = bank();
        let refusal = error(kind).with_retry_after(Duration::from_secs(20));
        bank.says(0, Some(refusal));
        // One request pays for the discovery; the others do not.
        assert_eq!(bank.ask().await, [1, 1, 0], "{kind:?}");
        assert_eq!(bank.ask().await, [0, 1, 0], "{kind:?}");
        assert_eq!(bank.states().0, BreakerState::Closed);
        let records = bank.house.records();
        let attempts = &records[0].attempts;
        let of = |at: usize| (attempts[at].credential.as_ref().unwrap().as_str(), attempts[at].error);
        assert_eq!((of(0), of(1)), (("a", Some(kind)), ("b", None)));
        bank.says(0, None);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(bank.ask().await, [1, 0, 0], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_about_the_credential_moves_to_the_next_deployment() {
    let bank = bank();
    bank.says(0, Some(error(K::ProviderUnavailable)));
    assert_eq!(bank.ask().await, [1, 0, 1]);
    assert_eq!(bank.states().1, [BreakerState::Closed; 2]);
    bank.says(0, Some(error(K::ContentFiltered)));
    assert_eq!(bank.ask().await, [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn where_all_are_refused_the_deployment_is_passed_over() {
    let bank = bank();
    for at in [0, 1] {
        bank.says(at, Some(error(K::ProviderAuth)));
    }
    assert_eq!(bank.ask().await, [1, 1, 1]);
    assert_eq!(bank.ask().await, [0, 0, 1]);
    assert_eq!(bank.states(), (BreakerState::Closed, vec![BreakerState::Open; 2]));
    let record = bank.house.records().pop().unwrap();
    let out: Vec<_> = record.decision.exclusions.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(out, ["breaker_open"]);
    // Where nobody else is left, the one that recovers first is asked once.
    bank.says(2, Some(error(K::ProviderUnavailable)));
    for _ in 0..6 {
        bank.ask().await;
    }
    let calls = bank.ask().await;
    assert_eq!(calls.iter().sum::<usize>(), 1, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_a_request_bound_its_credentials_too() {
    let mut plan = Plan::new(Vec::new());
    plan.route = RoutePolicy { max_attempts: NonZeroU32::MIN, ..RoutePolicy::default() };
    let bank = bank_with(plan);
    bank.says(0, Some(error(K::ProviderAuth)));
    assert_eq!(bank.ask().await, [1, 0, 0]);
    assert_eq!(bank.ask().await, [0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn i11_a_side_effecting_request_has_one_credential() {
    let bank = bank();
    bank.says(0, Some(error(K::ProviderAuth)));
    let mut request = request();
    request.context.side_effecting = true;
    assert!(bank.house.ask(request).await.is_err());
    assert_eq!(bank.accounts[1].calls.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn i17_other_credentials_do_not_multiply_the_calls_of_an_outage() {
    let bank = bank();
    for at in [0, 1] {
        bank.says(at, Some(error(K::ProviderRateLimited)));
    }
    let mut calls = 0;
    for _ in 0..2_000 {
        let [one, two, _] = bank.ask().await[..] else { panic!() };
        calls += one + two;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Both are free again for every request; a fifth of them may ask twice, beyond the burst.
    assert!(calls <= 2_000 + 100 + 2_000 / 5, "{calls}");
    assert!(calls > 2_000);
}
