//! Tests of the stream writer.

use bytes::BytesMut;
use gw_types::{FinishReason, TokenCount, Usage};

use super::StreamWriter;
use crate::neutral::{AnswerStamp, At, BlockKind, Event, Origin, Signature};

const STAMP: AnswerStamp<'_> = AnswerStamp { id: "chatcmpl-1", created: 7, model: "m" };

/// Returns the `choices` of every chunk.
fn written(events: &[Event], include_usage: bool) -> Vec<String> {
    let mut writer = StreamWriter::new(&STAMP, include_usage);
    let mut out = BytesMut::new();
    events.iter().for_each(|event| writer.write(event, &mut out));
    let text = String::from_utf8(out.to_vec()).unwrap();
    let head =
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":"#;
    text.split_terminator("\n\n").map(|chunk| chunk.strip_prefix(head).unwrap().to_owned()).collect()
}

fn finish(reason: FinishReason) -> Event {
    Event::Finish { choice: 0, reason, stop_sequence: None }
}

#[test]
fn text_reasoning_and_usage() {
    let thinking = At { choice: 0, block: 0 };
    let text = At { choice: 0, block: 1 };
    let usage = Usage { input: TokenCount::new(2), output: TokenCount::new(3), ..Usage::default() };
    let events = [
        Event::Start { id: None, model: None },
        Event::BlockStart(thinking, BlockKind::Thinking),
        Event::ThinkingDelta(thinking, "Hm".to_owned()),
        Event::SignatureDelta(thinking, Signature::new(Origin::Anthropic, "S")),
        Event::SignatureDelta(thinking, Signature::new(Origin::Anthropic, "T")),
        Event::BlockStop(thinking),
        Event::BlockStart(text, BlockKind::Text),
        Event::TextDelta(text, "A".to_owned()),
        Event::BlockStop(text),
        Event::Usage(usage),
        finish(FinishReason::Stop),
        Event::End,
    ];
    let chunk = |delta: &str, reason: &str| {
        format!(r#"[{{"index":0,"delta":{{{delta}}},"logprobs":null,"finish_reason":{reason}}}]}}"#)
    };
    let mut expected = vec![
        chunk(r#""role":"assistant","content":"""#, "null"),
        chunk(r#""reasoning_content":"Hm""#, "null"),
        chunk(
            r#""reasoning_details":[{"type":"reasoning.text","text":"Hm","signature":"ST","index":0}]"#,
            "null",
        ),
        chunk(r#""content":"A""#, "null"),
        chunk("", r#""stop""#),
    ];
    assert_eq!(written(&events, false), expected);
    expected.push(
        concat!(
            r#"[],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5,"#,
            r#""prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"#,
            r#""completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}}"#
        )
        .to_owned(),
    );
    assert_eq!(written(&events, true), expected);
}

#[test]
fn calls_are_numbered_in_order() {
    let call = |block, id: &str| {
        let kind = BlockKind::ToolUse { id: id.to_owned(), name: "f".to_owned(), signature: None };
        Event::BlockStart(At { choice: 0, block }, kind)
    };
    let events =
        [call(1, "a"), call(3, "b"), Event::ArgumentsDelta(At { choice: 0, block: 3 }, "{}".to_owned())];
    let chunks = written(&events, false);
    assert!(
        chunks[1]
            .contains(r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#)
    );
    assert!(chunks[2].contains(r#"{"index":1,"id":"b""#), "{chunks:?}");
    assert!(chunks[3].contains(r#""tool_calls":[{"index":1,"function":{"arguments":"{}"}}]"#), "{chunks:?}");
}
