//! Tests of the classification: the table of statuses, and what bodies and headers refine.

use std::time::Duration;

use gw_types::{ErrorKind, GatewayError, UtcTime};

use super::{ErrorHead, classify};

fn read(status: u16, headers: &[(&str, &'static str)], body: &str) -> GatewayError {
    let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    classify(&ErrorHead { status, header: &header, utc: UtcTime::default() }, body.as_bytes())
}

#[track_caller]
fn check(status: u16, body: &str, kind: ErrorKind) {
    let error = read(status, &[], body);
    assert_eq!((error.kind(), error.status(), error.forbids_retry()), (kind, Some(status), false), "{body}");
}

#[track_caller]
fn not_again(status: u16, body: &str) {
    let error = read(status, &[], body);
    assert_eq!((error.kind(), error.forbids_retry()), (ErrorKind::ProviderRateLimited, true), "{body}");
}

#[test]
fn the_status_decides() {
    for (status, kind) in [
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::ProviderAuth),
        (403, ErrorKind::ProviderAuth),
        (404, ErrorKind::DeploymentMissing),
        (405, ErrorKind::InvalidRequest),
        (408, ErrorKind::ProviderTimeout),
        (409, ErrorKind::InvalidRequest),
        (410, ErrorKind::DeploymentMissing),
        (413, ErrorKind::InvalidRequest),
        (415, ErrorKind::InvalidRequest),
        (422, ErrorKind::InvalidRequest),
        (424, ErrorKind::ProviderUnavailable),
        (429, ErrorKind::ProviderRateLimited),
        (451, ErrorKind::InvalidRequest),
        (498, ErrorKind::ProviderUnavailable),
        (500, ErrorKind::ProviderUnavailable),
        (503, ErrorKind::ProviderUnavailable),
        (529, ErrorKind::ProviderUnavailable),
        (302, ErrorKind::MalformedResponse),
    ] {
        check(status, "", kind);
    }
}

#[test]
fn bodies_refine_a_400() {
    check(
        400,
        r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
        ErrorKind::ContextLengthExceeded,
    );
    let phrase = r#"{"error":{"message":"This model's maximum context length is 8 tokens.","code":"invalid_request_error"}}"#;
    check(400, phrase, ErrorKind::ContextLengthExceeded);
    let filtered = r#"{"error":{"message":"filtered","type":"invalid_request_error","code":"content_policy_violation"}}"#;
    check(400, filtered, ErrorKind::ContentFiltered);
    let azure =
        r#"{"error":{"message":"m","code":null,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#;
    check(400, azure, ErrorKind::ContentFiltered);
    let bad_key =
        r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: x."}"#;
    check(400, bad_key, ErrorKind::ProviderAuth);
    check(400, r#"{"error":{"message":"m","code":"model_not_found"}}"#, ErrorKind::DeploymentMissing);
}

#[test]
fn content_filter_refusal_is_final() {
    let body = r#"{"error":{"message":"filtered","type":"invalid_request_error","code":"content_policy_violation"}}"#;
    let error = read(400, &[], body);
    assert_eq!((error.kind(), error.may_retry()), (ErrorKind::ContentFiltered, false));
    assert_eq!(error.kind().falls_over(), gw_types::FallOver::Never);
    assert_eq!(error.kind().harms_health(), gw_types::Health::Harmless);
    assert_eq!(error.openai_code(), Some("content_policy_violation"));
    let moderated =
        r#"{"error":{"code":403,"message":"m","metadata":{"reasons":["x"],"flagged_input":"y"}}}"#;
    check(403, moderated, ErrorKind::ContentFiltered);
}

#[test]
fn what_waiting_does_not_heal_is_not_repeated() {
    not_again(402, r#"{"error":{"message":"Insufficient credits.","code":402}}"#);
    not_again(429, r#"{"error":{"message":"m","type":"insufficient_quota"}}"#);
    not_again(429, r#"{"error":{"message":"Request too large for m","code":"rate_limit_exceeded"}}"#);
    not_again(413, r#"{"error":{"message":"Request too large","code":"rate_limit_exceeded"}}"#);
    check(
        429,
        r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
        ErrorKind::ProviderRateLimited,
    );
}

#[test]
fn guidance_is_kept_where_waiting_helps() {
    let wait = [("retry-after", "1"), ("retry-after-ms", "0")];
    for status in [408, 429, 503] {
        assert_eq!(read(status, &wait, "").retry_after(), Some(Duration::from_secs(1)), "{status}");
    }
    assert_eq!(read(400, &wait, "").retry_after(), None);
    let error = read(503, &[("x-should-retry", "false")], "");
    assert!(error.forbids_retry() && !error.may_retry());
    assert!(read(503, &[("x-should-retry", "true")], "").may_retry());
}

#[test]
fn the_providers_id_is_kept() {
    assert_eq!(read(500, &[("apim-request-id", "a")], "").upstream_request_id(), Some("a"));
    let both = [("apim-request-id", "a"), ("x-request-id", "x")];
    assert_eq!(read(500, &both, "").upstream_request_id(), Some("x"));
}

#[test]
fn what_the_provider_said_is_kept() {
    let said = |body| {
        let error = read(400, &[], body);
        let detail = error.detail().cloned().unwrap();
        let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
        format!(
            "{}|{}|{}|{}",
            detail.message(),
            text(detail.kind()),
            text(detail.code()),
            text(detail.param())
        )
    };
    assert_eq!(said(r#"{"error":{"message":"m","type":"t","code":"c","param":"p"}}"#), "m|t|c|p");
    assert_eq!(said(r#"{"error":{"message":"m","code":3001}}"#), "m|-|3001|-");
    assert_eq!(said(r#"{"error":{"message":"m","code":400}}"#), "m|-|-|-");
    assert_eq!(said(r#"{"error":{"message":"m","code":"400"}}"#), "m|-|-|-");
    assert_eq!(said(r#"{"error":"m","code":"c"}"#), "m|-|c|-");
    assert_eq!(said(r#"{"message":"m","type":"t"}"#), "m|t|-|-");
    assert_eq!(said(r#"{"detail":"m"}"#), "m|-|-|-");
    assert_eq!(said(r#"{"detail":[{"msg":"m","loc":["body"]}]}"#), "m|-|-|-");
    assert_eq!(said(r#"{"object":"Error","message":[{"msg":"m"}],"code":3001}"#), "m|-|3001|-");
    assert_eq!(said(r#"[{"error":{"message":"m"}}]"#), "m|-|-|-");
    assert_eq!(said("  \n{\"error\":{\"message\":\"m\"}}"), "m|-|-|-");
}

#[test]
fn error_pages_say_nothing() {
    for body in [
        "<html><body>Bad gateway</body></html>",
        "",
        "upstream connect error",
        "null",
        "[]",
        "{}",
        "{\"error\":7}",
    ] {
        assert_eq!(read(502, &[], body).detail(), None, "{body}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(read(400, &[], &deep).detail(), None);
}

#[test]
fn a_refused_credential_does_not_read_as_the_callers() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-abcdefgh.","type":"invalid_request_error","code":"invalid_api_key"}}"#;
    let error = read(401, &[], body);
    assert_eq!(error.openai_code(), Some("upstream_auth"));
    assert_eq!(error.detail().unwrap().message(), "Incorrect API key provided: [redacted]");
}

#[test]
fn unlisted_shapes_are_marked() {
    let marked = |status, body: &str| read(status, &[], body).is_unclassified();
    assert!(marked(418, r#"{"error":{"message":"m"}}"#));
    assert!(marked(599, ""));
    assert!(marked(400, "no JSON"));
    assert!(marked(400, r#"{"fault":"m"}"#));
    assert_eq!(read(418, &[], "").kind(), ErrorKind::InvalidRequest);
    assert_eq!(read(599, &[], "").kind(), ErrorKind::ProviderUnavailable);
    for body in
        ["", " ", "<html></html>", r#"{"error":"m"}"#, r#"{"detail":"m"}"#, r#"[{"error":{"message":"m"}}]"#]
    {
        assert!(!marked(503, body), "{body}");
    }
    let inside = |body: &str| super::in_band(body.as_bytes());
    assert!(inside(r#"{"error":{"message":"m"}}"#).is_unclassified());
    assert!(!inside(r#"{"error":{"message":"m","type":"server_error"}}"#).is_unclassified());
    assert!(!inside(r#"{"error":{"message":"m","code":503}}"#).is_unclassified());
    assert_eq!(inside(r#"{"error":{"message":"m"}}"#).kind(), ErrorKind::ProviderUnavailable);
}

#[test]
fn a_missing_model_is_one_whatever_the_status() {
    for body in [
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}"#,
        r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}"#,
        r#"{"error":{"message":"x is not a valid model ID","code":400}}"#,
        r#"{"detail":"Model x is not supported. Supported models are ['a']."}"#,
    ] {
        check(400, body, ErrorKind::DeploymentMissing);
    }
}

#[test]
fn an_event_of_type_error_has_no_type_of_its_own() {
    let error = super::in_band(br#"{"type":"error","code":"server_error","message":"m","param":null}"#);
    let detail = error.detail().unwrap();
    assert_eq!((detail.kind(), detail.code()), (None, Some("server_error")));
}
