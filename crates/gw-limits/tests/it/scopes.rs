//! Several scopes decided as one.

use std::time::Duration;

use gw_limits::{
    BudgetEstimate, Limits, LimitsConfig, OrganisationConfig, QuotaConfig, QuotaWindow, Scope,
    ScopeLimitsConfig, ScopesConfig, Subject, SubjectIds, TenantLimitsConfig, TenantScopeConfig, Window,
    Zone,
};
use gw_types::{DeploymentName, ErrorKind, KeyName, ModelName, Money, TokenCount};

use crate::fixture::{START, UTC, budget, id, none, seconds, usd};

pub(crate) fn rates(requests: u64, tokens: u64) -> ScopeLimitsConfig {
    ScopeLimitsConfig {
        requests_per_minute: Some(requests),
        tokens_per_minute: Some(tokens),
        ..ScopeLimitsConfig::default()
    }
}

pub(crate) fn daily(limit: u64) -> QuotaConfig {
    let window = QuotaWindow::Calendar { window: Window::Day, zone: Zone::UTC };
    QuotaConfig { limit: usd(limit), window, estimate: BudgetEstimate::Bound }
}

fn deployment() -> DeploymentName {
    DeploymentName::new("ptu").unwrap()
}

/// Key `batch` of tenant `acme` of organisation `group`, model `large`, deployment `ptu`; `other` is limited by the
/// whole only.
pub(crate) fn house(tenant: TenantLimitsConfig, scopes: &ScopesConfig) -> Limits {
    Limits::with_scopes(house_config(tenant), scopes, START).unwrap()
}

fn house_config(tenant: TenantLimitsConfig) -> LimitsConfig {
    LimitsConfig {
        tenants: vec![(id("acme"), tenant), (id("other"), none())],
        deployments: vec![(deployment(), std::num::NonZeroU32::new(2))],
        pool_capacity: 4,
    }
}

pub(crate) fn everywhere(limits: ScopeLimitsConfig) -> ScopesConfig {
    ScopesConfig {
        keys: vec![(id("acme"), KeyName::new("batch").unwrap(), limits.clone())],
        tenants: vec![(id("acme"), TenantScopeConfig { parent: Some(id("group")), budgets: vec![] })],
        organisations: vec![(id("group"), OrganisationConfig { parent: None, limits: limits.clone() })],
        models: vec![(ModelName::new("large").unwrap(), limits.clone())],
        deployments: vec![(deployment(), ScopeLimitsConfig { max_concurrency: None, ..limits.clone() })],
        global: limits,
    }
}

pub(crate) fn batch(limits: &Limits) -> Subject {
    let ids = SubjectIds { key: Some("batch"), tenant: "acme", model: Some("large") };
    limits.subject(&ids).unwrap()
}

fn other(limits: &Limits) -> Subject {
    limits.subject(&SubjectIds { key: None, tenant: "other", model: None }).unwrap()
}

fn names(refusal: &gw_limits::ScopeRefusal) -> Vec<String> {
    refusal.refused_by.iter().map(ToString::to_string).collect()
}

#[test]
fn a_subject_has_every_scope_that_is_limited_once_and_in_lock_order() {
    let limits = house(none(), &everywhere(rates(9, 9)));
    let read = |subject: &Subject| subject.scopes().map(ToString::to_string).collect::<Vec<_>>();
    let all = ["key:acme/batch", "tenant:acme", "organisation:group", "model:large", "global"];
    assert_eq!(read(&batch(&limits)), all);
    let at = batch(&limits).at(&limits.deployment(&deployment()).unwrap());
    assert_eq!(read(&at)[5], "deployment:ptu");
    let unknown = SubjectIds { key: Some("nobody"), tenant: "acme", model: Some("unlimited") };
    assert_eq!(read(&limits.subject(&unknown).unwrap()), ["tenant:acme", "organisation:group", "global"]);
    assert_eq!(read(&other(&limits)), ["tenant:other", "global"]);
    assert!(limits.subject(&SubjectIds { tenant: "nobody", ..unknown }).is_none());
}

