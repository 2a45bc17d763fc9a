//! Answers that wait for their records: until the deadline, and no longer.

use std::time::Duration;

use gw_exec::RelayItem;
use gw_types::{ErrorKind as K, GatewayError, Outcome};
use tokio::time::Instant;

use crate::{
    streams::{read, relay, streams},
    support::{
        House, MockProvider, Plan, answer, content, deployment, fails, provider, request, side_effecting,
        stop, streaming, terminal,
    },
};

/// A gateway over one provider, and a ledger that takes records and stores none.
fn house(provider: MockProvider) -> House {
    let house = Plan::new(vec![(deployment("up1"), provider)]).build();
    house.stall();
    house
}

fn check_late(began: Instant, error: &GatewayError) {
    assert_eq!((error.kind(), began.elapsed()), (K::Overloaded, Duration::from_secs(3)));
    assert!(error.to_string().contains("did not store the record"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn i14_an_answer_waits_for_its_record_until_its_deadline() {
    let house = house(provider(1, || Ok(answer())));
    let began = Instant::now();
    let failure = house.ask(request()).await.unwrap_err();
    check_late(began, &failure.error);
    assert!(!failure.error.is_ambiguous());
    // The record says how the call ended, and is stored when the ledger can.
    assert_eq!(house.only_record().outcome, Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn i14_a_stream_waits_for_its_record_until_its_deadline() {
    let house = house(streams(vec![Ok(content("one")), Ok(stop()), Ok(terminal())]));
    let began = Instant::now();
    let (text, ending) = read(relay(house.ask_stream(streaming()).await)).await;
    assert!(text.contains("one"));
    match ending {
        RelayItem::Failed(error) => check_late(began, &error),
        ending => panic!("{ending:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_have_changed_something_is_told_so_where_the_record_is_late() {
    let failure = house(provider(1, || Ok(answer()))).ask(side_effecting()).await.unwrap_err();
    assert!(failure.error.is_ambiguous() && failure.error.attempt().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_as_it_is_where_its_record_is_late() {
    let refused = GatewayError::new(K::ContentFiltered, "scripted");
    let house = house(fails(1, refused));
    let began = Instant::now();
    assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::ContentFiltered);
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn what_fails_at_the_deadline_has_a_moment_for_its_record() {
    let plan = Plan::new(vec![(deployment("up1"), crate::support::never())]);
    let hanging = std::sync::Arc::new(crate::support::Hanging::default());
    let house = plan.build_with(vec![gw_exec::Target::new(std::sync::Arc::new(deployment("up1")), hanging)]);
    house.stall();
    let began = Instant::now();
    assert_eq!(house.ask(request()).await.unwrap_err().error.kind(), K::DeadlineExceeded);
    assert_eq!(began.elapsed(), Duration::from_millis(3_025));
}
