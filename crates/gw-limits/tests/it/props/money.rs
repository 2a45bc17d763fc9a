//! I6 and I15: money windows that hold, under any order of events and any step of the wall clock.

use std::sync::Arc;

use gw_limits::{Reservation, TenantLimits, TenantLimitsConfig, Window};
use gw_types::{ErrorKind, Money, UtcTime};
use proptest::{collection::vec, prelude::*};

use super::{STEPS_MAX, config};
use crate::{
    fixture::{START, UTC, budget, none, tenant, usd},
    model::BudgetModel,
};

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve(u64),
    Raise(usize, u64),
    Dispatch(usize),
    Commit(usize, u64),
    Release(usize),
    Drop(usize),
    /// Minutes.
    Clock(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..6;
    prop_oneof![
        6 => (0_u64..12).prop_map(Step::Reserve),
        2 => (which.clone(), 0_u64..16).prop_map(|(at, amount)| Step::Raise(at, amount)),
        2 => which.clone().prop_map(Step::Dispatch),
        2 => (which.clone(), 0_u64..16).prop_map(|(at, actual)| Step::Commit(at, actual)),
        1 => which.clone().prop_map(Step::Release),
        2 => which.prop_map(Step::Drop),
        2 => (-100_i64..200).prop_map(Step::Clock),
    ]
}

fn hourly(limit: u64) -> Arc<TenantLimits> {
    tenant(&TenantLimitsConfig { budget: budget(limit, Window::Hour), ..none() })
}

struct Held {
    reservation: Reservation,
    made_in: i64,
    amount: u64,
    dispatched: bool,
}

fn hour(utc: UtcTime) -> i64 {
    utc.micros().div_euclid(HOUR)
}

/// Every kept window equals the model's and keeps I15.
fn check(tenant: &TenantLimits, model: &BudgetModel) {
    for kept in model.kept() {
        let read = tenant.snapshot(START, UtcTime::from_micros(kept.hour * HOUR)).budget.unwrap();
        assert_eq!((read.spent, read.reserved), (usd(kept.spent), usd(kept.reserved)));
        assert!(read.spent.saturating_add(read.reserved) <= usd(model.limit + kept.overrun));
    }
}

fn run(tenant: &Arc<TenantLimits>, model: &mut BudgetModel, held: &mut Vec<Held>, step: Step, utc: UtcTime) {
    match step {
        Step::Reserve(amount) => {
            let expected = model.reserve(amount, hour(utc));
            match tenant.reserve(usd(amount), utc) {
                Ok(reservation) => {
                    let made_in = expected.expect("the model refuses");
                    held.push(Held { reservation, made_in, amount, dispatched: false });
                }
                Err(error) => assert_eq!((error.kind(), expected), (ErrorKind::QuotaExceeded, None)),
            }
        }
        Step::Raise(at, amount) if at < held.len() => {
            let one = &mut held[at];
            let raised = one.reservation.raise_to(usd(amount), utc).is_ok();
            assert_eq!(raised, model.raise(one.made_in, one.amount, amount));
            one.amount = if raised { one.amount.max(amount) } else { one.amount };
            assert_eq!(one.reservation.amount(), usd(one.amount));
        }
        Step::Dispatch(at) if at < held.len() => {
            held[at].reservation.dispatched();
            held[at].dispatched = true;
        }
        Step::Commit(at, actual) if at < held.len() => {
            let one = held.swap_remove(at);
            assert_eq!(one.reservation.commit(usd(actual)), usd(actual.saturating_sub(one.amount)));
            model.settle(one.made_in, one.amount, actual);
        }
        Step::Release(at) if at < held.len() => {
            let one = held.swap_remove(at);
            one.reservation.release();
            model.settle(one.made_in, one.amount, 0);
        }
        Step::Drop(at) if at < held.len() => {
            let one = held.swap_remove(at);
            model.settle(one.made_in, one.amount, if one.dispatched { one.amount } else { 0 });
        }
        Step::Raise(..) | Step::Dispatch(_) | Step::Commit(..) | Step::Release(_) | Step::Drop(_) => {}
        Step::Clock(_) => {}
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn i15_spent_and_reserved_never_pass_limit_and_overrun(
        limit in 1_u64..24, steps in vec(step(), 1..STEPS_MAX)
    ) {
        let tenant = hourly(limit);
        let (mut model, mut held, mut utc) = (BudgetModel::new(limit), Vec::new(), UTC);
        for step in steps {
            if let Step::Clock(minutes) = step {
                utc = UtcTime::from_micros(utc.micros() + minutes * MINUTE);
            }
            run(&tenant, &mut model, &mut held, step, utc);
            check(&tenant, &model);
        }
        while !held.is_empty() {
            run(&tenant, &mut model, &mut held, Step::Drop(0), utc);
        }
        check(&tenant, &model);
        for kept in model.kept() {
            let read = tenant.snapshot(START, UtcTime::from_micros(kept.hour * HOUR)).budget.unwrap();
            prop_assert_eq!(read.reserved, Money::ZERO);
        }
    }

    #[test]
    fn i06_quota_refusal_is_inclusive_at_the_boundary(
        limit in 1_u64..12,
        spends in vec((0_u64..6, 0_u64..8, 0_i64..40), 1..STEPS_MAX)
    ) {
        let tenant = hourly(limit);
        let (mut spent, mut utc) = (0_u64, UTC);
        for (reserve, actual, minutes) in spends {
            let later = UtcTime::from_micros(utc.micros() + minutes * MINUTE);
            spent = if hour(later) == hour(utc) { spent } else { 0 };
            utc = later;
            let left = Window::Hour.end_of(utc).micros() - utc.micros();
            match tenant.check_quota(utc) {
                Ok(()) => prop_assert!(spent < limit),
                Err(error) => {
                    prop_assert!(spent >= limit);
                    prop_assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
                    prop_assert_eq!(error.retry_after().unwrap().as_micros(), u128::try_from(left).unwrap());
                    prop_assert!(tenant.reserve(Money::ZERO, utc).is_err());
                }
            }
            let fits = spent < limit && spent + reserve <= limit;
            match tenant.reserve(usd(reserve), utc) {
                Ok(reservation) => {
                    prop_assert!(fits);
                    reservation.commit(usd(actual));
                    spent += actual;
                }
                Err(_) => prop_assert!(!fits),
            }
        }
    }
}