#[test]
fn i04_a_refusal_by_rates_names_every_limit_and_takes_nothing() {
    let mut scopes = everywhere(rates(60, 600));
    scopes.models[0].1.tokens_per_minute = Some(20);
    let limits = house(TenantLimitsConfig { requests_per_minute: Some(2), ..none() }, &scopes);
    let subject = batch(&limits);
    let admit = |tokens| subject.admit(TokenCount::new(tokens), START);
    admit(9).unwrap().settle(TokenCount::new(9), START);
    admit(9).unwrap().settle(TokenCount::new(9), START);
    let before = subject.snapshot(START, UTC);
    let refused = admit(9).unwrap_err();
    assert_eq!(names(&refused), ["tenant:acme.requests_per_minute", "model:large.tokens_per_minute"]);
    assert_eq!(
        refused.error.subject(),
        Some("tenant:acme.requests_per_minute, model:large.tokens_per_minute")
    );
    // A request comes after 30 s, the 7 tokens that are missing at 20 a minute after 21 s.
    assert_eq!(refused.error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(subject.snapshot(START, UTC), before);
    assert!(subject.admit(TokenCount::new(9), seconds(30)).is_ok());

    let impossible = admit(21).unwrap_err();
    assert_eq!((impossible.error.retry_after(), impossible.error.forbids_retry()), (None, true));
    assert_eq!(impossible.error.subject(), Some("model:large.tokens_per_minute"));
    assert_eq!(names(&impossible), ["model:large.tokens_per_minute"]);
}

#[test]
fn what_one_tenant_takes_others_miss_only_where_they_share() {
    let limits = house(none(), &everywhere(rates(3, 30)));
    batch(&limits).admit(TokenCount::new(20), START).unwrap().settle(TokenCount::new(20), START);
    let refused = other(&limits).admit(TokenCount::new(11), START).unwrap_err();
    assert_eq!(names(&refused), ["global.tokens_per_minute"]);
    other(&limits).admit(TokenCount::new(10), START).unwrap().settle_hit();
    drop(other(&limits).admit(TokenCount::new(10), START).unwrap());
    let global = other(&limits).snapshot(START, UTC)[1].clone();
    assert_eq!((global.scope, global.tokens.unwrap().remaining), (Scope::Global, 10));
    assert_eq!(global.requests.unwrap().remaining, 1);
}

#[test]
fn money_is_held_in_every_window_of_every_scope_or_in_none() {
    let mut scopes = everywhere(ScopeLimitsConfig { budgets: vec![daily(20)], ..Default::default() });
    scopes.tenants[0].1.budgets = vec![daily(9)];
    let limits = house(TenantLimitsConfig { budget: budget(15, Window::Hour), ..none() }, &scopes);
    let ptu = limits.deployment(&deployment()).unwrap();
    let subject = batch(&limits).at(&ptu);
    let money = |subject: &Subject| -> Vec<(Money, Money)> {
        let all = subject.snapshot(START, UTC);
        all.iter().flat_map(|scope| &scope.budgets).map(|budget| (budget.spent, budget.reserved)).collect()
    };
    let mut held = subject.reserve(usd(8), UTC).unwrap();
    assert_eq!(money(&subject), [(Money::ZERO, usd(8)); 7]);
    let refused = subject.reserve(usd(2), UTC).unwrap_err();
    assert_eq!(
        (names(&refused), refused.error.kind()),
        (vec!["tenant:acme.budget".into()], ErrorKind::QuotaExceeded)
    );
    assert!(held.raise_to(usd(10), UTC).is_err());
    assert_eq!(money(&subject), [(Money::ZERO, usd(8)); 7]);
    held.raise_to(usd(9), UTC).unwrap();
    held.dispatched();
    assert_eq!(held.commit(usd(10)), usd(1));
    assert_eq!(money(&subject), [(usd(10), Money::ZERO); 7]);
    assert_eq!(names(&subject.check_quota(UTC).unwrap_err()), ["tenant:acme.budget"]);
    assert_eq!(other(&limits).check_quota(UTC).map_err(|_| ()), Ok(()));
    // The hour is over, the day is not; then the day is over, too.
    let later = |hours: i64| gw_types::UtcTime::from_micros(UTC.micros() + hours * 3_600_000_000);
    assert!(subject.reserve(usd(5), later(1)).is_err());
    assert!(subject.reserve(usd(9), later(24)).is_ok());
}

#[test]
fn a_slot_counts_in_every_scope_and_a_refusal_in_none() {
    let caps = ScopeLimitsConfig { max_concurrency: Some(3), ..Default::default() };
    let limits = house(TenantLimitsConfig { reserved_concurrency: 1, ..none() }, &everywhere(caps));
    let ptu = limits.deployment(&deployment()).unwrap();
    let (plain, at) = (batch(&limits), batch(&limits).at(&ptu));
    let held = [at.slot().unwrap(), at.slot().unwrap()];
    let in_use =
        || plain.snapshot(START, UTC).iter().map(|scope| scope.concurrency.in_use).collect::<Vec<_>>();
    let refused = at.slot().unwrap_err();
    assert_eq!(
        (names(&refused), refused.error.kind()),
        (vec!["deployment:ptu.max_concurrency".into()], ErrorKind::Overloaded)
    );
    assert_eq!((in_use(), ptu.in_use()), (vec![2; 5], 2));
    let third = plain.slot().unwrap();
    let refused = plain.slot().unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::RateLimited);
    assert_eq!(names(&refused).len(), 4, "every cap but the tenant's, which has none");
    assert_eq!(names(&other(&limits).slot().unwrap_err()), ["global.max_concurrency"]);
    drop((held, third));
    assert_eq!((in_use(), ptu.in_use()), (vec![0; 5], 0));
    // Nothing of the pool was lost on the way: three shared slots, and the one that is reserved for `acme`.
    limits
        .reconfigure(house_config(TenantLimitsConfig { reserved_concurrency: 1, ..none() }), START)
        .unwrap();
    let all: Vec<_> = (0..3).map(|_| other(&limits).slot().unwrap()).collect();
    assert_eq!(names(&other(&limits).slot().unwrap_err()), ["tenant:other.pool_capacity"]);
    let own = batch(&limits).slot().unwrap();
    assert!(batch(&limits).slot().is_err());
    drop((all, own));
}

