//! Lines: each in its turn, and what a waiter leaves goes to the next.

use std::{
    future::Future,
    num::NonZeroU64,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use gw_limits::{PaceWait, Pacer, Rate, TokenBudget, TokenWait};
use gw_types::{Clock, ErrorKind, ManualClock, MonoTime, TokenCount};
use proptest::{collection::vec, prelude::*};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn clock() -> (ManualClock, Arc<dyn Clock>) {
    let manual = ManualClock::default();
    (manual.clone(), Arc::new(manual))
}

fn per_second(n: u64) -> Rate {
    Rate::new(NonZeroU64::new(n).unwrap(), NonZeroU64::new(1_000_000_000).unwrap())
}

fn pacer(rate: u64) -> Arc<Pacer> {
    Arc::new(Pacer::new(per_second(rate), NonZeroU64::MIN, MonoTime::ZERO))
}

const END: MonoTime = MonoTime::from_nanos(u64::MAX);

#[test]
fn each_goes_at_its_instant() {
    let ((manual, clock), pacer) = (clock(), pacer(3));
    let mut waits: Vec<_> = (0..4).map(|_| pacer.join(&clock, END).unwrap()).collect();
    for nanos in [0, 333_333_334, 666_666_667, 1_000_000_000] {
        if nanos > 0 {
            manual.advance(Duration::from_nanos(nanos - 1 - manual.now().nanos()));
            assert!(waits.iter_mut().all(|wait| poll(wait).is_pending()));
            manual.advance(Duration::from_nanos(1));
        }
        assert!(poll(&mut waits.remove(0)).is_ready());
        assert!(waits.iter_mut().all(|wait| poll(wait).is_pending()));
    }
}

#[test]
fn a_place_beyond_the_deadline_is_refused_at_once() {
    let ((_, clock), pacer) = (clock(), pacer(1));
    let second = MonoTime::from_nanos(1_000_000_000);
    let line: Vec<_> = (0..2).map(|_| pacer.join(&clock, second).unwrap()).collect();
    let refused = pacer.join(&clock, second).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.retry_after()),
        (ErrorKind::Overloaded, Some(Duration::from_secs(2)))
    );
    drop(line);
    assert!(pacer.join(&clock, MonoTime::ZERO).is_ok());
}

#[test]
fn what_is_too_large_is_refused_and_large_ones_are_not_starved() {
    let (_, clock) = clock();
    let budget = Arc::new(TokenBudget::new(TokenCount::new(10)));
    let join = |tokens, deadline| budget.join(TokenCount::new(tokens), &clock, deadline);
    let refused = join(11, END).unwrap_err();
    assert_eq!((refused.kind(), refused.forbids_retry()), (ErrorKind::RateLimited, true));
    let Poll::Ready(Ok(held)) = poll(&mut join(6, END).unwrap()) else { panic!("tokens are free") };
    let (mut large, mut small) = (join(8, END).unwrap(), join(1, END).unwrap());
    assert!(poll(&mut large).is_pending() && poll(&mut small).is_pending());
    assert!(
        matches!(poll(&mut join(1, MonoTime::ZERO).unwrap()), Poll::Ready(Err(error)) if error.kind() == ErrorKind::DeadlineExceeded)
    );
    drop(held);
    let Poll::Ready(Ok(large)) = poll(&mut large) else { panic!("tokens are free") };
    let Poll::Ready(Ok(small)) = poll(&mut small) else { panic!("tokens are free") };
    assert_eq!(budget.in_use(), large.tokens().saturating_add(small.tokens()));
    drop((large, small));
    assert_eq!(budget.in_use(), TokenCount::ZERO);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(u64),
    Cancel(usize),
    Release(usize),
    Forward(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..8).prop_map(Step::Join),
        2 => (0_usize..8).prop_map(Step::Cancel),
        2 => (0_usize..8).prop_map(Step::Release),
        3 => (0_u64..900_000_000).prop_map(Step::Forward),
    ]
}

proptest! {
    #[test]
    fn the_pace_is_kept_in_order_and_no_place_is_lost(rate in 1_u64..8, steps in vec(step(), 1..60)) {
        let ((manual, clock), pacer) = (clock(), pacer(rate));
        let (mut line, mut went, mut joined) = (Vec::<(u64, PaceWait)>::new(), Vec::<(u64, u64)>::new(), 0);
        for step in steps {
            match step {
                Step::Join(_) => {
                    line.push((joined, pacer.join(&clock, END).unwrap()));
                    joined += 1;
                }
                Step::Cancel(at) if at < line.len() => drop(line.remove(at)),
                Step::Forward(nanos) => manual.advance(Duration::from_nanos(nanos)),
                Step::Cancel(_) | Step::Release(_) => {}
            }
            let now = manual.now().nanos();
            // Polled from the back, so that the line itself must keep the order.
            for at in (0..line.len()).rev() {
                if poll(&mut line[at].1).is_ready() {
                    went.push((line.remove(at).0, now));
                }
            }
            // The first of the line goes as soon as the pace allows it, whoever left before.
            let last = went.last().map(|(_, at)| *at);
            let free = last.is_none_or(|last| now * rate / 1_000_000_000 > last * rate / 1_000_000_000);
            prop_assert!(line.is_empty() || !free);
        }
        prop_assert!(went.is_sorted_by_key(|(number, _)| *number));
        for (at, (_, from)) in went.iter().enumerate() {
            for (later, (_, to)) in went.iter().enumerate().skip(at + 1) {
                let minted = to * rate / 1_000_000_000 - from * rate / 1_000_000_000;
                prop_assert!((later - at) as u64 <= minted);
            }
        }
    }

    #[test]
    fn tokens_in_flight_never_pass_the_budget(steps in vec(step(), 1..60)) {
        let (_, clock) = clock();
        let budget = Arc::new(TokenBudget::new(TokenCount::new(10)));
        let (mut line, mut held) = (Vec::<(u64, TokenWait)>::new(), Vec::new());
        for step in steps {
            match step {
                Step::Join(n) => line.push((n, budget.join(TokenCount::new(n), &clock, END).unwrap())),
                Step::Cancel(at) if at < line.len() => drop(line.remove(at)),
                Step::Release(at) if at < held.len() => drop(held.swap_remove(at)),
                Step::Cancel(_) | Step::Release(_) | Step::Forward(_) => {}
            }
            while let Some((_, first)) = line.first_mut() {
                let Poll::Ready(Ok(tokens)) = poll(first) else { break };
                drop(line.remove(0));
                held.push(tokens);
            }
            let in_use: u64 = held.iter().map(|held| held.tokens().get()).sum();
            prop_assert_eq!(budget.in_use().get(), in_use);
            prop_assert!(in_use <= 10);
            prop_assert!(line.first().is_none_or(|(n, _)| in_use + n > 10));
        }
        drop((line, held));
        prop_assert_eq!(budget.in_use(), TokenCount::ZERO);
    }
}
