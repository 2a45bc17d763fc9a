//! Ends of HTTP/2 connections and streams: only what was not processed is sent again.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use gw_adapters::TransportConfig;
use gw_testkit::{FaultProxy, Link};
use gw_types::{CompleteAnswer, ErrorKind, GatewayError};

use crate::{
    frames::{Frames, INTERNAL_ERROR, REFUSED_STREAM, Say},
    setup::{ANSWER, Setup, limits},
};

fn http2(url: &str) -> Setup {
    Setup::limited(url, TransportConfig { http2: true, ..limits() })
}

/// Opens the connection with a first call, then makes three at once.
async fn three_on_a_kept_connection(frames: &Frames) -> Vec<Result<CompleteAnswer, GatewayError>> {
    let setup = http2(&frames.url());
    assert!(setup.plain().await.is_ok());
    let answers = join_all((0..3).map(|_| setup.plain())).await;
    assert_eq!(setup.in_use(), 0);
    answers
}

#[tokio::test]
async fn calls_above_the_last_processed_one_go_to_another_connection_and_no_other() {
    // Streams 3, 5 and 7 are in flight; 3 and 5 are processed.
    let frames = Frames::start(|connection, stream| match (connection, stream) {
        (0, 3 | 5) => vec![],
        (0, 7) => vec![Say::GoAway { last: 5 }, Say::Answer(5), Say::Answer(3)],
        _ => vec![Say::Answer(stream)],
    })
    .await;
    for answer in three_on_a_kept_connection(&frames).await {
        assert_eq!(answer.unwrap().raw, ANSWER.as_bytes());
    }
    assert_eq!(frames.requests(), [(0, 1), (0, 3), (0, 5), (0, 7), (1, 1)]);
}

#[tokio::test]
async fn a_processed_call_whose_answer_never_comes_is_ambiguous_and_not_repeated() {
    let frames = Frames::start(|connection, stream| match (connection, stream) {
        (0, 3 | 5) => vec![],
        (0, 7) => vec![Say::GoAway { last: 5 }, Say::Close],
        _ => vec![Say::Answer(stream)],
    })
    .await;
    let answers = three_on_a_kept_connection(&frames).await;
    let lost: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert_eq!(lost.len(), 2);
    assert!(lost.iter().all(|error| error.kind() == ErrorKind::Transport && error.is_ambiguous()));
    assert_eq!(frames.requests(), [(0, 1), (0, 3), (0, 5), (0, 7), (1, 1)]);
}

#[tokio::test]
async fn a_connection_that_was_ended_between_two_calls_is_replaced() {
    let frames = Frames::start(|connection, stream| match connection {
        0 => vec![Say::Answer(stream), Say::GoAway { last: stream }],
        _ => vec![Say::Answer(stream)],
    })
    .await;
    let setup = http2(&frames.url());
    for _ in 0..3 {
        assert!(setup.plain().await.is_ok());
    }
    assert_eq!(frames.requests(), [(0, 1), (1, 1), (1, 3)]);
}

#[tokio::test]
async fn a_new_connection_that_processes_nothing_is_a_failure_and_no_loop() {
    let frames = Frames::start(|_, _| vec![Say::GoAway { last: 0 }]).await;
    let error = http2(&frames.url()).plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, false));
    assert_eq!(frames.requests(), [(0, 1)]);
}

#[tokio::test]
async fn a_refused_stream_was_not_processed_and_any_other_reset_may_have_been() {
    for (code, is_ambiguous) in [(REFUSED_STREAM, false), (INTERNAL_ERROR, true)] {
        let frames = Frames::start(move |_, stream| match stream {
            1 => vec![Say::Answer(1)],
            _ => vec![Say::Reset(stream, code)],
        })
        .await;
        let setup = http2(&frames.url());
        assert!(setup.plain().await.is_ok());
        let error = setup.plain().await.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, is_ambiguous));
        assert_eq!(frames.requests().len(), 2, "the pipeline owns retries");
    }
}

#[tokio::test]
async fn a_shared_connection_whose_peer_has_vanished_takes_no_second_call() {
    let frames = Frames::start(|_, stream| vec![Say::Answer(stream)]).await;
    let proxy = FaultProxy::start(frames.addr).await.unwrap();
    let limits = TransportConfig { http2: true, head_timeout: Duration::from_millis(100), ..limits() };
    let setup = Arc::new(Setup::limited(&format!("http://{}/v1", proxy.addr()), limits));
    assert!(setup.plain().await.is_ok());
    proxy.set_open(Link::Vanishes);
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::ProviderTimeout, true));
    assert!(setup.plain().await.is_ok());
    assert_eq!((frames.requests(), proxy.snapshot().accepted), (vec![(0, 1), (1, 1)], 2));
    // Its last call has ended, and so the sweep closes it.
    assert!(proxy.wait_for(|seen| seen.open == 1).await);
}
