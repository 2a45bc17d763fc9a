//! Tests of the stream reader.

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason};

use super::StreamReader;
use crate::{
    collect::Collector,
    neutral::{Content, Event, Message, Origin, Signature},
};

fn events(data: &[&str]) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for data in data {
        reader.push(Bytes::from(format!("data: {data}\n\n")), &mut events);
    }
    reader.end(&mut events);
    events
}

fn message(data: &[&str]) -> Message {
    let mut collector = Collector::default();
    collector.extend(events(data));
    collector.finish()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","model":"claude","usage":{"input_tokens":11,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

#[test]
fn signed_thinking_survives_the_round_trip() {
    let message = message(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a\u00e9"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"/ b"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sig"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"+/=1"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"R=="}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t0","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#,
        STOP,
    ]);
    let [Content::Thinking(thinking), Content::RedactedThinking(hidden), Content::ToolUse(call)] =
        &*message.choices[0].blocks
    else {
        panic!("{message:?}")
    };
    assert_eq!(thinking.text, "aé/ b");
    assert!(thinking.signature == Some(Signature::new(Origin::Anthropic, "Sig+/=1")));
    assert!(*hidden == Signature::new(Origin::Anthropic, "R=="));
    // A tool without arguments sends none, and a caller could not parse nothing.
    assert_eq!((&*call.id, &*call.arguments), ("t0", "{}"));
    assert_eq!(message.choices[0].finish, FinishReason::ToolCalls);
    let usage = message.usage.unwrap();
    assert_eq!((usage.input_total().get(), usage.output_total().get()), (11, 7));
}

#[test]
fn the_tool_that_stands_for_a_schema_is_text() {
    let message = message(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"gw_structured_answer","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        STOP,
    ]);
    assert_eq!(message.choices[0].blocks[0].as_text(), Some("{\"a\":1}"));
    assert_eq!(message.choices[0].finish, FinishReason::Stop);
}

#[test]
fn a_refusal_says_why() {
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"no"}}}"#;
    let message = message(&[START, delta, STOP]);
    assert!(matches!(&message.choices[0].blocks[0], Content::Refusal(text) if text == "no"));
    assert_eq!(message.choices[0].finish, FinishReason::Refusal);
}

#[test]
fn a_stream_ends_with_its_last_event_alone() {
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    for (data, kind) in [
        (vec![START, delta], ErrorKind::StreamInterrupted),
        (vec![START, overloaded, STOP], ErrorKind::ProviderUnavailable),
        (vec![START, "x"], ErrorKind::MalformedResponse),
    ] {
        let events = events(&data);
        let Some(Event::Error(error)) = events.last() else { panic!("{events:?}") };
        assert_eq!(error.kind(), kind);
    }
}
