//! Health: who is left alone after failures, who is asked again and how, and what the record says of it.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, future::join};
use gw_exec::{BreakerSnapshot, BreakerState, RelayItem, RoutePolicy, StreamBody, Target};
use gw_types::{
    AccountingRecord, Adapter, Answer, AttemptPlan, CacheState, Deployment, ErrorKind as K, GatewayError,
    NormalizedRequest, Prepared,
};
use parking_lot::Mutex;

use crate::support::{
    House, Plan, answer, content, deployment, policy, prepared, request, stream, streaming,
};

/// A provider that is ill or well as it is told; an ill stream says something first and then breaks off.
#[derive(Debug, Default)]
struct Patient {
    ill: Mutex<Option<GatewayError>>,
    takes: Mutex<Duration>,
    calls: AtomicUsize,
}

impl Patient {
    fn falls_ill(&self, error: GatewayError) {
        *self.ill.lock() = Some(error);
    }

    fn recovers(&self) {
        *self.ill.lock() = None;
    }

    /// Returns the calls since the last time.
    fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Adapter for Patient {
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
        let takes = *self.takes.lock();
        tokio::time::sleep(takes).await;
        let ill = self.ill.lock().clone();
        match (ill, prepared.stream) {
            (ill, true) => {
                Ok(stream(vec![Ok(content("hi")), ill.map_or(Ok(crate::support::terminal()), Err)]))
            }
            (Some(error), false) => Err(error),
            (None, false) => Ok(answer()),
        }
    }
}

/// A house and the providers of its deployments, in the order of its only route.
struct Ward {
    house: House,
    patients: Vec<Arc<Patient>>,
}

fn target(name: &str, patient: &Arc<Patient>) -> Target {
    Target::new(Arc::new(deployment(name)), Arc::<Patient>::clone(patient))
}

fn ward_with(names: &[&str], plan: Plan) -> Ward {
    let patients: Vec<Arc<Patient>> = names.iter().map(|_| Arc::default()).collect();
    let targets = names.iter().zip(&patients).map(|(name, patient)| target(name, patient)).collect();
    Ward { house: plan.build_with(targets), patients }
}

fn ward(names: &[&str]) -> Ward {
    ward_with(names, Plan::new(Vec::new()))
}

