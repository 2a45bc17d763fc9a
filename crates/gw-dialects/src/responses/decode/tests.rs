//! Tests of the answer reader.

use bytes::Bytes;
use gw_types::{AnswerFacts, ErrorKind, FinishReason, GatewayError};

use super::read_answer;

fn read(body: &str) -> Result<AnswerFacts, GatewayError> {
    read_answer(&Bytes::copy_from_slice(body.as_bytes()))
}

const TEXT: &str = r#"{"type":"message","content":[{"type":"output_text","text":"\u00e9"}]}"#;
const CALL: &str = r#"{"arguments":"{}","type":"function_call","name":"f","call_id":"c"}"#;
const REFUSAL: &str = r#"{"type":"message","content":[{"type":"refusal","refusal":"No."}]}"#;
const SEARCH: &str = r#"{"type":"web_search_call","status":"completed"}"#;
const THOUGHT: &str = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"ab"}]}"#;

#[track_caller]
fn finish(status: &str, output: &str, expected: FinishReason, content_bytes: u64) {
    let facts = read(&format!(r#"{{"object":"response",{status},"output":[{output}]}}"#)).unwrap();
    assert_eq!((facts.finish, facts.content_bytes), (Some(expected), content_bytes));
    assert_eq!(facts.tool_calls, expected == FinishReason::ToolCalls || output.contains("function_call"));
}

#[track_caller]
fn fails(body: &str, kind: ErrorKind, no_retry: bool) {
    let error = read(body).unwrap_err();
    assert_eq!((error.kind(), error.forbids_retry()), (kind, no_retry), "{body}");
}

#[test]
fn status_and_output_say_why_it_ended() {
    let done = r#""status":"completed""#;
    finish(done, TEXT, FinishReason::Stop, 2);
    finish(done, CALL, FinishReason::ToolCalls, 2);
    finish(done, &format!("{THOUGHT},{TEXT},{CALL}"), FinishReason::ToolCalls, 6);
    finish(done, &format!("{SEARCH},{TEXT}"), FinishReason::Stop, 2);
    finish(done, REFUSAL, FinishReason::Refusal, 3);
    finish(done, "", FinishReason::Stop, 0);
    finish(r#""x":1"#, TEXT, FinishReason::Stop, 2);
    let cut = |reason: &str| format!(r#""status":"incomplete","incomplete_details":{reason}"#);
    finish(&cut(r#"{"reason":"max_output_tokens"}"#), TEXT, FinishReason::Length, 2);
    finish(&cut(r#"{"reason":"max_output_tokens"}"#), CALL, FinishReason::Length, 2);
    finish(&cut(r#"{"reason":"content_filter"}"#), TEXT, FinishReason::ContentFilter, 2);
    finish(&cut("null"), TEXT, FinishReason::Other, 2);
    finish(r#""status":"later""#, TEXT, FinishReason::Other, 2);
    assert_eq!(read(r#"{"status":"queued","output":[]}"#).unwrap().finish, None);
}

#[test]
fn usage_is_split() {
    let body = format!(
        r#"{{"model":"m","output":[{TEXT}],"usage":{{"input_tokens":100,"input_tokens_details":{{"cached_tokens":60,"cache_write_tokens":30}},"output_tokens":50,"output_tokens_details":{{"reasoning_tokens":40}},"total_tokens":150}}}}"#
    );
    let facts = read(&body).unwrap();
    let usage = facts.usage.unwrap();
    let classes = [usage.input, usage.cached_input, usage.cache_write, usage.output, usage.reasoning];
    assert_eq!(classes.map(|count| count.get()), [10, 60, 30, 10, 40]);
    assert!(!usage.inconsistent);
    assert_eq!(facts.served_model.unwrap().as_str(), "m");
}

#[test]
fn failures_are_classified() {
    let failed = |code: &str| {
        format!(r#"{{"status":"failed","output":[],"error":{{"code":"{code}","message":"m"}}}}"#)
    };
    fails(&failed("server_error"), ErrorKind::ProviderUnavailable, false);
    fails(&failed("rate_limit_exceeded"), ErrorKind::ProviderRateLimited, false);
    fails(&failed("invalid_prompt"), ErrorKind::InvalidRequest, false);
    fails(&failed("image_content_policy_violation"), ErrorKind::ContentFiltered, false);
    fails(&failed("bio_policy"), ErrorKind::ContentFiltered, false);
    fails(&failed("image_too_large"), ErrorKind::InvalidRequest, false);
    fails(&failed("vector_store_timeout"), ErrorKind::ProviderUnavailable, false);
    fails(r#"{"status":"failed","output":[],"error":null}"#, ErrorKind::ProviderUnavailable, false);
    fails(r#"{"status":"cancelled","output":[]}"#, ErrorKind::ProviderUnavailable, false);
    fails(r#"{"error":{"message":"m","type":"insufficient_quota"}}"#, ErrorKind::ProviderRateLimited, true);
    fails(
        r#"{"error":"Incorrect API key provided.","code":"invalid-argument"}"#,
        ErrorKind::ProviderAuth,
        false,
    );
    fails(r#"{"detail":"Not Found","status":404}"#, ErrorKind::DeploymentMissing, false);
}

#[test]
fn what_is_no_response_is_malformed() {
    for body in ["", "[]", "{}", "<html>", r#"{"choices":[]}"#, r#"{"output":7}"#, r#"{"output":[]} x"#] {
        fails(body, ErrorKind::MalformedResponse, false);
    }
}
