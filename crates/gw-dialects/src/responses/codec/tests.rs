//! Tests of the codec.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{Choice, Completion, DialectCodec, FinishReason, TokenCount, ToolCall, Usage};

use super::{ResponsesCodec, completion_body, completion_events};
use crate::{neutral::AnswerStamp, responses::StreamDecoder};

const STAMP: AnswerStamp<'static> = AnswerStamp { id: "resp_1", created: 7, model: "m" };

fn completion(choice: Choice) -> Completion {
    let usage = Usage { input: TokenCount::new(3), output: TokenCount::new(2), ..Usage::default() };
    Completion {
        choices: vec![choice],
        served_model: Some(gw_types::BoundedText::new("served")),
        usage: Some(usage),
    }
}

fn choice(text: &str, finish: FinishReason) -> Choice {
    let text = text.to_owned();
    Choice { text, reasoning: String::new(), refusal: None, tool_calls: Vec::new(), finish }
}

fn choices() -> [Choice; 4] {
    let call = |id: &str| ToolCall { id: id.to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() };
    [
        choice("Hé\n", FinishReason::Stop),
        Choice { reasoning: "Hm.".to_owned(), ..choice("cut", FinishReason::Length) },
        Choice { refusal: Some("No.".to_owned()), ..choice("", FinishReason::Refusal) },
        Choice { tool_calls: vec![call("a"), call("b")], ..choice("I look.", FinishReason::ToolCalls) },
    ]
}

#[test]
fn whole_answers_read_back_as_they_were_written() {
    for choice in choices() {
        let written = completion(choice);
        assert_eq!(ResponsesCodec.completion(&completion_body(&written, &STAMP)), Some(written));
    }
}

#[test]
fn streamed_answers_read_back_as_they_were_written() {
    for choice in choices() {
        let written = completion(choice);
        let mut decoder = StreamDecoder::new();
        let mut items = VecDeque::new();
        for piece in completion_events(&written, &STAMP).chunks(7) {
            decoder.push(Bytes::copy_from_slice(piece), &mut items);
        }
        items.push_back(decoder.end().unwrap());
        let mut collector = ResponsesCodec.collector();
        items.iter().for_each(|item| collector.push(item));
        assert!(collector.bytes() > 0);
        assert_eq!(collector.finish(), Some(written));
    }
}

#[test]
fn what_has_no_neutral_form_is_not_read() {
    let read = |output: &str| {
        let body = format!(r#"{{"status":"completed","output":[{output}]}}"#);
        ResponsesCodec.completion(&Bytes::from(body))
    };
    let text = r#"{"type":"message","content":[{"type":"output_text","text":"a"}]}"#;
    assert!(read(text).is_some());
    for output in [
        format!("{text},{text}"),
        format!(r#"{{"type":"web_search_call"}},{text}"#),
        format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"E"}},{text}"#),
        r#"{"type":"message","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u"}]}]}"#
            .to_owned(),
        r#"{"type":"message","content":[{"type":"output_text","text":"a","logprobs":[{"token":"a"}]}]}"#.to_owned(),
    ] {
        assert_eq!(read(&output), None, "{output}");
    }
    assert_eq!(ResponsesCodec.completion(&Bytes::from_static(b"{}")), None);
}
