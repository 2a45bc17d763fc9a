//! Kind `security`: what comes in.

use std::time::Duration;

use gw_testkit::{FakeProvider, FaultScript};

use crate::support::{Gw, Raw, Toml, chat, key_of, metric, within};

/// Limits that a test can wait for; nothing else of it takes a tenth of them.
const LIMITS: &str =
    "max_body_bytes = 1_048_576\nheader_timeout_ms = 500\nbody_timeout_ms = 700\nmax_connections = 40";

async fn house() -> (FakeProvider, Gw) {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new().server(LIMITS).upstream("up", &provider).route("m", &["up"]).tenant("a", "");
    let gw = Gw::start(&toml).await;
    (provider, gw)
}

fn head(more: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\n{more}\r\n",
        key_of("a")
    )
}

async fn refusals(gw: &Gw, reason: &str) -> u64 {
    metric(&gw.metrics().await, &format!("gw_refusals_total{{reason=\"{reason}\"}}"))
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted() {
    let (provider, gw) = house().await;
    // V3: far more than the limit, chunk by chunk, without a length.
    let mut raw = Raw::connect(gw.data).await;
    raw.send(head("transfer-encoding: chunked\r\n")).await;
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 65_536], b"\r\n"].concat();
    let mut sent = 0;
    while sent < 1_600 && raw.send(&chunk).await {
        sent += 1;
    }
    let answer = raw.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "V3: {answer}");
    assert!(sent < 1_600, "V3: 100 MB were read");
    // V4: a length above the limit, behind a question.
    let mut raw = Raw::connect(gw.data).await;
    raw.send(head("content-length: 2097152\r\nexpect: 100-continue\r\n")).await;
    let answer = raw.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "V4: {answer}");
    // V2 and V9: codings are not taken, and nobody without a key is told so.
    let mut raw = Raw::connect(gw.data).await;
    raw.send(head("content-encoding: gzip, gzip\r\ncontent-length: 2\r\nconnection: close\r\n")).await;
    raw.send("{}").await;
    assert!(raw.rest().await.starts_with("HTTP/1.1 415 "), "V2");
    let mut raw = Raw::connect(gw.data).await;
    let keyless = head("content-encoding: gzip\r\ncontent-length: 2\r\nconnection: close\r\n");
    raw.send(keyless.replace(&key_of("a"), "nobody")).await;
    raw.send("{}").await;
    assert!(raw.rest().await.starts_with("HTTP/1.1 401 "), "V9");
    // V10: deeper than any stack.
    let deep = format!("{{\"model\":\"m\",\"messages\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let call = gw.call(http::Method::POST, "/v1/chat/completions").key(&key_of("a"));
    assert_eq!(call.bytes(deep).send().await.status, 400, "V10");
    assert_eq!(provider.calls().len(), 0);
    assert_eq!(refusals(&gw, "body_too_large").await, 2);
    assert_eq!(refusals(&gw, "encoding").await, 1);
}

#[tokio::test]
async fn request_intake_is_bounded_in_time() {
    let (provider, gw) = house().await;
    // V6: nothing at all. Closed without an answer, for nothing was asked.
    let silent = Raw::connect(gw.data).await;
    assert_eq!(within("the end of a silent connection", silent.rest()).await, "", "V6");
    // V5: one byte after the other. Each keeps the connection busy; none keeps it open.
    let mut trickling = Raw::connect(gw.data).await;
    let dripped = within("the end of a trickling head", async {
        let mut drops = 0;
        for byte in head("").bytes().take(60).cycle() {
            if !trickling.send([byte]).await {
                break;
            }
            drops += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drops
    })
    .await;
    assert!(dripped >= 2, "V5: closed after {dripped} bytes already");
    let mut begun = Raw::connect(gw.data).await;
    begun.send("POST /v1/chat/completions HTT").await;
    let answer = begun.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("{\"error\":{"), "V5: {answer}");
    // V7: a body that comes too slowly.
    let mut slow = Raw::connect(gw.data).await;
    slow.send(head("content-length: 100\r\n")).await;
    slow.send("{\"model\":").await;
    let answer = slow.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("{\"error\":{"), "V7: {answer}");
    assert_eq!(provider.calls().len(), 0);
    assert_eq!(refusals(&gw, "body_timeout").await, 1);
    assert!(refusals(&gw, "head_timeout").await >= 2);
    let record = &gw.records(1).await[0];
    assert_eq!(
        (record["outcome"].as_str(), record["error"].as_str()),
        (Some("refused"), Some("intake")),
        "V7"
    );
}

