//! Connections are capped, kept, and given back on every path.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::join_all};
use gw_adapters::TransportConfig;
use gw_types::ErrorKind;

use crate::{
    server::{Act, STREAM_HEAD, Server, chunk, json},
    setup::{ANSWER, Setup, limits},
};

#[tokio::test]
async fn calls_one_after_another_share_a_connection() {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Setup::at(&server.url());
    for _ in 0..50 {
        setup.plain().await.unwrap();
    }
    let snapshot = setup.provider.snapshot();
    assert_eq!((snapshot.connections_in_use, snapshot.connections_idle, snapshot.connections_max), (0, 1, 4));
    assert_eq!(server.sockets().accepted, 1);
    // With the provider its idle connections go, too.
    drop(setup);
    server.wait_for(|sockets| sockets.open == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_never_exceed_the_cap() {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Arc::new(Setup::at(&server.url()));
    let calls = (0..200).map(|_| {
        let setup = Arc::clone(&setup);
        tokio::spawn(async move { setup.plain().await })
    });
    for done in join_all(calls.collect::<Vec<_>>()).await {
        done.unwrap().unwrap();
    }
    assert!(server.sockets().most_open <= 4, "{:?}", server.sockets());
    assert_eq!((server.requests().len(), setup.in_use()), (200, 0));
}

#[tokio::test]
async fn waiting_too_long_for_a_connection_is_an_overload_of_its_own() {
    let server = Server::always(Act::Silence).await;
    let limits =
        TransportConfig { pool_wait_timeout: Duration::from_millis(50), max_connections: 1, ..limits() };
    let setup = Arc::new(Setup::limited(&server.url(), limits));
    let held = tokio::spawn({
        let setup = Arc::clone(&setup);
        async move { setup.plain().await }
    });
    server.wait_for_requests(1).await;
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.subject()), (ErrorKind::Overloaded, Some("up1")));
    assert!(!error.is_ambiguous());
    assert_eq!(server.sockets().accepted, 1);
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    assert_eq!(setup.in_use(), 0);
    server.wait_for(|sockets| sockets.open == 0).await;
}

/// What the provider does with the calls of one round.
const UNREAD: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 1000000\r\n\r\n";
const NEVER_ENDING: &str = "HTTP/1.1 500 Internal Server Error\r\ntransfer-encoding: chunked\r\n\r\n";

fn round(number: usize) -> Act {
    match number / 20 {
        0 => Act::Endless(UNREAD.to_owned()),
        1 => Act::Endless(format!("{NEVER_ENDING}fffffff\r\n")),
        2 | 4 => Act::Silence,
        3 => Act::AnswerThenSilence(format!("{STREAM_HEAD}{}", chunk(": hello\n\n"))),
        _ => Act::Answer(json("200 OK", ANSWER)),
    }
}

#[tokio::test]
async fn unread_upstream_answers_give_their_connection_back() {
    let server = Server::start(|number, _| round(number)).await;
    let setup = Setup::at(&server.url());
    for _ in 0..20 {
        assert_eq!(setup.call(true).await.unwrap_err().kind(), ErrorKind::ProviderRateLimited);
    }
    for _ in 0..20 {
        assert_eq!(setup.call(true).await.unwrap_err().kind(), ErrorKind::ProviderUnavailable);
    }
    leave_before_the_head(&setup, &server, 41..=60).await;
    for _ in 0..20 {
        let mut answer = setup.stream().await.unwrap();
        assert!(answer.items.next().now_or_never().is_none());
    }
    leave_before_the_head(&setup, &server, 81..=100).await;
    assert_eq!(setup.in_use(), 0);
    let answers = join_all((0..4).map(|_| setup.plain())).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(setup.in_use(), 0);
    // Neither open nor half closed: what is left is what is kept.
    let kept = setup.provider.snapshot().connections_idle as usize;
    server.wait_for(|sockets| sockets.open == kept).await;
}

/// Drops each call once its request was seen: a client that leaves, or the pipeline's timeout.
async fn leave_before_the_head(setup: &Setup, server: &Server, numbers: RangeInclusive<usize>) {
    for number in numbers {
        tokio::select! {
            answered = setup.call(true) => panic!("{answered:?}"),
            () = server.wait_for_requests(number) => {}
        }
    }
}
