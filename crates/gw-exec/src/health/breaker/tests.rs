//! Calls past one breaker: what is evidence, what is not, and what holds whatever happens.

use std::{sync::Arc, time::Duration};

use gw_types::{ErrorKind, GatewayError, MonoTime, SeededRandom, UtcTime};
use proptest::{collection::vec, prelude::*};

use super::{super::machine, Access, Bar, Breaker, BreakerSnapshot, BreakerState, Ticket};

/// A breaker with its own time and chance.
#[derive(Debug)]
struct Bench {
    breaker: Arc<Breaker>,
    now: MonoTime,
    random: SeededRandom,
}

impl Bench {
    fn new() -> Self {
        Self { breaker: Arc::default(), now: MonoTime::ZERO, random: SeededRandom::new(3) }
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(Duration::from_secs(seconds));
    }

    fn enter(&self) -> Option<Ticket> {
        self.breaker.enter(false, self.now, &self.random).ok()
    }

    fn last_resort(&self) -> Ticket {
        self.breaker.enter(true, self.now, &self.random).unwrap()
    }

    fn judge(&self, ticket: Ticket, result: Result<(), ErrorKind>) {
        let error = result.map_err(|kind| GatewayError::new(kind, "scripted"));
        ticket.judge(error.as_ref().copied(), self.now, &self.random);
    }

    fn call(&self, result: Result<(), ErrorKind>) {
        self.judge(self.enter().unwrap(), result);
    }

    fn open(&self) {
        (0..5).for_each(|_| self.call(Err(ErrorKind::ProviderUnavailable)));
        assert_eq!(self.state(), BreakerState::Open);
    }

    fn snapshot(&self) -> BreakerSnapshot {
        self.breaker.snapshot(self.now, UtcTime::from_micros(0))
    }

    fn state(&self) -> BreakerState {
        self.snapshot().state
    }
}

#[test]
fn every_kind_harms_as_its_flag_says() {
    use gw_types::Health;
    for kind in ErrorKind::ALL {
        let bench = Bench::new();
        for _ in 0..5 {
            let mut ticket = bench.enter().unwrap();
            ticket.set_full_time(true);
            bench.judge(ticket, Err(kind));
        }
        let harms = match kind.harms_health() {
            Health::Deployment | Health::DeploymentIfFullTime | Health::Credential => BreakerState::Open,
            Health::Harmless | Health::Cooldown => BreakerState::Closed,
        };
        assert_eq!(bench.state(), harms, "{kind}");
    }
}

#[test]
fn a_timeout_is_evidence_only_after_its_full_time_or_by_the_providers_own_word() {
    let timeout = GatewayError::new(ErrorKind::ProviderTimeout, "scripted");
    for (error, has_full_time, failures) in
        [(timeout.clone(), false, 0), (timeout.clone(), true, 1), (timeout.with_status(504), false, 1)]
    {
        let bench = Bench::new();
        let mut ticket = bench.enter().unwrap();
        ticket.set_full_time(has_full_time);
        ticket.judge(Err(&error), bench.now, &bench.random);
        assert_eq!(bench.snapshot().consecutive_failures, failures);
    }
}

#[test]
fn a_call_that_the_client_left_is_no_evidence_and_gives_its_probe_back() {
    let mut bench = Bench::new();
    (0..10).for_each(|_| drop(bench.enter()));
    assert_eq!(bench.snapshot().consecutive_failures, 0);
    bench.open();
    bench.pass(30);
    let probe = bench.enter().unwrap();
    assert!(bench.enter().is_none());
    drop(probe);
    assert!(bench.enter().is_some());
}

#[test]
fn what_began_before_the_breaker_opened_says_nothing_about_now() {
    let mut bench = Bench::new();
    let [early, late] = [(); 2].map(|()| bench.enter().unwrap());
    bench.open();
    bench.judge(early, Ok(()));
    assert_eq!(bench.state(), BreakerState::Open);
    bench.pass(30);
    let probe = bench.enter().unwrap();
    bench.judge(late, Err(ErrorKind::Transport));
    assert_eq!(bench.state(), BreakerState::HalfOpen);
    bench.judge(probe, Ok(()));
    assert_eq!(bench.state(), BreakerState::HalfOpen);
}

