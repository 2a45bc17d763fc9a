//! Limits of everyone whom a request concerns: all are asked, all that refuse are named, nothing is taken from any.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use gw_exec::Target;
use gw_limits::{
    BudgetEstimate, OrganisationConfig, QuotaConfig, QuotaWindow, ScopeLimitsConfig, ScopesConfig,
    TenantLimitsConfig, TenantScopeConfig, Window, Zone,
};
use gw_types::{ErrorKind as K, GatewayError, KeyIdentity, Money, Outcome, TenantId, TokenCount};

use crate::{
    provider::Provider,
    support::{
        Hanging, House, Plan, answer, answers, caller, deployment, fails, never, other, provider, request,
    },
};

fn requests(a_minute: u64) -> ScopeLimitsConfig {
    ScopeLimitsConfig { requests_per_minute: Some(a_minute), ..ScopeLimitsConfig::default() }
}

fn daily(micros: u64) -> ScopeLimitsConfig {
    let window = QuotaWindow::Calendar { window: Window::Day, zone: Zone::UTC };
    let budget = QuotaConfig { limit: Money::from_micros(micros), window, estimate: BudgetEstimate::Bound };
    ScopeLimitsConfig { budgets: vec![budget], ..ScopeLimitsConfig::default() }
}

/// Every scope lets two requests a minute through, except the tenant: three.
fn everywhere() -> House {
    let firm: TenantId = "firm".parse().unwrap();
    let mut plan = Plan::new(vec![(deployment("up"), provider(2, || Ok(answer())))]);
    plan.limits = TenantLimitsConfig { requests_per_minute: Some(3), ..TenantLimitsConfig::default() };
    plan.scopes = ScopesConfig {
        keys: vec![(caller().tenant, caller().key, requests(2))],
        tenants: vec![(caller().tenant, TenantScopeConfig { parent: Some(firm.clone()), budgets: vec![] })],
        organisations: vec![(firm, OrganisationConfig { parent: None, limits: requests(2) })],
        models: vec![("reasoner".parse().unwrap(), requests(2))],
        global: requests(2),
        deployments: vec![],
    };
    plan.build()
}

#[tokio::test(start_paused = true)]
async fn i04_a_refusal_names_every_limit_of_every_scope_and_takes_nothing() {
    let house = everywhere();
    let first = house.ask(request()).await.unwrap().head;
    // The tightest bucket is the one that is told: two, of which one is left.
    assert_eq!(first.requests.map(|rate| (rate.limit, rate.remaining)), Some((2, 1)));
    house.ask(request()).await.unwrap();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(
        (failure.error.kind(), failure.error.retry_after()),
        (K::RateLimited, Some(Duration::from_secs(30)))
    );
    let verdict = house.records()[2].decision.limiter.clone().unwrap();
    let refused_by: Vec<_> = verdict.refused_by.iter().map(|limit| limit.as_str().to_owned()).collect();
    let scopes = ["key:wholesale/dev", "organisation:firm", "model:reasoner", "global"];
    assert_eq!(refused_by, scopes.map(|scope| format!("{scope}.requests_per_minute")));
    // The tenant itself had one left, and has it still.
    let tenant = house.gateway.tenant_snapshot(&caller().tenant).unwrap();
    assert_eq!(tenant.requests.unwrap().remaining, 1);
}

