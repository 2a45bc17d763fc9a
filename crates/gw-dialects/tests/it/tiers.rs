//! The tier that served an answer reaches the caller of every format, whole and streamed, or is reported as lost.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::{
    event_stream::{HeaderValue, encode},
    neutral::AnswerStamp,
    translate::{self, StreamTranslation, StreamTranslator, WireFormat},
};
use gw_types::Operation;
use serde_json::{Value, json};

const STAMP: AnswerStamp<'_> = AnswerStamp { id: "a_1", created: 7, model: "m" };
const CALLERS: [Operation; 3] = [Operation::Chat, Operation::Responses, Operation::Messages];

/// Returns the tier that an answer or an event says, wherever the format has it.
fn said(value: &Value) -> Option<String> {
    ["/service_tier", "/response/service_tier", "/usage/service_tier", "/message/usage/service_tier"]
        .iter()
        .find_map(|place| value.pointer(place)?.as_str().map(str::to_owned))
}

/// Returns the last tier that a caller reads, and whether one is reported as lost.
fn streamed(from: WireFormat, stream: &Bytes, to: Operation) -> (Option<String>, bool) {
    let mut translator =
        StreamTranslator::new(&StreamTranslation { from, to, stamp: STAMP, relay_usage: false }).unwrap();
    let mut items = VecDeque::new();
    translator.push(stream.clone(), &mut items);
    items.push_back(translator.end().unwrap());
    let losses = items.iter().filter_map(|item| item.facts.loss.as_ref()).flat_map(|loss| &loss.items);
    let is_lost = losses.into_iter().any(|item| item.path.as_str() == "answer.service_tier");
    let text: Vec<u8> = items.iter().flat_map(|item| item.raw.to_vec()).collect();
    let text = String::from_utf8(text).unwrap();
    let events = text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
    (events.filter_map(|event: Value| said(&event)).next_back(), is_lost)
}

fn whole(from: WireFormat, answer: &Value, to: Operation) -> (Option<String>, bool) {
    let (body, facts) = translate::answer(from, &Bytes::from(answer.to_string()), to, &STAMP).unwrap();
    let is_lost = facts.loss.items.iter().any(|item| item.path.as_str() == "answer.service_tier");
    (said(&serde_json::from_slice(&body).unwrap()), is_lost)
}

/// Checks what callers of chat, responses and messages read; `None` is a loss that is reported.
#[track_caller]
fn check(from: WireFormat, answer: &Value, stream: &Bytes, expected: [[Option<&str>; 3]; 2]) {
    for (place, to) in CALLERS.into_iter().enumerate() {
        let expect = |row: usize| (expected[row][place].map(str::to_owned), expected[row][place].is_none());
        assert_eq!(whole(from, answer, to), expect(0), "{from:?} for {to:?}, whole");
        assert_eq!(streamed(from, stream, to), expect(1), "{from:?} for {to:?}, streamed");
    }
}

fn sse(events: &[Value]) -> Bytes {
    Bytes::from(events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

fn same(tiers: [Option<&str>; 3]) -> [[Option<&str>; 3]; 2] {
    [tiers, tiers]
}

#[test]
fn of_chat() {
    let message = json!({"role": "assistant", "content": "a"});
    for (tier, expected) in [
        ("flex", [Some("flex"), Some("flex"), None]),
        ("priority", [Some("priority"); 3]),
        ("on_demand", [Some("default"), Some("default"), Some("standard")]),
        ("performance", [None, None, None]),
    ] {
        let whole = json!({"id": "c", "model": "m", "service_tier": tier, "choices":
            [{"index": 0, "message": message, "finish_reason": "stop"}]});
        let chunk = json!({"id": "c", "model": "m", "service_tier": tier, "choices":
            [{"index": 0, "delta": message, "finish_reason": "stop"}]});
        check(WireFormat::OpenAiChat, &whole, &sse(&[chunk]), same(expected));
    }
}

#[test]
fn of_responses_at_the_end_of_the_stream() {
    let response = json!({"id": "r", "model": "m", "status": "completed", "service_tier": "priority", "output":
        [{"type": "message", "id": "i", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "a", "annotations": []}]}]});
    let asked =
        json!({"id": "r", "model": "m", "status": "in_progress", "service_tier": "auto", "output": []});
    let stream = sse(&[
        json!({"type": "response.created", "response": asked}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "a"}),
        json!({"type": "response.completed", "response": response}),
    ]);
    // Messages say it when they begin, and then it is not known.
    let expected = [[Some("priority"); 3], [Some("priority"), Some("priority"), None]];
    check(WireFormat::OpenAiResponses, &response, &stream, expected);
}

#[test]
fn of_messages() {
    for (tier, expected) in [
        ("standard", [Some("default"), Some("default"), Some("standard")]),
        ("batch", [None, None, Some("batch")]),
    ] {
        let usage = json!({"input_tokens": 1, "output_tokens": 1, "service_tier": tier});
        let message = |content: Value, reason: Value| {
            json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
                "stop_reason": reason, "stop_sequence": null, "usage": usage})
        };
        let text = json!({"type": "text", "text": "a"});
        let stream = sse(&[
            json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
            json!({"type": "content_block_start", "index": 0, "content_block": text}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ]);
        let whole = message(json!([text]), json!("end_turn"));
        check(WireFormat::AnthropicMessages, &whole, &stream, same(expected));
    }
}

#[test]
fn of_gemini() {
    let answer = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2, "serviceTier": "FLEX"}});
    let stream = sse(std::slice::from_ref(&answer));
    check(WireFormat::Gemini, &answer, &stream, same([Some("flex"), Some("flex"), None]));
}

#[test]
fn of_bedrock_in_its_last_event() {
    let usage = json!({"inputTokens": 1, "outputTokens": 1, "totalTokens": 2});
    let tier = json!({"type": "priority"});
    let answer = json!({"output": {"message": {"role": "assistant", "content": [{"text": "a"}]}},
        "stopReason": "end_turn", "usage": usage, "serviceTier": tier});
    let frame = |kind: &str, payload: Value| {
        let headers =
            [(":message-type", HeaderValue::Text("event")), (":event-type", HeaderValue::Text(kind))];
        encode(&headers, payload.to_string().as_bytes()).to_vec()
    };
    let stream = [
        frame("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "a"}})),
        frame("messageStop", json!({"stopReason": "end_turn"})),
        frame("metadata", json!({"usage": usage, "serviceTier": tier})),
    ];
    let expected = [[Some("priority"); 3], [Some("priority"), Some("priority"), None]];
    check(WireFormat::BedrockConverse, &answer, &Bytes::from(stream.concat()), expected);
}
