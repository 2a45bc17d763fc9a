//! Tests of whole answers.

use bytes::Bytes;
use gw_types::{AnswerFacts, ErrorKind, FinishReason, GatewayError};

use super::read_answer;

fn read(body: &str) -> Result<AnswerFacts, GatewayError> {
    read_answer(&Bytes::copy_from_slice(body.as_bytes()))
}

#[track_caller]
fn choices(choices: &str, content_bytes: u64, finish: Option<FinishReason>, tool_calls: bool) {
    let facts = read(&format!(r#"{{"choices":[{choices}]}}"#)).unwrap();
    assert_eq!((facts.content_bytes, facts.finish, facts.tool_calls), (content_bytes, finish, tool_calls));
}

#[track_caller]
fn failed(body: &str, kind: ErrorKind, status: Option<u16>) -> GatewayError {
    let error = read(body).unwrap_err();
    assert_eq!((error.kind(), error.status()), (kind, status), "{body}");
    error
}

#[test]
fn an_answer_is_read() {
    let facts = read(
        r#"

        {"id":"c","object":"chat.completion","created":1,"model":"gpt-4.1","error":null,"choices":[{"index":0,"message":
        {"role":"assistant","content":"H\u00e9y","refusal":null},"logprobs":null,"finish_reason":"stop"}],
        "usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#,
    )
    .unwrap();
    assert_eq!(facts.served_model.unwrap().as_str(), "gpt-4.1");
    assert_eq!((facts.content_bytes, facts.finish), (4, Some(FinishReason::Stop)));
    let usage = facts.usage.unwrap();
    assert_eq!((usage.input.get(), usage.output.get(), usage.estimated), (11, 7, false));
}

#[test]
fn content_is_counted_wherever_it_stands() {
    choices(r#"{"message":{"content":null,"reasoning_content":"ab","reasoning":"c"}}"#, 3, None, false);
    let calls = r#"[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"g","arguments":"1"}}]"#;
    let call = format!(r#"{{"message":{{"content":"","tool_calls":{calls}}},"finish_reason":"tool_calls"}}"#);
    choices(&call, 3, Some(FinishReason::ToolCalls), true);
    let old =
        r#"{"message":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}"#;
    choices(old, 2, Some(FinishReason::ToolCalls), true);
    let parts =
        r#"[{"type":"thinking","thinking":[{"type":"text","text":"abc"}]},{"type":"text","text":"de"}]"#;
    choices(&format!(r#"{{"message":{{"content":{parts}}}}}"#), 5, None, false);
    choices(r#"{"message":{"audio":{"data":"AAAA","transcript":"hi"}}}"#, 2, None, false);
    let object = r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}}"#;
    choices(object, 7, None, true);
}

#[test]
fn finish_reasons_are_read() {
    for (text, reason) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("tool_calls", FinishReason::ToolCalls),
        ("content_filter", FinishReason::ContentFilter),
        ("something new", FinishReason::Other),
    ] {
        choices(&format!(r#"{{"finish_reason":"{text}"}}"#), 0, Some(reason), false);
    }
    let refused = r#"{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}"#;
    choices(refused, 2, Some(FinishReason::Refusal), false);
    choices(r#"{"message":{},"finish_reason":null}"#, 0, None, false);
    let differ = r#"{"finish_reason":"stop"},{"finish_reason":"length"},{"finish_reason":"tool_calls"}"#;
    choices(differ, 0, Some(FinishReason::Length), false);
}

#[test]
fn in_band_upstream_error_on_http_200() {
    let error = failed(
        r#"{"error":{"message":"invalid request","type":"invalid_request_error","code":400}}"#,
        ErrorKind::InvalidRequest,
        Some(400),
    );
    assert_eq!(error.detail().unwrap().message(), "invalid request");
    let limited = r#"{"error":{"message":"slow","type":"rate_limit_error","code":429}}"#;
    failed(limited, ErrorKind::ProviderRateLimited, Some(429));
    failed(r#"{"error":{"message":"x","type":"rate_limit_error"}}"#, ErrorKind::ProviderRateLimited, None);
    failed(r#"{"error":"it broke"}"#, ErrorKind::ProviderUnavailable, None);
    failed(r#"{"error":{"message":"x"},"choices":[]}"#, ErrorKind::ProviderUnavailable, None);
    failed(r#"{"object":"error","message":"x","code":503}"#, ErrorKind::ProviderUnavailable, Some(503));
    failed(r#"{"detail":"Invalid API key"}"#, ErrorKind::ProviderUnavailable, None);
    let filtered = r#"{"error":{"code":"content_filter","status":400,"message":"m"}}"#;
    failed(filtered, ErrorKind::ContentFiltered, Some(400));
}

#[test]
fn what_is_no_answer_is_malformed() {
    for body in
        ["", "<html></html>", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":null}"#, r#"{"choices":[1]}"#]
    {
        failed(body, ErrorKind::MalformedResponse, None);
    }
    failed(r#"{"choices":[{"message":{}}]"#, ErrorKind::MalformedResponse, None);
    let error = read_answer(&Bytes::from_static(b"{\"choices\":[{\"x\":\"\xff\"}]}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MalformedResponse);
}
