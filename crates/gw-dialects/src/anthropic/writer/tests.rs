//! Tests of the stream writer: what it writes must read back, and keep to the order of the format.

use bytes::{Bytes, BytesMut};
use gw_types::{FinishReason, TokenCount, Usage};

use super::StreamWriter;
use crate::{
    anthropic::StreamReader,
    collect::Collector,
    neutral::{AnswerStamp, At, BlockKind, Content, Event, Message, Origin, Signature},
};

const STAMP: AnswerStamp<'_> = AnswerStamp { id: "msg_1", created: 7, model: "m" };

fn at(block: u32) -> At {
    At { choice: 0, block }
}

fn call(block: u32, id: &str) -> Event {
    let kind = BlockKind::ToolUse { id: id.to_owned(), name: "f".to_owned(), signature: None };
    Event::BlockStart(at(block), kind)
}

fn arguments(block: u32, text: &str) -> Event {
    Event::ArgumentsDelta(at(block), text.to_owned())
}

fn written(events: &[Event]) -> Bytes {
    let mut writer = StreamWriter::new(&STAMP);
    let mut out = BytesMut::new();
    events.iter().for_each(|event| writer.write(event, &mut out));
    out.freeze()
}

/// Checks the order of the format on the way: names equal types, and one block at a time.
fn read_back(stream: &Bytes) -> Message {
    let text = std::str::from_utf8(stream).unwrap();
    let mut open = None;
    let mut blocks = 0;
    for event in text.split_terminator("\n\n") {
        let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name);
        match name {
            "content_block_start" => {
                assert_eq!((open, &data["index"]), (None, &blocks.into()), "{text}");
                open = Some(blocks);
                blocks += 1;
            }
            "content_block_delta" => assert_eq!(data["index"], open.unwrap(), "{text}"),
            "content_block_stop" => assert_eq!(data["index"], open.take().unwrap(), "{text}"),
            "message_start" | "message_delta" | "message_stop" => assert_eq!(open, None, "{text}"),
            other => panic!("{other}"),
        }
    }
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    reader.push(stream.clone(), &mut events);
    reader.end(&mut events);
    assert!(matches!(events.last(), Some(Event::End)), "{text}");
    let mut collector = Collector::default();
    collector.extend(events);
    collector.finish()
}

fn finish(reason: FinishReason) -> [Event; 2] {
    [Event::Finish { choice: 0, reason, stop_sequence: None }, Event::End]
}

#[test]
fn interleaved_calls_stand_one_after_the_other() {
    let mut events = vec![
        Event::Start { id: None, model: None },
        Event::BlockStart(at(0), BlockKind::Text),
        Event::TextDelta(at(0), "A".to_owned()),
        Event::BlockStop(at(0)),
        call(1, "call_a"),
        call(2, "call_b"),
        arguments(1, "{\"p\""),
        arguments(2, "{\"q\""),
        arguments(1, ":1}"),
        arguments(2, ":2}"),
        Event::BlockStop(at(1)),
        Event::BlockStop(at(2)),
    ];
    events.extend(finish(FinishReason::ToolCalls));
    let message = read_back(&written(&events));
    let calls: Vec<(&str, &str)> = message.choices[0]
        .blocks
        .iter()
        .filter_map(|block| match block {
            Content::ToolUse(call) => Some((&*call.id, &*call.arguments)),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [("call_a", "{\"p\":1}"), ("call_b", "{\"q\":2}")]);
    assert_eq!(message.choices[0].finish, FinishReason::ToolCalls);
}

#[test]
fn signatures_of_others_are_tagged_once() {
    let gemini = |data: &str| Signature::new(Origin::Gemini, data);
    let signed =
        BlockKind::ToolUse { id: "t".to_owned(), name: "f".to_owned(), signature: Some(gemini("C")) };
    let mut events = vec![
        Event::BlockStart(at(0), BlockKind::Thinking),
        Event::ThinkingDelta(at(0), "Hm".to_owned()),
        Event::SignatureDelta(at(0), gemini("A")),
        Event::SignatureDelta(at(0), gemini("B")),
        Event::BlockStop(at(0)),
        Event::BlockStart(at(1), signed),
        Event::BlockStop(at(1)),
    ];
    events.extend(finish(FinishReason::ToolCalls));
    let message = read_back(&written(&events));
    let [Content::Thinking(thinking), Content::RedactedThinking(hidden), Content::ToolUse(_)] =
        &*message.choices[0].blocks
    else {
        panic!("{message:?}")
    };
    assert!(thinking.signature == Some(gemini("AB")) && *hidden == gemini("C"));
}

#[test]
fn usage_is_said_at_the_end() {
    let usage = Usage { input: TokenCount::new(11), output: TokenCount::new(7), ..Usage::default() };
    let mut events = vec![Event::BlockStart(at(0), BlockKind::Text), Event::Usage(usage)];
    events.extend(finish(FinishReason::Stop));
    assert_eq!(read_back(&written(&events)).usage, Some(usage));
}

#[test]
fn an_error_is_the_last_event() {
    let error = gw_types::GatewayError::new(gw_types::ErrorKind::StreamInterrupted, "cut");
    let stream = written(&[Event::Error(error), Event::End]);
    assert!(stream.starts_with(b"event: error\ndata: {\"type\":\"error\"") && stream.ends_with(b"}\n\n"));
    assert_eq!(stream.windows(6).filter(|window| window == b"event:").count(), 1);
}
