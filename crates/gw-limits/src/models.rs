//! Models of what threads do to each other, run by loom over every interleaving up to a bound:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p gw-limits --lib models`, with a target folder of its own.

use std::{
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use gw_types::{Clock, ManualClock, Money, MonoTime, TenantId, TokenCount, UtcTime};
use loom::thread;

use crate::{
    BudgetConfig, Limits, LimitsConfig, Priority, Slot, Subject, SubjectIds, TenantLimitsConfig, Ticket,
    Waiting, Window, gauge::Gauge,
};

/// Switches of threads that the scheduler forces, at most; what blocks switches besides.
const PREEMPTIONS: usize = 3;
const UTC: UtcTime = UtcTime::from_micros(0);

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(run);
}

fn usd(micros: u64) -> Money {
    Money::from_micros(micros)
}

fn limits() -> Limits {
    let budget = Some(BudgetConfig { limit: usd(10), window: Window::Day });
    let tokens_per_minute = Some(100);
    let tenant = TenantLimitsConfig { budget, tokens_per_minute, ..TenantLimitsConfig::default() };
    let tenants = vec![(TenantId::new("a").unwrap(), tenant)];
    Limits::new(LimitsConfig { tenants, deployments: vec![], pool_capacity: 1 }, MonoTime::ZERO).unwrap()
}

fn subject(limits: &Limits) -> Subject {
    limits.subject(&SubjectIds { key: None, tenant: "a", model: None }).unwrap()
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::default())
}

fn acquire(subject: &Subject, clock: &Arc<dyn Clock>) -> Waiting {
    let ticket = Ticket {
        priority: Priority::Normal,
        weight: NonZeroU32::MIN,
        input: TokenCount::ZERO,
        max_queue: 9,
        deadline: MonoTime::from_nanos(u64::MAX),
        needs: Duration::ZERO,
    };
    subject.acquire(ticket, clock).unwrap()
}

fn poll(waiting: &mut Waiting) -> Option<Slot> {
    match Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(slot) => Some(slot.unwrap()),
        Poll::Pending => None,
    }
}

#[test]
fn a_gauge_gives_no_more_than_it_has() {
    model(|| {
        let gauge = Arc::new(Gauge::new(1));
        let other = Arc::clone(&gauge);
        let taken = thread::spawn(move || other.try_take());
        let here = gauge.try_take();
        assert!(here != taken.join().unwrap());
        gauge.give_back(1);
        assert_eq!(gauge.in_use(), 0);
    });
}

#[test]
fn settlements_and_drops_add_up() {
    model(|| {
        let limits = limits();
        let subject = subject(&limits);
        let (committed, mut dropped) =
            (subject.reserve(usd(4), UTC).unwrap(), subject.reserve(usd(5), UTC).unwrap());
        let admission = subject.admit(TokenCount::new(60), MonoTime::ZERO).unwrap();
        dropped.dispatched();
        let settles = thread::spawn(move || {
            admission.settle(TokenCount::new(10), MonoTime::ZERO);
            committed.commit(usd(6))
        });
        let drops = thread::spawn(move || drop(dropped));
        // One more is held and given back in between, or refused if the overrun came first.
        drop(subject.reserve(usd(1), UTC));
        assert_eq!(settles.join().unwrap(), usd(2));
        drops.join().unwrap();
        let read = &subject.snapshot(MonoTime::ZERO, UTC)[0];
        assert_eq!((read.budgets[0].spent, read.budgets[0].reserved), (usd(11), Money::ZERO));
        assert_eq!(read.tokens.unwrap().remaining, 90);
    });
}

#[test]
fn two_reservations_never_share_the_last_dollar() {
    model(|| {
        let limits = limits();
        let (here, there) = (subject(&limits), subject(&limits));
        let other = thread::spawn(move || there.reserve(usd(6), UTC).ok());
        let own = here.reserve(usd(6), UTC).ok();
        let other = other.join().unwrap();
        assert!(own.is_some() != other.is_some());
    });
}

#[test]
fn a_slot_that_comes_back_while_someone_joins_the_queue_is_not_lost() {
    model(|| {
        let (limits, clock) = (limits(), clock());
        let subject = subject(&limits);
        let held = subject.slot().unwrap();
        let releases = thread::spawn(move || drop(held));
        let mut waiting = acquire(&subject, &clock);
        let early = poll(&mut waiting);
        releases.join().unwrap();
        assert!(early.is_some() || poll(&mut waiting).is_some(), "the slot is free and nobody has it");
    });
}

#[test]
fn a_slot_handed_to_someone_who_leaves_goes_on() {
    model(|| {
        let (limits, clock) = (limits(), clock());
        let subject = subject(&limits);
        let held = subject.slot().unwrap();
        let (mut first, mut second) = (acquire(&subject, &clock), acquire(&subject, &clock));
        assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
        let releases = thread::spawn(move || drop(held));
        let cancels = thread::spawn(move || drop(first));
        releases.join().unwrap();
        cancels.join().unwrap();
        assert!(poll(&mut second).is_some(), "the slot is free and nobody has it");
        drop(second);
        assert!(subject.slot().is_ok());
    });
}
