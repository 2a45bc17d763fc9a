//! Tests of the stream reader.

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason};

use super::StreamReader;
use crate::{
    collect::Collector,
    neutral::{Content, Event, Message},
};

fn event(kind: &str, fields: &str) -> String {
    format!("event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",{fields}}}\n\n")
}

fn events(body: &str, size: usize) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for piece in body.as_bytes().chunks(size) {
        reader.push(Bytes::copy_from_slice(piece), &mut events);
    }
    reader.end(&mut events);
    events
}

/// Reads a complete stream, however it is cut.
fn message(parts: &[String]) -> Message {
    let body = parts.concat();
    let collect = |size| {
        let events = events(&body, size);
        assert!(matches!(events.last(), Some(Event::End)), "{:?}", events.last());
        let mut collector = Collector::default();
        collector.extend(events);
        collector.finish()
    };
    let whole = collect(usize::MAX);
    assert_eq!(collect(1), whole);
    whole
}

#[track_caller]
fn fails(body: &str, kind: ErrorKind) {
    for size in [usize::MAX, 1] {
        let events = events(body, size);
        let Some(Event::Error(error)) = events.last() else { panic!("{:?}", events.last()) };
        assert_eq!(error.kind(), kind, "{body}");
    }
}

fn added(index: u32, item: &str) -> String {
    event("output_item.added", &format!("\"output_index\":{index},\"item\":{{{item}}}"))
}

fn done(index: u32, item: &str) -> String {
    event("output_item.done", &format!("\"output_index\":{index},\"item\":{{{item}}}"))
}

fn completed() -> String {
    event("completed", r#""response":{"status":"completed","output":[]}"#)
}

const CALL: &str = r#""type":"function_call","call_id":"c","name":"f","arguments":"{\"p\":1}""#;

#[test]
fn what_comes_whole_is_read_whole() {
    let text = r#""type":"message","content":[{"type":"output_text","text":"A"}]"#;
    let read = message(&[added(0, text), done(0, text), added(1, CALL), done(1, CALL), completed()]);
    let blocks = &read.choices[0].blocks;
    assert_eq!(blocks[0].as_text(), Some("A"));
    assert!(matches!(&blocks[1], Content::ToolUse(call) if call.arguments == "{\"p\":1}"));
    assert_eq!(read.choices[0].finish, FinishReason::ToolCalls);
    let last = format!(r#""response":{{"output":[{{{text}}}]}}"#);
    assert_eq!(message(&[event("completed", &last)]).choices[0].blocks[0].as_text(), Some("A"));
}

#[test]
fn items_are_told_apart_by_their_place() {
    let delta = |index: u32, id: &str, text: &str| {
        let fields = format!(r#""output_index":{index},"item_id":"{id}","delta":"{text}""#);
        event("function_call_arguments.delta", &fields)
    };
    let call = |id: &str| format!(r#""type":"function_call","call_id":"{id}","name":"f","arguments":"""#);
    let read = message(&[
        added(0, &call("a")),
        added(1, &call("b")),
        delta(0, "x", "{1"),
        delta(1, "y", "{2"),
        delta(0, "z", "}"),
        delta(1, "y", "}"),
        done(0, &call("a")),
        done(1, &call("b")),
        completed(),
    ]);
    let calls: Vec<(&str, &str)> = read.choices[0]
        .blocks
        .iter()
        .map(|block| match block {
            Content::ToolUse(call) => (call.id.as_str(), call.arguments.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, [("a", "{1}"), ("b", "{2}")]);
}

#[test]
fn reasoning_is_one_block_an_item() {
    let summary = |part: u32, text: &str| {
        event(
            "reasoning_summary_text.delta",
            &format!(r#""output_index":0,"summary_index":{part},"delta":"{text}""#),
        )
    };
    let content = event("reasoning_text.delta", r#""output_index":0,"content_index":0,"delta":"again""#);
    let read = message(&[
        added(0, r#""type":"reasoning""#),
        summary(0, "a"),
        content,
        summary(1, "b"),
        event("content_part.done", r#""output_index":0,"content_index":0"#),
        done(0, r#""type":"reasoning","encrypted_content":"E""#),
        completed(),
    ]);
    let [Content::Thinking(thinking)] = read.choices[0].blocks.as_slice() else { panic!("{read:?}") };
    assert_eq!((thinking.text.as_str(), &*thinking.signature.as_ref().unwrap().data), ("a\n\nb", "E"));
}

#[test]
fn a_refusal_is_the_reason() {
    let delta = event("refusal.delta", r#""output_index":0,"content_index":0,"delta":"No.""#);
    assert_eq!(message(&[delta, completed()]).choices[0].finish, FinishReason::Refusal);
}

#[test]
fn items_of_openais_own_stay_as_they_are() {
    let search = r#""type":"web_search_call","status":"completed","x":1e400"#;
    let read = message(&[added(0, search), done(0, search), completed()]);
    assert!(
        matches!(&read.choices[0].blocks[0], Content::Opaque(item) if item.value.as_str() == format!("{{{search}}}"))
    );
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    let delta = event("output_text.delta", r#""output_index":0,"content_index":0,"delta":"Hel""#);
    fails(&delta, ErrorKind::StreamInterrupted);
    fails(&format!("{delta}data: [DONE]\n\n"), ErrorKind::StreamInterrupted);
    fails("", ErrorKind::StreamInterrupted);
    assert!(matches!(events(completed().trim_end(), 1).last(), Some(Event::End)));
}

#[test]
fn in_band_upstream_error_on_http_200() {
    fails(
        "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}\n\n",
        ErrorKind::ProviderRateLimited,
    );
    fails("data: {\"error\":{\"message\":\"m\",\"code\":400}}\n\n", ErrorKind::InvalidRequest);
    let failed = r#""response":{"status":"failed","error":{"code":"server_error","message":"m"}}"#;
    fails(&event("failed", failed), ErrorKind::ProviderUnavailable);
    let unsaid = r#""response":{"error":{"code":"rate_limit_exceeded","message":"m"}}"#;
    fails(&event("failed", unsaid), ErrorKind::ProviderRateLimited);
    fails("data: {\"choices\":[]}\n\n", ErrorKind::MalformedResponse);
    fails("data: 7\n\n", ErrorKind::MalformedResponse);
    fails(&event("completed", r#""x":1"#), ErrorKind::MalformedResponse);
}

#[test]
fn items_are_bounded() {
    let many: String = (0..5_000).map(|index| added(index, r#""type":"message""#)).collect();
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    reader.push(Bytes::from(many), &mut events);
    assert!(
        matches!(events.last(), Some(Event::Error(error)) if error.kind() == ErrorKind::MalformedResponse)
    );
}
