//! The end of a server.

use std::time::Duration;

use gw_testkit::{FakeStream, Fault, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{ask, ask_stream, chat_request, chunk, connect, read_until, settle, start_held};

#[tokio::test]
async fn reload_and_drain_leave_streams_and_counters_alone_the_phases_of_a_drain() {
    let (mut running, provider) = start_held(
        FakeStream::new([
            chunk("first"),
            Step::WaitForGate,
            Step::event(
                r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            ),
            Step::event("[DONE]"),
        ])
        .into(),
    )
    .await;
    let mut streaming = connect(running.data).await;
    streaming.write_all(chat_request("", &ask_stream("held")).as_bytes()).await.unwrap();
    read_until(&mut streaming, "first").await;

    running.shut_down().await;
    assert_eq!(running.admin("/readyz").await.status, 503);
    assert_eq!(running.admin("/healthz").await.status, 200);
    assert_eq!(running.chat(&ask("echo")).await.status, 200);

    running.clock.advance(Duration::from_secs(5));
    settle().await;
    let refused = running.chat(&ask("echo")).await;
    assert_eq!((refused.status, &*refused.error_type()), (503, "server_error"));
    assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));

    provider.open_gate();
    let rest = read_until(&mut streaming, "[DONE]").await;
    assert!(!rest.contains(r#""error""#), "{rest}");
    running.ended().await;
}

#[tokio::test]
async fn reload_and_drain_leave_streams_and_counters_alone_what_is_left_gets_an_in_band_error() {
    let (mut running, provider) =
        start_held(FakeStream::new([chunk("first"), Step::WaitForGate, chunk("second")]).into()).await;
    let mut streaming = connect(running.data).await;
    streaming.write_all(chat_request("", &ask_stream("held")).as_bytes()).await.unwrap();
    read_until(&mut streaming, "first").await;
    let mut plain = connect(running.data).await;
    plain.write_all(chat_request("", &ask("slow")).as_bytes()).await.unwrap();
    settle().await;

    running.shut_down().await;
    // The slow model is slower than the drain only if the drain ends at once.
    running.clock.advance(Duration::from_millis(1));
    settle().await;
    let open = running.admin("/admin/v1/deployments").await.json();
    assert!(open.to_string().contains(r#""in_use":1"#), "{open}");
    running.clock.advance(Duration::from_secs(20));
    let rest = read_until(&mut streaming, "\"error\"").await;
    let mut end = Vec::new();
    streaming.read_to_end(&mut end).await.unwrap();
    let rest = rest + &String::from_utf8(end).unwrap();
    assert!(rest.contains("shutting down") && !rest.contains("[DONE]"), "{rest}");
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    drop(plain);
    running.ended().await;
    drop(provider);
}

#[tokio::test]
async fn a_plain_request_in_flight_at_the_end_gets_503() {
    let (mut running, provider) = start_held(Fault::HangBeforeHead).await;
    let mut plain = connect(running.data).await;
    plain.write_all(chat_request("", &ask("held")).as_bytes()).await.unwrap();
    while provider.calls().is_empty() {
        settle().await;
    }
    running.shut_down().await;
    running.clock.advance(Duration::from_secs(5));
    settle().await;
    running.clock.advance(Duration::from_secs(15));
    let reply = crate::support::read_reply(&mut plain).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    running.ended().await;
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_provider() {
    let (running, provider) =
        start_held(FakeStream::new([chunk("first"), Step::WaitForGate, chunk("second")]).into()).await;
    let mut streaming = connect(running.data).await;
    streaming.write_all(chat_request("", &ask_stream("held")).as_bytes()).await.unwrap();
    read_until(&mut streaming, "first").await;
    drop(streaming);
    let outcome = loop {
        settle().await;
        if let Some(outcome) = running.newest_outcome().await {
            break outcome;
        }
    };
    assert_eq!(outcome, "cancelled");
    drop(provider);
}
