//! Step 8: who is called, how often, when, and what is raised in the end.

use std::{num::NonZeroU32, sync::Arc, sync::atomic::Ordering, time::Duration};

use gw_exec::{Body, RoutePolicy, Target};
use gw_types::{AccountingRecord, ErrorKind as K, GatewayError, Outcome};

use crate::support::{
    Hanging, House, Plan, answers, deployment, fails, never, provider, request, side_effecting,
};

fn error(kind: K) -> GatewayError {
    GatewayError::new(kind, "scripted")
}

fn tried(record: &AccountingRecord) -> Vec<(&str, Option<K>)> {
    record.attempts.iter().map(|attempt| (attempt.deployment.as_str(), attempt.error)).collect()
}

/// Two candidates: `ptu` does what is given, `eu` is expected to do the other.
fn pair(first: crate::support::MockProvider, second: crate::support::MockProvider) -> House {
    Plan::new(vec![(deployment("ptu"), first), (deployment("eu"), second)]).build()
}

#[tokio::test(start_paused = true)]
async fn the_primary_answers_and_nobody_else_is_called() {
    let house = pair(answers(), never());
    let reply = house.ask(request()).await.unwrap();
    assert!(matches!(reply.body, Body::Raw(raw) if raw == "{\"answer\":1}"));
    assert_eq!((reply.head.attempts, reply.head.cost.micros_rounded_up()), (1, 41 + 2 * 13));
    let record = house.only_record();
    assert_eq!((record.outcome, record.error), (Outcome::Ok, None));
    assert_eq!(record.serving.unwrap().as_str(), "ptu");
}

#[tokio::test(start_paused = true)]
async fn every_kind_moves_on_only_where_its_flag_says_so() {
    for kind in K::ALL {
        use gw_types::FallOver;
        let moves = match kind.falls_over() {
            FallOver::Next | FallOver::BeforeContent => true,
            FallOver::Never | FallOver::LargerWindow => false,
        };
        let house = pair(fails(1, error(kind)), if moves { answers() } else { never() });
        let result = house.ask(request()).await;
        assert_eq!(result.is_ok(), moves, "{kind}");
        if let Err(failure) = result {
            assert_eq!(failure.error.kind(), kind);
        }
        house.only_record();
    }
}

#[tokio::test(start_paused = true)]
async fn i01_content_filter_does_not_fall_over() {
    let house = pair(fails(1, error(K::ContentFiltered)), never());
    assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::ContentFiltered);
    assert_eq!(tried(&house.only_record()), [("ptu", Some(K::ContentFiltered))]);
}

#[tokio::test(start_paused = true)]
async fn i11_side_effecting_request_has_one_attempt_and_raises_the_primarys_error() {
    let house = pair(fails(1, error(K::Transport).ambiguous()), never());
    let failure = house.ask(side_effecting()).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.outcome), (K::Transport, Outcome::Ambiguous));
    let record = house.only_record();
    assert_eq!((record.outcome, record.attempts.len()), (Outcome::Ambiguous, 1));
}

#[tokio::test(start_paused = true)]
async fn side_effecting_request_that_was_not_processed_is_not_ambiguous() {
    let house = pair(fails(1, error(K::ProviderRateLimited)), never());
    assert_eq!(house.ask(side_effecting()).await.unwrap_err().head.outcome, Outcome::Failed);
    house.only_record();
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_chain_raises_the_last_error() {
    let house = pair(fails(1, error(K::Transport)), fails(1, error(K::ProviderUnavailable)));
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.attempts), (K::ProviderUnavailable, 2));
    assert_eq!(
        tried(&house.only_record()),
        [("ptu", Some(K::Transport)), ("eu", Some(K::ProviderUnavailable))]
    );
}

