//! Faults that users of such gateways reported, as far as they are decided here.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use gw_limits::{Admission, DeploymentSlot, Reservation, Slot, TenantLimits, TenantLimitsConfig, Window};
use gw_types::{ErrorKind, Money, MonoTime, TokenCount};

use crate::fixture::{START, UTC, budget, none, seconds, tenant, usd};

fn money(tenant: &TenantLimits) -> (Money, Money) {
    let read = tenant.snapshot(START, UTC).budget.unwrap();
    (read.spent, read.reserved)
}

#[test]
fn concurrent_requests_cannot_overspend_a_hard_budget() {
    const REQUESTS: usize = 50;
    let tenant = tenant(&TenantLimitsConfig { budget: budget(1_100, Window::Day), ..none() });
    let barrier = Barrier::new(REQUESTS);
    let request = || {
        barrier.wait();
        let reserved = tenant.reserve(usd(400), UTC);
        let (spent, held) = money(&tenant);
        assert!(spent.saturating_add(held) <= usd(1_100));
        reserved
    };
    let decided: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(request)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (admitted, refused): (Vec<_>, Vec<_>) = decided.into_iter().partition(Result::is_ok);
    assert_eq!((admitted.len(), refused.len()), (2, 48));
    for error in refused.into_iter().filter_map(Result::err) {
        assert_eq!((error.kind(), error.subject()), (ErrorKind::QuotaExceeded, Some("budget")));
        assert!(error.retry_after().is_some());
    }
    for reservation in admitted.into_iter().flatten() {
        assert_eq!(reservation.commit(usd(300)), Money::ZERO);
    }
    assert_eq!(money(&tenant), (usd(600), Money::ZERO));
    assert!(tenant.reserve(usd(400), UTC).is_ok());
}

#[test]
fn refused_request_uses_up_no_other_limit() {
    let tenant = tenant(&TenantLimitsConfig {
        requests_per_minute: Some(2),
        tokens_per_minute: Some(1_000),
        max_concurrency: Some(1),
        budget: budget(10_000, Window::Day),
        ..none()
    });
    let at = |milliseconds: u64| MonoTime::from_nanos(milliseconds * 1_000_000);
    let admit = |tokens, now| tenant.admit(TokenCount::new(tokens), now);

    let a = admit(100, at(0)).unwrap();
    let a_slot = tenant.slot().unwrap();
    let b = admit(100, at(100)).unwrap();
    let refused = tenant.slot().unwrap_err();
    assert_eq!((refused.kind(), refused.subject()), (ErrorKind::RateLimited, Some("max_concurrency")));
    assert!(refused.retry_after().is_some());
    drop(b);
    a.settle(TokenCount::new(90), at(200));
    drop(a_slot);

    let c = admit(2_000, at(300)).unwrap_err();
    assert_eq!(c.refused_by.as_slice(), ["tokens_per_minute"]);
    assert_eq!((c.error.retry_after(), c.error.forbids_retry()), (None, true));

    let d = admit(100, at(400)).unwrap();
    drop(tenant.slot().unwrap());
    d.settle(TokenCount::new(80), at(500));

    let after = tenant.snapshot(at(500), UTC);
    assert_eq!(after.requests.unwrap().remaining, 0);
    // 16.67 tokens a second: 8 are minted in half a second, of which the first three were when the bucket was full.
    assert_eq!(after.tokens.unwrap().remaining, 1_000 - 90 - 80 + 8);
    assert_eq!((after.concurrency.in_use, after.budget.unwrap().reserved), (0, Money::ZERO));

    let e = admit(100, at(600)).unwrap_err();
    assert_eq!(e.refused_by.as_slice(), ["requests_per_minute"]);
    let wait = e.error.retry_after().unwrap();
    assert_eq!(at(600).saturating_add(wait), seconds(30));
}

/// What a request holds while it runs.
struct Held(Admission, Slot, DeploymentSlot, Reservation);

