//! Failures of the connection itself: which kind each is, and whether the call may have taken effect.

use std::time::Duration;

use gw_adapters::TransportConfig;
use gw_types::ErrorKind;
use tokio::net::TcpListener;

use crate::{
    server::{Act, Server, json},
    setup::{ANSWER, PLAN, Setup, limits, request},
};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_refused_connection_is_not_ambiguous() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let setup = Setup::at(&format!("http://{addr}"));
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, false));
    assert_eq!((error.message(), setup.in_use()), ("the provider refused the connection", 0));
}

#[tokio::test]
async fn a_name_without_address_is_not_ambiguous() {
    let error = Setup::at("http://nowhere.invalid/v1").plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, false));
}

#[tokio::test]
async fn a_connection_not_made_in_time_is_not_ambiguous() {
    // TLS towards a server that says nothing: TCP stands, the handshake does not end.
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", server.local_addr().unwrap());
    let setup = Setup::limited(&url, TransportConfig { connect_timeout: SHORT, ..limits() });
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, false));
    assert_eq!(setup.in_use(), 0);
}

#[tokio::test]
async fn no_head_in_time_is_a_timeout() {
    let server = Server::always(Act::Silence).await;
    let setup = Setup::limited(&server.url(), TransportConfig { head_timeout: SHORT, ..limits() });
    for stream in [false, true] {
        let error = setup.call(stream).await.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::ProviderTimeout, true));
        assert_eq!(setup.in_use(), 0);
    }
    server.wait_for(|sockets| sockets.open == 0).await;
}

#[tokio::test]
async fn a_request_not_taken_in_time_is_ambiguous() {
    // Accepts and never reads, so that the socket's buffers fill up.
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let setup = Setup::limited(&url, TransportConfig { write_timeout: SHORT, ..limits() });
    let prepared =
        setup.adapter.prepare(&request(false, &"x".repeat(32 << 20)), &setup.deployment, &PLAN).unwrap();
    let error = setup.adapter.call(prepared).await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true));
    assert_eq!(error.message(), "the provider did not take the request in the time allowed");
}

#[tokio::test]
async fn a_connection_closed_instead_of_an_answer_is_ambiguous() {
    let server = Server::always(Act::AnswerThenClose(String::new())).await;
    let error = Setup::at(&server.url()).plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true));
}

#[tokio::test]
async fn what_is_no_http_is_a_transport_failure() {
    let server = Server::always(Act::AnswerThenSilence("SSH-2.0-x\r\n\r\n".to_owned())).await;
    let error = Setup::at(&server.url()).plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true));
    assert_eq!(error.message(), "the provider's answer is no HTTP");
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_meanwhile_is_replaced() {
    // The server closes after each answer without having said so.
    let server = Server::always(Act::AnswerThenClose(json("200 OK", ANSWER))).await;
    let setup = Setup::at(&server.url());
    for round in 1..=3 {
        assert!(setup.plain().await.is_ok());
        server.wait_for(|sockets| sockets.open == 0).await;
        // The sweep hears of it without a call.
        while setup.provider.snapshot().connections_idle > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.sockets().accepted, round);
    }
}