#[test]
fn scopes_come_and_go_and_find_their_spend() {
    let scopes = everywhere(ScopeLimitsConfig { budgets: vec![daily(20)], ..rates(9, 90) });
    let limits = house(none(), &scopes);
    let subject = batch(&limits);
    subject.reserve(usd(8), UTC).unwrap().commit(usd(8));
    limits.reconfigure(house_config(none()), START).unwrap();
    assert_eq!(batch(&limits).scopes().count(), 1);
    // Whoever still holds the old scopes is still limited by them.
    assert!(subject.reserve(usd(13), UTC).is_err());
    limits.reconfigure_scopes(house_config(none()), &scopes, START).unwrap();
    let back = batch(&limits).snapshot(START, UTC);
    let spent: Vec<_> = back.iter().flat_map(|scope| &scope.budgets).map(|budget| budget.spent).collect();
    assert_eq!(spent, [usd(8); 4]);
}

#[test]
fn a_restart_asks_for_every_window_and_restores_it() {
    let scopes = everywhere(ScopeLimitsConfig { budgets: vec![daily(20)], ..Default::default() });
    let limits = house(TenantLimitsConfig { budget: budget(15, Window::Hour), ..none() }, &scopes);
    let asked = limits.budgets(UTC);
    assert_eq!(asked.len(), 6);
    for period in &asked {
        assert!(period.start <= UTC);
        assert!(limits.restore_spend(&period.scope, period.place, usd(4), UTC));
        assert!(limits.restore_spend(&period.scope, period.place, usd(4), UTC));
    }
    assert!(!limits.restore_spend(&Scope::Tenant(id("other")), 0, usd(4), UTC));
    let refused = batch(&limits).reserve(usd(12), UTC).unwrap_err();
    assert_eq!(names(&refused), ["tenant:acme.budget"]);
    assert!(batch(&limits).reserve(usd(11), UTC).is_ok());
}