/// Ways out of a request, as what they do to the guards.
const EXITS: [fn(Held); 4] = [
    // The future was dropped, before or after the call went out.
    drop,
    |mut held| held.3.dispatched(),
    // The provider refused the connection.
    |held| held.3.release(),
    // An answer.
    |Held(admission, slot, deployment, reservation)| {
        reservation.commit(usd(1));
        admission.settle(TokenCount::new(1), START);
        drop((slot, deployment));
    },
];

#[test]
fn concurrency_slot_returns_on_every_exit() {
    const ROUNDS: usize = 100;
    let one_at_once =
        TenantLimitsConfig { max_concurrency: Some(1), budget: budget(100_000, Window::Day), ..none() };
    let name = gw_types::DeploymentName::new("up1").unwrap();
    let config = gw_limits::LimitsConfig {
        deployments: vec![(name.clone(), std::num::NonZeroU32::new(1))],
        ..crate::fixture::config(&[("a", &one_at_once)], 1)
    };
    let limits = gw_limits::Limits::new(config, START).unwrap();
    let (tenant, deployment) =
        (limits.tenant(&crate::fixture::id("a")).unwrap(), limits.deployment(&name).unwrap());
    let in_use = || (tenant.snapshot(START, UTC).concurrency.in_use, deployment.in_use());
    let start = || {
        let admission = tenant.admit(TokenCount::new(1), START).unwrap();
        let (slot, place) = (tenant.slot().unwrap(), deployment.try_acquire().unwrap());
        Held(admission, slot, place, tenant.reserve(usd(1), UTC).unwrap())
    };
    for exit in EXITS {
        for _ in 0..ROUNDS {
            let held = start();
            assert_eq!(in_use(), (1, 1));
            assert_eq!(tenant.slot().unwrap_err().kind(), ErrorKind::RateLimited);
            assert_eq!(deployment.try_acquire().unwrap_err().kind(), ErrorKind::Overloaded);
            // Another thread ends it, as a runtime's worker would.
            thread::scope(|scope| scope.spawn(move || exit(held)).join()).unwrap();
            assert_eq!(in_use(), (0, 0));
        }
    }
    assert_eq!(money(&tenant), (usd(200), Money::ZERO));
}

#[test]
fn racing_threads_leave_nothing_behind() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 500;
    let tenant = tenant(&TenantLimitsConfig {
        requests_per_minute: Some(1_000_000),
        tokens_per_minute: Some(1_000_000),
        max_concurrency: Some(2),
        budget: budget(700, Window::Day),
        ..none()
    });
    let barrier = Barrier::new(THREADS as usize);
    let work = |seed: u64| {
        barrier.wait();
        let mut committed = 0;
        for round in 0..ROUNDS {
            let admission = tenant.admit(TokenCount::new(2), START).unwrap();
            let (Ok(_slot), Ok(mut reservation)) = (tenant.slot(), tenant.reserve(usd(2), UTC)) else {
                continue;
            };
            let read = tenant.snapshot(START, UTC);
            let money = read.budget.unwrap();
            assert!(money.spent.saturating_add(money.reserved) <= money.limit);
            assert!(read.concurrency.in_use <= 2);
            match (round + seed) % 3 {
                0 => {
                    reservation.commit(usd(1));
                    admission.settle(TokenCount::new(1), START);
                    committed += 1;
                }
                1 => {
                    // A raise that is refused must leave the amount as it was, or the sum at the end is off.
                    let raised = reservation.raise_to(usd(3), UTC).is_ok();
                    assert_eq!(reservation.amount(), usd(if raised { 3 } else { 2 }));
                }
                _ => admission.settle_hit(),
            }
        }
        committed
    };
    let committed: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let after = tenant.snapshot(START, UTC);
    assert_eq!(money(&tenant), (usd(committed), Money::ZERO));
    assert_eq!(after.concurrency.in_use, 0);
    assert_eq!(after.tokens.unwrap().remaining, 1_000_000 - committed);
}

#[test]
fn guards_move_between_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Admission>();
    check::<Reservation>();
    check::<Slot>();
    check::<DeploymentSlot>();
    check::<Arc<TenantLimits>>();
    check::<gw_limits::Limits>();
}