#[test]
fn three_probes_one_after_another_close_it() {
    let mut bench = Bench::new();
    bench.open();
    assert!(bench.enter().is_none());
    bench.pass(30);
    for _ in 0..3 {
        assert_eq!(bench.state(), BreakerState::HalfOpen);
        bench.call(Ok(()));
    }
    assert_eq!(bench.state(), BreakerState::Closed);
    assert_eq!(bench.breaker.look(bench.now), Access::Share(100));
    bench.pass(30);
    assert_eq!(bench.breaker.look(bench.now), Access::Free);
}

#[test]
fn answers_of_a_last_resort_close_it_too() {
    let bench = Bench::new();
    bench.open();
    bench.judge(bench.last_resort(), Err(ErrorKind::Transport));
    assert_eq!(bench.state(), BreakerState::Open);
    (0..3).for_each(|_| bench.judge(bench.last_resort(), Ok(())));
    assert_eq!(bench.state(), BreakerState::Closed);
}

#[test]
fn the_beginning_of_a_stream_is_an_answer_to_a_probe_and_counts_once() {
    let mut bench = Bench::new();
    bench.open();
    bench.pass(30);
    let mut first = bench.enter().unwrap();
    first.opened(bench.now, &bench.random);
    let mut second = bench.enter().unwrap();
    bench.judge(first, Ok(()));
    assert_eq!(bench.state(), BreakerState::HalfOpen);
    second.opened(bench.now, &bench.random);
    let mut third = bench.enter().unwrap();
    third.opened(bench.now, &bench.random);
    assert_eq!(bench.state(), BreakerState::Closed);
    // What breaks off afterwards is a failure like any other.
    bench.judge(third, Err(ErrorKind::StreamInterrupted));
    assert_eq!(bench.snapshot().consecutive_failures, 1);
}

#[test]
fn streams_that_begin_well_and_break_off_open_it() {
    let bench = Bench::new();
    for _ in 0..5 {
        let mut ticket = bench.enter().unwrap();
        ticket.opened(bench.now, &bench.random);
        bench.judge(ticket, Err(ErrorKind::StreamInterrupted));
    }
    assert_eq!(bench.state(), BreakerState::Open);
}

#[test]
fn a_share_of_failures_far_above_the_past_opens_it() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        (0..40).for_each(|_| bench.call(Ok(())));
        bench.pass(30);
    }
    bench.pass(60);
    // Never five in a row.
    let mut calls = 0;
    while bench.state() == BreakerState::Closed {
        bench.call(if calls % 2 == 0 { Ok(()) } else { Err(ErrorKind::ProviderUnavailable) });
        calls += 1;
        assert!(calls <= 20);
    }
    assert_eq!(calls, 20);
}

#[test]
fn a_rest_that_the_provider_asks_for_is_no_failure() {
    let mut bench = Bench::new();
    let limited = GatewayError::new(ErrorKind::ProviderRateLimited, "scripted");
    bench.enter().unwrap().judge(Err(&limited), bench.now, &bench.random);
    assert_eq!(bench.breaker.look(bench.now), Access::Free);
    let limited = limited.with_retry_after(Duration::from_secs(60));
    bench.enter().unwrap().judge(Err(&limited), bench.now, &bench.random);
    let until = MonoTime::ZERO.saturating_add(Duration::from_secs(60));
    assert_eq!(bench.breaker.look(bench.now), Access::Barred { until, why: Bar::Cooldown });
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.consecutive_failures), (BreakerState::Closed, 0));
    assert_eq!(snapshot.cooldown_until, Some(UtcTime::from_micros(60_000_000)));
    bench.pass(60);
    assert_eq!(bench.breaker.look(bench.now), Access::Free);
}

