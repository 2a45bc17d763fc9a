//! What networks do to connections of HTTP/1.1: peers that vanish, ends and resets between calls and within them.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::join_all};
use gw_adapters::TransportConfig;
use gw_testkit::{FaultProxy, Link};
use gw_types::ErrorKind;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    server::{Act, STREAM_HEAD, Server, chunk, json},
    setup::{ANSWER, Setup, limits},
};

const SHORT: Duration = Duration::from_millis(100);

/// A provider that answers, behind a proxy.
async fn behind_proxy(act: Act, limits: TransportConfig) -> (Server, FaultProxy, Arc<Setup>) {
    let server = Server::always(act).await;
    let proxy = FaultProxy::start(server.addr).await.unwrap();
    let setup = Setup::limited(&format!("http://{}/v1", proxy.addr()), limits);
    (server, proxy, Arc::new(setup))
}

fn answers() -> Act {
    Act::Answer(json("200 OK", ANSWER))
}

/// Leaves so many kept connections.
async fn keep(setup: &Setup, count: usize) {
    while (setup.provider.snapshot().connections_idle as usize) < count {
        for answer in join_all((0..count).map(|_| setup.plain())).await {
            answer.unwrap();
        }
    }
}

#[tokio::test]
async fn a_peer_that_has_vanished_costs_one_call_and_not_one_a_connection() {
    let (_server, proxy, setup) =
        behind_proxy(answers(), TransportConfig { head_timeout: SHORT, ..limits() }).await;
    keep(&setup, 4).await;
    proxy.set_open(Link::Vanishes);
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::ProviderTimeout, true));
    assert_eq!((setup.in_use(), setup.provider.snapshot().connections_idle), (0, 0));
    assert!(setup.plain().await.is_ok());
    assert_eq!(proxy.snapshot().accepted, 5);
    // Nothing half open is left behind.
    assert!(proxy.wait_for(|seen| seen.open == 1).await);
}

/// Asks a peer that has vanished, and gives up after so long.
async fn gives_up_after(waits: Duration) -> u32 {
    let (_server, proxy, setup) = behind_proxy(answers(), limits()).await;
    keep(&setup, 3).await;
    proxy.set_open(Link::Vanishes);
    let mut call = Box::pin(setup.plain());
    for _ in 0..100 {
        assert!(call.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(waits).await;
    drop(call);
    tokio::time::resume();
    setup.provider.snapshot().connections_idle
}

#[tokio::test]
async fn a_caller_that_gives_up_on_a_silent_peer_takes_the_connections_of_its_age_with_it() {
    assert_eq!(gives_up_after(Duration::from_secs(2)).await, 0);
}

#[tokio::test]
async fn a_caller_that_leaves_at_once_says_nothing_about_the_others() {
    assert_eq!(gives_up_after(Duration::ZERO).await, 2);
}

#[tokio::test]
async fn a_call_that_waits_for_the_place_of_a_vanished_one_gets_it() {
    let limits = TransportConfig { head_timeout: SHORT, max_connections: 1, ..limits() };
    let (server, proxy, setup) = behind_proxy(answers(), limits).await;
    keep(&setup, 1).await;
    proxy.set_open(Link::Vanishes);
    let (one, two, three) = tokio::join!(setup.plain(), setup.plain(), setup.plain());
    assert_eq!(one.unwrap_err().kind(), ErrorKind::ProviderTimeout);
    assert!(two.is_ok() && three.is_ok());
    assert_eq!((server.requests().len(), proxy.snapshot().accepted, setup.in_use()), (3, 2, 0));
}

#[tokio::test]
async fn a_stream_whose_peer_vanishes_ends_within_its_idle_limit() {
    let event = r#"data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let act = Act::AnswerThenSilence(format!("{STREAM_HEAD}{}", chunk(&format!("{event}\n\n"))));
    let (_server, proxy, setup) =
        behind_proxy(act, TransportConfig { read_idle_timeout: SHORT, ..limits() }).await;
    let mut answer = setup.stream().await.unwrap();
    assert!(answer.items.next().await.unwrap().is_ok());
    proxy.set_open(Link::Vanishes);
    let error = answer.items.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::ProviderTimeout, true));
    assert_eq!(setup.in_use(), 0);
    assert!(proxy.wait_for(|seen| seen.open == 0).await);
}