fn error(kind: K) -> GatewayError {
    GatewayError::new(kind, "scripted")
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

impl Ward {
    /// Asks once; returns the calls that each provider got.
    async fn ask(&self) -> Vec<usize> {
        let attempts = match self.house.ask(request()).await {
            Ok(reply) => reply.head.attempts,
            Err(failure) => failure.head.attempts,
        };
        let calls = self.calls();
        assert_eq!(usize::try_from(attempts).unwrap(), calls.iter().sum::<usize>());
        calls
    }

    fn calls(&self) -> Vec<usize> {
        self.patients.iter().map(|patient| patient.calls()).collect()
    }

    fn breaker(&self, at: usize) -> BreakerSnapshot {
        self.house.gateway.snapshot().deployments[at].breaker
    }

    /// Fails so often that the first deployment is left alone.
    async fn open_first(&self) {
        self.patients[0].falls_ill(error(K::ProviderUnavailable));
        for _ in 0..5 {
            assert_eq!(self.breaker(0).state, BreakerState::Closed);
            self.ask().await;
        }
        assert_eq!(self.breaker(0).state, BreakerState::Open);
    }

    fn last_record(&self) -> AccountingRecord {
        self.house.holds_nothing();
        self.house.records().pop().unwrap()
    }
}

fn reasons(record: &AccountingRecord) -> Vec<(&str, &str)> {
    let exclusions = &record.decision.exclusions;
    exclusions.iter().map(|one| (one.deployment.as_str(), one.reason.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_failed_five_times_is_left_alone_and_comes_back_by_one_probe() {
    let ward = ward(&["ptu", "eu"]);
    ward.open_first().await;
    assert_eq!(ward.ask().await, [0, 1]);
    let record = ward.last_record();
    assert_eq!((reasons(&record), record.decision.last_resort), (vec![("ptu", "breaker_open")], false));
    assert_eq!(record.decision.candidates.iter().map(|one| one.as_str()).collect::<Vec<_>>(), ["eu"]);
    assert_eq!(record.primary.unwrap().as_str(), "ptu");
    // Ill when its period is over: one probe, which falls over, and it is left alone for longer.
    pass(30).await;
    assert_eq!(ward.breaker(0).state, BreakerState::HalfOpen);
    assert_eq!(ward.ask().await, [1, 1]);
    pass(30).await;
    assert_eq!(ward.ask().await, [0, 1]);
    // Well again: three probes, and then a share that grows to all.
    pass(30).await;
    ward.patients[0].recovers();
    for _ in 0..3 {
        assert_eq!(ward.breaker(0).state, BreakerState::HalfOpen);
        assert_eq!(ward.ask().await, [1, 0]);
    }
    let closed = ward.breaker(0);
    assert_eq!((closed.state, closed.consecutive_failures), (BreakerState::Closed, 0));
    pass(30).await;
    assert_eq!(ward.ask().await, [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn only_one_request_at_a_time_is_a_probe() {
    let ward = ward(&["ptu", "eu"]);
    ward.open_first().await;
    pass(30).await;
    ward.calls();
    ward.patients[0].recovers();
    *ward.patients[0].takes.lock() = Duration::from_millis(500);
    let others = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..4 {
            assert_eq!(ward.house.ask(request()).await.unwrap().head.deployment.unwrap().as_str(), "eu");
        }
    };
    let (probe, ()) = join(ward.house.ask(request()), others).await;
    assert_eq!(probe.unwrap().head.deployment.unwrap().as_str(), "ptu");
    assert_eq!(ward.calls(), [1, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_returns_by_a_share_that_chance_deals_and_the_record_holds() {
    let ward = ward(&["ptu", "eu"]);
    ward.open_first().await;
    ward.patients[0].recovers();
    pass(30).await;
    for _ in 0..3 {
        ward.ask().await;
    }
    let mut shares = Vec::new();
    for _ in 0..3 {
        let mut share = 0;
        for _ in 0..100 {
            share += ward.ask().await[0];
            assert_eq!(ward.last_record().decision.draws.len(), 1);
        }
        shares.push(share);
        pass(14).await;
    }
    assert!(shares[0] < 25 && (30..70).contains(&shares[1]) && shares[2] > 80, "{shares:?}");
    pass(2).await;
    ward.ask().await;
    assert!(ward.last_record().decision.draws.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_429_with_guidance_sends_the_next_requests_to_the_fallback_at_once() {
    let ward = ward(&["ptu", "eu"]);
    ward.patients[0].falls_ill(error(K::ProviderRateLimited).with_retry_after(Duration::from_secs(60)));
    assert_eq!(ward.ask().await, [1, 1]);
    for _ in 0..3 {
        assert_eq!(ward.ask().await, [0, 1]);
        assert_eq!(reasons(&ward.last_record()), [("ptu", "cooldown")]);
    }
    let breaker = ward.breaker(0);
    assert_eq!((breaker.state, breaker.consecutive_failures), (BreakerState::Closed, 0));
    assert!(breaker.cooldown_until.is_some());
    ward.patients[0].recovers();
    pass(59).await;
    assert_eq!(ward.ask().await, [0, 1]);
    pass(1).await;
    assert_eq!(ward.ask().await, [1, 0]);
    assert_eq!(ward.breaker(0).cooldown_until, None);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_all_open_serves_the_one_that_recovers_first_with_one_attempt() {
    let mut plan = Plan::new(Vec::new());
    plan.route = RoutePolicy { max_attempts: NonZeroU32::new(2).unwrap(), ..RoutePolicy::default() };
    let ward = ward_with(&["ptu", "eu"], plan);
    ward.open_first().await;
    ward.patients[1].falls_ill(error(K::Transport));
    pass(5).await;
    for _ in 0..5 {
        ward.ask().await;
    }
    assert_eq!((ward.breaker(0).state, ward.breaker(1).state), (BreakerState::Open, BreakerState::Open));
    assert!(ward.breaker(0).open_until < ward.breaker(1).open_until);
    assert_eq!(ward.ask().await, [1, 0]);
    let record = ward.last_record();
    assert!(record.decision.last_resort);
    assert_eq!(record.decision.candidates.len(), 1);
    assert_eq!(reasons(&record), [("ptu", "breaker_open"), ("eu", "breaker_open")]);
    // One that answers then is trusted again without waiting for its period to end.
    ward.patients[0].recovers();
    for _ in 0..3 {
        assert_eq!(ward.ask().await, [1, 0]);
    }
    assert_eq!(ward.breaker(0).state, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_only_deployment_is_never_refused_for_its_health() {
    let ward = ward(&["ptu"]);
    ward.open_first().await;
    for _ in 0..5 {
        assert_eq!(ward.ask().await, [1]);
    }
    ward.patients[0].falls_ill(error(K::ProviderRateLimited).with_retry_after(Duration::from_secs(3_600)));
    assert_eq!(ward.ask().await, [1]);
    ward.patients[0].recovers();
    // At every stage of the way back.
    for _ in 0..20 {
        assert_eq!(ward.ask().await, [1]);
        pass(3).await;
    }
    // Not while somebody else's probe is under way either.
    ward.open_first().await;
    pass(30).await;
    *ward.patients[0].takes.lock() = Duration::from_secs(1);
    ward.patients[0].recovers();
    let (one, other) = join(ward.house.ask(request()), ward.house.ask(request())).await;
    assert!(one.is_ok() && other.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_a_short_deadline_or_a_client_cuts_is_no_evidence() {
    let ward = ward(&["ptu", "eu"]);
    *ward.patients[0].takes.lock() = Duration::from_secs(3_600);
    for _ in 0..10 {
        assert_eq!(ward.ask().await, [1, 1]);
        let gone = tokio::time::timeout(Duration::from_millis(50), ward.house.ask(request())).await;
        assert!(gone.is_err());
        ward.calls();
    }
    assert_eq!(ward.breaker(0).consecutive_failures, 0);
    let mut plan = Plan::new(Vec::new());
    plan.deadline = Duration::from_secs(60);
    let patient = ward_with(&["ptu", "eu"], plan);
    *patient.patients[0].takes.lock() = Duration::from_secs(3_600);
    for _ in 0..5 {
        assert_eq!(patient.ask().await, [1, 1]);
    }
    assert_eq!(patient.ask().await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn streams_that_break_off_are_evidence_and_streams_that_the_client_left_are_not() {
    let ward = ward(&["ptu", "eu"]);
    let open = || async {
        let StreamBody::Relay(relay) = ward.house.ask_stream(streaming()).await.unwrap().body else {
            panic!("no cache here")
        };
        relay
    };
    for _ in 0..10 {
        drop(open().await);
    }
    assert_eq!(ward.breaker(0).consecutive_failures, 0);
    ward.patients[0].falls_ill(error(K::StreamInterrupted));
    for _ in 0..5 {
        let items: Vec<RelayItem> = open().await.collect().await;
        assert!(matches!(items.last(), Some(RelayItem::Failed(_))));
    }
    assert_eq!(ward.breaker(0).state, BreakerState::Open);
    ward.calls();
    drop(open().await);
    assert_eq!(ward.calls(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_content_filter_and_other_refusals_harm_nobody() {
    let ward = ward(&["ptu", "eu"]);
    for kind in [K::ContentFiltered, K::InvalidRequest, K::ContextLengthExceeded] {
        ward.patients[0].falls_ill(error(kind));
        for _ in 0..10 {
            assert_eq!(ward.ask().await, [1, 0]);
        }
    }
    assert_eq!(ward.breaker(0).consecutive_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_refused_opens_its_deployment() {
    let ward = ward(&["ptu", "eu"]);
    ward.patients[0].falls_ill(error(K::ProviderAuth).with_status(401));
    for _ in 0..5 {
        assert_eq!(ward.ask().await, [1, 1]);
    }
    assert_eq!(ward.ask().await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn health_outlives_a_reload() {
    let ward = ward(&["ptu", "eu"]);
    ward.open_first().await;
    ward.house.gateway.reload(policy(vec![
        target("eu", &ward.patients[1]),
        target("ptu", &ward.patients[0]),
        target("us", &Arc::default()),
    ]));
    assert_eq!([0, 1, 2].map(|at| ward.breaker(at).state == BreakerState::Open), [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn an_open_deployment_is_not_retried() {
    let mut plan = Plan::new(Vec::new());
    plan.route = RoutePolicy { max_attempts: NonZeroU32::new(20).unwrap(), ..RoutePolicy::default() };
    let patient: Arc<Patient> = Arc::default();
    patient.falls_ill(error(K::ProviderUnavailable));
    let mut often = deployment("ptu");
    often.max_attempts = NonZeroU32::new(4).unwrap();
    let ptu = Target::new(Arc::new(often), Arc::<Patient>::clone(&patient));
    let house = plan.build_with(vec![ptu]);
    let mut calls = Vec::new();
    for _ in 0..3 {
        house.ask(request()).await.unwrap_err();
        calls.push(patient.calls());
    }
    // The fifth failure opens it; from then on it is the last resort.
    assert_eq!(calls, [4, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_pinned_request_goes_where_its_state_lives_whatever_the_health() {
    let ward = ward(&["ptu", "eu"]);
    ward.open_first().await;
    ward.calls();
    let mut pinned = request();
    pinned.context.pinned = true;
    ward.house.ask(pinned).await.unwrap_err();
    assert_eq!(ward.calls(), [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_deployment_is_found_while_it_is_ill() {
    let mut plan = Plan::new(Vec::new());
    plan.route.cache = Some(gw_cache::CachePolicy { exact: true, ..gw_cache::CachePolicy::default() });
    let ward = ward_with(&["ptu", "eu"], plan);
    let of = |body: &'static [u8]| {
        let mut request = request();
        request.body = bytes::Bytes::from_static(body);
        request
    };
    let cache = |body| {
        let house = &ward.house;
        async move { house.ask(of(body)).await.map_or(CacheState::Bypass, |reply| reply.head.cache) }
    };
    let (old, new) = (br#"{"model":"reasoner","n":1}"#, br#"{"model":"reasoner","n":2}"#);
    assert_eq!(cache(old).await, CacheState::Miss);
    ward.patients[0].falls_ill(error(K::ProviderUnavailable));
    for number in 0..5_u8 {
        let mut request = request();
        request.body = format!(r#"{{"model":"reasoner","x":{number}}}"#).into();
        ward.house.ask(request).await.unwrap();
    }
    assert_eq!(ward.breaker(0).state, BreakerState::Open);
    assert_eq!(cache(old).await, CacheState::Exact);
    assert_eq!(cache(new).await, CacheState::Miss);
    assert_eq!(cache(new).await, CacheState::Exact);
}
