//! Tests of the rewriter: exactly the edits, and every other byte as it was.

use bytes::Bytes;
use gw_types::{NormalizedRequest, Operation, OutputField, RequestContext, TokenCount};

use super::{ChatEdits, rewrite_chat};
use crate::openai::read_chat;

const NOTHING: ChatEdits<'static> =
    ChatEdits { model: "m", output_bound: None, output_field: OutputField::MaxTokens, ask_usage: false };

fn request(body: &str) -> NormalizedRequest {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let facts = read_chat(&body).unwrap();
    NormalizedRequest { operation: Operation::Chat, body, facts, context: RequestContext::default() }
}

/// Rewrites a body in which `$` stands for a sound list of messages.
#[track_caller]
fn check(edits: &ChatEdits<'_>, body: &str, expected: &str) {
    let messages = r#""messages":[{"role":"user","content":"max_tokens stream_options"}]"#;
    let sent = rewrite_chat(&request(&body.replace('$', messages)), edits);
    assert_eq!(String::from_utf8_lossy(&sent), expected.replace('$', messages));
    let facts = read_chat(&sent).unwrap();
    assert_eq!(&*facts.model, edits.model);
    assert!(edits.output_bound.is_none_or(|bound| facts.output.unwrap().tokens == bound));
}

fn bound(tokens: u64) -> ChatEdits<'static> {
    ChatEdits { output_bound: Some(TokenCount::new(tokens)), ..NOTHING }
}

const ASK: ChatEdits<'static> = ChatEdits { ask_usage: true, ..NOTHING };

#[test]
fn a_body_that_needs_no_edit_is_not_copied() {
    let request = request(r#"{"model":"m","messages":[{"role":"user"}],"max_tokens":5}"#);
    let edits = ChatEdits { output_bound: Some(TokenCount::new(5)), ..ASK };
    assert_eq!(rewrite_chat(&request, &edits).as_ptr(), request.body.as_ptr());
}

#[test]
fn i19_only_the_model_name_changes() {
    let body = "{ \"x\" : 1e400 , \"model\"\t: \"gw/\\u0066ast\",\r\n $, \"big\":9223372036854775809, \"x\":[ 1.0,-0 ],\"é\":null }";
    let edits = ChatEdits { model: "provider/\"slow\"\\", ..NOTHING };
    check(&edits, body, &body.replace(r#""gw/\u0066ast""#, r#""provider/\"slow\"\\""#));
}

#[test]
fn i19_numbers_beyond_any_type_survive() {
    let body = r#"{"model":"a",$,"inf":1e400,"int":9223372036854775809,"frac":0.1000000000000000055511151231257827}"#;
    check(&ChatEdits { model: "b", ..NOTHING }, body, &body.replace("\"a\"", "\"b\""));
}

#[test]
fn the_output_bound_is_put_in() {
    check(&bound(64), r#"{"model":"m",$}"#, r#"{"max_tokens":64,"model":"m",$}"#);
    let newer = ChatEdits { output_field: OutputField::MaxCompletionTokens, ..bound(64) };
    check(&newer, r#"{ "model":"m",$}"#, r#"{"max_completion_tokens":64, "model":"m",$}"#);
}

#[test]
fn the_output_bound_is_replaced() {
    check(&bound(64), r#"{"model":"m","max_tokens": 9999 ,$}"#, r#"{"model":"m","max_tokens": 64 ,$}"#);
    let both = r#"{"max_tokens":5,"model":"m",$,"max_completion_tokens":5}"#;
    check(&bound(4), both, r#"{"max_tokens":4,"model":"m",$,"max_completion_tokens":4}"#);
    let null_twin = r#"{"max_tokens":null,"model":"m",$,"max_completion_tokens":5}"#;
    check(&bound(4), null_twin, r#"{"max_tokens":null,"model":"m",$,"max_completion_tokens":4}"#);
}

#[test]
fn a_null_bound_is_replaced_and_not_doubled() {
    check(&bound(64), r#"{"model":"m",$,"max_tokens":null}"#, r#"{"model":"m",$,"max_tokens":64}"#);
}

#[test]
fn usage_is_asked_for() {
    check(
        &ASK,
        r#"{"model":"m",$,"stream":true}"#,
        r#"{"stream_options":{"include_usage":true},"model":"m",$,"stream":true}"#,
    );
    let options = |before: &str, after: &str| {
        let body = |value: &str| format!(r#"{{"model":"m",$,"stream":true,"stream_options":{value}}}"#);
        check(&ASK, &body(before), &body(after));
    };
    options("null", r#"{"include_usage":true}"#);
    options("{ }", r#"{"include_usage":true }"#);
    options(r#"{"include_obfuscation":false}"#, r#"{"include_usage":true,"include_obfuscation":false}"#);
    options(r#"{"a":1,"include_usage":false,"b":2}"#, r#"{"a":1,"include_usage":true,"b":2}"#);
    options(r#"{"include_usage": null }"#, r#"{"include_usage": true }"#);
    options(r#"{"include_usage":true}"#, r#"{"include_usage":true}"#);
}

#[test]
fn usage_is_not_asked_for_without_a_stream() {
    check(&ASK, r#"{"model":"m",$}"#, r#"{"model":"m",$}"#);
}

#[test]
fn all_edits_together() {
    let edits = ChatEdits { model: "p", output_bound: Some(TokenCount::new(1)), ..ASK };
    check(
        &edits,
        r#"{"stream":true,"model":"m",$}"#,
        r#"{"max_tokens":1,"stream_options":{"include_usage":true},"stream":true,"model":"p",$}"#,
    );
}
