//! Kind `streaming`.

use bytes::Bytes;
use gw_testkit::{FakeAnswer, FakeProvider, FakeStream, Fault, FaultScript, Step, ok};
use serde_json::Value;

use crate::support::{Events, Gw, Toml, chat};

/// A chunk with text.
pub(super) fn content(text: &str) -> Step {
    Step::event(&format!(
        r#"{{"id":"c1","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#
    ))
}

const STOP: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

pub(super) fn stop() -> Step {
    Step::event(STOP)
}

pub(super) fn done() -> Step {
    Step::event("[DONE]")
}

fn streaming(model: &str) -> Value {
    let mut body = chat(model, "hello");
    body["stream"] = true.into();
    body["temperature"] = 0.into();
    body
}

/// A gateway in front of one upstream that plays a stream, and of another that is its fallback.
struct House {
    one: FakeProvider,
    two: FakeProvider,
    gw: Gw,
}

impl House {
    async fn new(script: FaultScript) -> Self {
        let one = FakeProvider::start(script).await.unwrap();
        let two = FakeProvider::start(FaultScript::of(ok("ok"))).await.unwrap();
        let toml = Toml::new()
            .upstream("one", &one)
            .upstream("two", &two)
            .route_with("m", &["one", "two"], "cache = { exact = true }\nmax_attempts = 2")
            .tenant("a", "");
        let gw = Gw::start(&toml).await;
        Self { one, two, gw }
    }

    async fn stream(&self) -> Events {
        let stream = self.gw.chat("a", &streaming("m")).stream().await;
        assert_eq!(stream.status, 200);
        Events::read(&stream.rest().await)
    }

    fn calls(&self) -> (usize, usize) {
        (self.one.calls().len(), self.two.calls().len())
    }
}

/// Plays steps and returns what the client read.
async fn played(steps: Vec<Step>) -> Events {
    let house = House::new(FaultScript::of(FakeStream::new(steps))).await;
    let events = house.stream().await;
    assert_eq!(house.calls(), (1, 0));
    let outcome = house.gw.records(1).await[0]["outcome"].clone();
    assert_eq!(outcome == "ok", events.done, "{outcome}");
    events
}

/// The bytes of the first case: three characters, of three, three and four bytes.
fn split_text() -> Vec<u8> {
    let chunk = r#"{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"你好🙂"},"finish_reason":null}]}"#;
    format!("data: {chunk}\n\ndata: {STOP}\n\ndata: [DONE]\n\n").into_bytes()
}

#[tokio::test]
async fn utf8_split_across_transport_chunks() {
    let bytes = split_text();
    let piece = |range: &[u8]| Step::Bytes(Bytes::copy_from_slice(range));
    let start = bytes.windows(3).position(|window| window == "你".as_bytes()).unwrap();
    let mut variants: Vec<Vec<Step>> = vec![
        // V1: cut inside each of the three characters.
        vec![piece(&bytes[..=start]), piece(&bytes[start + 1..start + 7]), piece(&bytes[start + 7..])],
        // V2: one byte a write.
        bytes.iter().map(|byte| piece(&[*byte])).collect(),
    ];
    // V3: one cut at every position.
    variants.extend((1..bytes.len()).map(|at| vec![piece(&bytes[..at]), piece(&bytes[at..])]));
    let count = variants.len();
    let faults = variants.into_iter().map(|steps| FakeStream::new(steps).into()).collect();
    let script = FaultScript { faults, ..FaultScript::default() };
    let provider = FakeProvider::start(script).await.unwrap();
    let gw = Gw::start(&Toml::new().upstream("one", &provider).route("m", &["one"]).tenant("a", "")).await;
    for variant in 0..count {
        let text = gw.chat("a", &streaming("m")).stream().await.rest().await;
        let events = Events::read(&text);
        assert_eq!(events.text(), "\u{4F60}\u{597D}\u{1F642}", "variant {variant}: {text}");
        assert_eq!((events.finishes(), events.done), (vec!["stop"], true), "variant {variant}");
    }
    assert_eq!(provider.calls().len(), count);
    // V4: a byte that no character has. The stream ends with an error, in band or as the answer.
    let mut broken = bytes.clone();
    broken[start + 1] = 0xff;
    let house = House::new(FaultScript::of(FakeStream::new([content("A"), piece(&broken)]))).await;
    let events = house.stream().await;
    assert!(events.error.is_some() && !events.done && events.text() == "A");
}

#[tokio::test]
async fn sse_line_endings_comments_and_optional_space() {
    let a = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]}"#;
    let b = a.replace("\"A\"", "\"B\"");
    let plain: String = [a, &b, STOP, "[DONE]"].iter().map(|data| format!("data: {data}\n\n")).collect();
    let text = |text: String| vec![Step::text(&text)];
    let crlf = plain.replace('\n', "\r\n");
    let halves: Vec<Step> = crlf.split_inclusive("\r\n\r").map(Step::text).collect();
    assert!(halves.len() > 4, "cut inside the blank lines");
    let spread = a.split_at(a.find(",\"choices").unwrap() + 1);
    for (variant, steps) in [
        ("V1", text(crlf.clone())),
        ("V2", text(plain.replace('\n', "\r"))),
        ("V3", halves),
        ("V4", text(plain.replace("data: ", "data:"))),
        ("V5", text(plain.replace("data: ", ": keep-alive\n:\ndata: ") + ": keep-alive\n\n")),
        ("V6", text(plain.replace("data: ", "event: message\nid: 7\nretry: 10\ndata: "))),
        ("V7", text(plain.replacen(a, &format!("{}\ndata: {}", spread.0, spread.1), 1))),
        ("V8", text(format!("\u{feff}{plain}"))),
        ("V9", text(plain.replace("[DONE]", "[DONE] "))),
    ] {
        let events = played(steps).await;
        assert_eq!((events.text().as_str(), events.done), ("AB", true), "{variant}");
        assert_eq!((events.finishes(), events.chunks.len()), (vec!["stop"], 3), "{variant}");
    }
}

