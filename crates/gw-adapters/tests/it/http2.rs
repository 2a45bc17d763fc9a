//! HTTP/2 with prior knowledge: calls share a connection.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, future::join_all};
use gw_adapters::TransportConfig;
use gw_types::ErrorKind;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;

use crate::{
    server::PATIENCE,
    setup::{ANSWER, KEY, Setup, limits},
};

type Reply = Response<BoxBody<Bytes, Infallible>>;

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<String>,
}

async fn start(silent: bool) -> (SocketAddr, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            shared.lock().connections += 1;
            let seen = Arc::clone(&shared);
            let service = service_fn(move |request| answer(request, Arc::clone(&seen), silent));
            tokio::spawn(
                http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service),
            );
        }
    });
    (addr, seen)
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Seen>>,
    silent: bool,
) -> Result<Reply, Infallible> {
    let authorization = request.headers()["authorization"].to_str().unwrap().to_owned();
    let shown = format!("{} {} {authorization}", request.method(), request.uri());
    seen.lock().requests.push(shown);
    let body = request.into_body().collect().await.unwrap().to_bytes();
    if silent {
        std::future::pending::<()>().await;
    }
    if body.windows(13).any(|window| window == br#""stream":true"#) {
        let event = r#"data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        let text = format!("{event}\n\ndata: [DONE]\n\n");
        let reply = Response::builder().header("content-type", "text/event-stream");
        return Ok(reply.body(Full::new(Bytes::from(text)).boxed()).unwrap());
    }
    Ok(Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())).boxed()))
}

fn http2() -> TransportConfig {
    TransportConfig { http2: true, ..limits() }
}

#[tokio::test]
async fn calls_share_one_connection() {
    let (addr, seen) = start(false).await;
    let setup = Setup::limited(&format!("http://{addr}/v1"), http2());
    for answer in join_all((0..4).map(|_| setup.plain())).await {
        assert_eq!(answer.unwrap().raw, ANSWER.as_bytes());
    }
    let items: Vec<_> = setup.stream().await.unwrap().items.collect().await;
    assert!(items.last().unwrap().as_ref().unwrap().facts.terminal);
    assert_eq!(setup.in_use(), 0);
    let seen = seen.lock();
    assert_eq!((seen.connections, seen.requests.len()), (1, 5));
    assert_eq!(seen.requests[0], format!("POST http://{addr}/v1/chat/completions Bearer {KEY}"));
}

#[tokio::test]
async fn limits_hold_and_places_come_back() {
    let (addr, seen) = start(true).await;
    let limits = TransportConfig { head_timeout: Duration::from_millis(100), ..http2() };
    let setup = Setup::limited(&format!("http://{addr}/v1"), limits);
    for answer in join_all((0..8).map(|_| setup.plain())).await {
        let error = answer.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::ProviderTimeout, true));
    }
    assert_eq!(setup.in_use(), 0);
    // A connection over which nothing was heard takes no further calls.
    assert!((2..=8).contains(&seen.lock().connections), "{}", seen.lock().connections);
    assert!(tokio::time::timeout(PATIENCE, setup.plain()).await.unwrap().is_err());
}
