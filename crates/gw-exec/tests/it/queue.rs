//! Waiting for a slot: who waits, for how long, in which order, and what a wait that ends early leaves behind.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use futures_util::future::{join, join_all};
use gw_exec::QueuePolicy;
use gw_limits::{Priority, TenantLimitsConfig};
use gw_types::{ErrorKind as K, KeyIdentity, NormalizedRequest, Outcome};

use crate::{
    provider::Provider,
    support::{House, Plan, caller, deployment, other, request},
};

fn queue(max_queue: u32) -> QueuePolicy {
    QueuePolicy { max_queue, ..QueuePolicy::default() }
}

/// One slot for everybody, calls of 100 ms, and a minute to wait.
fn one_slot(shape: impl FnOnce(&mut Plan)) -> (House, Arc<Provider>) {
    let mut plan = Plan::new(Vec::new());
    plan.pool_capacity = 1;
    plan.deadline = Duration::from_secs(60);
    plan.tenant.queue = queue(10);
    plan.other_policy.queue = queue(10);
    shape(&mut plan);
    let provider = Arc::new(Provider::new(10, &["word"]));
    (plan.build_with(vec![provider.at(deployment("up"))]), provider)
}

fn within(milliseconds: u64) -> NormalizedRequest {
    let mut hurried = request();
    hurried.context.deadline = Some(Duration::from_millis(milliseconds));
    hurried
}

fn queued_ms(house: &House) -> Vec<u64> {
    house.records().iter().map(|record| record.latency.queue_us / 1_000).collect()
}

#[tokio::test(start_paused = true)]
async fn who_comes_first_goes_first_and_the_record_says_how_long_it_waited() {
    let (house, _) = one_slot(|_| {});
    for reply in join_all((0..3).map(|_| house.ask(request()))).await {
        reply.unwrap();
    }
    assert_eq!(queued_ms(&house), [0, 100, 200]);
    let last = house.records()[2].latency;
    assert_eq!((last.total_us, last.upstream_first_byte_us, last.own_us), (300_000, 100_000, 0));
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_what_is_over_the_cap_is_refused_at_once() {
    let (house, _) = one_slot(|plan| plan.tenant.queue = queue(0));
    let (first, second) = join(house.ask(request()), house.ask(request())).await;
    first.unwrap();
    let failure = second.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.attempts), (K::Overloaded, 0));
    let verdict = house.records()[0].decision.limiter.clone().unwrap();
    assert_eq!(verdict.refused_by[0].as_str(), "tenant:wholesale.pool_capacity");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_with_an_honest_time() {
    let (house, _) = one_slot(|plan| plan.tenant.queue = queue(1));
    let mut replies = join_all((0..3).map(|_| house.ask(request()))).await;
    let refused = replies.pop().unwrap().unwrap_err().error;
    assert_eq!((refused.kind(), refused.subject()), (K::Overloaded, Some("max_queue")));
    assert!(refused.retry_after().is_some());
    assert!(replies.into_iter().all(|reply| reply.is_ok()));
}

