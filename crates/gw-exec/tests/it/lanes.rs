//! The pace of a deployment and its tokens in flight: waited for after the slot, given back by whoever leaves.

use std::{
    num::{NonZeroU32, NonZeroU64},
    sync::Arc,
    time::Duration,
};

use futures_util::future::{join, join_all};
use gw_exec::{DeploymentPolicy, Target};
use gw_limits::Rate;
use gw_types::{Adapter, Answer, ErrorKind as K, GatewayError, Outcome, Prepared, TokenCount};

use crate::{
    provider::Provider,
    support::{House, Plan, answer, deployment, prepared, request},
};

fn paced(a_second: u64) -> DeploymentPolicy {
    let rate = Rate::milli_per_second(NonZeroU64::new(a_second * 1_000).unwrap());
    DeploymentPolicy { requests_per_second: Some(rate), ..DeploymentPolicy::default() }
}

fn in_flight(tokens: u64) -> DeploymentPolicy {
    DeploymentPolicy { in_flight_tokens: Some(TokenCount::new(tokens)), ..DeploymentPolicy::default() }
}

/// Deployments with these policies over one provider, whose calls take 100 ms.
fn house(policies: &[(&str, DeploymentPolicy)]) -> (House, Arc<Provider>) {
    let mut plan = Plan::new(Vec::new());
    plan.deadline = Duration::from_secs(10);
    plan.deployments =
        policies.iter().map(|(name, policy)| (name.parse().unwrap(), policy.clone())).collect();
    let provider = Arc::new(Provider::new(10, &["word"]));
    let targets = policies.iter().map(|(name, _)| provider.at(deployment(name))).collect();
    (plan.build_with(targets), provider)
}

