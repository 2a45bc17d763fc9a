//! Limits that change while they are used.

use std::num::NonZeroU32;

use gw_limits::{Limits, LimitsConfig, TenantLimitsConfig, Window};
use gw_types::{DeploymentName, ErrorKind, Money, TokenCount};

use crate::fixture::{POOL, START, UTC, budget, config, faults, id, limits, none, seconds, usd};

fn rates(requests: u64, tokens: u64) -> TenantLimitsConfig {
    TenantLimitsConfig { requests_per_minute: Some(requests), tokens_per_minute: Some(tokens), ..none() }
}

#[test]
fn fill_levels_spend_and_slots_are_kept() {
    let before = TenantLimitsConfig { budget: budget(10, Window::Day), ..rates(10, 100) };
    let limits = limits(&[("a", &before)], POOL);
    let tenant = limits.tenant(&id("a")).unwrap();
    let admission = tenant.admit(TokenCount::new(60), START).unwrap();
    let (slot, reservation) = (tenant.slot().unwrap(), tenant.reserve(usd(4), UTC).unwrap());

    let after =
        TenantLimitsConfig { max_concurrency: Some(1), budget: budget(20, Window::Day), ..rates(20, 30) };
    limits.reconfigure(config(&[("a", &after)], POOL), START).unwrap();
    let read = tenant.snapshot(START, UTC);
    assert_eq!((read.requests.unwrap().limit, read.requests.unwrap().remaining), (20, 9));
    assert_eq!((read.tokens.unwrap().limit, read.tokens.unwrap().remaining), (30, 30));
    assert_eq!((read.concurrency.limit, read.concurrency.in_use), (Some(1), 1));
    assert_eq!((read.budget.unwrap().limit, read.budget.unwrap().reserved), (usd(20), usd(4)));

    drop((admission, slot));
    assert_eq!(reservation.commit(usd(4)), Money::ZERO);
    let read = tenant.snapshot(START, UTC);
    assert_eq!((read.requests.unwrap().remaining, read.tokens.unwrap().remaining), (10, 30));
    assert_eq!((read.concurrency.in_use, read.budget.unwrap().spent), (0, usd(4)));
}

#[test]
fn the_same_limits_again_change_nothing() {
    let limits = limits(&[("a", &rates(7, 7))], POOL);
    let tenant = limits.tenant(&id("a")).unwrap();
    tenant.admit(TokenCount::new(7), START).unwrap().settle(TokenCount::new(7), START);
    // 8.57 s a token: three changes, each in the middle of one, must lose no part of it.
    for now in [2, 4, 6].map(seconds) {
        limits.reconfigure(config(&[("a", &rates(7, 7))], POOL), now).unwrap();
    }
    assert_eq!(tenant.snapshot(seconds(9), UTC).tokens.unwrap().remaining, 1);
}

#[test]
fn a_refused_change_changes_nothing() {
    let limits = limits(&[("a", &rates(7, 7))], POOL);
    let bad = config(&[("a", &rates(0, 9)), ("b", &rates(1, 0))], 0);
    assert_eq!(faults(limits.reconfigure(bad, START)), 3);
    let read = limits.tenant(&id("a")).unwrap().snapshot(START, UTC);
    assert_eq!((read.requests.unwrap().limit, read.tokens.unwrap().limit), (7, 7));
    assert!(limits.tenant(&id("b")).is_none());
}

#[test]
fn limits_come_and_go() {
    let limits = limits(&[("a", &none())], POOL);
    let tenant = limits.tenant(&id("a")).unwrap();
    assert!(!tenant.has_budget() && !tenant.has_token_limit());
    let (admission, reservation) =
        (tenant.admit(TokenCount::new(5), START).unwrap(), tenant.reserve(usd(5), UTC).unwrap());
    let limited = TenantLimitsConfig { budget: budget(9, Window::Hour), ..rates(9, 9) };
    limits.reconfigure(config(&[("a", &limited)], POOL), START).unwrap();
    assert!(tenant.has_budget() && tenant.has_token_limit());
    // Let through without a limit, they settle without one.
    admission.settle(TokenCount::new(5), START);
    assert_eq!(reservation.commit(usd(6)), usd(1));
    let read = tenant.snapshot(START, UTC);
    assert_eq!((read.tokens.unwrap().remaining, read.budget.unwrap().spent), (9, Money::ZERO));
}

#[test]
fn a_tenant_that_leaves_and_comes_back_finds_its_spend() {
    let budgeted = TenantLimitsConfig { budget: budget(9, Window::Day), ..rates(9, 9) };
    let limits = limits(&[("a", &budgeted), ("b", &none())], POOL);
    let tenant = limits.tenant(&id("a")).unwrap();
    tenant.reserve(usd(8), UTC).unwrap().commit(usd(8));
    let slot = tenant.slot().unwrap();
    limits.reconfigure(config(&[("b", &none())], POOL), START).unwrap();
    assert!(limits.tenant(&id("a")).is_none());
    assert_eq!(limits.tenants().len(), 1);
    // Whoever still holds it is still limited.
    assert!(tenant.reserve(usd(2), UTC).is_err());
    limits.reconfigure(config(&[("a", &budgeted), ("b", &none())], POOL), START).unwrap();
    let back = limits.tenant(&id("a")).unwrap();
    assert_eq!(back.snapshot(START, UTC).budget.unwrap().spent, usd(8));
    assert_eq!(back.snapshot(START, UTC).concurrency.in_use, 1);
    drop(slot);
    assert_eq!(back.snapshot(START, UTC).concurrency.in_use, 0);
}

#[test]
fn a_share_that_is_taken_away_goes_to_the_pool() {
    let share = TenantLimitsConfig { reserved_concurrency: 2, ..none() };
    let limits = limits(&[("a", &share), ("b", &none())], 3);
    let (a, b) = (limits.tenant(&id("a")).unwrap(), limits.tenant(&id("b")).unwrap());
    let held = [a.slot().unwrap(), a.slot().unwrap(), b.slot().unwrap()];
    assert_eq!(b.slot().unwrap_err().subject(), Some("pool_capacity"));
    limits.reconfigure(config(&[("b", &none())], 3), START).unwrap();
    assert_eq!(b.slot().unwrap_err().kind(), ErrorKind::Overloaded);
    drop(held);
    let all = [b.slot().unwrap(), b.slot().unwrap(), b.slot().unwrap()];
    assert!(b.slot().is_err());
    drop(all);
}

#[test]
fn a_deployment_that_comes_back_still_counts_its_calls() {
    let name = DeploymentName::new("d").unwrap();
    let with = |limit| LimitsConfig { deployments: vec![(name.clone(), limit)], ..config(&[], 1) };
    let limits = Limits::new(with(NonZeroU32::new(1)), START).unwrap();
    let slot = limits.deployment(&name).unwrap().try_acquire().unwrap();
    limits.reconfigure(config(&[], 1), START).unwrap();
    assert!(limits.deployment(&name).is_none());
    limits.reconfigure(with(NonZeroU32::new(1)), START).unwrap();
    let back = limits.deployment(&name).unwrap();
    let refused = back.try_acquire().unwrap_err();
    assert_eq!((refused.kind(), refused.subject()), (ErrorKind::Overloaded, Some("d")));
    limits.reconfigure(with(NonZeroU32::new(2)), START).unwrap();
    let second = back.try_acquire().unwrap();
    assert_eq!((back.in_use(), back.limit()), (2, Some(2)));
    drop((slot, second));
    limits.reconfigure(with(None), START).unwrap();
    assert_eq!((back.in_use(), back.limit()), (0, None));
}
