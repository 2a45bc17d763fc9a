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
