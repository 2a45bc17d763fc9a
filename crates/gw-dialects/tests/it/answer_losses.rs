//! What a caller of another format does not see of an answer: named, and the same for a whole answer and its stream.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::{
    event_stream::{HeaderValue, encode},
    neutral::AnswerStamp,
    translate::{self, StreamTranslation, StreamTranslator, WireFormat},
};
use gw_types::{Loss, LossKind, Operation};
use serde_json::{Value, json};

const STAMP: AnswerStamp<'_> = AnswerStamp { id: "a_1", created: 7, model: "m" };

type Lost<'a> = (&'a str, LossKind);

const fn dropped(path: &str) -> Lost<'_> {
    (path, LossKind::Dropped)
}

fn shown(loss: &Loss) -> Vec<Lost<'_>> {
    loss.items.iter().map(|item| (item.path.as_str(), item.kind)).collect()
}

#[track_caller]
fn check(from: WireFormat, answer: &Value, to: Operation, expected: &[Lost<'_>]) {
    let (_, facts) = translate::answer(from, &Bytes::from(answer.to_string()), to, &STAMP).unwrap();
    assert_eq!(shown(&facts.loss), expected, "{to:?}: {answer}");
}

#[track_caller]
fn check_stream(from: WireFormat, stream: &Bytes, to: Operation, expected: &[Lost<'_>]) {
    for step in [stream.len(), 7] {
        let mut translator =
            StreamTranslator::new(&StreamTranslation { from, to, stamp: STAMP, relay_usage: true }).unwrap();
        let mut items = VecDeque::new();
        for start in (0..stream.len()).step_by(step) {
            translator.push(stream.slice(start..stream.len().min(start + step)), &mut items);
        }
        items.push_back(translator.end().unwrap());
        let items = items.into_iter().filter_map(|item| item.facts.loss).flat_map(|loss| loss.items);
        let loss = Loss { items: items.collect() };
        assert_eq!(shown(&loss), expected, "{to:?}, {step} bytes at a time");
    }
}

fn chat(choices: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion", "model": "m", "choices": choices, "service_tier": "flex",
        "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
}

fn sse(events: &[Value]) -> Bytes {
    Bytes::from(events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

#[test]
fn chat_answers() {
    let logprobs = json!({"content": [{"token": "a", "logprob": -0.1, "bytes": null, "top_logprobs": []}]});
    let message = json!({"role": "assistant", "content": "a", "audio": {"id": "x", "data": "QQ=="},
        "annotations": [{"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}]});
    let answer = chat(&json!([
        {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"},
        {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "stop"},
    ]));
    check(
        WireFormat::OpenAiChat,
        &answer,
        Operation::Messages,
        &[
            dropped("answer.blocks[0].citations"),
            dropped("answer.logprobs"),
            dropped("answer.choices[1]"),
            dropped("answer.service_tier"),
            dropped("answer.choices[].message.audio"),
        ],
    );
    check(
        WireFormat::OpenAiChat,
        &answer,
        Operation::Responses,
        &[dropped("answer.choices[1]"), dropped("answer.choices[].message.audio")],
    );
}

#[test]
fn chat_streams() {
    let chunk = |choice: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m",
        "service_tier": "flex", "choices": [choice]})
    };
    let logprobs = json!({"content": [{"token": "a", "logprob": -0.1, "bytes": null, "top_logprobs": []}]});
    let stream = sse(&[
        chunk(json!({"index": 0, "delta": {"content": "a"}, "logprobs": logprobs, "finish_reason": null})),
        chunk(json!({"index": 1, "delta": {"content": "b"}, "finish_reason": null})),
        chunk(json!({"index": 0, "delta": {"images": [{"type": "image_url"}]}, "finish_reason": "stop"})),
        chunk(json!({"index": 1, "delta": {}, "finish_reason": "stop"})),
    ]);
    check_stream(
        WireFormat::OpenAiChat,
        &stream,
        Operation::Messages,
        &[
            dropped("answer.service_tier"),
            dropped("answer.logprobs"),
            dropped("answer.choices[1]"),
            dropped("answer.choices[].message.images"),
        ],
    );
}

#[test]
fn messages() {
    let cited = json!({"type": "char_location", "cited_text": "q", "document_index": 0, "start_char_index": 0,
        "end_char_index": 1});
    let found = json!({"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "q"});
    let answer = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason":
        "stop_sequence", "stop_sequence": "|", "usage": {"input_tokens": 1, "output_tokens": 1},
        "container": {"id": "c"}, "content": [
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "text", "text": "a", "citations": [cited]},
        {"type": "text", "text": "b", "citations": [found]}]});
    let lost = [
        dropped("answer.blocks[1]"),
        dropped("answer.blocks[2].citations"),
        ("answer.blocks[3].citations", LossKind::Approximated),
        dropped("answer.stop_sequence"),
        dropped("answer.container"),
    ];
    for to in [Operation::Chat, Operation::Responses] {
        check(WireFormat::AnthropicMessages, &answer, to, &lost);
    }
    check(WireFormat::AnthropicMessages, &answer, Operation::Messages, &[dropped("answer.container")]);

    let block = |index: u64, block: &Value| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    let blocks = answer["content"].as_array().unwrap();
    let blocks = (0..).zip(blocks).flat_map(|(index, content)| block(index, content));
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message", "model": "m",
        "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "|",
        "container": {"id": "c"}}, "usage": {"output_tokens": 1}});
    let end = [delta, json!({"type": "message_stop"})];
    let events: Vec<Value> = std::iter::once(start).chain(blocks).chain(end).collect();
    let mut in_order = lost;
    // What is met, and what it ends with, is said by two events.
    in_order.swap(3, 4);
    check_stream(WireFormat::AnthropicMessages, &sse(&events), Operation::Chat, &in_order);
}

#[test]
fn refusals_are_text_for_callers_of_messages() {
    let answer =
        chat(&json!([{"index": 0, "message": {"role": "assistant", "content": null, "refusal": "no"},
        "finish_reason": "stop"}]));
    let emulated = ("answer.blocks[0]", LossKind::Emulated);
    check(WireFormat::OpenAiChat, &answer, Operation::Messages, &[emulated, dropped("answer.service_tier")]);
    check(WireFormat::OpenAiChat, &answer, Operation::Responses, &[]);
}

#[test]
fn responses() {
    let file = json!({"type": "file_citation", "file_id": "f", "index": 0});
    let answer = json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": [
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search"}},
        {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "a", "annotations": [file], "logprobs": []}]}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}});
    for to in [Operation::Chat, Operation::Messages] {
        check(
            WireFormat::OpenAiResponses,
            &answer,
            to,
            &[dropped("answer.blocks[0]"), dropped("answer.output[].content[].annotations")],
        );
    }
}

