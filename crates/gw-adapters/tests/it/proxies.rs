//! Outbound proxies: absolute-form for `http`, a tunnel for `https`, never around them.

use gw_adapters::{ProxyConfig, TransportConfig};
use gw_types::ErrorKind;

use crate::{
    server::{Act, Server, json},
    setup::{ANSWER, KEY, Setup, limits},
};

fn through(proxy: &Server, no_proxy: &str) -> TransportConfig {
    let url = format!("http://user:pass@{}", proxy.addr);
    TransportConfig {
        proxy: ProxyConfig { http: url.clone(), https: url, no_proxy: no_proxy.to_owned() },
        ..limits()
    }
}

#[tokio::test]
async fn an_http_provider_is_asked_through_the_proxy() {
    let proxy = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Setup::limited("http://up.example:8080/v1", through(&proxy, ""));
    for _ in 0..2 {
        setup.plain().await.unwrap();
    }
    let request = proxy.requests().remove(0);
    assert!(request.starts_with("POST http://up.example:8080/v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: up.example:8080\r\n"), "{request}");
    assert!(request.contains("\r\nproxy-authorization: Basic dXNlcjpwYXNz\r\n"), "{request}");
    assert_eq!(proxy.sockets().accepted, 1);
    assert!(!format!("{:?}", setup.provider).contains("dXNlcjpwYXNz"));
}

#[tokio::test]
async fn an_https_provider_is_asked_through_a_tunnel() {
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
    let proxy = Server::always(Act::Answer(refusal.to_owned())).await;
    let setup = Setup::limited("https://up.example/v1", through(&proxy, ""));
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, false));
    let request = proxy.requests().remove(0);
    assert!(request.starts_with("CONNECT up.example:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("\r\nproxy-authorization: basic dxnlcjpwyxnz\r\n"), "{request}");
    assert!(!request.contains(KEY));
    assert_eq!(setup.in_use(), 0);
}

#[tokio::test]
async fn exceptions_go_straight_there() {
    let proxy = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    Setup::limited(&server.url(), through(&proxy, "10.0.0.0/8, 127.0.0.1")).plain().await.unwrap();
    assert_eq!((proxy.sockets().accepted, server.sockets().accepted), (0, 1));
}