#[tokio::test]
async fn event_stream_not_held_back_by_compression_or_buffering() {
    let steps = [
        content("1"),
        Step::WaitForGate,
        content("2"),
        Step::WaitForGate,
        content("3"),
        Step::WaitForGate,
        stop(),
        done(),
    ];
    let provider = FakeProvider::start(FaultScript::of(FakeStream::new(steps))).await.unwrap();
    let gw = Gw::start(&Toml::new().upstream("one", &provider).route("m", &["one"]).tenant("a", "")).await;
    let call = gw.chat("a", &streaming("m")).header("accept-encoding", "gzip, br");
    let mut stream = call.stream().await;
    assert_eq!(stream.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!((stream.header("content-length"), stream.header("content-encoding")), ("", ""));
    assert!(
        stream.header("cache-control").contains("no-store")
            && stream.header("cache-control").contains("no-transform")
    );
    // Each event is here before the provider is allowed to write the next one.
    for text in ["\"1\"", "\"2\"", "\"3\""] {
        stream.until(text).await;
        provider.open_gate();
    }
    assert!(Events::read(&stream.rest().await).done);
}

#[tokio::test]
async fn clean_eof_without_terminal_reason_is_not_success() {
    for (variant, rest) in [("V1", vec![]), ("V2", vec![Step::Reset]), ("V3", vec![done()])] {
        let broken = FakeStream::new([content("Hel")].into_iter().chain(rest));
        let house = House::new(FaultScript::of(broken).then(ok("whole answer"))).await;
        let events = house.stream().await;
        assert_eq!((events.text().as_str(), events.done), ("Hel", false), "{variant}");
        assert!(events.error.is_some() && events.finishes().is_empty(), "{variant}: no reason is made up");
        assert_eq!(house.calls(), (1, 0), "{variant}");
        let record = &house.gw.records(1).await[0];
        assert_eq!(
            (record["outcome"].as_str(), record["usage"]["estimated"].as_bool()),
            (Some("failed"), Some(true))
        );
        assert_eq!(record["usage"]["output"], 1, "{variant}");
        assert_eq!(house.stream().await.text(), "whole answer", "{variant}: nothing was stored");
        assert_eq!(house.calls(), (2, 0));
    }
    let events = played(vec![content("Hel"), stop()]).await;
    assert_eq!((events.finishes(), events.done), (vec!["stop"], true), "V4");
}

/// Asks for a stream and reads the answer whole.
async fn asked(house: &House) -> (u16, String, String) {
    let answer = house.gw.chat("a", &streaming("m")).send().await;
    (answer.status, answer.header("content-type").to_owned(), answer.text())
}

#[tokio::test]
async fn in_band_upstream_error_on_http_200() {
    let invalid = r#"{"error":{"message":"invalid request","type":"invalid_request_error","code":400}}"#;
    let json = |status, body: &str| FakeAnswer {
        status,
        headers: Vec::new(),
        body: Bytes::from(body.to_owned()),
        cut_after_bytes: None,
    };
    let long = r#"{"error":{"message":"context too long","type":"invalid_request_error"}}"#;
    let variants: [(&str, Fault, &str); 3] = [
        ("V1", FakeStream::new([Step::text(": ping\n\n"), Step::event(invalid)]).into(), "invalid request"),
        ("V4", json(400, long).into(), "context too long"),
        ("V5", json(200, invalid).into(), "invalid request"),
    ];
    for (variant, fault, message) in variants {
        let house = House::new(FaultScript::of(fault)).await;
        let (status, media_type, body) = asked(&house).await;
        assert_eq!((status, media_type.as_str()), (400, "application/json"), "{variant}: {body}");
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(error["error"]["message"], message, "{variant}");
        assert_eq!(house.calls(), (1, 0), "{variant}");
        asked(&house).await;
        assert_eq!(house.calls(), (2, 0), "{variant}: not stored");
        assert_eq!(house.gw.records(2).await[0]["attempts"].as_array().unwrap().len(), 1);
    }
    let limited = r#"{"error":{"message":"slow down","type":"rate_limit_error","code":429}}"#;
    let house =
        House::new(FaultScript::of(FakeStream::new([Step::text(": ping\n\n"), Step::event(limited)]))).await;
    let events = house.stream().await;
    assert_eq!((events.text().as_str(), events.done, house.calls()), ("ok", true, (1, 1)), "V2");
    let late = r#"{"id":"c1","choices":[],"error":{"message":"overloaded","code":503}}"#;
    let house = House::new(FaultScript::of(FakeStream::new([content("Hel"), Step::event(late)]))).await;
    let events = house.stream().await;
    assert_eq!((events.text().as_str(), events.done, house.calls()), ("Hel", false, (1, 0)), "V3");
    assert!(events.error_text().contains("overloaded"), "{}", events.error_text());
    assert_eq!(house.gw.records(1).await[0]["outcome"], "failed");
}
