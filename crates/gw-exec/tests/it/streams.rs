//! Streams: held back until something counts, committed afterwards, settled however they end.

use std::{pin::Pin, time::Duration};

use futures_util::StreamExt;
use gw_exec::{Failure, Relay, RelayItem, Reply, StreamBody};
use gw_limits::{BudgetConfig, TenantLimitsConfig, Window};
use gw_types::{ErrorKind as K, FrameFacts, GatewayError, Money, Outcome, StreamItem, TokenCount};

use crate::support::{
    House, MockProvider, Plan, content, deployment, never, provider, role, stalling, stop, stream, streaming,
    terminal, usage, used,
};

fn error(kind: K) -> GatewayError {
    GatewayError::new(kind, "scripted")
}

fn in_band(kind: K) -> StreamItem {
    StreamItem {
        facts: FrameFacts { error: Some(error(kind)), ..FrameFacts::default() },
        ..StreamItem::default()
    }
}

/// A provider that streams these items, once.
pub(crate) fn streams(items: Vec<Result<StreamItem, GatewayError>>) -> MockProvider {
    let items = std::sync::Mutex::new(Some(items));
    provider(1, move || Ok(stream(items.lock().unwrap().take().unwrap())))
}

fn pair(first: MockProvider, second: MockProvider) -> House {
    Plan::new(vec![(deployment("up1"), first), (deployment("up2"), second)]).build()
}

pub(crate) fn relay(reply: Result<Reply<StreamBody>, Failure>) -> Pin<Box<Relay>> {
    match reply.unwrap().body {
        StreamBody::Relay(relay) => Pin::new(relay),
        StreamBody::Completion(_) | StreamBody::Kept(_) => panic!("nothing is remembered here"),
    }
}