#[test]
fn gemini() {
    let candidate = json!({"content": {"role": "model", "parts": [
        {"text": "a", "thoughtSignature": "UQ=="}, {"executableCode": {"code": "1"}}]},
        "finishReason": "STOP", "urlContextMetadata": {"urlMetadata": [{}]}});
    let answer = json!({"candidates": [candidate], "modelVersion": "m",
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}});
    let lost = [
        dropped("answer.blocks[0].signature"),
        dropped("answer.blocks[1]"),
        dropped("answer.candidates[].urlContextMetadata"),
    ];
    check(WireFormat::Gemini, &answer, Operation::Chat, &lost);
    check(WireFormat::Gemini, &answer, Operation::Messages, &lost[1..]);
    check_stream(WireFormat::Gemini, &sse(&[answer]), Operation::Chat, &lost);
}

#[test]
fn bedrock() {
    let answer = json!({"output": {"message": {"role": "assistant", "content": [{"text": "a"},
        {"image": {"format": "png", "source": {"bytes": "QQ=="}}}]}}, "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "trace": {"guardrail": {"x": 1}}});
    check(
        WireFormat::BedrockConverse,
        &answer,
        Operation::Chat,
        &[dropped("answer.blocks[1]"), dropped("answer.trace")],
    );
    let frame = |kind: &str, payload: &Value| {
        let headers =
            [(":message-type", HeaderValue::Text("event")), (":event-type", HeaderValue::Text(kind))];
        encode(&headers, payload.to_string().as_bytes())
    };
    let stream = [
        frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": "a"}})),
        frame("messageStop", &json!({"stopReason": "end_turn"})),
        frame("metadata", &json!({"usage": answer["usage"], "trace": answer["trace"]})),
    ];
    let stream = Bytes::from(stream.concat());
    check_stream(WireFormat::BedrockConverse, &stream, Operation::Chat, &[dropped("answer.trace")]);
}

#[test]
fn calls_that_are_no_objects_stand_empty_for_callers_of_messages() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\""}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let mut answer = chat(&json!([{"index": 0, "message": message, "finish_reason": "length"}]));
    answer.as_object_mut().unwrap().remove("service_tier");
    let approximated = ("answer.blocks[0].arguments", LossKind::Approximated);
    check(WireFormat::OpenAiChat, &answer, Operation::Messages, &[approximated]);
    check(WireFormat::OpenAiChat, &answer, Operation::Responses, &[]);
}