#[tokio::test(start_paused = true)]
async fn another_key_and_another_tenant_have_their_own() {
    let mut plan = Plan::new(vec![(deployment("up"), provider(3, || Ok(answer())))]);
    plan.scopes.keys = vec![(caller().tenant, caller().key, requests(1))];
    let house = plan.build();
    house.ask(request()).await.unwrap();
    assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::RateLimited);
    let second = KeyIdentity { key: "second".parse().unwrap(), ..caller() };
    house.ask_as(&second, request()).await.unwrap();
    house.ask_as(&other(), request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_spent_above_the_tenant_refuses_before_anything_is_taken() {
    let mut plan = Plan::new(vec![(deployment("up"), answers())]);
    plan.limits = TenantLimitsConfig { requests_per_minute: Some(5), ..TenantLimitsConfig::default() };
    // The bound of a request is 247, its cost 67.
    plan.scopes.global = daily(300);
    let house = plan.build();
    house.ask(request()).await.unwrap();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.error.subject()), (K::QuotaExceeded, Some("global.budget")));
    assert_eq!(failure.head.requests.unwrap().remaining, 4);
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_deployment_whose_own_limit_is_used_up_is_passed_over_with_the_reason() {
    for (limits, reason, kind) in
        [(daily(250), "budget", K::QuotaExceeded), (requests(1), "rate", K::RateLimited)]
    {
        let mut plan = Plan::new(vec![(deployment("near"), answers()), (deployment("far"), answers())]);
        plan.scopes.deployments = vec![("near".parse().unwrap(), limits.clone())];
        let house = plan.build();
        let near = house.ask(request()).await.unwrap().head;
        let far = house.ask(request()).await.unwrap().head;
        assert_eq!((near.deployment.unwrap().as_str(), far.deployment.unwrap().as_str()), ("near", "far"));
        assert_eq!(far.attempts, 1);
        assert_eq!(house.records()[1].decision.exclusions[0].reason.as_str(), reason);
        // With nobody else to ask the caller is told what it was, and when it will be better.
        let mut plan = Plan::new(vec![(deployment("near"), answers())]);
        plan.scopes.deployments = vec![("near".parse().unwrap(), limits)];
        let house = plan.build();
        house.ask(request()).await.unwrap();
        let error = house.ask(request()).await.unwrap_err().error;
        assert_eq!(error.kind(), kind);
        assert!(error.subject().unwrap().starts_with("deployment:near."));
        assert!(error.retry_after().is_some());
        house.holds_nothing();
    }
}

