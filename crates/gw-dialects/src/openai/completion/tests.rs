//! Tests of the answers that gw writes.

use gw_types::{Choice, Completion, FinishReason, TokenCount, ToolCall, Usage};

use super::{AnswerStamp, completion_body, completion_events, done_event, length_event};

const STAMP: AnswerStamp<'static> = AnswerStamp { id: "id-1", created: 7, model: "m" };

fn completion(choice: Choice) -> Completion {
    let usage = Usage {
        input: TokenCount::new(1_010),
        cached_input: TokenCount::new(2_000),
        output: TokenCount::new(90),
        reasoning: TokenCount::new(10),
        ..Usage::default()
    };
    Completion { choices: vec![choice], served_model: None, usage: Some(usage) }
}

fn choice() -> Choice {
    Choice {
        text: "a\"b\n".to_owned(),
        reasoning: String::new(),
        refusal: None,
        tool_calls: Vec::new(),
        finish: FinishReason::Stop,
    }
}

const USAGE: &str = r#""usage":{"prompt_tokens":3010,"completion_tokens":100,"total_tokens":3110,"prompt_tokens_details":{"cached_tokens":2000,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":10,"audio_tokens":0}}"#;

fn calling() -> Choice {
    let call = ToolCall { id: "c1".to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() };
    Choice { text: String::new(), tool_calls: vec![call], finish: FinishReason::ToolCalls, ..choice() }
}

#[test]
fn a_body_is_written() {
    let expected = format!(
        r#"{{"id":"id-1","object":"chat.completion","created":7,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"a\"b\n","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],{USAGE}}}"#
    );
    assert_eq!(completion_body(&completion(choice()), &STAMP), expected);
}

#[test]
fn tool_calls_take_the_place_of_text() {
    let body = completion_body(&completion(calling()), &STAMP);
    let text = std::str::from_utf8(&body).unwrap();
    let message = r#"{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    assert!(text.contains(message), "{text}");
    assert!(text.contains(r#""finish_reason":"tool_calls""#));
}

#[test]
fn events_are_written() {
    let events = completion_events(&completion(choice()), &STAMP, true);
    let head = r#"data: {"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m","choices":["#;
    let delta = |delta: &str, finish: &str| {
        format!(
            "{head}{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let expected = [
        delta(r#""role":"assistant","content":"""#, "null"),
        delta(r#""content":"a\"b\n""#, "null"),
        delta("", "\"stop\""),
        format!("{head}],{USAGE}}}\n\n"),
    ];
    assert_eq!(events, expected);
    assert_eq!(completion_events(&completion(choice()), &STAMP, false).len(), 3);
    let calls = &completion_events(&completion(calling()), &STAMP, false)[1];
    assert!(
        String::from_utf8_lossy(calls).contains(r#""tool_calls":[{"index":0,"id":"c1","type":"function""#)
    );
}

#[test]
fn endings_are_written() {
    let expected = "data: {\"id\":\"id-1\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\n";
    assert_eq!(length_event(&STAMP), expected);
    assert_eq!(done_event(), "data: [DONE]\n\n");
}
