//! Tests of the error table.

use gw_types::{ErrorKind, GatewayError, UpstreamDetail, UtcTime};

use super::{blocked, classify, in_band};
use crate::{json::Node, openai::ErrorHead};

fn error(status: u16, body: &str) -> GatewayError {
    let head = ErrorHead { status, header: &|_| None, utc: UtcTime::default() };
    classify(&head, body.as_bytes())
}

#[track_caller]
fn check(status: u16, body: &str, kind: ErrorKind) {
    let error = error(status, body);
    assert_eq!((error.kind(), error.status()), (kind, Some(status)), "{body}");
    assert_eq!((error.forbids_retry(), error.retry_after()), (false, None), "{body}");
}

fn said(status: &str, message: &str) -> String {
    format!(r#"{{"error":{{"code":400,"message":"{message}","status":"{status}","details":[]}}}}"#)
}

#[test]
fn statuses_have_their_kinds() {
    check(400, &said("INVALID_ARGUMENT", "Please use a valid role"), ErrorKind::InvalidRequest);
    check(400, &said("INVALID_ARGUMENT", "API key not valid. Please pass one."), ErrorKind::ProviderAuth);
    check(400, &said("FAILED_PRECONDITION", "User location is not supported"), ErrorKind::ProviderAuth);
    let long = "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).";
    check(400, &said("INVALID_ARGUMENT", long), ErrorKind::ContextLengthExceeded);
    check(401, &said("UNAUTHENTICATED", "x"), ErrorKind::ProviderAuth);
    check(403, &said("PERMISSION_DENIED", "x"), ErrorKind::ProviderAuth);
    check(404, &said("NOT_FOUND", "x"), ErrorKind::DeploymentMissing);
    check(408, "", ErrorKind::ProviderTimeout);
    check(409, &said("ABORTED", "x"), ErrorKind::InvalidRequest);
    check(429, &said("RESOURCE_EXHAUSTED", "x"), ErrorKind::ProviderRateLimited);
    check(499, &said("CANCELLED", "x"), ErrorKind::ProviderUnavailable);
    check(500, &said("INTERNAL", "x"), ErrorKind::ProviderUnavailable);
    check(503, &said("UNAVAILABLE", "x"), ErrorKind::ProviderUnavailable);
    check(504, &said("DEADLINE_EXCEEDED", "x"), ErrorKind::ProviderUnavailable);
    check(302, "", ErrorKind::MalformedResponse);
}

#[test]
fn a_reason_in_the_details_names_a_bad_key() {
    let body = r#"{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
    check(400, body, ErrorKind::ProviderAuth);
}

#[test]
fn the_body_may_be_an_array_an_event_or_no_json() {
    let detail = |body: &str| error(503, body).detail().map(|detail| detail.message().to_owned());
    let body = r#"{"error":{"code":503,"message":"busy"}}"#;
    assert_eq!(detail(body).as_deref(), Some("busy"));
    assert_eq!(detail(&format!("[{body}\n]\n")).as_deref(), Some("busy"));
    assert_eq!(detail(&format!("data: {body}\r\n\r\n")).as_deref(), Some("busy"));
    assert_eq!(detail(r#"{"error":"busy"}"#).as_deref(), Some("busy"));
    for body in ["", "<html>busy</html>", "[]", "{}", "[[]]", "{\"error\":7}"] {
        assert_eq!(detail(body), None, "{body}");
    }
}

#[test]
fn the_wait_is_in_the_details() {
    let body = |delay: &str, quota: &str| {
        format!(
            r#"{{"error":{{"code":429,"message":"m","details":[{{"violations":[{{"quotaId":"{quota}"}}]}},{{"retryDelay":"{delay}"}}]}}}}"#
        )
    };
    let wait = |status, body: &str| error(status, body).retry_after().map(|wait| wait.as_millis());
    assert_eq!(wait(429, &body("48s", "PerMinute")), Some(48_000));
    assert_eq!(wait(429, &body("0.939935699s", "PerMinute")), Some(939));
    assert_eq!(wait(429, &body("-1s", "PerMinute")), None);
    assert_eq!(wait(429, &body("soon", "PerMinute")), None);
    assert_eq!(wait(400, &body("48s", "PerMinute")), None);
    assert!(!error(429, &body("48s", "PerMinute")).forbids_retry());
    assert!(error(429, &body("48s", "GenerateRequestsPerDayPerProject")).forbids_retry());
}

#[test]
fn headers_say_the_wait_where_the_body_does_not() {
    let header = |name: &str| match name {
        "retry-after" => Some("2"),
        "x-should-retry" => Some("false"),
        _ => None,
    };
    let head = ErrorHead { status: 503, header: &header, utc: UtcTime::default() };
    let error = classify(&head, b"");
    assert_eq!((error.retry_after().map(|wait| wait.as_secs()), error.forbids_retry()), (Some(2), true));
}

#[test]
fn errors_inside_an_answer_name_their_own_status() {
    let kind = |body: &str| {
        let error = in_band(&Node::read(body).unwrap());
        (error.kind(), error.status())
    };
    assert_eq!(kind(r#"{"error":{"code":429,"message":"m"}}"#), (ErrorKind::ProviderRateLimited, Some(429)));
    assert_eq!(kind(r#"{"error":{"code":7}}"#), (ErrorKind::ProviderUnavailable, Some(500)));
    assert_eq!(kind(r#"{"error":"m"}"#), (ErrorKind::ProviderUnavailable, Some(500)));
}

#[test]
fn a_blocked_prompt_says_why() {
    let words = |body: &str| {
        let error = blocked(&Node::read(body).unwrap());
        assert_eq!(error.kind(), ErrorKind::ContentFiltered);
        error.detail().map(UpstreamDetail::message).map(str::to_owned)
    };
    assert_eq!(words(r#"{"blockReason":"SAFETY"}"#).as_deref(), Some("the prompt was blocked: SAFETY"));
    assert_eq!(words(r#"{"blockReason":"X","blockReasonMessage":"no"}"#).as_deref(), Some("no"));
    assert_eq!(words("{}"), None);
}
