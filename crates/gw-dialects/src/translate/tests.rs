//! Tests of the translations: what users of such gateways have reported, by the name of the report.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{ErrorKind, GatewayError, Loss, LossKind, Operation, OutputField, TokenCount};
use serde_json::{Value, json};

use super::{StreamTranslation, StreamTranslator, Strictness, WireFormat, answer, request};
use crate::neutral::{AnswerStamp, WriteOptions};

const OPTIONS: WriteOptions<'_> = WriteOptions {
    model: "m",
    output_bound: None,
    default_output: TokenCount::new(1_024),
    output_field: OutputField::MaxCompletionTokens,
};
const STAMP: AnswerStamp<'_> = AnswerStamp { id: "id-1", created: 7, model: "m" };

fn try_sent(
    from: Operation,
    body: &Value,
    to: WireFormat,
    options: &WriteOptions<'_>,
) -> Result<(Value, Loss), GatewayError> {
    let (sent, loss) = request(from, body.to_string().as_bytes(), to, options, Strictness::Report)?;
    Ok((serde_json::from_slice(&sent).unwrap(), loss))
}

fn to_messages(body: &Value) -> (Value, Loss) {
    try_sent(Operation::Chat, body, WireFormat::AnthropicMessages, &OPTIONS).unwrap()
}

fn to_chat(body: &Value) -> (Value, Loss) {
    try_sent(Operation::Messages, body, WireFormat::OpenAiChat, &OPTIONS).unwrap()
}

fn lost(loss: &Loss) -> Vec<(&str, LossKind)> {
    loss.items.iter().map(|item| (item.path.as_str(), item.kind)).collect()
}

fn roles(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

fn chat(messages: &Value) -> Value {
    json!({"model": "x", "messages": messages})
}

fn messages(messages: &Value) -> Value {
    json!({"model": "x", "max_tokens": 64, "messages": messages})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn parallel_tool_results_share_one_turn() {
    let (sent, loss) = to_messages(&chat(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call("call_0", "f", "{}"), call("call_1", "g", "{}")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "r0"},
        {"role": "tool", "tool_call_id": "call_1", "content": "r1"},
        {"role": "user", "content": "and?"},
    ])));
    assert_eq!(roles(&sent["messages"]), ["user", "assistant", "user"]);
    assert_eq!(
        sent["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "call_0", "content": "r0"},
            {"type": "tool_result", "tool_use_id": "call_1", "content": "r1"},
            {"type": "text", "text": "and?"},
        ])
    );
    assert_eq!(lost(&loss), []);
}

fn two_calls(first: &Value) -> Value {
    let use_of = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    messages(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use_of("t0"), use_of("t1")]},
        {"role": "user", "content": [
            {"type": "text", "text": "wait"},
            {"type": "tool_result", "tool_use_id": "t1", "content": "r1"},
            {"type": "text", "text": "and?"},
            first,
        ]},
    ]))
}