#[tokio::test(start_paused = true)]
async fn a_queued_request_leaves_at_its_deadline_and_has_taken_nothing() {
    let (house, provider) = one_slot(|plan| {
        plan.limits = TenantLimitsConfig { requests_per_minute: Some(10), ..TenantLimitsConfig::default() };
    });
    let began = tokio::time::Instant::now();
    let late = async {
        tokio::task::yield_now().await;
        let failure = house.ask(within(110)).await.unwrap_err();
        (failure, began.elapsed())
    };
    // Two are before it: at its turn less than an attempt's minimum is left.
    let (_, (failure, took)) = join(join_all((0..2).map(|_| house.ask(request()))), late).await;
    assert_eq!((failure.error.kind(), failure.head.attempts), (K::DeadlineExceeded, 0));
    assert!(took <= Duration::from_millis(111), "{took:?}");
    assert_eq!(provider.calls(), 2);
    // Two of ten are taken, and a minute holds ten.
    assert_eq!(failure.head.requests.unwrap().remaining, 8);
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn who_cannot_make_it_is_refused_at_once() {
    let (house, _) = one_slot(|plan| plan.tenant.queue = queue(20));
    // The pace of a slot every 100 ms has to be seen before it can be gone by.
    join_all((0..12).map(|_| house.ask(request()))).await;
    let began = tokio::time::Instant::now();
    let hopeless = async {
        tokio::task::yield_now().await;
        let failure = house.ask(within(400)).await.unwrap_err();
        (failure.error, began.elapsed())
    };
    let (_, (error, took)) = join(join_all((0..6).map(|_| house.ask(request()))), hopeless).await;
    assert_eq!((error.kind(), took), (K::Overloaded, Duration::ZERO));
    // Five wait before it, and it: six turns at that pace.
    let wait = error.retry_after().unwrap();
    assert!((500..=700).contains(&wait.as_millis()), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_the_queue_gives_everything_back_and_leaves_a_record() {
    let (house, provider) = one_slot(|plan| {
        plan.limits = TenantLimitsConfig { requests_per_minute: Some(10), ..TenantLimitsConfig::default() };
    });
    let left = tokio::time::timeout(Duration::from_millis(50), async {
        tokio::task::yield_now().await;
        house.ask(request()).await
    });
    let third = async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        house.ask(request()).await
    };
    let (first, (left, third)) = join(house.ask(request()), join(left, third)).await;
    assert!(first.is_ok() && left.is_err() && third.is_ok());
    let cancelled = house.records().into_iter().find(|record| record.outcome == Outcome::Cancelled).unwrap();
    assert_eq!((cancelled.attempts.len(), cancelled.cost.is_zero()), (0, true));
    assert_eq!(cancelled.latency.queue_us, 50_000);
    assert_eq!(
        (
            provider.calls(),
            house.gateway.tenant_snapshot(&caller().tenant).unwrap().requests.unwrap().remaining
        ),
        (2, 8)
    );
    house.holds_nothing();
}

/// Sends requests at once, in this order, into the queue behind one that is running; returns who was served, in order.
async fn served(house: &House, callers: &[KeyIdentity]) -> Vec<String> {
    let first = other();
    let running = house.ask_as(&first, request());
    let all = callers.iter().map(|caller| async move {
        tokio::task::yield_now().await;
        house.ask_as(caller, request()).await.unwrap();
    });
    let (running, _) = join(running, join_all(all)).await;
    running.unwrap();
    let who = |record: &gw_types::AccountingRecord| format!("{}/{}", record.tenant, record.key);
    house.records().iter().skip(1).map(who).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tenant_with_much_does_not_keep_one_with_little_waiting() {
    let (house, _) = one_slot(|_| {});
    let callers = [caller(), caller(), caller(), other()];
    let order = served(&house, &callers).await;
    // The other has had the output of the call that ran, so it goes after the first turn of the one; and then it has had
    // less, although it came last.
    assert_eq!(order, ["wholesale/dev", "retail/dev", "wholesale/dev", "wholesale/dev"]);
}

#[tokio::test(start_paused = true)]
async fn a_keys_own_class_goes_before_its_tenants() {
    let urgent = KeyIdentity { key: "urgent".parse().unwrap(), ..caller() };
    let (house, _) = one_slot(|plan| {
        let high = QueuePolicy { max_queue: 5, weight: NonZeroU32::MIN, priority: Priority::High };
        plan.tenant.keys = vec![(urgent.key.clone(), high)];
    });
    let order = served(&house, &[caller(), caller(), urgent]).await;
    assert_eq!(order, ["wholesale/urgent", "wholesale/dev", "wholesale/dev"]);
}

#[tokio::test(start_paused = true)]
async fn i16_a_tenant_that_saturates_the_pool_does_not_delay_one_with_a_free_reserved_slot() {
    let (house, _) = one_slot(|plan| {
        plan.pool_capacity = 2;
        plan.other = TenantLimitsConfig { reserved_concurrency: 1, ..TenantLimitsConfig::default() };
    });
    let reserved = async {
        tokio::task::yield_now().await;
        house.ask_as(&other(), request()).await.unwrap()
    };
    let (_, reply) = join(join_all((0..5).map(|_| house.ask(request()))), reserved).await;
    assert_eq!(reply.head.latency, Duration::from_millis(100));
    house.holds_nothing();
}
