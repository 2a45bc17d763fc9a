//! Every wait for a client ends.

use std::time::Duration;

use gw_testkit::FakeStream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    CONFIG, Running, ask, ask_stream, chat_request, chunk, connect, read_reply, read_until, settle, start,
    start_held, start_with,
};

const SECOND: Duration = Duration::from_secs(1);

/// Lets a second pass.
async fn pass(running: &Running, seconds: u32) {
    for _ in 0..seconds {
        running.clock.advance(SECOND);
        settle().await;
    }
}

/// Returns whether the server has closed without a byte.
async fn is_closed(client: &mut TcpStream) -> bool {
    let mut byte = [0];
    tokio::select! {
        biased;
        read = client.read(&mut byte) => {
            assert!(!matches!(read, Ok(1..)), "the server said something");
            true
        }
        () = settle() => false,
    }
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted_a_silent_connection_is_closed() {
    let running = start_with(CONFIG, |settings| settings.header_timeout = 5 * SECOND).await;
    let mut client = connect(running.data).await;
    settle().await;
    pass(&running, 4).await;
    assert!(!is_closed(&mut client).await);
    pass(&running, 1).await;
    assert!(is_closed(&mut client).await);
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted_a_trickling_head_gets_408() {
    let running = start_with(CONFIG, |settings| settings.header_timeout = 5 * SECOND).await;
    for head in [&b"GET / HTTP/1.1\r\n"[..], b"POST /v1", b"PRO"] {
        let mut client = connect(running.data).await;
        let mut sent = 0;
        for byte in head.iter().cycle().take(5) {
            client.write_all(&[*byte]).await.unwrap();
            sent += 1;
            settle().await;
            pass(&running, 1).await;
        }
        assert_eq!(sent, 5);
        let reply = read_reply(&mut client).await;
        assert_eq!((reply.status, &*reply.error_type()), (408, "invalid_request_error"));
    }
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted_a_trickling_body_gets_408() {
    let running = start_with(CONFIG, |settings| settings.body_timeout = 15 * SECOND).await;
    let mut client = connect(running.data).await;
    let head = chat_request("", "").replace("content-length: 0", "content-length: 100");
    client.write_all(head.as_bytes()).await.unwrap();
    settle().await;
    for _ in 0..14 {
        client.write_all(b" ").await.unwrap();
        settle().await;
        pass(&running, 1).await;
    }
    assert!(!is_closed(&mut client).await);
    pass(&running, 1).await;
    let reply = read_reply(&mut client).await;
    assert_eq!((reply.status, reply.header("connection")), (408, Some("close")));
    let record = running.admin("/admin/v1/records").await.json();
    assert_eq!(record["records"][0]["error"], "intake");
}

#[tokio::test]
async fn an_idle_connection_outlives_the_header_timeout_and_ends_at_last() {
    let running = start(CONFIG).await;
    let mut client = connect(running.data).await;
    for _ in 0..3 {
        client.write_all(chat_request("", &ask("echo")).as_bytes()).await.unwrap();
        read_until(&mut client, "chat.completion").await;
        settle().await;
        pass(&running, 30).await;
    }
    // The rest of the last answer was read with its beginning or is still there; either way it is not the end.
    client.write_all(chat_request("", &ask("echo")).as_bytes()).await.unwrap();
    read_until(&mut client, "chat.completion").await;
    settle().await;
    pass(&running, 76).await;
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("HTTP/1.1"));
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted_places_come_back() {
    let running = start_with(CONFIG, |settings| {
        settings.header_timeout = 5 * SECOND;
        settings.max_connections = 3;
    })
    .await;
    let mut hoarders = Vec::new();
    for _ in 0..5 {
        let mut client = connect(running.data).await;
        client.write_all(b"G").await.unwrap();
        hoarders.push(client);
    }
    settle().await;
    let mut client = connect(running.data).await;
    client.write_all(chat_request("connection: close\r\n", &ask("echo")).as_bytes()).await.unwrap();
    // The five take the places twice over at most.
    pass(&running, 11).await;
    assert_eq!(read_reply(&mut client).await.status, 200);
    drop(hoarders);
}

#[tokio::test]
async fn slow_reader_pushes_back_on_the_upstream_a_client_that_reads_nothing_is_given_up() {
    // More than all the buffers between the provider and the client hold.
    let piece = "word ".repeat(10_000);
    let steps = (0..1_000).map(|_| chunk(&piece));
    let (running, provider) = start_held(FakeStream::new(steps).into()).await;
    let mut client = connect(running.data).await;
    // Without a bound of its own the request would get one of its budget, and be capped there.
    let body = ask_stream("held").replace(r#"{"model""#, r#"{"max_tokens":100000000,"model""#);
    client.write_all(chat_request("", &body).as_bytes()).await.unwrap();
    for _ in 0..50 {
        settle().await;
    }
    assert!(running.newest_outcome().await.is_none());
    pass(&running, 11).await;
    assert_eq!(running.newest_outcome().await.as_deref(), Some("cancelled"));
    let mut bytes = Vec::new();
    let _ = client.read_to_end(&mut bytes).await;
    assert!(bytes.starts_with(b"HTTP/1.1 200"));
    assert!(!bytes.ends_with(b"0\r\n\r\n") && bytes.len() < 50_000_000, "{}", bytes.len());
    drop(provider);
}
