//! Windows that end, step back and change their kind, with money held across.

use std::time::Duration;

use gw_types::{Money, UtcTime};

use super::{PeriodKey, Quota, Refusal};
use crate::{BudgetConfig, BudgetEstimate, QuotaConfig, QuotaWindow, Window, Zone};

const HOUR: i64 = 3_600_000_000;

fn usd(micros: u64) -> Money {
    Money::from_micros(micros)
}

fn at(hours: i64) -> UtcTime {
    UtcTime::from_micros(hours * HOUR)
}

fn budget(limit: u64, window: Window) -> Option<QuotaConfig> {
    Some(BudgetConfig { limit: usd(limit), window }.into())
}

/// Of 16 hours, so that a part is an hour.
fn rolling(limit: u64) -> Option<QuotaConfig> {
    let window = QuotaWindow::Rolling { length: ROLLING };
    Some(QuotaConfig { limit: usd(limit), window, estimate: BudgetEstimate::Bound })
}

const ROLLING: Duration = Duration::from_secs(16 * 3_600);

fn reserve(quota: &mut Quota, micros: u64, utc: UtcTime) -> Result<Option<PeriodKey>, Refusal> {
    quota.verdict(usd(micros), utc).map(|()| quota.hold(usd(micros), utc))
}

fn hold(quota: &mut Quota, micros: u64, utc: UtcTime) -> Option<PeriodKey> {
    reserve(quota, micros, utc).unwrap()
}

fn raise(quota: &mut Quota, key: PeriodKey, from: u64, to: u64, utc: UtcTime) -> Result<(), Refusal> {
    quota.raise_verdict(key, usd(from), usd(to), utc).map(|()| quota.raise(key, usd(to - from)))
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
    assert_eq!(reserve(&mut quota, 2, at(0)), Err(Refusal::Until(Duration::from_secs(3_600))));
    spend(&mut quota, 1, at(0));
    let last = UtcTime::from_micros(HOUR - 1);
    assert_eq!(quota.check(last), Err(Refusal::Until(Duration::from_micros(1))));
    assert_eq!(reserve(&mut quota, 0, last), Err(Refusal::Until(Duration::from_micros(1))));
    assert_eq!(quota.check(at(1)), Ok(()));
}

#[test]
fn a_refusal_says_what_waiting_would_do() {
    let mut quota = Quota::new(budget(10, Window::Hour));
    let key = hold(&mut quota, 6, at(0)).unwrap();
    assert_eq!(reserve(&mut quota, 5, at(0)), Err(Refusal::Held));
    assert_eq!(reserve(&mut quota, 11, at(0)), Err(Refusal::NeverPossible));
    assert_eq!(raise(&mut quota, key, 6, 11, at(0)), Err(Refusal::NeverPossible));
    assert_eq!(raise(&mut quota, key, 6, 10, at(0)), Ok(()));
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
    assert_eq!(raise(&mut quota, key, 7, 11, at(1)), Err(Refusal::NeverPossible));
    assert_eq!(raise(&mut quota, key, 7, 10, at(1)), Ok(()));
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
    assert_eq!(raise(&mut quota, key, 7, 8, at(3)), Err(Refusal::WindowGone));
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
    quota.set_rule(budget(20, Window::Day));
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
    quota.set_rule(budget(10, Window::Hour));
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
    quota.set_rule(None);
    assert_eq!(reserve(&mut quota, 99, at(1)), Ok(None));
    assert_eq!(quota.check(at(1)), Ok(()));
    quota.settle(key, usd(3), usd(3));
    quota.set_rule(budget(9, Window::Day));
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
        assert!(reserve(&mut quota, 1, end).is_err(), "no fresh window at {micros}");
    }
}

#[test]
fn a_rolling_window_frees_what_was_spent_a_window_ago() {
    let mut quota = Quota::new(rolling(10));
    let half_past = UtcTime::from_micros(HOUR / 2);
    spend(&mut quota, 6, half_past);
    spend(&mut quota, 4, at(3));
    let hours = |n: u64| Duration::from_secs(n * 3_600);
    assert_eq!(quota.check(at(3)), Err(Refusal::Until(hours(14))));
    // The part that began at 0 ends at 1, and a window later nothing of it counts.
    assert_eq!(reserve(&mut quota, 6, at(16)), Err(Refusal::Until(hours(1))));
    assert_eq!(reserve(&mut quota, 7, at(16)), Err(Refusal::Until(hours(4))));
    let key = hold(&mut quota, 5, at(17)).unwrap();
    assert_eq!(reserve(&mut quota, 2, at(17)), Err(Refusal::Held));
    assert_eq!(raise(&mut quota, key, 5, 6, at(18)), Ok(()));
    assert_eq!(raise(&mut quota, key, 6, 7, at(18)), Err(Refusal::Held));
    assert_eq!(raise(&mut quota, key, 6, 11, at(18)), Err(Refusal::NeverPossible));
    quota.settle(key, usd(6), usd(6));
    check(&quota, at(18), 10, 0, at(19 + 16));
}

#[test]
fn a_step_back_frees_nothing_of_a_rolling_window() {
    let mut quota = Quota::new(rolling(10));
    spend(&mut quota, 10, at(40));
    assert!(quota.check(at(5)).is_err() && quota.check(at(56)).is_err());
    assert_eq!(quota.check(at(57)), Ok(()));
}

#[test]
fn a_window_of_a_time_zone_ends_at_its_midnight() {
    let zone = Zone::new("America/New_York").unwrap();
    let window = QuotaWindow::Calendar { window: Window::Day, zone };
    let mut quota = Quota::new(Some(QuotaConfig { limit: usd(10), window, estimate: BudgetEstimate::Bound }));
    // 1970-01-01 in New York began at 05:00 UTC.
    spend(&mut quota, 10, at(5));
    assert_eq!(
        quota.check(UtcTime::from_micros(29 * HOUR - 1)),
        Err(Refusal::Until(Duration::from_micros(1)))
    );
    assert_eq!(quota.check(at(29)), Ok(()));
}

#[test]
fn from_calendar_to_rolling_and_back_nothing_is_forgotten() {
    let mut quota = Quota::new(budget(10, Window::Day));
    spend(&mut quota, 6, at(1));
    quota.set_rule(rolling(10));
    assert_eq!(reserve(&mut quota, 5, at(2)), Err(Refusal::Until(Duration::from_secs(16 * 3_600))));
    spend(&mut quota, 3, at(3));
    quota.set_rule(budget(10, Window::Day));
    check(&quota, at(4), 9, 0, at(24));
}
