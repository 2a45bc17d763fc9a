//! Windows that end, step back and change their kind, with money held across.

use std::time::Duration;

use gw_types::{Money, UtcTime};

use super::{PeriodKey, Quota, Refusal};
use crate::{BudgetConfig, Window};

const HOUR: i64 = 3_600_000_000;

fn usd(micros: u64) -> Money {
    Money::from_micros(micros)
}

fn at(hours: i64) -> UtcTime {
    UtcTime::from_micros(hours * HOUR)
}

fn budget(limit: u64, window: Window) -> Option<BudgetConfig> {
    Some(BudgetConfig { limit: usd(limit), window })
}

fn hold(quota: &mut Quota, micros: u64, utc: UtcTime) -> Option<PeriodKey> {
    quota.reserve(usd(micros), utc).unwrap()
}

/// Reserves and spends.
fn spend(quota: &mut Quota, micros: u64, utc: UtcTime) {
    let key = hold(quota, micros, utc).unwrap();
    quota.settle(key, usd(micros), usd(micros));
}

#[track_caller]
fn check(quota: &Quota, utc: UtcTime, spent: u64, reserved: u64, resets_at: UtcTime) {
    let read = quota.snapshot(utc).unwrap();
    assert_eq!((read.spent, read.reserved, read.resets_at), (usd(spent), usd(reserved), resets_at));
}

#[test]
fn i06_the_boundary_refuses() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    spend(&mut quota, 9, at(0));
    assert_eq!(quota.check(at(0)), Ok(()));
    assert_eq!(quota.reserve(usd(2), at(0)), Err(Refusal::Until(Duration::from_secs(3_600))));
    spend(&mut quota, 1, at(0));
    let last = UtcTime::from_micros(HOUR - 1);
    assert_eq!(quota.check(last), Err(Refusal::Until(Duration::from_micros(1))));
    assert_eq!(quota.reserve(Money::ZERO, last), Err(Refusal::Until(Duration::from_micros(1))));
    assert_eq!(quota.check(at(1)), Ok(()));
}

#[test]
fn a_refusal_says_what_waiting_would_do() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    let key = hold(&mut quota, 6, at(0)).unwrap();
    assert_eq!(quota.reserve(usd(5), at(0)), Err(Refusal::Held));
    assert_eq!(quota.reserve(usd(11), at(0)), Err(Refusal::NeverPossible));
    assert_eq!(quota.raise(key, usd(6), usd(11), at(0)), Err(Refusal::NeverPossible));
    assert_eq!(quota.raise(key, usd(6), usd(10), at(0)), Ok(()));
    assert!(Refusal::NeverPossible.into_error().forbids_retry());
    assert_eq!(Refusal::NeverPossible.into_error().retry_after(), None);
}

#[test]
fn money_held_across_the_end_of_a_window_stays_in_its_own() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    let key = hold(&mut quota, 7, at(0)).unwrap();
    spend(&mut quota, 4, at(1));
    check(&quota, at(0), 0, 7, at(1));
    check(&quota, at(1), 4, 0, at(2));
    assert_eq!(quota.raise(key, usd(7), usd(11), at(1)), Err(Refusal::NeverPossible));
    assert_eq!(quota.raise(key, usd(7), usd(10), at(1)), Ok(()));
    quota.settle(key, usd(10), usd(9));
    check(&quota, at(0), 9, 0, at(1));
    check(&quota, at(1), 4, 0, at(2));
}

#[test]
fn a_clock_that_steps_back_finds_no_fresh_window() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    spend(&mut quota, 9, at(5));
    check(&quota, at(0), 9, 0, at(6));
    spend(&mut quota, 8, at(7));
    check(&quota, at(6), 8, 0, at(8));
    check(&quota, at(5), 9, 0, at(6));
    spend(&mut quota, 1, at(8));
    spend(&mut quota, 2, at(9));
    check(&quota, at(5), 8, 0, at(8));
}

#[test]
fn a_reservation_that_outlives_every_kept_window_settles_into_nothing() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    let key = hold(&mut quota, 7, at(0)).unwrap();
    for hour in 1..4 {
        spend(&mut quota, 1, at(hour));
    }
    assert_eq!(quota.raise(key, usd(7), usd(8), at(3)), Err(Refusal::WindowGone));
    quota.settle(key, usd(7), usd(7));
    for hour in 1..4 {
        check(&quota, at(hour), 1, 0, at(hour + 1));
    }
}

#[test]
fn from_hour_to_day_the_kept_hours_add_up() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    spend(&mut quota, 1, at(20));
    spend(&mut quota, 2, at(26));
    let key = hold(&mut quota, 3, at(27)).unwrap();
    quota.set_budget(budget(20, Window::Day));
    check(&quota, at(30), 2, 3, at(48));
    check(&quota, at(20), 1, 0, at(21));
    quota.settle(key, usd(3), usd(4));
    check(&quota, at(30), 6, 0, at(48));
}

#[test]
fn from_day_to_hour_the_spend_goes_into_the_hour() {
    let mut quota = Quota::new(budget(10, Window::Day));
    spend(&mut quota, 6, at(1));
    let key = hold(&mut quota, 3, at(13)).unwrap();
    quota.set_budget(budget(10, Window::Hour));
    check(&quota, at(13), 6, 3, at(14));
    check(&quota, at(14), 0, 0, at(15));
    spend(&mut quota, 5, at(14));
    quota.settle(key, usd(3), usd(2));
    check(&quota, at(13), 8, 0, at(14));
    check(&quota, at(14), 5, 0, at(15));
}

#[test]
fn a_budget_that_comes_back_finds_its_spend() {
    let mut quota = Quota::new(budget(10, Window::Day));
    let key = hold(&mut quota, 3, at(1)).unwrap();
    quota.set_budget(None);
    assert_eq!(quota.reserve(usd(99), at(1)), Ok(None));
    assert_eq!(quota.check(at(1)), Ok(()));
    quota.settle(key, usd(3), usd(3));
    quota.set_budget(budget(9, Window::Day));
    check(&quota, at(1), 3, 0, at(24));
}

#[test]
fn restoring_twice_changes_nothing() {
    let mut quota = Quota::new(budget(10, Window::Day));
    quota.restore(usd(4), at(1));
    spend(&mut quota, 2, at(1));
    quota.restore(usd(4), at(1));
    check(&quota, at(1), 6, 0, at(24));
}

#[test]
fn the_ends_of_time_have_windows() {
    for micros in [i64::MIN, i64::MAX] {
        let (mut quota, end) = (Quota::new(budget(10, Window::Day)), UtcTime::from_micros(micros));
        spend(&mut quota, 10, end);
        assert!(quota.check(end).is_err(), "no fresh window at {micros}");
        assert!(quota.reserve(usd(1), end).is_err(), "no fresh window at {micros}");
    }
}