/// Reads to the end: the bytes joined, and how it ended.
pub(crate) async fn read(mut relay: Pin<Box<Relay>>) -> (String, RelayItem) {
    let mut text = String::new();
    loop {
        match relay.next().await.expect("an ending comes before the end") {
            RelayItem::Bytes(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
            ending => {
                assert!(relay.next().await.is_none());
                return (text, ending);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_stream_is_relayed_and_settled_exactly() {
    let items = vec![
        Ok(role()),
        Ok(content("Hel")),
        Ok(content("lo")),
        Ok(stop()),
        Ok(used(usage())),
        Ok(terminal()),
    ];
    let house = pair(streams(items), never());
    let (text, ending) = read(relay(house.ask_stream(streaming()).await)).await;
    assert_eq!(text, "role;Hellostop;");
    assert!(matches!(ending, RelayItem::Done));
    let record = house.only_record();
    assert_eq!((record.outcome, record.usage, record.cost), (Outcome::Ok, usage(), Money::from_micros(67)));
}

#[tokio::test(start_paused = true)]
async fn the_record_is_there_before_the_last_item() {
    let house = pair(streams(vec![Ok(content("a")), Ok(stop()), Ok(terminal())]), never());
    let mut relay = relay(house.ask_stream(streaming()).await);
    while !matches!(relay.next().await.unwrap(), RelayItem::Done) {}
    assert_eq!(house.only_record().outcome, Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn before_content_an_error_falls_over_and_the_client_sees_one_answer() {
    for first in [
        vec![Ok(role()), Err(error(K::Transport))],
        vec![Ok(role()), Ok(in_band(K::ProviderRateLimited))],
        vec![Ok(role())],
    ] {
        let house = pair(streams(first), streams(vec![Ok(content("42")), Ok(stop()), Ok(terminal())]));
        let reply = house.ask_stream(streaming()).await;
        assert_eq!(reply.as_ref().unwrap().head.attempts, 2);
        assert_eq!(read(relay(reply)).await.0, "42stop;");
        assert_eq!(house.only_record().outcome, Outcome::Ok);
    }
}

#[tokio::test(start_paused = true)]
async fn in_band_upstream_error_on_http_200() {
    let house = pair(streams(vec![Ok(in_band(K::InvalidRequest))]), never());
    let failure = house.ask_stream(streaming()).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.attempts), (K::InvalidRequest, 1));
}

#[tokio::test(start_paused = true)]
async fn no_second_answer_after_content_was_sent() {
    for (last, kind) in [
        (Some(Err(error(K::Transport))), K::Transport),
        (Some(Ok(in_band(K::ProviderUnavailable))), K::ProviderUnavailable),
        (None, K::StreamInterrupted),
    ] {
        let items = [Ok(content("The answer is "))].into_iter().chain(last).collect();
        let house = pair(streams(items), never());
        let (text, ending) = read(relay(house.ask_stream(streaming()).await)).await;
        assert_eq!(text, "The answer is ");
        assert!(matches!(ending, RelayItem::Failed(error) if error.kind() == kind));
        let record = house.only_record();
        assert_eq!((record.outcome, record.error, record.attempts.len()), (Outcome::Failed, Some(kind), 1));
        // 14 bytes are 4 tokens by the estimate; 40 bytes of prompt are 10, and 7 for its frame.
        assert!(record.usage.estimated);
        assert_eq!((record.usage.input, record.usage.output), (TokenCount::new(17), TokenCount::new(4)));
    }
}

#[tokio::test(start_paused = true)]
async fn stream_cut_by_the_client_is_still_charged() {
    let cut_after = async |items: Vec<StreamItem>, reads: usize| {
        let items = std::sync::Mutex::new(Some(items));
        let house = pair(provider(1, move || Ok(stalling(items.lock().unwrap().take().unwrap()))), never());
        let mut relay = relay(house.ask_stream(streaming()).await);
        for _ in 0..reads {
            relay.next().await.unwrap();
        }
        let waited = tokio::time::timeout(Duration::from_millis(10), relay.next()).await;
        assert!(waited.is_err());
        drop(relay);
        house.only_record()
    };
    let words = || (0..5).map(|_| content("word")).collect::<Vec<_>>();
    // No usage seen: input and what was relayed, by the estimate.
    let record = cut_after(words(), 5).await;
    assert_eq!((record.usage.output, record.usage.estimated), (TokenCount::new(5), true));
    assert_eq!((record.outcome, record.cost), (Outcome::Cancelled, Money::from_micros(17 + 2 * 5)));
    // Usage was reported: it is never replaced by an estimate, not even where it is zero.
    for reported in [usage(), gw_types::Usage::default()] {
        let items = words().into_iter().chain([used(reported)]).collect();
        let record = cut_after(items, 5).await;
        assert_eq!((record.usage, record.outcome), (reported, Outcome::Cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stalls_ends_with_its_idle_limit_and_keep_alives_do_not_help() {
    let house = pair(provider(1, || Ok(stalling(vec![content("a"), role(), role()]))), never());
    let mut request = streaming();
    request.context.deadline = Some(Duration::from_secs(60));
    let began = tokio::time::Instant::now();
    let (_, ending) = read(relay(house.ask_stream(request).await)).await;
    assert!(matches!(ending, RelayItem::Failed(error) if error.kind() == K::ProviderTimeout));
    assert!((10..11).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn i14_a_stream_ends_at_the_deadline() {
    let house = pair(provider(1, || Ok(stalling(vec![content("a")]))), never());
    let began = tokio::time::Instant::now();
    let (_, ending) = read(relay(house.ask_stream(streaming()).await)).await;
    assert!(matches!(ending, RelayItem::Failed(error) if error.kind() == K::DeadlineExceeded));
    assert!(began.elapsed() - Duration::from_secs(3) <= Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_stream_past_its_reserved_cap_is_ended_and_settled_within_it() {
    let endless = (0..500).map(|_| Ok(content("word"))).collect();
    let mut plan = Plan::new(vec![(deployment("up1"), streams(endless))]);
    plan.limits = TenantLimitsConfig {
        budget: Some(BudgetConfig { limit: Money::from_micros(10_000), window: Window::Day }),
        ..TenantLimitsConfig::default()
    };
    let house = plan.build();
    let (text, ending) = read(relay(house.ask_stream(streaming()).await)).await;
    assert!(matches!(ending, RelayItem::Capped { .. }));
    // The bound is 100 tokens; the first event beyond it ends the stream and is not delivered.
    assert_eq!(text.len(), 100 * "word".len());
    let record = house.only_record();
    assert_eq!((record.outcome, record.usage.output), (Outcome::Capped, TokenCount::new(100)));
    assert_eq!((record.cost, record.overrun), (Money::from_micros(17 + 2 * 100), Money::ZERO));
    assert!(record.cost <= record.reserved);
}