#[test]
fn parallel_tool_results_stand_directly_after_the_calls() {
    let result =
        json!({"type": "tool_result", "tool_use_id": "t0", "content": [{"type": "text", "text": "r0"}]});
    let (sent, loss) = to_chat(&two_calls(&result));
    let sent = &sent["messages"];
    assert_eq!(roles(sent), ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!((&sent[2]["tool_call_id"], &sent[2]["content"]), (&json!("t1"), &json!("r1")));
    assert_eq!((&sent[3]["tool_call_id"], &sent[3]["content"]), (&json!("t0"), &json!("r0")));
    assert_eq!(
        sent[4]["content"],
        json!([{"type": "text", "text": "wait"}, {"type": "text", "text": "and?"}])
    );
    assert_eq!(lost(&loss), []);
}

#[test]
fn parallel_tool_results_with_images_and_errors_lose_nothing_in_silence() {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let result = json!({"type": "tool_result", "tool_use_id": "t0", "is_error": true, "content": [image]});
    let (sent, loss) = to_chat(&two_calls(&result));
    let sent = &sent["messages"];
    assert_eq!(sent[3]["content"], "The tool failed:");
    assert_eq!(sent[4]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
    assert!(sent[4]["content"][0]["text"].as_str().unwrap().contains("t0"));
    assert_eq!(
        lost(&loss),
        [
            ("messages[2].content[3]", LossKind::Approximated),
            ("messages[2].content[3].is_error", LossKind::Emulated)
        ]
    );
}

#[test]
fn tool_arguments_that_are_empty_or_not_json() {
    let body = |arguments: &str| {
        chat(&json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "tool_calls": [call("call_0", "f", arguments)]},
            {"role": "tool", "tool_call_id": "call_0", "content": "r"},
        ]))
    };
    for blank in ["", "  ", "{}"] {
        let (sent, _) = to_messages(&body(blank));
        assert_eq!(sent["messages"][1]["content"][0]["input"], json!({}), "{blank:?}");
    }
    for bad in ["{\"city\":\"Par", "\"x\"", "[1]"] {
        let error =
            try_sent(Operation::Chat, &body(bad), WireFormat::AnthropicMessages, &OPTIONS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert_eq!(error.param(), Some("messages[1].tool_calls[0].function.arguments"), "{bad:?}");
    }
    let cut = json!({"choices": [{"index": 0, "finish_reason": "length", "message": {
        "role": "assistant", "content": null, "tool_calls": [call("c", "f", "{\"city\":\"Par")]}}]});
    let raw = Bytes::from(cut.to_string());
    let (body, facts) = answer(WireFormat::OpenAiChat, &raw, Operation::Messages, &STAMP).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["stop_reason"], &body["content"][0]["input"]), (&json!("max_tokens"), &json!({})));
    assert!(facts.tool_calls);
}

#[test]
fn finish_reasons_follow_content_and_truncation() {
    let reason = |part: Value, reason: &str| {
        let body =
            json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": reason}]});
        let raw = Bytes::from(body.to_string());
        let (body, _) = answer(WireFormat::Gemini, &raw, Operation::Chat, &STAMP).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["choices"][0]["finish_reason"].as_str().unwrap().to_owned()
    };
    let call = json!({"functionCall": {"name": "f", "args": {}}});
    assert_eq!(reason(call.clone(), "STOP"), "tool_calls");
    assert_eq!(reason(call, "MAX_TOKENS"), "length");
    assert_eq!(reason(json!({"text": "x"}), "SAFETY"), "content_filter");
    let calls = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "tool_calls": [self::call("c", "f", "{}")]}}]});
    let raw = Bytes::from(calls.to_string());
    let (body, _) = answer(WireFormat::OpenAiChat, &raw, Operation::Messages, &STAMP).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["stop_reason"], "tool_use");
}

#[test]
fn signed_thinking_survives_the_round_trip_and_goes_nowhere_else() {
    let body = messages(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "secret thought", "signature": "Sig+/=1"},
            {"type": "redacted_thinking", "data": "R=="},
            {"type": "tool_use", "id": "t0", "name": "f", "input": {"a": 1}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "r"}]},
    ]));
    let (own, loss) = try_sent(Operation::Messages, &body, WireFormat::AnthropicMessages, &OPTIONS).unwrap();
    assert_eq!(own["messages"][1], body["messages"][1]);
    assert_eq!(lost(&loss), []);
    for to in
        [WireFormat::OpenAiChat, WireFormat::OpenAiResponses, WireFormat::Gemini, WireFormat::BedrockConverse]
    {
        let (sent, loss) = try_sent(Operation::Messages, &body, to, &OPTIONS).unwrap();
        let text = sent.to_string();
        assert!(!text.contains("Sig+/=1") && !text.contains("R=="), "{to:?}: {text}");
        assert!(text.contains("t0") || to == WireFormat::Gemini, "{to:?}: {text}");
        let paths: Vec<&str> = lost(&loss).iter().map(|(path, _)| *path).collect();
        assert!(paths.contains(&"messages[1].content[0]"), "{to:?}: {paths:?}");
    }
}

