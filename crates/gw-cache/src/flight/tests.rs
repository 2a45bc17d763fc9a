//! Flights, turn by turn.

use std::task::{Context, Poll, Waker};

use futures_test::task::new_count_waker;
use gw_types::{DeploymentName, Operation, RouteName, TenantId};

use super::{Abandoned, FlightConfig, Flights, Joined, Next, Participant, Upstream};
use crate::{CacheKey, KeyParts};

pub(crate) fn key(tenant: &str) -> CacheKey {
    let parts = KeyParts {
        tenant: &TenantId::new(tenant).unwrap(),
        route: &RouteName::new("r").unwrap(),
        primary: &DeploymentName::new("d").unwrap(),
        model_version: None,
        operation: Operation::Chat,
        policy_digest: "",
    };
    CacheKey::new(&parts, b"{}").unwrap()
}

type Calls = Flights<u32, &'static str>;

fn lead(flights: &Calls, key: &CacheKey) -> (Upstream<u32, &'static str>, Participant<u32, &'static str>) {
    match flights.join(key) {
        Joined::Lead(upstream, participant) => (upstream, participant),
        Joined::Follow(_) => panic!("somebody leads"),
    }
}

fn follow(flights: &Calls, key: &CacheKey) -> Participant<u32, &'static str> {
    match flights.join(key) {
        Joined::Lead(..) => panic!("nobody leads"),
        Joined::Follow(participant) => participant,
    }
}

fn next(participant: &mut Participant<u32, &'static str>) -> Option<Next<u32, &'static str>> {
    match participant.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(next) => Some(next),
        Poll::Pending => None,
    }
}

fn ready(upstream: &mut Upstream<u32, &'static str>) -> Option<Result<(), Abandoned>> {
    match upstream.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => Some(ready),
        Poll::Pending => None,
    }
}

fn flights(items_max: usize) -> Calls {
    Flights::new(FlightConfig { items_max, ..FlightConfig::default() })
}

#[test]
fn everybody_reads_the_whole_answer_of_one_call() {
    let (flights, key) = (flights(100), key("t"));
    let (mut upstream, mut leader) = lead(&flights, &key);
    upstream.push(1, 1);
    assert_eq!(next(&mut leader), Some(Next::Item(1)));
    let mut all: Vec<_> = (0..49).map(|_| follow(&flights, &key)).collect();
    upstream.push(2, 1);
    upstream.complete();
    assert!(flights.is_empty());
    for participant in &mut all {
        let read = [next(participant), next(participant), next(participant)];
        assert_eq!(read, [Some(Next::Item(1)), Some(Next::Item(2)), Some(Next::Complete)]);
    }
    assert_eq!([next(&mut leader), next(&mut leader)], [Some(Next::Item(2)), Some(Next::Complete)]);
}

#[test]
fn who_drives_and_reads_in_one_turn_wakes_nobody_but_others() {
    let (flights, key) = (flights(9), key("t"));
    let (mut upstream, mut leader) = lead(&flights, &key);
    let mut other = follow(&flights, &key);
    let [(own, own_wakes), (others, others_wakes)] = [new_count_waker(), new_count_waker()];
    let [mut cx, mut other_cx] = [&own, &others].map(Context::from_waker);
    assert!(leader.poll_next(&mut cx).is_pending() && other.poll_next(&mut other_cx).is_pending());
    assert!(upstream.poll_abandoned(&mut cx).is_pending());
    leader.hush();
    upstream.push(1, 1);
    upstream.complete();
    assert_eq!([next(&mut leader), next(&mut other)], [Some(Next::Item(1)), Some(Next::Item(1))]);
    drop(leader);
    assert_eq!([own_wakes.get(), others_wakes.get()], [0, 1]);
}

#[test]
fn i09_tenants_never_share_a_call() {
    let flights = flights(9);
    let _one = lead(&flights, &key("one"));
    let _other = lead(&flights, &key("other"));
    assert_eq!(flights.len(), 2);
}

