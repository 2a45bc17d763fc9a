//! Tests of the rewriting of requests.

use bytes::Bytes;
use gw_types::{NormalizedRequest, Operation, RequestContext, TokenCount};

use super::{MessagesEdits, rewrite_messages};
use crate::anthropic::{read_count_tokens, read_messages};

fn request(body: &str) -> NormalizedRequest {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let facts = read_messages(&body).unwrap();
    NormalizedRequest { operation: Operation::Messages, body, facts, context: RequestContext::default() }
}

#[track_caller]
fn check(body: &str, bound: Option<u64>, expected: &str) {
    let edits = MessagesEdits { model: "claude", output_bound: bound.map(TokenCount::new) };
    let (sent, _) = rewrite_messages(&request(body), &edits);
    assert_eq!(sent, expected);
}

#[test]
fn i19_edits_change_what_they_name_and_nothing_else() {
    let body = "{ \"model\" :\"fast\", \"max_tokens\":  64 ,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"x\":1e400 }";
    check(body, None, &body.replace("\"fast\"", "\"claude\""));
    check(body, Some(64), &body.replace("\"fast\"", "\"claude\""));
    check(body, Some(7), &body.replace("\"fast\"", "\"claude\"").replace("64", "7"));
}

#[test]
fn an_unchanged_body_is_not_copied() {
    let request = request(r#"{"model":"claude","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}"#);
    let (sent, loss) = rewrite_messages(&request, &MessagesEdits { model: "claude", output_bound: None });
    assert_eq!(sent.as_ptr(), request.body.as_ptr());
    assert!(loss.items.is_empty());
}

#[test]
fn counting_takes_no_bound() {
    let body = Bytes::from_static(br#"{"model":"fast","messages":[{"role":"user","content":"Hi"}]}"#);
    let facts = read_count_tokens(&body).unwrap();
    let context = RequestContext::default();
    let request = NormalizedRequest { operation: Operation::CountTokens, body, facts, context };
    let edits = MessagesEdits { model: "claude", output_bound: Some(TokenCount::new(9)) };
    let (sent, _) = rewrite_messages(&request, &edits);
    assert_eq!(sent, r#"{"model":"claude","messages":[{"role":"user","content":"Hi"}]}"#);
}

#[test]
fn reasoning_of_another_provider_is_taken_out() {
    let own = r#"{"type":"thinking","thinking":"a","signature":"Sig+/=1"}"#;
    let foreign = r#"{"type":"thinking","thinking":"b","signature":"gw1.gemini.AB"}"#;
    let hidden = r#"{"type":"redacted_thinking","data":"gw1.openai.AB"}"#;
    let text = r#"{"type":"text","text":"gw1.gemini.AB"}"#;
    let body = |content: &str| {
        format!(
            r#"{{"model":"claude","max_tokens":9,"messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":[{content}]}}]}}"#
        )
    };
    check(&body(&format!("{own}, {text}")), None, &body(&format!("{own}, {text}")));
    check(&body(&format!("{own}, {foreign} ,{hidden},{text}")), None, &body(&format!("{own},{text}")));
    check(&body(&format!("{foreign},{hidden}")), None, &body(r#"{"type":"text","text":"(no text)"}"#));
    let edits = MessagesEdits { model: "claude", output_bound: None };
    let (_, loss) = rewrite_messages(&request(&body(&format!("{own},{foreign}"))), &edits);
    let paths: Vec<&str> = loss.items.iter().map(|item| item.path.as_str()).collect();
    assert_eq!(paths, ["messages[1].content[1]"]);
}
