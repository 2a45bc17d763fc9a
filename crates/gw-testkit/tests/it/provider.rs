//! The fake provider: each fault is exact, and what was seen is written down.

use bytes::Bytes;
use gw_testkit::{
    CallOutcome, ChatEnd, FakeProvider, FakeStream, Fault, FaultScript, Step, content_filter,
    error_event_first, html_200, ok, status, stream_cut_after,
};

use crate::client::Client;

const PLAIN: &str = r#"{"model":"m","messages":[]}"#;
const STREAM: &str = r#"{"model":"m","stream":true,"messages":[]}"#;
const STREAM_USAGE: &str =
    r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

async fn start(fault: impl Into<Fault>) -> (FakeProvider, Client) {
    let provider = FakeProvider::start(FaultScript::of(fault)).await.unwrap();
    let client = Client::connect(provider.addr()).await;
    (provider, client)
}

/// Sends one request and returns all that came until the connection ended, and whether it ended cleanly.
async fn exchange(fault: impl Into<Fault>, body: &str) -> (String, bool) {
    let (_provider, mut client) = start(fault).await;
    client.send(body).await;
    client.rest().await
}

#[test]
fn answers_plain_on_one_connection_and_writes_down_what_it_saw() {
    run(async {
        let (provider, mut client) = start(ok("hello there").usage(7, 3)).await;
        for number in 1..=2 {
            client.send(PLAIN).await;
            let (head, body) = client.answer().await;
            assert!(head.starts_with("HTTP/1.1 200 \r\n"), "{head}");
            assert!(head.contains(&format!("x-request-id: req-fake-{number}\r\n")), "{head}");
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["choices"][0]["message"]["content"], "hello there");
            assert_eq!((&body["model"], &body["usage"]["total_tokens"]), (&"m".into(), &10.into()));
        }
        let calls =
            provider.wait_until(|calls| calls.iter().all(|c| c.outcome == CallOutcome::Complete)).await;
        assert_eq!(
            calls.iter().map(|call| (call.number, call.connection)).collect::<Vec<_>>(),
            [(1, 1), (2, 1)]
        );
        assert_eq!((calls[0].path.as_str(), calls[0].header("host")), ("/v1/chat/completions", Some("x")));
        assert_eq!(calls[0].json()["model"], "m");
    });
}

#[test]
fn streams_one_chunk_a_word_and_usage_only_when_asked() {
    run(async {
        for (request, events) in [(STREAM, 5), (STREAM_USAGE, 6)] {
            let (_provider, mut client) = start(ok("hello there")).await;
            client.send(request).await;
            let text = client.read_until("0\r\n\r\n").await;
            assert!(text.contains("transfer-encoding: chunked\r\n"), "{text}");
            assert_eq!(text.matches("\r\ndata: ").count(), events, "{text}");
            assert_eq!(text.contains("prompt_tokens"), request == STREAM_USAGE);
            assert!(text.contains("data: [DONE]\n\n"));
        }
    });
}