#[tokio::test(start_paused = true)]
async fn each_deployment_pays_for_its_own_calls() {
    let timeout = GatewayError::new(K::ProviderTimeout, "scripted").ambiguous();
    let mut plan = Plan::new(vec![(deployment("up1"), fails(1, timeout)), (deployment("up2"), answers())]);
    let budgets = |name: &str| (name.parse().unwrap(), daily(1_000));
    plan.scopes.deployments = vec![budgets("up1"), budgets("up2")];
    plan.scopes.global = daily(1_000);
    let house = plan.build();
    house.ask(request()).await.unwrap();
    let spent = |name: &str| {
        let slots = house.gateway.limits().deployment(&name.parse().unwrap()).unwrap();
        let clock = house.gateway.clock();
        let scopes = gw_limits::Subject::of_deployment(&slots).snapshot(clock.now(), clock.utc());
        assert!(scopes[0].budgets[0].reserved.is_zero());
        scopes[0].budgets[0].spent.micros_rounded_up()
    };
    // 17 tokens in and the bound of 100 out at the first, 41 and 13 at the second.
    assert_eq!((spent("up1"), spent("up2")), (17 + 200, 67));
    let whole = house.gateway.scope_snapshots(&caller().tenant).pop().unwrap();
    assert_eq!(whole.budgets[0].spent.micros_rounded_up(), 217 + 67);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_never_made_takes_nothing_from_its_deployment() {
    let mut plan = Plan::new(Vec::new());
    plan.scopes.deployments = vec![("up".parse().unwrap(), requests(1))];
    plan.limits = TenantLimitsConfig { requests_per_minute: Some(1), ..TenantLimitsConfig::default() };
    let hanging = Arc::new(Hanging::default());
    let adapter = Arc::<Hanging>::clone(&hanging);
    let house = plan.build_with(vec![Target::new(Arc::new(deployment("up")), adapter)]);
    let mut only_cached = request();
    only_cached.context.cache = gw_types::CacheControl::OnlyIfCached;
    assert_eq!(house.ask(only_cached).await.unwrap_err().error.kind(), K::NotCached);
    assert!(tokio::time::timeout(Duration::from_millis(10), house.ask(request())).await.is_err());
    assert_eq!(hanging.started.load(Ordering::Relaxed), 1);
    assert_eq!(house.records()[1].outcome, Outcome::Cancelled);
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_the_budget_does_not_hold_is_passed_over_and_the_reservation_stays() {
    let mut dear = deployment("dear");
    dear.pricing = gw_types::Pricing::PerToken(Box::new(gw_types::Price::new(10_000_000, 20_000_000)));
    let down = GatewayError::new(K::ProviderUnavailable, "scripted");
    let mut plan = Plan::new(vec![
        (deployment("near"), fails(1, down)),
        (dear, never()),
        (deployment("far"), answers()),
    ]);
    plan.scopes.global = daily(1_000);
    let house = plan.build();
    assert_eq!(house.ask(request()).await.unwrap().head.attempts, 2);
    let record = house.only_record();
    let reasons: Vec<_> =
        record.decision.exclusions.iter().map(|one| (one.deployment.as_str(), one.reason.as_str())).collect();
    assert_eq!((reasons, record.reserved), (vec![("dear", "budget")], Money::from_micros(247)));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_added_holds_from_the_next_reload_on() {
    let provider = Arc::new(Provider::new(10, &["word"]));
    let plan = Plan::new(Vec::new());
    let house = plan.build_with(vec![provider.at(deployment("up"))]);
    house.ask(request()).await.unwrap();
    let gateway = &house.gateway;
    let config = gw_limits::LimitsConfig {
        tenants: vec![(caller().tenant, TenantLimitsConfig::default())],
        deployments: vec![("up".parse().unwrap(), None)],
        pool_capacity: 10,
    };
    let scopes =
        ScopesConfig { models: vec![("reasoner".parse().unwrap(), requests(1))], ..ScopesConfig::default() };
    gateway.limits().reconfigure_scopes(config, &scopes, gateway.clock().now()).unwrap();
    gateway.reload(crate::support::policy(vec![provider.at(deployment("up"))]));
    house.ask(request()).await.unwrap();
    let error = house.ask(request()).await.unwrap_err().error;
    assert_eq!(error.subject(), Some("model:reasoner.requests_per_minute"));
}

#[tokio::test(start_paused = true)]
async fn the_rates_that_a_reply_tells_are_those_that_the_next_requests_meet() {
    let mut plan = Plan::new(vec![(deployment("up"), provider(5, || Ok(answer())))]);
    plan.limits = TenantLimitsConfig { tokens_per_minute: Some(1_000), ..TenantLimitsConfig::default() };
    plan.scopes.keys = vec![(caller().tenant, caller().key, requests(3))];
    plan.scopes.global.requests_per_minute = Some(30);
    let house = plan.build();
    let head = house.ask(request()).await.unwrap().head;
    let left = head.requests.unwrap();
    assert_eq!((left.limit, left.remaining), (3, 2));
    // As many as it says, and not one more; and it is full again when it says.
    for remaining in [1, 0] {
        assert_eq!(house.ask(request()).await.unwrap().head.requests.unwrap().remaining, remaining);
    }
    let refused = house.ask(request()).await.unwrap_err();
    assert_eq!(refused.head.requests.unwrap().remaining, 0);
    tokio::time::sleep(refused.head.requests.unwrap().reset_after).await;
    let head = house.ask(request()).await.unwrap().head;
    assert_eq!(head.requests.unwrap().remaining, 2);
    // The same of tokens: what is left is let through at once, one more is not.
    let bounded = |more: u64| {
        let mut asked = request();
        let input = house.records().remove(0).facts.unwrap().estimated_input;
        let tokens = TokenCount::new(head.tokens.unwrap().remaining + more - input.get());
        asked.facts.output = asked.facts.output.map(|output| gw_types::RequestedOutput { tokens, ..output });
        asked
    };
    assert_eq!(house.ask(bounded(1)).await.unwrap_err().error.kind(), K::RateLimited);
    house.ask(bounded(0)).await.unwrap();
}
