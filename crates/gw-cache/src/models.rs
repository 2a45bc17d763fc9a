//! Models of what threads do to a flight, run by loom over every interleaving up to a bound:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p gw-cache --lib models`, with a target folder of its own.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use loom::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{
    CacheKey,
    flight::{Flights, Joined, Next, Participant, Upstream},
};

/// Switches of threads that the scheduler forces, at most; what blocks switches besides.
const PREEMPTIONS: usize = 3;

type Calls = Flights<u32, &'static str>;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(run);
}

fn flights() -> (Arc<Calls>, CacheKey) {
    (Arc::new(Flights::new(Default::default())), crate::flight::tests::key("t"))
}

fn lead(flights: &Calls, key: &CacheKey) -> (Upstream<u32, &'static str>, Participant<u32, &'static str>) {
    match flights.join(key) {
        Joined::Lead(upstream, participant) => (upstream, participant),
        Joined::Follow(_) => panic!("somebody leads"),
    }
}

/// Remembers that it was woken.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn poll(
    participant: &mut Participant<u32, &'static str>,
    flag: &Arc<Flag>,
) -> Option<Next<u32, &'static str>> {
    let waker = Waker::from(Arc::clone(flag));
    match participant.poll_next(&mut Context::from_waker(&waker)) {
        Poll::Ready(next) => Some(next),
        Poll::Pending => None,
    }
}

fn flag() -> Arc<Flag> {
    Arc::new(Flag(AtomicBool::new(false)))
}

#[test]
fn two_that_come_at_once_make_one_call() {
    model(|| {
        let (flights, key) = flights();
        let (others, their_key) = (Arc::clone(&flights), key.clone());
        let other = thread::spawn(move || others.join(&their_key));
        let here = flights.join(&key);
        let there = other.join().unwrap();
        let leads = |joined: &Joined<_, _>| matches!(joined, Joined::Lead(..));
        assert!(leads(&here) != leads(&there));
        assert_eq!(flights.len(), 1);
    });
}

#[test]
fn who_waits_is_woken() {
    model(|| {
        let (flights, key) = flights();
        let (mut upstream, mut leader) = lead(&flights, &key);
        let flag = flag();
        let pushes = thread::spawn(move || {
            upstream.push(1, 1);
            upstream.complete();
        });
        let early = poll(&mut leader, &flag);
        pushes.join().unwrap();
        assert!(early.is_some() || flag.0.load(Ordering::SeqCst), "waits and nobody wakes it");
        let mut rest: Vec<_> = early.into_iter().collect();
        while rest.last() != Some(&Next::Complete) {
            rest.extend(poll(&mut leader, &flag));
        }
        assert_eq!(rest, [Next::Item(1), Next::Complete]);
        assert!(flights.is_empty());
    });
}

#[test]
fn the_last_to_leave_closes_the_call_or_who_comes_takes_it_over() {
    model(|| {
        let (flights, key) = flights();
        let (mut upstream, leader) = lead(&flights, &key);
        let flag = flag();
        let waker = Waker::from(Arc::clone(&flag));
        let leaves = thread::spawn(move || drop(leader));
        let (others, their_key) = (Arc::clone(&flights), key.clone());
        let joins = thread::spawn(move || others.join(&their_key));
        let early = upstream.poll_abandoned(&mut Context::from_waker(&waker)).is_ready();
        leaves.join().unwrap();
        let joined = joins.join().unwrap();
        let closed = early || upstream.poll_abandoned(&mut Context::from_waker(&waker)).is_ready();
        // Never two calls, and never one that waits for nobody.
        assert_eq!(closed, matches!(joined, Joined::Lead(..)));
        drop(upstream);
        assert_eq!(flights.len(), usize::from(closed));
    });
}

#[test]
fn the_call_is_told_when_the_last_one_leaves() {
    model(|| {
        let (flights, key) = flights();
        let (mut upstream, leader) = lead(&flights, &key);
        let follower = flights.join(&key);
        let flag = flag();
        let waker = Waker::from(Arc::clone(&flag));
        let (one, other) = (thread::spawn(move || drop(leader)), thread::spawn(move || drop(follower)));
        let mut closed = upstream.poll_abandoned(&mut Context::from_waker(&waker)).is_ready();
        one.join().unwrap();
        other.join().unwrap();
        while !closed {
            assert!(flag.0.swap(false, Ordering::SeqCst), "nobody is left and nobody says so");
            closed = upstream.poll_abandoned(&mut Context::from_waker(&waker)).is_ready();
        }
    });
}

#[test]
fn a_failure_sends_a_follower_into_one_new_call() {
    model(|| {
        let (flights, key) = flights();
        let (upstream, leader) = lead(&flights, &key);
        let (others, their_key) = (Arc::clone(&flights), key.clone());
        let fails = thread::spawn(move || upstream.fail("broken"));
        let joins = thread::spawn(move || others.join(&their_key));
        fails.join().unwrap();
        match joins.join().unwrap() {
            Joined::Lead(..) => {}
            Joined::Follow(mut follower) => {
                assert_eq!(poll(&mut follower, &flag()), Some(Next::Again));
                drop(lead(&flights, &key));
            }
        }
        drop(leader);
        assert!(flights.is_empty());
    });
}