#[tokio::test]
async fn an_answer_lost_to_a_reset_is_ambiguous_and_the_call_not_repeated() {
    let (server, proxy, setup) = behind_proxy(answers(), limits()).await;
    keep(&setup, 1).await;
    proxy.set_open(Link::LosesAnswer);
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true));
    assert_eq!((server.requests().len(), setup.in_use()), (2, 0));
    assert!(setup.plain().await.is_ok());
}

#[tokio::test]
async fn connections_that_end_between_two_calls_cost_nothing() {
    for end in [Link::Closes, Link::Resets] {
        let (server, proxy, setup) = behind_proxy(answers(), limits()).await;
        keep(&setup, 4).await;
        let before = server.requests().len();
        proxy.set_open(end);
        assert!(proxy.wait_for(|seen| seen.open == 0).await);
        // The sweep hears of each end without a call.
        while setup.provider.snapshot().connections_idle > 0 {
            tokio::task::yield_now().await;
        }
        assert!(setup.plain().await.is_ok());
        assert_eq!((server.requests().len(), proxy.snapshot().accepted), (before + 1, 5));
    }
}

/// Takes one request from a socket and answers it.
async fn answer_one(listener: &TcpListener) -> TcpStream {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"}]}") {
        let mut piece = [0; 4_096];
        let count = socket.read(&mut piece).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..count]);
    }
    socket.write_all(json("200 OK", ANSWER).as_bytes()).await.unwrap();
    socket
}

#[tokio::test]
async fn a_reset_that_no_byte_preceded_sends_the_call_to_another_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let setup = Setup::at(&format!("http://{}/v1", listener.local_addr().unwrap()));
    let (socket, answered) = tokio::join!(answer_one(&listener), setup.plain());
    answered.unwrap();
    assert_eq!(setup.provider.snapshot().connections_idle, 1);
    socket.set_zero_linger().unwrap();
    drop(socket);
    // No task has run since, so gw learns of the reset from its own write.
    let (_socket, answered) = tokio::join!(answer_one(&listener), setup.plain());
    assert_eq!(answered.unwrap().raw, ANSWER.as_bytes());
}

#[tokio::test]
async fn a_new_connection_that_is_reset_at_once_is_a_failure_and_no_loop() {
    let (server, proxy, setup) = behind_proxy(answers(), limits()).await;
    proxy.set_fresh(Link::Resets);
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), proxy.snapshot().accepted), (ErrorKind::Transport, 1));
    assert_eq!((server.requests().len(), setup.in_use()), (0, 0));
    proxy.set_fresh(Link::Forwards);
    assert!(setup.plain().await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_want_more_connections_than_there_are_all_end_when_the_network_fails() {
    let (gate, behind) = watch::channel(true);
    let act = Act::AnswerBehind(behind, json("200 OK", ANSWER));
    // With ten times the room: a call that is only slow would cost a connection too.
    let limits = TransportConfig { head_timeout: SHORT * 10, ..limits() };
    let (server, proxy, setup) = behind_proxy(act, limits).await;
    for fault in [Link::Resets, Link::Vanishes, Link::Closes, Link::LosesAnswer] {
        // The network fails while every connection there is has a call: a kept one could lose a later answer as well.
        server.wait_for(|seen| seen.open <= 4).await;
        gate.send_replace(false);
        let before = server.requests().len();
        let calls = (0..40).map(|_| {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move { setup.plain().await })
        });
        let calls: Vec<_> = calls.collect();
        server.wait_for_requests(before + 4).await;
        proxy.set_open(fault);
        gate.send_replace(true);
        for ended in join_all(calls).await {
            let kind = ended.unwrap().err().map(|error| error.kind());
            assert!(
                matches!(kind, None | Some(ErrorKind::Transport | ErrorKind::ProviderTimeout)),
                "{kind:?}"
            );
        }
        assert_eq!(setup.in_use(), 0);
        assert!(setup.plain().await.is_ok());
    }
    assert!(server.sockets().most_open <= 4 + 4, "{:?}", server.sockets());
}
