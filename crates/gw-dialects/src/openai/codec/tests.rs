//! Tests of neutral parts: what is read whole, and what is not read at all.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{Completion, DialectCodec, FinishReason};

use super::ChatCodec;
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