#[test]
fn output_token_limit_has_two_names_and_a_default() {
    let body = |fields: Value| {
        let mut body = chat(&json!([{"role": "user", "content": "Hi"}]));
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let older = WriteOptions { output_field: OutputField::MaxTokens, ..OPTIONS };
    for (options, field, other) in
        [(OPTIONS, "max_completion_tokens", "max_tokens"), (older, "max_tokens", "max_completion_tokens")]
    {
        for fields in [
            json!({"max_tokens": 64}),
            json!({"max_completion_tokens": 64}),
            json!({"max_tokens": 64, "max_completion_tokens": 64}),
        ] {
            let (sent, _) =
                try_sent(Operation::Chat, &body(fields), WireFormat::OpenAiChat, &options).unwrap();
            assert_eq!((&sent[field], sent.get(other)), (&json!(64), None));
        }
    }
    let (sent, _) = to_messages(&body(json!({})));
    assert_eq!(sent["max_tokens"], 1_024);
    let bounded = WriteOptions { output_bound: Some(TokenCount::new(9)), ..OPTIONS };
    let (sent, _) =
        try_sent(Operation::Chat, &body(json!({"max_tokens": 64})), WireFormat::AnthropicMessages, &bounded)
            .unwrap();
    assert_eq!(sent["max_tokens"], 9);
}

#[test]
fn strict_translation_names_what_it_would_lose() {
    let body = json!({"model": "x", "messages": [{"role": "user", "content": "Hi"}], "seed": 7, "n": 2, "store": true,
        "frobnicate": 1});
    let text = body.to_string();
    let sent = |strictness| {
        request(Operation::Chat, text.as_bytes(), WireFormat::AnthropicMessages, &OPTIONS, strictness)
    };
    let (_, loss) = sent(Strictness::Report).unwrap();
    let dropped = |path| (path, LossKind::Dropped);
    assert_eq!(lost(&loss), [dropped("seed"), dropped("n"), dropped("frobnicate")]);
    let error = sent(Strictness::Refuse).unwrap_err();
    assert_eq!((error.kind(), error.param()), (ErrorKind::TranslationLoss, Some("seed, n, frobnicate")));
    let harmless = json!({"model": "x", "messages": [{"role": "user", "content": "Hi"}], "store": true,
        "metadata": {"a": "b"}, "prompt_cache_key": "k", "user": "u"});
    let text = harmless.to_string();
    let strict = Strictness::Refuse;
    assert!(
        request(Operation::Chat, text.as_bytes(), WireFormat::AnthropicMessages, &OPTIONS, strict).is_ok()
    );
}

#[test]
fn settings_find_their_counterparts() {
    let (sent, loss) = to_messages(&json!({"model": "x", "stop": "END", "temperature": 1.5, "user": "u",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"properties": {}}}}],
        "tool_choice": "required", "parallel_tool_calls": false, "service_tier": "auto",
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}}));
    assert_eq!(sent["system"], "Be brief.");
    assert_eq!((&sent["temperature"], &sent["stop_sequences"]), (&json!(1), &json!(["END"])));
    assert_eq!(sent["metadata"], json!({"user_id": "u"}));
    assert_eq!(sent["tools"][0]["input_schema"], json!({"type": "object", "properties": {}}));
    assert_eq!(sent["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    let format = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    assert_eq!(sent["output_config"], format);
    assert_eq!(lost(&loss), [("temperature", LossKind::Approximated)]);

    let (sent, loss) = to_chat(&json!({"model": "x", "max_tokens": 64, "stream": true, "top_k": 5,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "Hi"}], "metadata": {"user_id": "u"},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true}}));
    assert_eq!(
        sent["messages"][0],
        json!({"role": "system", "content": [{"type": "text", "text": "Be brief."}]})
    );
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
    assert_eq!(sent["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!((&sent["parallel_tool_calls"], &sent["user"]), (&json!(false), &json!("u")));
    assert_eq!(lost(&loss), [("top_k", LossKind::Dropped)]);
}

#[test]
fn effort_and_budget_stand_for_each_other() {
    let thinking = |model: &str, fields: Value| {
        let mut body = chat(&json!([{"role": "user", "content": "Hi"}]));
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let options = WriteOptions { model, ..OPTIONS };
        let (sent, loss) = try_sent(Operation::Chat, &body, WireFormat::AnthropicMessages, &options).unwrap();
        (sent["thinking"].clone(), sent["max_tokens"].as_u64().unwrap(), loss.items.len())
    };
    let low = json!({"reasoning_effort": "low"});
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(thinking("claude-opus-5", low.clone()), (json!({"type": "adaptive"}), 1_024, 0));
    assert_eq!(thinking("claude-sonnet-4-5", low), (enabled(1_024), 2_048, 1));
    let cut = json!({"reasoning_effort": "high", "max_tokens": 2000});
    assert_eq!(thinking("claude-sonnet-4-5", cut), (enabled(1_999), 2_000, 1));
    let none = json!({"reasoning_effort": "high", "max_tokens": 100});
    assert_eq!(thinking("claude-sonnet-4-5", none), (Value::Null, 100, 2));
    let off = json!({"reasoning_effort": "none"});
    assert_eq!(thinking("claude-opus-5", off), (json!({"type": "disabled"}), 1_024, 0));
    let mut body = messages(&json!([{"role": "user", "content": "Hi"}]));
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 9000});
    let (sent, loss) = to_chat(&body);
    assert_eq!(sent["reasoning_effort"], "medium");
    assert_eq!(lost(&loss), [("thinking", LossKind::Approximated)]);
}

