//! Tests of the stream reader.

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason, GatewayError};

use super::StreamReader;
use crate::{
    collect::Collector,
    event_stream::{HeaderValue, encode},
    neutral::{Content, Event, Message},
};

fn frame(kind: &str, payload: &str) -> Bytes {
    let headers = [(":event-type", HeaderValue::Text(kind)), (":message-type", HeaderValue::Text("event"))];
    encode(&headers, payload.as_bytes())
}

fn exception(kind: &str) -> Bytes {
    let headers =
        [(":exception-type", HeaderValue::Text(kind)), (":message-type", HeaderValue::Text("exception"))];
    encode(&headers, br#"{"message":"m"}"#)
}

fn delta(index: u32, delta: &str) -> Bytes {
    frame("contentBlockDelta", &format!(r#"{{"contentBlockIndex":{index},"delta":{{{delta}}},"p":"abc"}}"#))
}

fn start(index: u32, start: &str) -> Bytes {
    frame("contentBlockStart", &format!(r#"{{"contentBlockIndex":{index},"start":{{{start}}}}}"#))
}

fn stop(index: u32) -> Bytes {
    frame("contentBlockStop", &format!(r#"{{"contentBlockIndex":{index}}}"#))
}

fn ends(reason: &str) -> Bytes {
    frame("messageStop", &format!(r#"{{"stopReason":"{reason}"}}"#))
}

fn metadata() -> Bytes {
    frame(
        "metadata",
        r#"{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":1}}"#,
    )
}

fn events(body: &[u8], chunk_bytes: usize) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for chunk in body.chunks(chunk_bytes) {
        reader.push(Bytes::copy_from_slice(chunk), &mut events);
    }
    reader.end(&mut events);
    events
}

fn read(frames: &[Bytes]) -> Result<Message, GatewayError> {
    let body = frames.concat();
    let whole = events(&body, body.len().max(1));
    for chunk_bytes in [1, 3, 12, 16] {
        assert_eq!(events(&body, chunk_bytes), whole, "{chunk_bytes} bytes a chunk");
    }
    let last = whole.last().cloned();
    let mut collector = Collector::default();
    collector.extend(whole);
    match last {
        Some(Event::End) => Ok(collector.finish()),
        Some(Event::Error(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn fails(frames: &[Bytes], kind: ErrorKind) {
    assert_eq!(read(frames).map_err(|error| error.kind()), Err(kind));
}

#[test]
fn every_kind_of_block_is_read() {
    let frames = [
        frame("messageStart", r#"{"role":"assistant","p":"ab"}"#),
        delta(0, r#""reasoningContent":{"text":"h"}"#),
        delta(0, r#""reasoningContent":{"text":"m"}"#),
        delta(0, r#""reasoningContent":{"signature":"S"}"#),
        stop(0),
        delta(1, r#""reasoningContent":{"redactedContent":"R"}"#),
        stop(1),
        delta(2, r#""citation":{"title":"t"}"#),
        delta(2, r#""text":"a""#),
        delta(2, r#""text":"b""#),
        stop(2),
        start(3, r#""toolUse":{"toolUseId":"c","name":"f"}"#),
        delta(3, r#""toolUse":{"input":""}"#),
        delta(3, r#""toolUse":{"input":"{\"x\""}"#),
        delta(3, r#""toolUse":{"input":":1}"}"#),
        stop(3),
        start(4, r#""toolUse":{"toolUseId":"d","name":"g"}"#),
        stop(4),
        ends("tool_use"),
        metadata(),
    ];
    let message = read(&frames).unwrap();
    let choice = &message.choices[0];
    assert_eq!(choice.finish, FinishReason::ToolCalls);
    assert_eq!(message.usage.unwrap().total().get(), 7);
    let blocks = &choice.blocks;
    assert_eq!(blocks.len(), 5);
    assert!(
        matches!(&blocks[0], Content::Thinking(t) if t.text == "hm" && t.signature.as_ref().unwrap().data == "S")
    );
    assert!(matches!(&blocks[1], Content::RedactedThinking(signature) if signature.data == "R"));
    assert!(matches!(&blocks[2], Content::Text(t) if t.text == "ab" && t.citations.len() == 1));
    assert!(matches!(&blocks[3], Content::ToolUse(call) if call.arguments == "{\"x\":1}"));
    assert!(matches!(&blocks[4], Content::ToolUse(call) if call.arguments == "{}" && call.id == "d"));
}

#[test]
fn tools_of_the_server_stay_whole() {
    let frames = [
        start(0, r#""toolUse":{"toolUseId":"s","name":"web","type":"server_tool_use"}"#),
        delta(0, r#""toolUse":{"input":"{\"q\":1}"}"#),
        stop(0),
        start(1, r#""toolResult":{"toolUseId":"s","status":"success","type":"web_result"}"#),
        delta(1, r#""toolResult":[{"json":{"a":1}}]"#),
        stop(1),
        ends("end_turn"),
        metadata(),
    ];
    let message = read(&frames).unwrap();
    let values: Vec<_> = message.choices[0]
        .blocks
        .iter()
        .map(|block| match block {
            Content::Opaque(opaque) => opaque.value.as_str().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(message.choices[0].finish, FinishReason::Stop);
    assert_eq!(
        values,
        [
            r#"{"toolUse":{"toolUseId":"s","name":"web","input":{"q":1},"type":"server_tool_use"}}"#,
            r#"{"toolResult":{"toolUseId":"s","content":[{"json":{"a":1}}],"status":"success","type":"web_result"}}"#,
        ]
    );
}

#[test]
fn blocks_that_are_not_stopped_are_ended() {
    let frames = [
        delta(0, r#""text":"a""#),
        start(1, r#""toolUse":{"toolUseId":"c","name":"f"}"#),
        delta(2, r#""text":"b""#),
        ends("end_turn"),
    ];
    let body = frames.concat();
    let (mut begun, mut stopped) = (0, 0);
    for event in events(&body, 7) {
        match event {
            Event::BlockStart(..) => begun += 1,
            Event::BlockStop(_) => stopped += 1,
            Event::Finish { .. } => assert_eq!((begun, stopped), (3, 3)),
            _ => {}
        }
    }
    assert_eq!(read(&frames).unwrap().choices[0].finish, FinishReason::ToolCalls);
}

#[test]
fn usage_comes_before_or_after_the_end() {
    let text = delta(0, r#""text":"a""#);
    for frames in [[text.clone(), ends("end_turn"), metadata()], [text.clone(), metadata(), ends("end_turn")]]
    {
        assert_eq!(read(&frames).unwrap().usage.unwrap().output.get(), 4);
    }
    assert_eq!(read(&[text.clone(), ends("end_turn")]).unwrap().usage, None);
    // Nothing is read behind the end.
    let body = [text, ends("end_turn"), metadata(), delta(0, r#""text":"b""#)].concat();
    assert_eq!(events(&body, body.len()).last(), Some(&Event::End));
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    fails(&[], ErrorKind::StreamInterrupted);
    fails(&[delta(0, r#""text":"a""#)], ErrorKind::StreamInterrupted);
    fails(&[delta(0, r#""text":"a""#), metadata()], ErrorKind::StreamInterrupted);
    let cut = ends("end_turn").slice(..20);
    fails(&[delta(0, r#""text":"a""#), cut], ErrorKind::StreamInterrupted);
    let cut = metadata().slice(..20);
    fails(&[ends("end_turn"), cut], ErrorKind::StreamInterrupted);
}

#[test]
fn in_band_upstream_error_on_http_200() {
    let text = || delta(0, r#""text":"a""#);
    fails(&[text(), exception("throttlingException"), ends("end_turn")], ErrorKind::ProviderRateLimited);
    fails(&[exception("modelStreamErrorException")], ErrorKind::ProviderUnavailable);
    let mut damaged = ends("end_turn").to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    fails(&[text(), Bytes::from(damaged)], ErrorKind::MalformedResponse);
    fails(&[Bytes::from_static(b"{\"message\":\"not an event stream\"}")], ErrorKind::MalformedResponse);
    fails(&[frame("messageStop", "{")], ErrorKind::MalformedResponse);
    fails(&[ends("malformed_tool_use")], ErrorKind::MalformedResponse);
}

#[test]
fn i18_debug_shows_no_content() {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    reader.push(delta(0, r#""text":"hunter2""#), &mut events);
    reader.push(start(1, r#""toolUse":{"toolUseId":"s","name":"w","type":"server_tool_use"}"#), &mut events);
    reader.push(delta(1, r#""toolUse":{"input":"hunter2"}"#), &mut events);
    assert!(!format!("{reader:?}{events:?}").contains("hunter2"));
}