#[tokio::test(start_paused = true)]
async fn context_length_moves_only_to_a_larger_window() {
    let window = |tokens| {
        let mut eu = deployment("eu");
        eu.context_window = Some(gw_types::TokenCount::new(tokens));
        eu
    };
    let small = |first| {
        let mut ptu = deployment("ptu");
        ptu.context_window = Some(gw_types::TokenCount::new(8_000));
        (ptu, first)
    };
    let too_long = || fails(1, error(K::ContextLengthExceeded));
    let house = Plan::new(vec![small(too_long()), (window(8_000), never())]).build();
    assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::ContextLengthExceeded);
    let house = Plan::new(vec![small(too_long()), (window(128_000), answers())]).build();
    assert_eq!(house.ask(request()).await.unwrap().head.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn attempts_add_up_and_do_not_multiply() {
    let thrice = |name: &str| {
        let mut one = deployment(name);
        one.max_attempts = NonZeroU32::new(3).unwrap();
        one
    };
    let house = Plan::new(vec![(thrice("up1"), fails(3, error(K::ProviderUnavailable)))]).build();
    assert_eq!(house.ask(request()).await.unwrap_err().head.attempts, 3);
    let mut plan = Plan::new(vec![
        (thrice("up1"), fails(3, error(K::ProviderUnavailable))),
        (thrice("up2"), fails(1, error(K::ProviderUnavailable))),
    ]);
    plan.route = RoutePolicy { max_attempts: NonZeroU32::new(4).unwrap(), ..RoutePolicy::default() };
    let house = plan.build();
    assert_eq!(house.ask(request()).await.unwrap_err().head.attempts, 4);
    assert_eq!(house.only_record().attempts.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn retry_never_outlives_the_deadline() {
    let pushback = || error(K::ProviderRateLimited).with_retry_after(Duration::from_secs(60));
    let mut up1 = deployment("up1");
    up1.max_attempts = NonZeroU32::new(3).unwrap();
    // Alone: the guidance does not fit, so the error is handed on at once, with the guidance.
    let house = Plan::new(vec![(up1.clone(), fails(1, pushback()))]).build();
    let began = tokio::time::Instant::now();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(failure.error.retry_after(), Some(Duration::from_secs(60)));
    // With a healthy fallback: that one is called at once.
    let house = Plan::new(vec![(up1, fails(1, pushback())), (deployment("up2"), answers())]).build();
    assert_eq!(house.ask(request()).await.unwrap().head.attempts, 2);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_long_retry_after_keeps_no_healthy_fallback_idle() {
    let pushback = || error(K::ProviderRateLimited).with_retry_after(Duration::from_secs(60));
    let mut up1 = deployment("up1");
    up1.max_attempts = NonZeroU32::new(3).unwrap();
    // The deadline has room for the wait, and another deployment has the answer now.
    let mut plan = Plan::new(vec![(up1, fails(1, pushback())), (deployment("up2"), answers())]);
    plan.deadline = Duration::from_secs(600);
    let house = plan.build();
    let began = tokio::time::Instant::now();
    assert_eq!(house.ask(request()).await.unwrap().head.attempts, 2);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn retry_waits_as_long_as_the_provider_says() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let up1 = provider(2, move || match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Err(error(K::ProviderRateLimited).with_retry_after(Duration::from_millis(1_500))),
        _ => Ok(crate::support::answer()),
    });
    let mut twice = deployment("up1");
    twice.max_attempts = NonZeroU32::new(2).unwrap();
    let house = Plan::new(vec![(twice, up1)]).build();
    let began = tokio::time::Instant::now();
    assert_eq!(house.ask(request()).await.unwrap().head.attempts, 2);
    assert_eq!(began.elapsed(), Duration::from_millis(1_500));
    let record = house.only_record();
    assert_eq!((record.latency.backoff_us, record.decision.draws.len()), (1_500_000, 1));
}

#[tokio::test(start_paused = true)]
async fn no_retry_of_the_occurrence_holds_and_the_chain_goes_on() {
    let mut twice = deployment("up1");
    twice.max_attempts = NonZeroU32::new(3).unwrap();
    let once = fails(1, error(K::ProviderRateLimited).without_retry());
    let house = Plan::new(vec![(twice, once), (deployment("up2"), answers())]).build();
    assert_eq!(house.ask(request()).await.unwrap().head.attempts, 2);
}

fn hanging(names: &[&str], expected_ms: u64) -> (House, Vec<Arc<Hanging>>) {
    let mut plan = Plan::new(Vec::new());
    let mut adapters = Vec::new();
    let mut targets = Vec::new();
    for name in names {
        let mut one = deployment(name);
        one.timing.expected_latency = Duration::from_millis(expected_ms);
        plan.targets.push((one.clone(), never()));
        let adapter = Arc::new(Hanging::default());
        adapters.push(Arc::clone(&adapter));
        targets.push(Target::new(Arc::new(one), adapter));
    }
    (plan.build_with(targets), adapters)
}

#[tokio::test(start_paused = true)]
async fn i14_three_hanging_targets_are_all_tried_inside_one_deadline() {
    let (house, adapters) = hanging(&["a", "b", "c"], 900);
    let began = tokio::time::Instant::now();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(failure.error.kind(), K::DeadlineExceeded);
    let late = began.elapsed() - Duration::from_secs(3);
    assert!(late <= Duration::from_millis(1), "{late:?}");
    for adapter in adapters {
        assert_eq!(
            (adapter.started.load(Ordering::Relaxed), adapter.dropped.load(Ordering::Relaxed)),
            (1, 1)
        );
    }
    assert_eq!(house.only_record().attempts.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn i14_no_attempt_begins_without_its_minimum_left() {
    let mut up2 = deployment("up2");
    up2.timing.expected_latency = Duration::from_millis(600);
    up2.timing.min_attempt = Duration::from_millis(500);
    let mut up1 = deployment("up1");
    up1.timing.expected_latency = Duration::from_millis(2_600);
    // The first one fails 100 ms before the end: nothing starts that cannot finish, and the record keeps the cause.
    let plan = Plan::new(vec![(up1.clone(), never()), (up2.clone(), never())]);
    let slow = Arc::new(OnceThenHanging::new(Duration::from_millis(2_900), Duration::ZERO));
    let house = plan
        .build_with(vec![Target::new(Arc::new(up1), slow), Target::new(Arc::new(up2), Arc::new(never()))]);
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(failure.error.kind(), K::BudgetExhausted);
    assert_eq!(tried(&house.only_record()), [("up1", Some(K::ProviderUnavailable))]);
}

/// Fails its first call with a 503, after a while, and hangs on every later one.
#[derive(Debug)]
struct OnceThenHanging {
    after: Duration,
    guidance: Duration,
    calls: std::sync::atomic::AtomicUsize,
}

impl OnceThenHanging {
    fn new(after: Duration, guidance: Duration) -> Self {
        Self { after, guidance, calls: std::sync::atomic::AtomicUsize::new(0) }
    }
}

#[async_trait::async_trait]
impl gw_types::Adapter for OnceThenHanging {
    fn prepare(
        &self,
        request: &gw_types::NormalizedRequest,
        _deployment: &gw_types::Deployment,
        _plan: &gw_types::AttemptPlan,
    ) -> Result<gw_types::Prepared, GatewayError> {
        Ok(crate::support::prepared(request))
    }

    async fn call(&self, _prepared: gw_types::Prepared) -> Result<gw_types::Answer, GatewayError> {
        if self.calls.fetch_add(1, Ordering::Relaxed) > 0 {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.after).await;
        Err(error(K::ProviderUnavailable).with_retry_after(self.guidance))
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_cancels_the_call_and_leaves_a_record() {
    let (house, adapters) = hanging(&["a", "b"], 900);
    let asked = tokio::time::timeout(Duration::from_millis(50), house.ask(request())).await;
    assert!(asked.is_err());
    assert_eq!(adapters[0].dropped.load(Ordering::Relaxed), 1);
    assert_eq!(adapters[1].started.load(Ordering::Relaxed), 0);
    let record = house.only_record();
    assert_eq!((record.outcome, record.error), (Outcome::Cancelled, Some(K::Cancelled)));
    assert_eq!((record.latency.total_us, record.attempts.len()), (50_000, 1));
}

#[tokio::test(start_paused = true)]
async fn a_full_deployment_is_passed_over_without_an_attempt() {
    let (mut full, slow) = (deployment("full"), Arc::new(Hanging::default()));
    full.max_concurrency = NonZeroU32::new(1);
    let mut plan = Plan::new(vec![(full.clone(), never()), (deployment("eu"), never())]);
    plan.deadline = Duration::from_secs(60);
    let house = plan.build_with(vec![
        Target::new(Arc::new(full), slow),
        Target::new(Arc::new(deployment("eu")), Arc::new(answers())),
    ]);
    let first = house.ask(request());
    let second = async {
        tokio::task::yield_now().await;
        house.ask(request()).await
    };
    tokio::select! {
        _ = first => panic!("the first request hangs"),
        reply = second => {
            let head = reply.unwrap().head;
            assert_eq!((head.attempts, head.deployment.unwrap().as_str()), (1, "eu"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_without_its_slot_and_does_not_pass_the_cap_afterwards() {
    let mut twice = deployment("up1");
    twice.max_attempts = NonZeroU32::new(2).unwrap();
    let mut plan = Plan::new(vec![(twice.clone(), never())]);
    plan.limits.max_concurrency = Some(1);
    let adapter = Arc::new(OnceThenHanging::new(Duration::ZERO, Duration::from_secs(1)));
    let house = plan.build_with(vec![Target::new(Arc::new(twice), Arc::<OnceThenHanging>::clone(&adapter))]);
    let other = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        house.ask(request()).await
    };
    tokio::select! {
        first = house.ask(request()) => assert_eq!(first.unwrap_err().error.kind(), K::ProviderUnavailable),
        _ = other => panic!("the other request hangs in the slot that the first one gave back"),
    }
    assert_eq!(adapter.calls.load(Ordering::Relaxed), 2);
}