fn starts_ms(house: &House) -> Vec<u64> {
    let mut starts: Vec<_> = house.records().iter().flat_map(|record| record.attempts.clone()).collect();
    starts.sort_by_key(|attempt| attempt.start_us);
    starts.iter().map(|attempt| attempt.start_us / 1_000).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_keep_the_pace_and_their_order() {
    let (house, _) = house(&[("up", paced(10))]);
    for reply in join_all((0..4).map(|_| house.ask(request()))).await {
        reply.unwrap();
    }
    assert_eq!(starts_ms(&house), [0, 100, 200, 300]);
    assert_eq!(house.records()[3].latency.queue_us, 300_000);
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_pace_without_a_place_in_time_passes_the_deployment_over() {
    let (house, _) = house(&[("slow", paced(1)), ("free", DeploymentPolicy::default())]);
    let hurried = || {
        let mut hurried = request();
        hurried.context.deadline = Some(Duration::from_millis(1_500));
        hurried
    };
    // The second waits one second; for the third nothing is left of its deadline after two.
    let replies = join_all((0..3).map(|_| house.ask(hurried()))).await;
    let served: Vec<_> = replies.into_iter().map(|reply| reply.unwrap().head.deployment.unwrap()).collect();
    assert_eq!(served.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["slow", "slow", "free"]);
    let passed_over =
        house.records().into_iter().find(|record| record.serving == Some("free".parse().unwrap()));
    assert_eq!(passed_over.unwrap().decision.exclusions[0].reason.as_str(), "requests_per_second");
}

#[tokio::test(start_paused = true)]
async fn a_pace_without_a_place_in_time_and_nobody_else_is_overloaded() {
    let (house, provider) = house(&[("slow", paced(1))]);
    let mut hurried = request();
    hurried.context.deadline = Some(Duration::from_millis(500));
    let (first, second) = join(house.ask(request()), house.ask(hurried)).await;
    first.unwrap();
    let error = second.unwrap_err().error;
    assert_eq!((error.kind(), error.subject()), (K::Overloaded, Some("requests_per_second")));
    assert_eq!((error.retry_after(), provider.calls()), (Some(Duration::from_secs(1)), 1));
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_gives_its_place_in_the_pace_back() {
    let (house, _) = house(&[("up", paced(1))]);
    let left = tokio::time::timeout(Duration::from_millis(500), async {
        tokio::task::yield_now().await;
        house.ask(request()).await
    });
    let third = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        house.ask(request()).await.unwrap()
    };
    let (_, (left, third)) = join(house.ask(request()), join(left, third)).await;
    assert!(left.is_err());
    // It came at 0.6 s and went at one second, where the cancelled one would have gone.
    assert_eq!(third.head.latency, Duration::from_millis(500));
    assert!(
        house
            .records()
            .iter()
            .any(|record| record.outcome == Outcome::Cancelled && record.attempts.is_empty())
    );
    house.holds_nothing();
}

/// Fails its first call and answers the second.
#[derive(Debug, Default)]
struct OnceBad(std::sync::atomic::AtomicUsize);

#[async_trait::async_trait]
impl Adapter for OnceBad {
    fn prepare(
        &self,
        request: &gw_types::NormalizedRequest,
        _: &gw_types::Deployment,
        _: &gw_types::AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, _: Prepared) -> Result<Answer, GatewayError> {
        if self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            return Err(GatewayError::new(K::ProviderUnavailable, "scripted"));
        }
        Ok(answer())
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_a_new_grant_of_the_pace() {
    let mut twice = deployment("up");
    twice.max_attempts = NonZeroU32::new(2).unwrap();
    let mut plan = Plan::new(Vec::new());
    plan.deadline = Duration::from_secs(10);
    plan.deployments = vec![(twice.name.clone(), paced(1))];
    let house = plan.build_with(vec![Target::new(Arc::new(twice), Arc::new(OnceBad::default()))]);
    house.ask(request()).await.unwrap();
    assert_eq!(starts_ms(&house), [0, 1_000]);
    let latency = house.only_record().latency;
    assert_eq!(latency.queue_us + latency.backoff_us, 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn tokens_in_flight_are_bounded_and_come_back() {
    // 17 tokens of input and 100 of output each: two fit, the third and fourth wait.
    let (house, _) = house(&[("up", in_flight(250))]);
    let asked = join_all((0..4).map(|_| house.ask(request())));
    let watched = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        house.gateway.snapshot().deployments[0].tokens_in_flight.unwrap().get()
    };
    let (replies, held) = join(asked, watched).await;
    assert!(replies.into_iter().all(|reply| reply.is_ok()));
    assert_eq!((held, starts_ms(&house)), (2 * 117, vec![0, 0, 100, 100]));
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_request_above_the_tokens_in_flight_is_refused_before_transport() {
    let (house, provider) = house(&[("up", in_flight(116))]);
    let failure = house.ask(request()).await.unwrap_err();
    let error = failure.error;
    assert_eq!((error.kind(), error.subject()), (K::RateLimited, Some("in_flight_tokens")));
    assert_eq!((error.forbids_retry(), error.retry_after()), (true, None));
    assert_eq!((provider.calls(), house.only_record().outcome), (0, Outcome::Refused));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_tokens_in_flight_leaves_in_time_for_nothing() {
    let (house, provider) = house(&[("up", in_flight(120))]);
    let mut hurried = request();
    hurried.context.deadline = Some(Duration::from_millis(150));
    let (first, second) = join(house.ask(request()), house.ask(hurried)).await;
    first.unwrap();
    // At 50 ms an attempt's minimum of 100 ms is all that is left.
    let failure = second.unwrap_err();
    assert_eq!(
        (failure.error.kind(), failure.head.latency),
        (K::DeadlineExceeded, Duration::from_millis(50))
    );
    assert_eq!(provider.calls(), 1);
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_bound_that_nobody_named_counts_in_flight_and_is_sent() {
    let (house, provider) = house(&[("up", in_flight(5_000))]);
    let mut unnamed = request();
    unnamed.facts.output = None;
    house.ask(unnamed).await.unwrap();
    assert_eq!(provider.bounds.lock()[0], Some(TokenCount::new(4_096)));
    assert_eq!(house.only_record().facts.unwrap().output_bound, Some(TokenCount::new(4_096)));
}
