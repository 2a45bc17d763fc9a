//! Batches: bounded, in order or not, stopped, cancelled at any point; the sentences of the source under "Contract" and
//! "Admission" that the pipeline answers for.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use gw_exec::{
    BatchConfig, DeploymentPolicy, Gateway, GenerationRequest, GenerationResult, GenerationStatus as S, Ids,
    ModelIdentity, OnFailure, Order, Stop, Target,
};
use gw_limits::{BudgetConfig, TenantLimitsConfig, Window};
use gw_types::{
    Adapter, Answer, AttemptPlan, BoundedText, Deployment, ErrorKind as K, GatewayError, Money,
    NormalizedRequest, Prepared, TokenCount,
};
use parking_lot::Mutex;
use proptest::prelude::*;

use crate::support::{House, Plan, answer, caller, deployment, prepared, request};

/// Fails the calls whose number the script has an error for, and counts how many are with it at once.
#[derive(Debug, Default)]
struct Far {
    script: Mutex<Vec<(usize, K)>>,
    calls: AtomicUsize,
    at_once: Arc<AtomicUsize>,
    most_at_once: AtomicUsize,
}

/// A call that is with the provider; dropping it is how it ends, however it does.
struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Adapter for Far {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _: &Deployment,
        _: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, _: Prepared) -> Result<Answer, GatewayError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let now = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        let _inside = Inside(Arc::clone(&self.at_once));
        self.most_at_once.fetch_max(now, Ordering::Relaxed);
        // Later calls are faster, so that completion order is not input order.
        tokio::time::sleep(Duration::from_millis(100 - (number as u64 % 7) * 10)).await;
        let planned = self.script.lock().iter().find(|(at, _)| *at == number).map(|(_, kind)| *kind);
        planned.map_or_else(|| Ok(answer()), |kind| Err(GatewayError::new(kind, "planned")))
    }
}

struct Scene {
    house: House,
    gateway: Arc<Gateway>,
    far: Arc<Far>,
}

fn scene(script: &[(usize, K)], shape: impl FnOnce(&mut Plan, &mut Deployment)) -> Scene {
    let far = Arc::new(Far { script: Mutex::new(script.to_vec()), ..Far::default() });
    let mut plan = Plan::new(Vec::new());
    plan.deadline = Duration::from_secs(600);
    let mut up = deployment("up");
    shape(&mut plan, &mut up);
    let house = plan.build_with(vec![Target::new(Arc::new(up), Arc::<Far>::clone(&far))]);
    let gateway = Arc::clone(&house.gateway);
    Scene { house, gateway, far }
}

fn plain(script: &[(usize, K)]) -> Scene {
    scene(script, |_, _| {})
}

fn item(id: &str) -> GenerationRequest {
    let text = |text| Some(BoundedText::new(text));
    GenerationRequest {
        request_id: id.to_owned(),
        task_id: Some(format!("task-{id}")),
        identity: ModelIdentity::new(text("openai-chat"), text("r1"), text("t1")),
        request: request(),
    }
}

fn items(count: usize) -> impl Stream<Item = GenerationRequest> + Unpin {
    stream::iter((0..count).map(|number| item(&number.to_string())))
}

fn config(workers: usize) -> BatchConfig {
    BatchConfig::new(caller(), NonZeroUsize::new(workers).unwrap())
}