#[test]
fn a_schema_is_a_forced_tool_where_models_take_none() {
    let mut body = chat(&json!([{"role": "user", "content": "Hi"}]));
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}});
    let options = WriteOptions { model: "claude-3-haiku-20240307", ..OPTIONS };
    let (sent, loss) = try_sent(Operation::Chat, &body, WireFormat::AnthropicMessages, &options).unwrap();
    assert_eq!(sent["tool_choice"]["name"], sent["tools"][0]["name"]);
    assert_eq!(lost(&loss), [("response_format", LossKind::Emulated)]);
    let said = json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "content": [
        {"type": "tool_use", "id": "t", "name": sent["tools"][0]["name"], "input": {"a": 1}}]});
    let raw = Bytes::from(said.to_string());
    let (body, facts) = answer(WireFormat::AnthropicMessages, &raw, Operation::Chat, &STAMP).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], r#"{"a":1}"#);
    assert_eq!((&body["choices"][0]["finish_reason"], facts.tool_calls), (&json!("stop"), false));
}

// === Streams ===

fn translated(from: WireFormat, to: Operation, body: &[u8], bytes: usize) -> (String, Option<ErrorKind>) {
    let translation = StreamTranslation { from, to, stamp: STAMP, relay_usage: true };
    let mut translator = StreamTranslator::new(&translation).unwrap();
    let mut items = VecDeque::new();
    for chunk in body.chunks(bytes) {
        translator.push(Bytes::copy_from_slice(chunk), &mut items);
    }
    let error = match translator.end() {
        Ok(item) => {
            items.push_back(item);
            items.iter().find_map(|item| item.facts.error.as_ref()).map(GatewayError::kind)
        }
        Err(error) => Some(error.kind()),
    };
    let terminal = items.iter().filter(|item| item.facts.terminal).count();
    assert_eq!(terminal, usize::from(error.is_none()));
    let text = items.iter().flat_map(|item| item.raw.to_vec()).collect();
    (String::from_utf8(text).unwrap(), error)
}

