//! What is refused at the door, and what is not.

use tokio::io::AsyncWriteExt;

use crate::support::{
    CONFIG, KEY, Running, ask, chat_request, connect, exchange, read_reply, start, start_with,
};

async fn check(running: &Running, request: &str, status: u16, error_type: &str) {
    let reply = exchange(running.data, request).await;
    let cut: String = request.chars().take(300).collect();
    assert_eq!((reply.status, &*reply.error_type()), (status, error_type), "{cut}\n{}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}

async fn check_body(running: &Running, body: &str, status: u16) {
    check(running, &chat_request("", body), status, "invalid_request_error").await;
}

#[tokio::test]
async fn bad_input_is_refused_in_the_endpoints_form() {
    let running = start(CONFIG).await;
    let nested = format!(r#"{{"model":"echo","messages":{}1{}}}"#, "[".repeat(100), "]".repeat(100));
    for body in [
        "",
        "{",
        "[]",
        "null",
        r#"{"messages":[{"role":"user","content":"a"}]}"#,
        r#"{"model":7,"messages":[{"role":"user","content":"a"}]}"#,
        r#"{"model":"echo"}"#,
        r#"{"model":"echo","messages":[]}"#,
        r#"{"model":"echo","messages":"a"}"#,
        r#"{"model":"echo","messages":[{"role":"user","content":"a"}],"n":0}"#,
        r#"{"model":"echo","messages":[{"role":"user","content":"a"}],"max_tokens":-1}"#,
        r#"{"model":"echo","messages":[{"role":"user","content":"a"}],"max_tokens":1,"max_completion_tokens":2}"#,
        &nested,
    ] {
        check_body(&running, body, 400).await;
    }
    check_body(&running, &ask("nobody-knows"), 404).await;
    let reply = running.chat("{").await;
    assert_eq!(reply.header("x-request-id").map(str::len), Some(36));
    assert_eq!(reply.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn invalid_utf8_is_refused() {
    let running = start(CONFIG).await;
    let mut client = connect(running.data).await;
    let body = b"{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}";
    let head = chat_request("connection: close\r\n", "")
        .replace("content-length: 0", &format!("content-length: {}", body.len()));
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(body).await.unwrap();
    let reply = read_reply(&mut client).await;
    assert_eq!((reply.status, &*reply.error_type()), (400, "invalid_request_error"));
}

#[tokio::test]
async fn headers_of_gw_are_checked() {
    let running = start(CONFIG).await;
    for header in [
        "x-gw-deadline-ms: 0",
        "x-gw-deadline-ms: soon",
        "x-gw-classification: secret",
        "x-gw-side-effecting: perhaps",
        "x-gw-cache: forever",
        "x-request-id: \u{e9}",
        "traceparent: zz",
    ] {
        let reply = running.chat_with(&format!("{header}\r\n"), &ask("echo")).await;
        let name = header.split(':').next().unwrap();
        assert_eq!(reply.status, 400, "{header}");
        assert_eq!(reply.json()["error"]["param"], name);
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(name));
    }
    assert_eq!(running.chat_with("x-gw-deadline-ms: 5000\r\n", &ask("echo")).await.status, 200);
}

#[tokio::test]
async fn a_head_that_is_no_http_gets_a_json_body() {
    let running = start(CONFIG).await;
    let control =
        format!("GET /v1/models HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {KEY}\r\nx-a: b\u{1}c\r\n\r\n");
    check(&running, &control, 400, "invalid_request_error").await;
    let mut client = connect(running.data).await;
    client.write_all(b"nonsense\r\n\r\n").await.unwrap();
    let reply = read_reply(&mut client).await;
    assert_eq!((reply.status, &*reply.error_type()), (400, "invalid_request_error"));
}

#[tokio::test]
async fn too_many_or_too_long_headers_are_refused() {
    let running = start(CONFIG).await;
    let many: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    check(&running, &chat_request(&many, &ask("echo")), 431, "invalid_request_error").await;
    let long = format!("x-long: {}\r\n", "a".repeat(100_000));
    check(&running, &chat_request(&long, &ask("echo")), 431, "invalid_request_error").await;
}

#[tokio::test]
async fn a_bad_head_behind_a_good_answer_gets_its_own_answer() {
    let running = start(CONFIG).await;
    let mut client = connect(running.data).await;
    client.write_all(chat_request("", &ask("echo")).as_bytes()).await.unwrap();
    let first = crate::support::read_until(&mut client, "chat.completion").await;
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    crate::support::settle().await;
    client.write_all(b"GET / HTTP/1.1\r\nbad header\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut client, &mut rest).await.unwrap();
    let rest = String::from_utf8(rest).unwrap();
    let second = &rest[rest.find("HTTP/1.1 400").unwrap_or_else(|| panic!("{rest}"))..];
    assert!(second.contains(r#""type":"invalid_request_error""#), "{second}");
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted_sizes() {
    let running = start_with(CONFIG, |settings| settings.max_body_bytes = 100_000).await;
    // Stated: refused without a byte of the body, and without an invitation to send it.
    let stated =
        chat_request("expect: 100-continue\r\n", "").replace("content-length: 0", "content-length: 100001");
    check(&running, &stated, 413, "invalid_request_error").await;
    // Not stated: refused as soon as it is too much.
    let mut client = connect(running.data).await;
    let head = chat_request("transfer-encoding: chunked\r\n", "").replace("content-length: 0\r\n", "");
    client.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("4000\r\n{}\r\n", "a".repeat(0x4000));
    for _ in 0..7 {
        client.write_all(chunk.as_bytes()).await.unwrap();
    }
    let reply = read_reply(&mut client).await;
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
    // At the bound: read.
    let body = ask("echo");
    let padded = format!("{body}{}", " ".repeat(100_000 - body.len()));
    assert_eq!(running.chat(&padded).await.status, 200);
}

#[tokio::test]
async fn the_whole_of_a_large_refused_body_can_be_sent() {
    let running = start(CONFIG).await;
    let body = "a".repeat(11 * 1_024 * 1_024);
    let mut client = connect(running.data).await;
    client.write_all(chat_request("", &body).as_bytes()).await.unwrap();
    assert_eq!(read_reply(&mut client).await.status, 413);
}

#[tokio::test]
async fn a_body_of_three_megabytes_passes() {
    let running = start(CONFIG).await;
    let body = ask("echo").replace("hello there", &"word ".repeat(600_000));
    assert_eq!(running.chat_with("x-gw-cache: no-store\r\n", &body).await.status, 200);
}

#[tokio::test]
async fn expect_continue_is_answered() {
    let running = start(CONFIG).await;
    let mut client = connect(running.data).await;
    let request = chat_request("connection: close\r\nexpect: 100-continue\r\n", &ask("echo"));
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    client.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(crate::support::read_until(&mut client, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read_reply(&mut client).await.status, 200);
}

#[tokio::test]
async fn methods_and_media_types_are_checked() {
    let running = start(CONFIG).await;
    let get = format!("GET /v1/chat/completions HTTP/1.1\r\nhost: gw\r\nx-api-key: {KEY}\r\n\r\n");
    check(&running, &get, 405, "invalid_request_error").await;
    assert_eq!(exchange(running.data, &get).await.header("allow"), Some("POST"));
    let foo = format!("FOO1 /v1/models HTTP/1.1\r\nhost: gw\r\nx-api-key: {KEY}\r\n\r\n");
    check(&running, &foo, 405, "invalid_request_error").await;
    let form = chat_request("", &ask("echo")).replace("application/json", "text/plain");
    check(&running, &form, 415, "invalid_request_error").await;
    let absent = chat_request("", &ask("echo")).replace("content-type: application/json\r\n", "");
    assert_eq!(exchange(running.data, &absent).await.status, 200);
    for encoding in ["gzip", "gzip, gzip", "zstd", "br"] {
        let request = chat_request(&format!("content-encoding: {encoding}\r\n"), &ask("echo"));
        check(&running, &request, 415, "invalid_request_error").await;
    }
}

#[tokio::test]
async fn liveness_needs_no_key() {
    let running = start(CONFIG).await;
    for method in ["GET", "HEAD"] {
        let reply = exchange(running.data, &format!("{method} / HTTP/1.1\r\nhost: gw\r\n\r\n")).await;
        assert_eq!((reply.status, &*reply.body), (200, ""));
    }
}