#[tokio::test]
async fn request_intake_is_bounded_for_the_sake_of_others() {
    let (_provider, gw) = house().await;
    // V8: more connections than there are places, none of which ever sends a whole head.
    let mut begun = Vec::new();
    for _ in 0..60 {
        let mut raw = Raw::connect(gw.data).await;
        raw.send("POST / HTTP/1.1\r\nx: ").await;
        begun.push(raw);
    }
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!(answer.status, 200, "the normal client is served");
    drop(begun);
}

/// What is left of a connection once the server has closed it.
async fn trickle(to: std::net::SocketAddr) -> Duration {
    let began = tokio::time::Instant::now();
    let mut raw = Raw::connect(to).await;
    for byte in "POST /v1/chat/completions HTTP/1.1\r\nx: ".bytes().chain(std::iter::repeat(b'x')) {
        if !raw.send([byte]).await || raw.is_closed(Duration::from_secs(1)).await {
            break;
        }
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_intake_is_bounded_against_two_thousand_slow_clients() {
    const SLOW: usize = 2_000;
    // Ten times what is promised at least: a busy machine is no fault. What it took is printed.
    const CLOSED_WITHIN: Duration = Duration::from_secs(100);
    const ANSWERED_WITHIN: Duration = Duration::from_secs(6);
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new()
        .server("header_timeout_ms = 2_000")
        .upstream("up", &provider)
        .route("m", &["up"])
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    let slow: Vec<_> = (0..SLOW).map(|_| tokio::spawn(trickle(gw.data))).collect();
    let mut slowest = Duration::ZERO;
    while slow.iter().any(|one| !one.is_finished()) {
        let began = tokio::time::Instant::now();
        assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
        slowest = slowest.max(began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut longest = Duration::ZERO;
    for one in slow {
        longest = longest.max(one.await.unwrap());
    }
    println!("{SLOW} slow clients: closed after {longest:?} at most; a request took {slowest:?} at most");
    assert!(longest < CLOSED_WITHIN, "{longest:?}");
    assert!(slowest < ANSWERED_WITHIN, "{slowest:?}");
    assert!(refusals(&gw, "head_timeout").await >= u64::try_from(SLOW).unwrap());
}

#[tokio::test]
async fn a_length_that_two_could_read_in_two_ways_is_refused() {
    let (provider, gw) = house().await;
    let body = chat("m", "hello").to_string();
    let smuggled = "GET /v1/models HTTP/1.1\r\nhost: gw\r\n\r\n";
    let length = body.len();
    for framing in [
        format!("content-length: {length}\r\ncontent-length: {}\r\n", length + 1),
        format!("content-length: {length}, {}\r\n", length + 1),
        format!("content-length: {length}\r\ntransfer-encoding: chunked, identity\r\n"),
        "transfer-encoding: xchunked\r\n".to_owned(),
        format!("content-length: +{length}\r\n"),
        format!("content-length : {length}\r\n"),
        "content-length: -1\r\n".to_owned(),
        format!("content-length: {length}\r\nx: a\rb\r\n"),
        format!("content-length: {length}\r\nx: a\0b\r\n"),
        format!("content-length: {length}\r\n folded: x\r\n"),
    ] {
        let mut raw = Raw::connect(gw.data).await;
        raw.send(head(&framing)).await;
        raw.send(&body).await;
        raw.send(smuggled).await;
        let answer = raw.rest().await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{framing:?}: {answer}");
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            1,
            "{framing:?}: what follows is no request: {answer}"
        );
        assert!(answer.contains("connection: close"), "{framing:?}: {answer}");
    }
    assert_eq!(provider.calls().len(), 0);
    // A length beside chunks is the one that both sides must agree to ignore (RFC 9112, section 6.3), and then close.
    let mut raw = Raw::connect(gw.data).await;
    raw.send(head("content-length: 3\r\ntransfer-encoding: chunked\r\nconnection: close\r\n")).await;
    raw.send(format!("{length:x}\r\n{body}\r\n0\r\n\r\n{smuggled}")).await;
    let answer = raw.rest().await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}