const CHAT: &str = concat!(
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{"content":"你好🙂"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n"
);

#[test]
fn utf8_split_across_transport_chunks() {
    let whole = translated(WireFormat::OpenAiChat, Operation::Messages, CHAT.as_bytes(), usize::MAX);
    assert!(whole.0.contains("你好🙂") && whole.0.contains(r#""stop_reason":"end_turn""#), "{}", whole.0);
    assert_eq!(whole.1, None);
    for bytes in 1..CHAT.len() {
        assert_eq!(translated(WireFormat::OpenAiChat, Operation::Messages, CHAT.as_bytes(), bytes), whole);
    }
    let mut broken = CHAT.as_bytes().to_vec();
    let place = broken.iter().position(|byte| *byte == 0xA0).unwrap();
    broken[place] = 0xFF;
    let (_, error) = translated(WireFormat::OpenAiChat, Operation::Messages, &broken, usize::MAX);
    assert_eq!(error, Some(ErrorKind::MalformedResponse));
}

#[test]
fn sse_line_endings_comments_and_optional_space() {
    let whole = translated(WireFormat::OpenAiChat, Operation::Messages, CHAT.as_bytes(), usize::MAX);
    for variant in [
        CHAT.replace('\n', "\r\n"),
        CHAT.replace('\n', "\r"),
        CHAT.replace("data: ", "data:"),
        CHAT.replace("data: ", ": keep-alive\n:\ndata: "),
        CHAT.replace("data: ", "event: message\nid: 7\nretry: 10\ndata: "),
        CHAT.replace("\"choices\"", "\ndata: \"choices\""),
        format!("\u{feff}{CHAT}"),
        CHAT.replace("[DONE]", "[DONE] "),
    ] {
        for bytes in [usize::MAX, 1] {
            let read = translated(WireFormat::OpenAiChat, Operation::Messages, variant.as_bytes(), bytes);
            assert_eq!(read, whole, "{variant}");
        }
    }
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    let cut = &CHAT[..CHAT.find("\n\n").unwrap() + 2];
    for body in [cut.to_owned(), format!("{cut}data: [DONE]\n\n")] {
        let (text, error) =
            translated(WireFormat::OpenAiChat, Operation::Messages, body.as_bytes(), usize::MAX);
        assert_eq!(error, Some(ErrorKind::StreamInterrupted));
        assert!(text.contains("你好🙂") && !text.contains("stop_reason\":\"end_turn"));
    }
}

#[test]
fn what_is_never_translated_is_refused() {
    let error = request(Operation::Embeddings, b"{}", WireFormat::Gemini, &OPTIONS, Strictness::Report);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidRequest);
    let translation = StreamTranslation {
        from: WireFormat::Gemini,
        to: Operation::Completions,
        stamp: STAMP,
        relay_usage: true,
    };
    assert!(StreamTranslator::new(&translation).is_err());
}

#[test]
fn i18_debug_shows_no_content() {
    let body = json!({"model": "x", "stop": "canary", "tools": [{"type": "function", "function": {"name": "canary"}}],
        "tool_choice": {"type": "function", "function": {"name": "canary"}}, "user": "canary",
        "response_format": {"type": "json_schema", "json_schema": {"name": "canary", "schema": {"canary": 1}}},
        "messages": [{"role": "system", "content": "canary"}, {"role": "user", "content": [
            {"type": "text", "text": "canary"}, {"type": "image_url", "image_url": {"url": "canary"}}]},
            {"role": "assistant", "reasoning_content": "canary", "tool_calls": [call("canary", "canary", "{}")]},
            {"role": "tool", "tool_call_id": "canary", "content": "canary"}]});
    let prompt = super::read_prompt(Operation::Chat, body.to_string().as_bytes()).unwrap();
    let parts = (&prompt.turns, &prompt.instructions, &prompt.tools, &prompt.tool_choice, &prompt.format);
    let shown = format!("{prompt:?} {parts:?} {:?}", prompt.sampling);
    assert!(!shown.contains("canary"), "{shown}");

    let said = CHAT.replace("你好🙂", "canary");
    let cut = &said[..said.find("\n\n").unwrap() + 2];
    for (from, text) in [(WireFormat::OpenAiChat, cut), (WireFormat::AnthropicMessages, MESSAGES)] {
        for to in [Operation::Chat, Operation::Messages, Operation::Responses] {
            let translation = StreamTranslation { from, to, stamp: STAMP, relay_usage: true };
            let mut translator = StreamTranslator::new(&translation).unwrap();
            let mut items = VecDeque::new();
            translator.push(Bytes::copy_from_slice(text.as_bytes()), &mut items);
            let shown = format!("{translator:?} {items:?}");
            assert!(!shown.contains("canary"), "{to:?}: {shown}");
        }
    }
}

const MESSAGES: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",",
    "\"thinking\":\"canary\",\"signature\":\"canary\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"stop_sequence\",",
    "\"stop_sequence\":\"canary\",\"stop_details\":{\"explanation\":\"canary\"}}}\n\n",
);
