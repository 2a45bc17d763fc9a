//! Tests of neutral parts: what is read whole, and what is not read at all.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{Choice, Completion, DialectCodec, FinishReason, FrameFacts, StreamCollector, StreamItem};

use super::{ChatCodec, Collected, Collector, PartKind};
use crate::openai::{AnswerStamp, StreamDecoder, StreamOptions, completion_body, completion_events};

fn read(body: &str) -> Option<Completion> {
    ChatCodec.completion(&Bytes::copy_from_slice(body.as_bytes()))
}

fn collect(stream: &str) -> Option<Completion> {
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    decoder.push(Bytes::copy_from_slice(stream.as_bytes()), &mut items);
    let mut collector = ChatCodec.collector();
    items.iter().for_each(|item| collector.push(item));
    assert!(collector.bytes() <= stream.len());
    collector.finish()
}

const ANSWER: &str = r#"{"model":"s","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"why",
    "refusal":null,"annotations":[],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
    "logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#;

#[test]
fn an_answer_is_read_whole() {
    let completion = read(ANSWER).unwrap();
    let choice = &completion.choices[0];
    assert_eq!((choice.text.as_str(), choice.reasoning.as_str()), ("Hi", "why"));
    assert_eq!(choice.tool_calls[0].arguments, "{\"a\":1}");
    assert_eq!(choice.finish, FinishReason::ToolCalls);
    assert_eq!(completion.served_model.unwrap().as_str(), "s");
    assert_eq!(completion.usage.unwrap().total().get(), 18);
}

#[test]
fn what_has_no_neutral_form_is_not_read() {
    let message = |fields: &str| {
        format!(r#"{{"choices":[{{"message":{{"content":"a",{fields}}},"finish_reason":"stop"}}]}}"#)
    };
    assert!(read(&message(r#""x":1"#)).is_some());
    assert_eq!(read(&message(r#""audio":{"data":"A"}"#)), None);
    assert_eq!(read(&message(r#""function_call":{"name":"f","arguments":""}"#)), None);
    assert_eq!(read(&message(r#""annotations":[{"type":"url_citation"}]"#)), None);
    assert_eq!(read(&message(r#""content":[{"type":"image"}]"#)), None);
    assert_eq!(read(&message(r#""tool_calls":[{"function":{"name":"f"}}]"#)), None);
    assert_eq!(read(r#"{"choices":[{"message":{"content":"a"}}]}"#), None);
    assert_eq!(
        read(r#"{"choices":[{"message":{"content":"a"},"logprobs":{"content":[]},"finish_reason":"stop"}]}"#),
        None
    );
    assert_eq!(read(r#"{"error":{}}"#), None);
    assert_eq!(read("<html>"), None);
}

#[test]
fn parts_are_read() {
    let parts =
        r#"[{"type":"thinking","thinking":[{"type":"text","text":"why"}]},{"type":"text","text":"Hi"}]"#;
    let completion =
        read(&format!(r#"{{"choices":[{{"message":{{"content":{parts}}},"finish_reason":"stop"}}]}}"#))
            .unwrap();
    assert_eq!(
        (completion.choices[0].text.as_str(), completion.choices[0].reasoning.as_str()),
        ("Hi", "why")
    );
}

#[test]
fn a_refusal_is_no_plain_stop() {
    let completion =
        read(r#"{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}"#).unwrap();
    assert_eq!(completion.choices[0].finish, FinishReason::Refusal);
}

#[test]
fn a_stream_gives_what_the_answer_gives() {
    let completion = read(ANSWER).unwrap();
    let stamp = AnswerStamp { id: "id", created: 0, model: "s" };
    let mut stream: Vec<u8> = completion_events(&completion, &stamp, true).concat();
    stream.extend_from_slice(b"data: [DONE]\n\n");
    assert_eq!(collect(std::str::from_utf8(&stream).unwrap()), Some(completion.clone()));
    assert_eq!(ChatCodec.completion(&completion_body(&completion, &stamp)), Some(completion));
}

#[test]
fn an_unfinished_stream_is_not_read() {
    let hi = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let stop = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(collect(&format!("{hi}{stop}")).unwrap().choices[0].text, "Hi");
    assert_eq!(collect(hi), None);
    assert_eq!(collect(""), None);
    assert_eq!(collect(&format!("{hi}data: {{\"error\":\"x\"}}\n\n")), None);
    assert_eq!(collect(&format!("{hi}data: [DONE]\n\n")), None);
}

#[test]
fn i18_a_collector_prints_no_content() {
    assert!(!format!("{:?}", ChatCodec.collector()).contains("Partial"));
}

/// Returns the choices that are collected where every chunk is taken apart.
fn taken_apart(chunks: &[String], part: PartKind) -> Option<Vec<Choice>> {
    let mut collected = Collected::of(part);
    for chunk in chunks {
        collected.document(serde_json::from_str(chunk).ok()?);
    }
    collected.into_choices()
}

#[track_caller]
fn check_known(chunks: &[String], part: PartKind) {
    let mut collector = Box::new(Collector::of(part));
    for chunk in chunks {
        let raw = Bytes::from(format!("data: {chunk}\n\n"));
        collector.push(&StreamItem { raw, facts: FrameFacts::default() });
    }
    let found = collector.finish().map(|completion| completion.choices);
    assert_eq!(found, taken_apart(chunks, part), "{chunks:?}");
}

#[test]
fn chunks_that_are_known_by_their_text_say_what_they_say_taken_apart() {
    let delta = |inner: &str, index: u32, finish: &str| {
        format!(
            r#"{{"id":"x","choices":[{{"index":{index},"delta":{{{inner}}},"finish_reason":{finish}}}],"obfuscation":"ab"}}"#
        )
    };
    let end = delta("", 0, "\"stop\"");
    let texts = [r#""""#, r#""a""#, r#""é\n\u00e9""#, r#""\ud83d\ude00\"""#, "null", r#""b""#];
    for field in ["content", "reasoning_content", "reasoning", "refusal"] {
        let chunks = texts.iter().map(|text| delta(&format!("\"{field}\":{text}"), 0, "null"));
        check_known(&chunks.chain([end.clone()]).collect::<Vec<_>>(), PartKind::Delta);
    }
    // Half of a surrogate pair has no neutral form, in a known chunk as in the first.
    let broken =
        [delta(r#""content":"a""#, 0, "null"), delta(r#""content":"\ud83d""#, 0, "null"), end.clone()];
    check_known(&broken, PartKind::Delta);
    // Two choices in turn, and both fields in one chunk.
    let turns = (0..6).map(|at| delta(&format!("\"content\":\"{at}\""), at % 2, "null"));
    let ends = [delta("", 0, "\"stop\""), delta("", 1, "\"length\"")];
    check_known(&turns.chain(ends).collect::<Vec<_>>(), PartKind::Delta);
    let both = (0..3).map(|at| delta(&format!(r#""content":"{at}","reasoning":"{at}""#), 0, "null"));
    check_known(&both.chain([end]).collect::<Vec<_>>(), PartKind::Delta);
    let parts = (0..3).map(|at| {
        delta(
            &format!(r#""content":[{{"type":"thinking","thinking":[{{"type":"text","text":"{at}"}}]}}]"#),
            0,
            "null",
        )
    });
    check_known(&parts.chain([delta("", 0, "\"stop\"")]).collect::<Vec<_>>(), PartKind::Delta);
    let text =
        |text: &str, finish: &str| format!(r#"{{"choices":[{{"text":"{text}","finish_reason":{finish}}}]}}"#);
    check_known(&[text("a", "null"), text("b", "null"), text("c", "\"stop\"")], PartKind::Text);
}