/// What a random life of a breaker is made of.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter,
    LastResort,
    Open(usize),
    Succeed(usize),
    Fail(usize),
    Limit(usize, u64),
    Leave(usize),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Enter),
        1 => Just(Step::LastResort),
        1 => (0_usize..8).prop_map(Step::Open),
        2 => (0_usize..8).prop_map(Step::Succeed),
        4 => (0_usize..8).prop_map(Step::Fail),
        1 => ((0_usize..8), 0_u64..2_000).prop_map(|(at, rest)| Step::Limit(at, rest)),
        1 => (0_usize..8).prop_map(Step::Leave),
        2 => (0_u64..200).prop_map(Step::Pass),
    ]
}

/// Takes the step; returns whether a success was heard of in a phase that it began in.
fn take(bench: &mut Bench, tickets: &mut Vec<Ticket>, step: Step) -> bool {
    let pick = |tickets: &mut Vec<Ticket>, at: usize| {
        (!tickets.is_empty()).then(|| tickets.remove(at % tickets.len()))
    };
    match step {
        Step::Enter => tickets.extend(bench.enter()),
        Step::LastResort => tickets.push(bench.last_resort()),
        Step::Open(at) => {
            let count = tickets.len().max(1);
            if let Some(ticket) = tickets.get_mut(at % count) {
                ticket.opened(bench.now, &bench.random);
            }
        }
        Step::Succeed(at) => {
            if let Some(ticket) = pick(tickets, at) {
                let heard = ticket.epoch == bench.breaker.epoch() && !ticket.counted;
                bench.judge(ticket, Ok(()));
                return heard;
            }
        }
        Step::Fail(at) => {
            if let Some(ticket) = pick(tickets, at) {
                bench.judge(ticket, Err(ErrorKind::Transport));
            }
        }
        Step::Limit(at, rest) => {
            if let Some(ticket) = pick(tickets, at) {
                let error = GatewayError::new(ErrorKind::ProviderRateLimited, "scripted")
                    .with_retry_after(Duration::from_secs(rest));
                ticket.judge(Err(&error), bench.now, &bench.random);
            }
        }
        Step::Leave(at) => drop(pick(tickets, at)),
        Step::Pass(seconds) => bench.pass(seconds),
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn one_probe_at_a_time_bounded_periods_and_no_end_without_return(life in vec(steps(), 1..200)) {
        let mut bench = Bench::new();
        let mut tickets: Vec<Ticket> = Vec::new();
        for step in life {
            let succeeded = take(&mut bench, &mut tickets, step);
            let epoch = bench.breaker.epoch();
            prop_assert!(tickets.iter().filter(|ticket| ticket.probe && ticket.epoch == epoch).count() <= 1);
            if succeeded {
                prop_assert_eq!(bench.snapshot().consecutive_failures, 0);
            }
            if let Access::Barred { until, .. } = bench.breaker.look(bench.now) {
                prop_assert!(until.saturating_since(bench.now) <= machine::OPEN_MAX.max(machine::COOLDOWN_MAX));
            }
            if bench.state() == BreakerState::Open {
                let until = bench.snapshot().open_until.unwrap_or_default();
                prop_assert!(until.micros() <= i64::try_from(machine::OPEN_MAX.as_micros()).unwrap());
            }
        }
        // Whatever happened: once all calls are over and time has passed, three answers close it.
        tickets.clear();
        bench.pass(machine::OPEN_MAX.as_secs() + machine::COOLDOWN_MAX.as_secs());
        for _ in 0..3 {
            let ticket = bench.enter();
            prop_assert!(ticket.is_some());
            bench.judge(ticket.unwrap(), Ok(()));
        }
        prop_assert_eq!(bench.state(), BreakerState::Closed);
        bench.pass(machine::RETURN.as_secs());
        prop_assert_eq!(bench.breaker.look(bench.now), Access::Free);
    }
}