#[test]
fn the_leader_leaves_and_the_others_go_on() {
    let (flights, key) = (flights(9), key("t"));
    let (mut upstream, leader) = lead(&flights, &key);
    let mut follower = follow(&flights, &key);
    drop(leader);
    assert_eq!(ready(&mut upstream), Some(Ok(())));
    upstream.push(1, 1);
    assert_eq!([next(&mut follower), next(&mut follower)], [Some(Next::Item(1)), None]);
    drop(follower);
    // Whoever comes before the call is closed takes it over.
    let mut late = follow(&flights, &key);
    assert_eq!(ready(&mut upstream), Some(Ok(())));
    assert_eq!(next(&mut late), Some(Next::Item(1)));
    drop(late);
    assert_eq!(ready(&mut upstream), Some(Err(Abandoned)));
    let (_second, _) = lead(&flights, &key);
    drop(upstream);
    assert_eq!(flights.len(), 1);
}

#[test]
fn a_failure_is_for_the_leader_and_for_those_who_have_sent_content() {
    let (flights, key) = (flights(9), key("t"));
    let (mut upstream, mut leader) = lead(&flights, &key);
    let (mut sent, mut read, mut fresh) =
        (follow(&flights, &key), follow(&flights, &key), follow(&flights, &key));
    upstream.push(1, 1);
    assert_eq!([next(&mut sent), next(&mut read)], [Some(Next::Item(1)), Some(Next::Item(1))]);
    sent.commit();
    upstream.push(2, 1);
    upstream.fail("broken");
    assert_eq!([next(&mut sent), next(&mut sent)], [Some(Next::Item(2)), Some(Next::Failed("broken"))]);
    assert_eq!([next(&mut read), next(&mut fresh)], [Some(Next::Again), Some(Next::Again)]);
    assert_eq!([next(&mut leader), next(&mut leader)], [Some(Next::Item(1)), Some(Next::Item(2))]);
    assert_eq!(next(&mut leader), Some(Next::Failed("broken")));
    // One of them leads the next call, the other follows it.
    let (_upstream, participant) = lead(&flights, &key);
    assert!(participant.leads() && !follow(&flights, &key).leads());
}

#[test]
fn a_call_that_nobody_makes_is_lost_for_all() {
    let (flights, key) = (flights(9), key("t"));
    let (upstream, mut leader) = lead(&flights, &key);
    let mut follower = follow(&flights, &key);
    drop(upstream);
    assert_eq!([next(&mut leader), next(&mut follower)], [Some(Next::Lost), Some(Next::Again)]);
    assert!(flights.is_empty());
}

#[test]
fn a_slow_follower_is_dropped_and_never_holds_the_others_up() {
    let (flights, key) = (flights(2), key("t"));
    let (mut upstream, mut leader) = lead(&flights, &key);
    let mut slow = follow(&flights, &key);
    for n in 0..5 {
        assert_eq!(ready(&mut upstream), Some(Ok(())));
        upstream.push(n, 1);
        assert_eq!(next(&mut leader), Some(Next::Item(n)));
    }
    assert_eq!(next(&mut slow), Some(Next::TooSlow));
    // Nobody can follow from the middle: who comes waits for the end, and no second call is made.
    let mut late = follow(&flights, &key);
    assert_eq!(next(&mut late), None);
    upstream.complete();
    assert_eq!([next(&mut late), next(&mut leader)], [Some(Next::Again), Some(Next::Complete)]);
}

#[test]
fn the_upstream_waits_for_the_fastest() {
    let (flights, key) = (flights(2), key("t"));
    let (mut upstream, mut leader) = lead(&flights, &key);
    for n in 0..2 {
        assert_eq!(ready(&mut upstream), Some(Ok(())));
        upstream.push(n, 1);
    }
    assert_eq!(ready(&mut upstream), None);
    assert_eq!(next(&mut leader), Some(Next::Item(0)));
    assert_eq!(ready(&mut upstream), Some(Ok(())));
    upstream.push(2, 1);
    assert_eq!([next(&mut leader), next(&mut leader)], [Some(Next::Item(1)), Some(Next::Item(2))]);
}

#[test]
fn the_buffer_is_bounded_in_bytes() {
    let flights: Calls = Flights::new(FlightConfig { bytes_max: 10, ..FlightConfig::default() });
    let key = key("t");
    let (mut upstream, mut leader) = lead(&flights, &key);
    upstream.push(1, 6);
    upstream.push(2, 6);
    assert_eq!(next(&mut leader), Some(Next::TooSlow));
    let mut late = follow(&flights, &key);
    upstream.push(3, 100);
    assert_eq!(next(&mut late), None);
}
