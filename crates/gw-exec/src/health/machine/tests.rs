//! The table of transitions, and what a request finds in each phase.

use std::time::Duration;

use gw_types::{MonoTime, Random, SeededRandom};

use super::{Access, Bar, COOLDOWN_MAX, Event, FAILURES_MIN, Machine, OPEN_BASE, OPEN_MAX, Phase, RETURN};

const SUCCEEDED: Event = Event::Succeeded;
const FAILED: Event = Event::Failed { unusual: false, run: FAILURES_MIN };
const UNUSUAL: Event = Event::Failed { unusual: true, run: FAILURES_MIN };

/// Chance that shortens nothing.
#[derive(Debug)]
struct Longest;

impl Random for Longest {
    fn next_u64(&self) -> u64 {
        0
    }
}

fn at(seconds: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
}

fn after(events: &[(u64, Event)]) -> Machine {
    let mut machine = Machine::default();
    for (seconds, event) in events {
        machine.on(*event, at(*seconds), &Longest);
    }
    machine
}

#[track_caller]
fn check(events: &[(u64, Event)], phase: Phase) {
    assert_eq!(after(events).phase(), phase);
}

/// Opens at 0 until 30.
const OPENED: [(u64, Event); 5] = [(0, FAILED); 5];

fn opened_and(events: &[(u64, Event)]) -> Vec<(u64, Event)> {
    [&OPENED[..], events].concat()
}

#[test]
fn closed_opens_at_the_fifth_failure_in_a_row() {
    check(&[(0, FAILED); 4], Phase::Closed { since: None });
    check(&OPENED, Phase::Open { until: at(30) });
    check(
        &[&[(0, FAILED); 4][..], &[(1, SUCCEEDED)], &[(2, FAILED); 4]].concat(),
        Phase::Closed { since: None },
    );
    check(&[(0, Event::Probed), (0, SUCCEEDED)], Phase::Closed { since: None });
}

#[test]
fn closed_opens_at_once_where_it_fails_unusually_often() {
    check(&[(3, UNUSUAL)], Phase::Open { until: at(33) });
}

#[test]
fn open_stays_until_a_probe_that_is_due_or_an_answer() {
    check(&opened_and(&[(29, Event::Probed)]), Phase::Open { until: at(30) });
    check(&opened_and(&[(29, FAILED)]), Phase::Open { until: at(30) });
    check(&opened_and(&[(30, Event::Probed)]), Phase::HalfOpen { successes: 0, probing: true });
    check(&opened_and(&[(7, SUCCEEDED)]), Phase::HalfOpen { successes: 1, probing: false });
}

#[test]
fn half_open_closes_after_three_answers_and_opens_at_one_failure_for_longer() {
    let probed = |more: &[(u64, Event)]| opened_and(&[&[(30, Event::Probed)], more].concat());
    check(&probed(&[(31, SUCCEEDED)]), Phase::HalfOpen { successes: 1, probing: true });
    check(&probed(&[(31, SUCCEEDED); 2]), Phase::HalfOpen { successes: 2, probing: true });
    check(&probed(&[(31, SUCCEEDED); 3]), Phase::Closed { since: Some(at(31)) });
    check(&probed(&[(31, FAILED)]), Phase::Open { until: at(31 + 60) });
    check(&probed(&[(31, SUCCEEDED), (32, UNUSUAL)]), Phase::Open { until: at(32 + 60) });
}

#[test]
fn a_probe_that_is_given_back_lets_the_next_one_pass() {
    let mut machine = after(&opened_and(&[(30, Event::Probed)]));
    machine.return_probe();
    assert_eq!(machine.phase(), Phase::HalfOpen { successes: 0, probing: false });
    let mut machine = after(&OPENED);
    machine.return_probe();
    assert_eq!(machine.phase(), Phase::Open { until: at(30) });
}

#[test]
fn a_relapse_is_left_alone_for_longer_and_a_late_one_is_not() {
    let well = [(30, Event::Probed), (30, SUCCEEDED), (30, SUCCEEDED), (30, SUCCEEDED)];
    let again = |seconds| [opened_and(&well), vec![(seconds, FAILED); 5]].concat();
    check(&again(40), Phase::Open { until: at(40 + 60) });
    check(&again(329), Phase::Open { until: at(329 + 60) });
    check(&again(330), Phase::Open { until: at(330 + 30) });
}

#[test]
fn open_periods_grow_to_a_bound_and_chance_only_shortens_them() {
    let random = SeededRandom::new(5);
    let mut machine = after(&OPENED);
    let mut now = at(30);
    for opening in 2..40 {
        machine.on(Event::Probed, now, &random);
        machine.on(FAILED, now, &random);
        let Phase::Open { until } = machine.phase() else { panic!("a failed probe opens") };
        let (period, full) = (until.saturating_since(now), OPEN_BASE.saturating_mul(opening).min(OPEN_MAX));
        assert!(period <= full && period >= full * 4 / 5, "{period:?} of {full:?}");
        now = until;
    }
}

#[track_caller]
fn finds(machine: &Machine, seconds: u64, access: Access) {
    assert_eq!(machine.access(at(seconds)), access);
}

#[test]
fn what_a_request_finds_in_each_phase() {
    finds(&after(&[(0, FAILED)]), 0, Access::Free);
    finds(&after(&OPENED), 29, Access::Barred { until: at(30), why: Bar::Open });
    finds(&after(&OPENED), 30, Access::Probe);
    let probed = after(&opened_and(&[(30, Event::Probed)]));
    finds(&probed, 35, Access::Barred { until: at(36), why: Bar::Probing });
    finds(&after(&opened_and(&[(7, SUCCEEDED)])), 7, Access::Probe);
    let closed = after(&opened_and(&[(10, SUCCEEDED); 3]));
    for (seconds, milli) in [(10, 100), (25, 550), (39, 970)] {
        finds(&closed, seconds, Access::Share(milli));
    }
    finds(&closed, 10 + RETURN.as_secs(), Access::Free);
}

#[test]
fn a_cooldown_is_the_longest_that_was_asked_for_up_to_a_bound() {
    let mut machine = Machine::default();
    let cool = |machine: &mut Machine, seconds, rest| machine.cool(Duration::from_secs(rest), at(seconds));
    cool(&mut machine, 0, 60);
    cool(&mut machine, 10, 5);
    finds(&machine, 59, Access::Barred { until: at(60), why: Bar::Cooldown });
    finds(&machine, 60, Access::Free);
    assert_eq!((machine.phase(), machine.failures()), (Phase::Closed { since: None }, 0));
    cool(&mut machine, 100, 411_132);
    finds(&machine, 100, Access::Barred { until: at(100 + COOLDOWN_MAX.as_secs()), why: Bar::Cooldown });
}

#[test]
fn the_later_of_cooldown_and_open_period_counts() {
    let mut machine = after(&OPENED);
    machine.cool(Duration::from_secs(45), at(0));
    finds(&machine, 1, Access::Barred { until: at(45), why: Bar::Open });
    finds(&machine, 31, Access::Barred { until: at(45), why: Bar::Cooldown });
    finds(&machine, 45, Access::Probe);
}
