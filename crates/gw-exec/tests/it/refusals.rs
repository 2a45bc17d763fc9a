//! Steps 1 to 7: what gw refuses itself, without a provider call and without leaving anything taken.

use std::time::Duration;

use gw_limits::{BudgetConfig, TenantLimitsConfig, Window};
use gw_types::{CacheControl, Classification, ErrorKind as K, Money, Outcome};

use crate::support::{Plan, answers, deployment, never, request};

fn plan(limits: TenantLimitsConfig) -> Plan {
    let mut plan = Plan::new(vec![(deployment("ptu"), never())]);
    plan.limits = limits;
    plan
}

fn budget(micros: u64) -> TenantLimitsConfig {
    TenantLimitsConfig {
        budget: Some(BudgetConfig { limit: Money::from_micros(micros), window: Window::Day }),
        ..TenantLimitsConfig::default()
    }
}

#[tokio::test(start_paused = true)]
async fn i07_a_budget_that_does_not_fit_calls_no_provider_and_gives_the_rate_back() {
    // 40 bytes, 4 a message and 3 at 1, 100 tokens at 2 micro-USD: 247 at the most.
    let house = plan(TenantLimitsConfig { requests_per_minute: Some(5), ..budget(246) }).build();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.attempts), (K::QuotaExceeded, 0));
    assert_eq!(failure.head.requests.map(|rate| rate.remaining), Some(5));
    let record = house.only_record();
    assert_eq!((record.outcome, record.cost), (Outcome::Refused, Money::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_fits_exactly_is_spent_exactly() {
    let mut plan = Plan::new(vec![(deployment("ptu"), answers())]);
    plan.limits = budget(247);
    let house = plan.build();
    house.ask(request()).await.unwrap();
    let record = house.only_record();
    assert_eq!((record.reserved, record.cost), (Money::from_micros(247), Money::from_micros(67)));
    let spent =
        house.gateway.tenant_snapshot(&crate::support::caller().tenant).unwrap().budget.unwrap().spent;
    assert_eq!(spent, record.cost);
}

#[tokio::test(start_paused = true)]
async fn i07_a_rate_that_is_used_up_calls_no_provider() {
    let mut plan = Plan::new(vec![(deployment("ptu"), answers())]);
    plan.limits = TenantLimitsConfig { requests_per_minute: Some(1), ..TenantLimitsConfig::default() };
    let house = plan.build();
    assert_eq!(house.ask(request()).await.unwrap().head.requests.unwrap().remaining, 0);
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(
        (failure.error.kind(), failure.error.retry_after()),
        (K::RateLimited, Some(Duration::from_secs(60)))
    );
    let verdict = house.records()[1].decision.limiter.clone().unwrap();
    assert_eq!(
        (verdict.admitted, verdict.refused_by[0].as_str()),
        (false, "tenant:wholesale.requests_per_minute")
    );
}

#[tokio::test(start_paused = true)]
async fn a_header_may_only_tighten_the_tenants_classification() {
    let mut loosened = request();
    loosened.context.classification = Some(Classification::Public);
    let house = plan(TenantLimitsConfig::default()).build();
    assert_eq!(house.ask(loosened).await.unwrap_err().error.kind(), K::PolicyViolation);
    let mut tightened = request();
    tightened.context.classification = Some(Classification::Restricted);
    let house = Plan::new(vec![(deployment("ptu"), answers())]).build();
    house.ask(tightened).await.unwrap();
    assert_eq!(house.only_record().facts.unwrap().classification, Classification::Restricted);
}

#[tokio::test(start_paused = true)]
async fn what_no_deployment_may_answer_is_refused_with_the_reason() {
    let mut inside = deployment("ptu");
    inside.classification_ceiling = Classification::Public;
    let house = Plan::new(vec![(inside, never())]).build();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(failure.error.kind(), K::NoRouteAvailable);
    let exclusions = house.only_record().decision.exclusions;
    assert_eq!(exclusions[0].reason.as_str(), "classification_ceiling");
}

#[tokio::test(start_paused = true)]
async fn only_if_cached_never_calls_a_provider() {
    let mut cached_only = request();
    cached_only.context.cache = CacheControl::OnlyIfCached;
    let house = plan(TenantLimitsConfig::default()).build();
    assert_eq!(house.ask(cached_only).await.unwrap_err().error.kind(), K::NotCached);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_above_the_servers_maximum_is_refused() {
    let mut endless = request();
    endless.context.deadline = Some(Duration::from_secs(601));
    let house = plan(TenantLimitsConfig::default()).build();
    let failure = house.ask(endless).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.error.param()), (K::InvalidRequest, Some("x-gw-deadline-ms")));
}

#[tokio::test(start_paused = true)]
async fn i12_a_caller_that_leaves_before_its_body_is_read_leaves_a_record() {
    let house = plan(TenantLimitsConfig::default()).build();
    drop(house.gateway.admit(&crate::support::caller()).unwrap());
    let record = house.only_record();
    assert_eq!((record.outcome, record.facts), (Outcome::Cancelled, None));
}

#[tokio::test(start_paused = true)]
async fn i12_a_refusal_by_the_server_leaves_a_record() {
    let house = plan(TenantLimitsConfig::default()).build();
    let admitted = house.gateway.admit(&crate::support::caller()).unwrap();
    let id = admitted.id().clone();
    let refusal = gw_types::GatewayError::new(K::InvalidRequest, "`messages` must not be empty");
    assert_eq!(admitted.refuse(refusal).await.head.id, id);
    assert_eq!(house.only_record().error, Some(K::InvalidRequest));
}
