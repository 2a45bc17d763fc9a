//! HTTP/2 with prior knowledge.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http2, header::AUTHORIZATION};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::support::{CONFIG, KEY, Running, ask, ask_stream, connect, settle, start};

async fn chat(running: &Running, key: &str, body: String) -> (u16, String) {
    let io = TokioIo::new(connect(running.data).await);
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = Request::post("http://gw/v1/chat/completions")
        .header(AUTHORIZATION, format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    drop(client);
    driver.await.unwrap().unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn http2_answers_as_http1_does() {
    let running = start(CONFIG).await;
    let (status, body) = chat(&running, KEY, ask("echo")).await;
    assert_eq!(status, 200);
    assert!(body.contains("chat.completion"), "{body}");
    let (status, body) = chat(&running, KEY, ask_stream("echo")).await;
    assert_eq!(status, 200);
    assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
}

#[tokio::test]
async fn every_spelling_of_a_route_needs_credentials_over_http2_too() {
    let running = start(CONFIG).await;
    let (status, body) = chat(&running, "unknown", ask("echo")).await;
    assert_eq!(status, 401);
    assert!(body.contains("authentication_error"), "{body}");
}

#[tokio::test]
async fn slow_reader_pushes_back_on_the_upstream_a_stream_without_window_is_given_up() {
    let running = start(CONFIG).await;
    let io = TokioIo::new(connect(running.data).await);
    let (mut client, connection) =
        http2::Builder::new(TokioExecutor::new()).initial_stream_window_size(16).handshake(io).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = Request::post("http://gw/v1/chat/completions")
        .header(AUTHORIZATION, format!("Bearer {KEY}"))
        .body(Full::new(Bytes::from(ask_stream("echo"))))
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    settle().await;
    assert_eq!(running.newest_outcome().await, None);
    running.clock.advance(Duration::from_secs(10));
    settle().await;
    assert_eq!(running.newest_outcome().await.as_deref(), Some("cancelled"));
    assert!(answer.into_body().collect().await.is_err());
    driver.abort();
}
