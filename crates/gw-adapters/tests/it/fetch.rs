//! Plain fetches.

use std::time::Duration;

use bytes::Bytes;
use gw_adapters::FetchClient;
use gw_types::{ErrorKind, FetchRequest, FetchResponse, GatewayError, HttpFetch, ProviderName, Secret};

use crate::{
    server::{Act, PATIENCE, Server, json},
    setup::limits,
};

fn get(url: String) -> FetchRequest {
    FetchRequest {
        method: "GET",
        url,
        headers: vec![("x-extra", Secret::new("canary").unwrap())],
        body: Bytes::new(),
        timeout: PATIENCE,
        body_bytes_max: 64,
    }
}

async fn fetch(request: FetchRequest) -> Result<FetchResponse, GatewayError> {
    FetchClient::new(ProviderName::new("keys").unwrap(), limits()).unwrap().fetch(request).await
}

#[tokio::test]
async fn fetches_path_and_query_as_written() {
    let server = Server::always(Act::Answer(json("404 Not Found", "none"))).await;
    let client = FetchClient::new(ProviderName::new("keys").unwrap(), limits()).unwrap();
    for _ in 0..2 {
        let response = client.fetch(get(format!("http://{}/a/?b=c", server.addr))).await.unwrap();
        assert_eq!((response.status, &response.body[..]), (404, &b"none"[..]));
    }
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /a/?b=c HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nx-extra: canary\r\n") && !request.contains("content-length"), "{request}");
    assert_eq!(server.sockets().accepted, 1);
}

#[tokio::test]
async fn posts_a_body() {
    let server = Server::always(Act::Answer(json("200 OK", ""))).await;
    let url = format!("http://{}", server.addr);
    let post = FetchRequest { method: "POST", body: Bytes::from_static(b"traces"), ..get(url) };
    assert!(fetch(post).await.unwrap().body.is_empty());
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST / HTTP/1.1\r\n") && request.ends_with("\r\n\r\ntraces"), "{request}");
}

#[tokio::test]
async fn a_body_above_its_bound_is_refused() {
    for (length, expected) in [(64, None), (65, Some(ErrorKind::MalformedResponse))] {
        let server = Server::always(Act::Answer(json("200 OK", &"x".repeat(length)))).await;
        let fetched = fetch(get(format!("http://{}", server.addr))).await;
        assert_eq!(fetched.err().map(|error| error.kind()), expected);
        let body = "x".repeat(length);
        let chunked =
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n");
        let server = Server::always(Act::Answer(chunked)).await;
        let fetched = fetch(get(format!("http://{}", server.addr))).await;
        assert_eq!(fetched.err().map(|error| error.kind()), expected);
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_silence_a_timeout() {
    let sink = Server::always(Act::Answer(json("200 OK", ""))).await;
    let found = format!("HTTP/1.1 302 Found\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n", sink.addr);
    let server = Server::always(Act::Answer(found)).await;
    assert_eq!(fetch(get(format!("http://{}", server.addr))).await.unwrap().status, 302);
    assert_eq!(sink.sockets().accepted, 0);
    let silent = Server::always(Act::Silence).await;
    let request =
        FetchRequest { timeout: Duration::from_millis(50), ..get(format!("http://{}", silent.addr)) };
    assert_eq!(fetch(request).await.unwrap_err().kind(), ErrorKind::ProviderTimeout);
    silent.wait_for(|sockets| sockets.open == 0).await;
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_gw_s_own_fault() {
    for url in ["", "ftp://a/", "http://u:p@a/"] {
        assert_eq!(fetch(get(url.to_owned())).await.unwrap_err().kind(), ErrorKind::Internal);
    }
}