fn ids(results: &[GenerationResult]) -> Vec<&str> {
    results.iter().map(|result| result.request_id.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn at_most_max_concurrency_workers_and_every_item_has_one_result() {
    let scene = plain(&[]);
    let results: Vec<_> = scene.gateway.generate_many(items(50), config(4)).collect().await;
    let mut seen = ids(&results);
    seen.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(seen, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(results.iter().all(|result| result.status == S::Ok && result.attempts == 1));
    assert_eq!(scene.far.most_at_once.load(Ordering::Relaxed), 4);
    scene.house.holds_nothing();
    assert_eq!(scene.house.records().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn generate_many_takes_an_item_only_when_a_worker_is_free() {
    let scene = plain(&[]);
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let source = items(1_000).inspect(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut batch = scene.gateway.generate_many(source, config(3));
    assert!(batch.next().now_or_never().is_none());
    assert_eq!((taken.load(Ordering::Relaxed), batch.in_work()), (3, 3));
    batch.next().await.unwrap();
    assert!(taken.load(Ordering::Relaxed) <= 4);
}

#[tokio::test(start_paused = true)]
async fn results_come_in_input_order_where_that_is_asked() {
    let scene = plain(&[]);
    let ordered = BatchConfig { order: Order::Input, ..config(8) };
    let results: Vec<_> = scene.gateway.generate_many(items(40), ordered).collect().await;
    assert_eq!(ids(&results), (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
    let scene = plain(&[]);
    let results: Vec<_> = scene.gateway.generate_many(items(40), config(8)).collect().await;
    assert_ne!(ids(&results), (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_result_records_status_attempts_latency_class_and_the_ordered_history() {
    let script = [
        (0, K::ProviderUnavailable),
        (1, K::ProviderRateLimited),
        (3, K::ProviderTimeout),
        (4, K::Transport),
        (5, K::ProviderUnavailable),
    ];
    let scene = scene(&script, |_, up| up.max_attempts = 3.try_into().unwrap());
    let results: Vec<_> = scene.gateway.generate_many(items(2), config(1)).collect().await;
    let (retried, failed) = (&results[0], &results[1]);
    assert_eq!((retried.status, retried.attempts, retried.error_class), (S::Ok, 3, None));
    assert_eq!(retried.attempt_error_classes[..], [K::ProviderUnavailable, K::ProviderRateLimited]);
    assert_eq!(retried.task_id.as_deref(), Some("task-0"));
    assert_eq!(retried.identity, item("0").identity);
    assert_eq!(
        (failed.status, failed.attempts, failed.error_class),
        (S::Failed, 3, Some(K::ProviderUnavailable))
    );
    assert_eq!(failed.attempt_error_classes[..], [K::ProviderTimeout, K::Transport, K::ProviderUnavailable]);
    assert!(failed.latency >= Duration::from_millis(180) && failed.admission_wait.is_zero());
    assert_eq!(failed.message.as_deref().map(|message| message.contains("planned")), Some(true));
}

#[tokio::test(start_paused = true)]
async fn only_429_5xx_timeout_and_transport_failures_consume_the_retry_budget() {
    for kind in [K::ProviderRateLimited, K::ProviderUnavailable, K::ProviderTimeout, K::Transport] {
        assert_eq!(attempts_after(kind).await, 2, "{kind}");
    }
    for kind in [
        K::InvalidRequest,
        K::MalformedResponse,
        K::ContentFiltered,
        K::ContextLengthExceeded,
        K::ProviderAuth,
    ] {
        assert_eq!(attempts_after(kind).await, 1, "{kind}");
    }
}

async fn attempts_after(kind: K) -> u32 {
    let scene = scene(&[(0, kind)], |_, up| up.max_attempts = 2.try_into().unwrap());
    scene.gateway.generate_many(items(1), config(1)).next().await.unwrap().attempts
}

#[tokio::test(start_paused = true)]
async fn equal_ids_become_failed_results() {
    let scene = plain(&[]);
    let source = || stream::iter(["a", "b", "a"].map(item));
    let results: Vec<_> = scene.gateway.generate_many(source(), config(2)).collect().await;
    let failed: Vec<_> = results.iter().filter(|result| result.status == S::Failed).collect();
    assert_eq!((results.len(), failed.len()), (3, 1));
    assert_eq!(
        (failed[0].request_id.as_str(), failed[0].error_class, failed[0].attempts),
        ("a", Some(K::InvalidRequest), 0)
    );
    let unchecked = BatchConfig { ids: Ids::Unique, ..config(2) };
    let results: Vec<_> = scene.gateway.generate_many(source(), unchecked).collect().await;
    assert!(results.iter().all(|result| result.status == S::Ok));
}

/// "A request larger than the configured token budget is rejected before transport."
#[tokio::test(start_paused = true)]
async fn a_request_larger_than_the_token_budget_is_rejected_before_transport() {
    let scene = scene(&[], |plan, up| {
        let lane =
            DeploymentPolicy { in_flight_tokens: Some(TokenCount::new(300)), ..DeploymentPolicy::default() };
        plan.deployments = vec![(up.name.clone(), lane)];
    });
    let mut large = item("large");
    large.request.facts.choices = 3;
    let source = stream::iter([large, item("small")]);
    let results: Vec<_> = scene.gateway.generate_many(source, config(1)).collect().await;
    assert_eq!(
        (results[0].status, results[0].error_class, results[0].attempts),
        (S::Failed, Some(K::RateLimited), 0)
    );
    assert_eq!((results[1].status, scene.far.calls.load(Ordering::Relaxed)), (S::Ok, 1));
    scene.house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn what_gw_itself_refuses_with_an_instant_is_asked_again_then() {
    let scene = scene(&[], |plan, _| {
        plan.limits = TenantLimitsConfig { requests_per_minute: Some(60), ..TenantLimitsConfig::default() };
    });
    let results: Vec<_> = scene.gateway.generate_many(items(90), config(8)).collect().await;
    assert!(results.iter().all(|result| result.status == S::Ok));
    assert!(results.iter().any(|result| result.admission_wait >= Duration::from_secs(1)));
    assert!(results.iter().all(|result| result.latency <= Duration::from_millis(200)), "waiting is apart");
}

#[tokio::test(start_paused = true)]
async fn fail_fast_stops_keeps_what_is_there_and_leaves_the_gateway_usable() {
    let scene = plain(&[(5, K::ContentFiltered)]);
    let fast = BatchConfig { on_failure: OnFailure::Stop, ..config(3) };
    let mut batch = scene.gateway.generate_many(items(1_000), fast);
    let results: Vec<_> = batch.by_ref().collect().await;
    assert_eq!(batch.stopped(), Some(Stop::Failure));
    let count = |status| results.iter().filter(|result| result.status == status).count();
    assert_eq!((count(S::Failed), count(S::Cancelled)), (1, 2));
    assert!(count(S::Ok) >= 3);
    assert_eq!(scene.far.at_once.load(Ordering::Relaxed), 0);
    scene.house.holds_nothing();
    let again: Vec<_> = scene.gateway.generate_many(items(3), config(3)).collect().await;
    assert!(again.iter().all(|result| result.status == S::Ok));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_stops_after_the_first_items() {
    let wrong: Vec<_> = (0..1_000).map(|number| (number, K::ProviderAuth)).collect();
    let scene = plain(&wrong);
    let mut batch = scene.gateway.generate_many(items(1_000), config(2));
    let results: Vec<_> = batch.by_ref().collect().await;
    assert_eq!(batch.stopped(), Some(Stop::Fatal(K::ProviderAuth)));
    assert!(results.len() <= 6, "{}", results.len());
}

/// 41 tokens in at 1 and 13 out at 2 micro-USD cost 67; at most 47 + 200 = 247.
#[tokio::test(start_paused = true)]
async fn a_batch_stops_before_its_cost_would_be_passed() {
    let scene = plain(&[]);
    let capped = BatchConfig { max_cost: Some(Money::from_micros(700)), ..config(4) };
    let mut batch = scene.gateway.generate_many(items(100), capped);
    let results: Vec<_> = batch.by_ref().collect().await;
    assert_eq!(batch.stopped(), Some(Stop::MaxCost));
    let answered = results.iter().filter(|result| result.status == S::Ok).count();
    let spent: u64 = results.iter().map(|result| result.cost.micros_rounded_up()).sum();
    assert_eq!((answered, spent), (7, 469));
    assert_eq!(results.iter().filter(|result| result.status == S::Cancelled).count(), 1);
    scene.house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn cancelling_hands_out_what_was_in_work_as_cancelled() {
    let scene = plain(&[]);
    let mut batch = scene.gateway.generate_many(items(100), BatchConfig { order: Order::Input, ..config(5) });
    batch.next().await.unwrap();
    batch.cancel();
    scene.house.holds_nothing();
    let rest: Vec<_> = batch.collect().await;
    assert!(rest.iter().filter(|result| result.status == S::Cancelled).count() >= 4);
    assert!(rest.iter().all(|result| result.status != S::Failed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// "Token reservations and concurrency slots are released": whatever the point at which the caller goes away, it has
    /// everything back at once, no call goes on, and the gateway answers the next batch.
    #[test]
    fn dropping_a_batch_at_any_point_gives_everything_back(
        polls in 0_usize..40,
        millis in 0_u64..400,
        workers in 1_usize..9,
        failures in proptest::collection::vec((0_usize..20, prop_oneof![Just(K::ProviderUnavailable), Just(K::Transport), Just(K::ProviderRateLimited)]), 0..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let scene = scene(&failures, |plan, up| {
                up.max_attempts = 2.try_into().unwrap();
                up.max_concurrency = Some(4.try_into().unwrap());
                plan.limits = TenantLimitsConfig {
                    budget: Some(BudgetConfig { limit: Money::from_micros(1_000_000), window: Window::Day }),
                    ..TenantLimitsConfig::default()
                };
                let lane = DeploymentPolicy { in_flight_tokens: Some(TokenCount::new(500)), ..DeploymentPolicy::default() };
                plan.deployments = vec![(up.name.clone(), lane)];
            });
            let mut batch = scene.gateway.generate_many(items(50), config(workers));
            let until = tokio::time::Instant::now() + Duration::from_millis(millis);
            for _ in 0..polls {
                let next = std::future::poll_fn(|cx| match batch.poll_next_unpin(cx) {
                    Poll::Ready(next) => Poll::Ready(next),
                    Poll::Pending => Poll::Pending,
                });
                if tokio::time::timeout_at(until, next).await.is_err() {
                    break;
                }
            }
            drop(batch);
            assert_eq!(scene.far.at_once.load(Ordering::Relaxed), 0);
            scene.house.holds_nothing();
            let again: Vec<_> = scene.gateway.generate_many(items(2), config(2)).collect().await;
            assert_eq!(again.len(), 2);
            scene.house.holds_nothing();
        });
    }
}
