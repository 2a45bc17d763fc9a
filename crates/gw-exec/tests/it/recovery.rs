//! After a fault nobody has to help: twice the load and half the calls failing for a minute, and then all is as before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gw_exec::{QueuePolicy, Target};
use gw_types::{
    Adapter, Answer, AttemptPlan, Deployment, ErrorKind as K, GatewayError, NormalizedRequest, Prepared,
};

use crate::support::{Plan, answer, deployment, prepared, request};

/// How long a call takes.
const CALL: Duration = Duration::from_millis(500);
/// Calls at once; with [`CALL`] 40 requests a second are what can be served.
const SLOTS: u32 = 20;
/// Between two requests at the usual load: 30 a second.
const USUAL: Duration = Duration::from_nanos(1_000_000_000 / 30);
const WARM: u64 = 60;
const FAULT: u64 = 60;
const AFTER: u64 = 60;

/// A provider of which half the calls fail while it is told to.
#[derive(Debug, Default)]
struct Shaky {
    fails: AtomicBool,
    calls: AtomicU64,
}

#[async_trait]
impl Adapter for Shaky {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, _prepared: Prepared) -> Result<Answer, GatewayError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(CALL).await;
        // Neither strictly in turn nor by chance: the bits of a multiplied number.
        let half = call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0;
        if half && self.fails.load(Ordering::Relaxed) {
            return Err(GatewayError::new(K::ProviderUnavailable, "scripted"));
        }
        Ok(answer())
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_fault_of_a_minute_goodput_is_back_within_half_a_minute() {
    let shaky: [Arc<Shaky>; 2] = [Arc::default(), Arc::default()];
    let mut plan = Plan::new(Vec::new());
    plan.pool_capacity = SLOTS + 1;
    plan.deadline = Duration::from_secs(10);
    plan.limits.max_concurrency = Some(SLOTS);
    plan.tenant.queue = QueuePolicy { max_queue: 1_000, ..QueuePolicy::default() };
    let target = |name: &str, at: usize| {
        let mut facts = deployment(name);
        facts.max_attempts = std::num::NonZeroU32::new(2).unwrap();
        Target::new(Arc::new(facts), Arc::<Shaky>::clone(&shaky[at]))
    };
    let house = Arc::new(plan.build_with(vec![target("one", 0), target("two", 1)]));
    let began = tokio::time::Instant::now();
    let seconds = WARM + FAULT + AFTER;
    let good: Arc<Vec<AtomicU64>> = Arc::new((0..seconds + 30).map(|_| AtomicU64::new(0)).collect());
    let mut clients = tokio::task::JoinSet::new();
    while began.elapsed() < Duration::from_secs(seconds) {
        let at = began.elapsed().as_secs();
        let is_fault = (WARM..WARM + FAULT).contains(&at);
        shaky.iter().for_each(|one| one.fails.store(is_fault, Ordering::Relaxed));
        let (house, good) = (Arc::clone(&house), Arc::clone(&good));
        clients.spawn(async move {
            if house.gateway.admit(&crate::support::caller()).is_ok() && house.ask(request()).await.is_ok() {
                let at = usize::try_from(began.elapsed().as_secs()).unwrap();
                good[at].fetch_add(1, Ordering::Relaxed);
            }
        });
        tokio::time::sleep(if is_fault { USUAL / 2 } else { USUAL }).await;
    }
    while clients.join_next().await.is_some() {}
    let rate = |from: u64, to: u64| {
        let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
        let sum: u64 = good[from..to].iter().map(|one| one.load(Ordering::Relaxed)).sum();
        sum as f64 / (to - from) as f64
    };
    let before = rate(20, WARM);
    let end = WARM + FAULT;
    let during = rate(WARM + 10, end);
    // The first second from which on ten seconds together are as good as before.
    let back = (end..end + AFTER - 10).find(|from| rate(*from, from + 10) >= 0.95 * before);
    let back = back.map(|second| second - end);
    println!("recovery: {before:.1} a second before, {during:.1} during, back after {back:?} s");
    assert!(before > 29.0, "{before}");
    assert!(back.is_some_and(|seconds| seconds <= 30), "{before} {during} {back:?}");
    // What was refused or failed has left nothing behind.
    house.holds_nothing();
    let snapshot = house.gateway.snapshot();
    assert_eq!((snapshot.pool.waiting, snapshot.pool.shared_in_use), (0, 0));
}