#[test]
fn streams_break_where_they_should() {
    run(async {
        let (text, clean) = exchange(stream_cut_after(2), STREAM).await;
        assert_eq!((text.matches(r#""content":"word "#).count(), clean), (2, true));
        assert!(!text.ends_with("0\r\n\r\n") && !text.contains("finish_reason\":\"stop"));
        let (_provider, mut client) = start(ok("a b").end(ChatEnd::EndAfter(1))).await;
        client.send(STREAM).await;
        let text = client.read_until("0\r\n\r\n").await;
        assert!(!text.contains("[DONE]"), "{text}");
        let (_provider, mut client) = start(ok("a b").end(ChatEnd::ErrorAfter(1))).await;
        client.send(STREAM).await;
        let text = client.read_until("0\r\n\r\n").await;
        assert!(text.contains(r#"data: {"error":"#) && !text.contains("[DONE]"), "{text}");
        let (text, _) = exchange(stream_cut_after(2), PLAIN).await;
        assert!(!text.ends_with('}'), "{text}");
    });
}

#[test]
fn writes_exactly_the_bytes_of_the_script() {
    run(async {
        let half = FakeStream::new([Step::text("a"), Step::Raw(Bytes::from_static(b"zz")), Step::HalfClose]);
        let (text, clean) = exchange(half, PLAIN).await;
        assert_eq!((text.split("\r\n\r\n").nth(1), clean), (Some("1\r\na\r\nzz"), true));
        let whole = FakeStream::new([Step::text("a"), Step::PauseMs(1), Step::text("b")]).until_close();
        let (text, clean) = exchange(whole.header("x-a", "1\r\nx-b: 2"), PLAIN).await;
        assert_eq!((text.split("\r\n\r\n").nth(1), clean), (Some("ab"), true));
        assert!(text.contains("x-a: 1  x-b: 2\r\n"), "{text}");
        let (_, clean) = exchange(FakeStream::new([Step::Reset]), PLAIN).await;
        assert!(!clean);
    });
}

#[test]
fn fails_before_the_head() {
    run(async {
        assert_eq!(exchange(Fault::ResetBeforeHead, PLAIN).await, (String::new(), false));
        assert_eq!(exchange(Fault::CloseBeforeHead, PLAIN).await, (String::new(), true));
        let slow = Fault::SlowHead { delay_ms: 1, then: Box::new(Fault::CloseBeforeHead) };
        assert_eq!(exchange(slow, PLAIN).await, (String::new(), true));
    });
}

#[test]
fn sees_the_client_go_away() {
    run(async {
        for fault in
            [Fault::HangBeforeHead, ok("a b").gate_after(1).into(), FakeStream::new([Step::Hang]).into()]
        {
            let (provider, mut client) = start(fault).await;
            client.send(STREAM).await;
            provider.wait_for_calls(1).await;
            assert_eq!(provider.calls()[0].outcome, CallOutcome::Pending);
            drop(client);
            assert_eq!(provider.wait_for_client_gone(1).await.len(), 1);
        }
    });
}

#[test]
fn waits_at_the_gate() {
    run(async {
        let (provider, mut client) = start(ok("a b").gate_after(1)).await;
        client.send(STREAM).await;
        let text = client.read_until("\"content\":\"a \"").await;
        assert!(!text.contains("\"content\":\"b\""));
        provider.open_gate();
        client.read_until("0\r\n\r\n").await;
        client.send(PLAIN).await;
        provider.wait_for_calls(2).await;
        assert_eq!(provider.calls()[1].outcome, CallOutcome::Pending);
        provider.open_gate();
        assert!(client.answer().await.1.contains("a b"));
    });
}

#[test]
fn refuses_connections_and_listens_again() {
    run(async {
        let script = FaultScript::of(ok("one")).then(Fault::RefuseConnection).then(ok("two"));
        let provider = FakeProvider::start(script).await.unwrap();
        let mut client = Client::connect(provider.addr()).await;
        client.send(PLAIN).await;
        assert!(client.answer().await.1.contains("one"));
        assert_eq!(client.rest().await, (String::new(), true));
        assert!(tokio::net::TcpStream::connect(provider.addr()).await.is_err());
        provider.listen_again().await.unwrap();
        let mut client = Client::connect(provider.addr()).await;
        client.send(PLAIN).await;
        assert!(client.answer().await.1.contains("two"));
        provider.stop_listening().await;
        assert!(tokio::net::TcpStream::connect(provider.addr()).await.is_err());
    });
}

#[test]
fn refuses_from_the_start() {
    run(async {
        let provider = FakeProvider::start(FaultScript::of(Fault::RefuseConnection)).await.unwrap();
        assert!(tokio::net::TcpStream::connect(provider.addr()).await.is_err());
    });
}

#[test]
fn plays_in_order_repeats_the_last_and_tells_models_apart() {
    run(async {
        let script = FaultScript::of(status(429).retry_after(60)).then(ok("then"));
        let script = script.for_model("other", content_filter()).for_model("other", html_200());
        let provider = FakeProvider::start(script).await.unwrap();
        let mut client = Client::connect(provider.addr()).await;
        let other = r#"{"model":"other"}"#;
        for (body, expected) in [
            (PLAIN, "rate_limit_exceeded"),
            (other, "content_filter"),
            (PLAIN, "then"),
            (other, "<html>"),
            (PLAIN, "then"),
            (other, "<html>"),
        ] {
            client.send(body).await;
            let (head, text) = client.answer().await;
            assert!(text.contains(expected), "{text}");
            assert_eq!(head.contains("retry-after: 60\r\n"), expected == "rate_limit_exceeded");
            assert_eq!(head.contains("content-type: text/html"), expected == "<html>");
        }
    });
}

#[test]
fn asks_a_handler() {
    run(async {
        let handler = |call: &gw_testkit::SeenCall| match call.number {
            1 => error_event_first().into(),
            _ => status(503).into(),
        };
        let provider = FakeProvider::start_with(handler).await.unwrap();
        let mut client = Client::connect(provider.addr()).await;
        client.send(PLAIN).await;
        assert!(client.read_until("0\r\n\r\n").await.contains(r#"data: {"error":"#));
        client.send(PLAIN).await;
        assert!(client.answer().await.0.starts_with("HTTP/1.1 503 "));
    });
}

#[test]
fn reads_chunked_bodies_and_answers_bad_input() {
    run(async {
        let (provider, mut client) = start(ok("fine")).await;
        client.raw("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\n{\"a\":\r\n2\r\n1}\r\n0\r\nx: y\r\n\r\n").await;
        assert!(client.answer().await.1.contains("fine"));
        assert_eq!(&provider.calls()[0].body[..], br#"{"a":1}"#);
        client.send("not JSON").await;
        assert!(client.answer().await.0.starts_with("HTTP/1.1 400 "));
        client.raw("\u{1}\r\n\r\n").await;
        let (text, clean) = client.rest().await;
        assert!(clean && text.starts_with("HTTP/1.1 400 "), "{text}");
        let mut client = Client::connect(provider.addr()).await;
        client.raw("POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n").await;
        assert!(client.rest().await.0.starts_with("HTTP/1.1 400 "));
    });
}

#[test]
fn scripts_are_text() {
    let script =
        FaultScript::of(FakeStream::new([Step::text("a"), Step::Bytes(Bytes::from_static(b"\xff\0"))]))
            .then(Fault::AtGate { then: Box::new(status(500).cut_after(3).into()) })
            .for_model("m", ok("x").end(ChatEnd::CutAfter(1)));
    let text = serde_json::to_string(&script).unwrap();
    assert_eq!(serde_json::from_str::<FaultScript>(&text).unwrap(), script);
    let short = r#"{"faults": ["hang_before_head", {"chat": {"text": "hi"}}]}"#;
    let read: FaultScript = serde_json::from_str(short).unwrap();
    assert_eq!(read, FaultScript::of(Fault::HangBeforeHead).then(ok("hi")));
    assert!(serde_json::from_str::<FaultScript>(r#"{"fault": []}"#).is_err());
}

#[test]
fn i18_calls_print_without_their_content() {
    run(async {
        let (provider, mut client) = start(ok("fine")).await;
        client.send(r#"{"model":"canary"}"#).await;
        client.answer().await;
        assert!(!format!("{:?}", provider.calls()).contains("canary"));
    });
}