#[test]
fn an_admission_is_adjusted_in_every_scope_or_refused_and_given_back() {
    let limits = house(none(), &everywhere(rates(9, 100)));
    let subject = batch(&limits);
    let left = || subject.rates(START).1.unwrap().remaining;
    let admission = subject.admit(TokenCount::new(40), START).unwrap();
    let admission = admission.adjust(TokenCount::new(70), START).unwrap();
    assert_eq!(left(), 30);
    let admission = admission.adjust(TokenCount::new(10), START).unwrap();
    assert_eq!(left(), 90);
    // What the bucket can never hold is told so, although a part of it is taken already.
    let refused = admission.adjust(TokenCount::new(101), START).unwrap_err();
    assert_eq!((refused.error.retry_after(), refused.error.forbids_retry()), (None, true));
    assert_eq!(names(&refused).len(), 4);
    assert_eq!((left(), subject.rates(START).0.unwrap().remaining), (100, 9));

    // What others have left is not enough: told when it will be, and nothing is kept.
    let held = subject.admit(TokenCount::new(60), START).unwrap();
    let second = subject.admit(TokenCount::new(20), START).unwrap();
    let refused = second.adjust(TokenCount::new(50), START).unwrap_err();
    assert_eq!(refused.error.retry_after(), Some(Duration::from_secs(6)));
    assert_eq!(left(), 40);
    held.settle(TokenCount::new(60), START);
    let adjusted =
        subject.admit(TokenCount::new(5), START).unwrap().adjust(TokenCount::new(40), START).unwrap();
    adjusted.settle(TokenCount::new(30), START);
    assert_eq!(left(), 10);
}

#[test]
fn the_tightest_rate_is_the_one_with_the_least_left() {
    let limits = house(
        TenantLimitsConfig { requests_per_minute: Some(3), tokens_per_minute: Some(1_000), ..none() },
        &everywhere(rates(9, 500)),
    );
    let subject = batch(&limits);
    subject.admit(TokenCount::new(10), START).unwrap().settle(TokenCount::new(10), START);
    let (requests, tokens) = subject.rates(START);
    assert_eq!(requests.map(|rate| (rate.limit, rate.remaining)), Some((3, 2)));
    assert_eq!(tokens.map(|rate| (rate.limit, rate.remaining)), Some((500, 490)));
    assert_eq!(
        house(none(), &ScopesConfig::default()).tenant(&id("acme")).unwrap().snapshot(START, UTC).requests,
        None
    );
}

#[test]
fn a_deployment_has_limits_of_its_own() {
    let limits = house(none(), &everywhere(rates(1, 10)));
    let own = Subject::of_deployment(&limits.deployment(&deployment()).unwrap());
    assert!(own.is_limited() && limits.has_narrow_scopes());
    own.admit(TokenCount::new(10), START).unwrap().settle(TokenCount::new(10), START);
    let refused = own.admit(TokenCount::new(1), START).unwrap_err();
    assert_eq!(names(&refused), ["deployment:ptu.requests_per_minute", "deployment:ptu.tokens_per_minute"]);
    // The caller's scopes are untouched.
    assert_eq!(batch(&limits).rates(START).0.unwrap().remaining, 1);
    let free = house(none(), &ScopesConfig::default());
    let own = Subject::of_deployment(&free.deployment(&deployment()).unwrap());
    assert!(!own.is_limited() && !free.has_narrow_scopes());
    let slot = batch(&free).slot().unwrap();
    assert_eq!((free.pool().shared, free.pool().shared_in_use, free.pool().waiting), (4, 1, 0));
    drop(slot);
}
