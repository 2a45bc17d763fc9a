//! Tests of the error table.

use gw_types::{ErrorKind, GatewayError, UtcTime};

use super::{classify, frame};
use crate::{
    event_stream::{Decoder, HeaderValue, encode},
    openai::ErrorHead,
};

fn error(status: u16, kind: &str, message: &str) -> GatewayError {
    let kind = format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/");
    let header = |name: &str| match name {
        "x-amzn-errortype" => Some(kind.as_str()),
        "x-amzn-requestid" => Some("r-1"),
        "retry-after" => Some("3"),
        _ => None,
    };
    let head = ErrorHead { status, header: &header, utc: UtcTime::default() };
    classify(&head, format!(r#"{{"message":"{message}"}}"#).as_bytes())
}

/// Checks the kind, whether a repeat is forbidden, and whether the wait counts.
#[track_caller]
fn check(status: u16, kind: &str, message: &str, expected: ErrorKind, no_retry: bool, waits: bool) {
    let error = error(status, kind, message);
    let found = (error.kind(), error.forbids_retry(), error.retry_after().is_some());
    assert_eq!(found, (expected, no_retry, waits), "{kind}: {message}");
    assert_eq!((error.status(), error.upstream_request_id()), (Some(status), Some("r-1")));
    assert_eq!(error.detail().unwrap().message(), message);
}

#[test]
fn kinds_stand_in_the_header() {
    use ErrorKind as K;
    check(400, "ValidationException", "temperature too high", K::InvalidRequest, false, false);
    check(
        400,
        "ValidationException",
        "The provided model identifier is invalid.",
        K::DeploymentMissing,
        false,
        false,
    );
    let profile = "Invocation of model ID x with on-demand throughput isn't supported.";
    check(400, "ValidationException", profile, K::DeploymentMissing, false, false);
    check(
        400,
        "ValidationException",
        "Input is too long for requested model.",
        K::ContextLengthExceeded,
        false,
        false,
    );
    check(400, "ValidationException", "blocked by our content filters", K::ContentFiltered, false, false);
    check(400, "ServiceQuotaExceededException", "x", K::ProviderRateLimited, true, true);
    check(403, "ExpiredTokenException", "x", K::ProviderAuth, false, false);
    check(403, "UnrecognizedClientException", "x", K::ProviderAuth, false, false);
    check(403, "InvalidSignatureException", "x", K::ProviderAuth, false, false);
    check(403, "AccessDeniedException", "not authorized to perform", K::ProviderAuth, false, false);
    check(
        403,
        "AccessDeniedException",
        "You don't have access to the model",
        K::DeploymentMissing,
        false,
        false,
    );
    check(404, "ResourceNotFoundException", "x", K::DeploymentMissing, false, false);
    check(408, "ModelTimeoutException", "x", K::ProviderTimeout, false, true);
    check(424, "ModelErrorException", "x", K::ProviderUnavailable, false, true);
    check(429, "ThrottlingException", "Too many tokens, please wait", K::ProviderRateLimited, false, true);
    check(429, "ThrottlingException", "Too many tokens per day", K::ProviderRateLimited, true, true);
    check(429, "ModelNotReadyException", "x", K::ProviderUnavailable, false, true);
    check(500, "InternalServerException", "x", K::ProviderUnavailable, false, true);
    check(503, "ServiceUnavailableException", "x", K::ProviderUnavailable, false, true);
}

#[test]
fn without_a_known_kind_the_status_decides() {
    use ErrorKind as K;
    for (status, kind) in [
        (400, K::InvalidRequest),
        (401, K::ProviderAuth),
        (404, K::DeploymentMissing),
        (408, K::ProviderTimeout),
        (409, K::InvalidRequest),
        (424, K::ProviderUnavailable),
        (429, K::ProviderRateLimited),
        (502, K::ProviderUnavailable),
        (301, K::MalformedResponse),
    ] {
        assert_eq!(error(status, "NewException", "m").kind(), kind, "{status}");
    }
}

#[test]
fn the_body_may_name_the_kind() {
    let head = ErrorHead { status: 400, header: &|_| None, utc: UtcTime::default() };
    let error =
        classify(&head, br#"{"__type":"com.amazon.coral.service#ThrottlingException","Message":"m"}"#);
    assert_eq!((error.kind(), error.detail().unwrap().message()), (ErrorKind::ProviderRateLimited, "m"));
    assert_eq!(classify(&head, b"<html>").detail(), None);
}

fn read_frame(headers: &[(&str, HeaderValue<'_>)], payload: &str) -> Option<GatewayError> {
    let mut decoder = Decoder::new();
    decoder.push(encode(headers, payload.as_bytes()));
    frame(&decoder.next_frame().unwrap().unwrap())
}

#[test]
fn exception_frames_have_their_kinds() {
    use HeaderValue::Text;
    let exception = |kind| {
        let headers = [(":message-type", Text("exception")), (":exception-type", Text(kind))];
        let error = read_frame(&headers, r#"{"message":"m"}"#).unwrap();
        assert_eq!(error.detail().unwrap().message(), "m");
        (error.kind(), error.status())
    };
    assert_eq!(exception("throttlingException"), (ErrorKind::ProviderRateLimited, Some(429)));
    assert_eq!(exception("internalServerException"), (ErrorKind::ProviderUnavailable, Some(500)));
    assert_eq!(exception("modelStreamErrorException"), (ErrorKind::ProviderUnavailable, Some(500)));
    assert_eq!(exception("modelTimeoutException"), (ErrorKind::ProviderTimeout, Some(408)));
    assert_eq!(exception("serviceUnavailableException"), (ErrorKind::ProviderUnavailable, Some(503)));
    assert_eq!(exception("validationException"), (ErrorKind::InvalidRequest, Some(400)));
    assert_eq!(exception("newException"), (ErrorKind::ProviderUnavailable, Some(500)));
}

#[test]
fn error_frames_say_it_in_headers() {
    use HeaderValue::Text;
    let headers = [
        (":message-type", Text("error")),
        (":error-code", Text("InternalFailure")),
        (":error-message", Text("gone")),
    ];
    let error = read_frame(&headers, "").unwrap();
    assert_eq!((error.kind(), error.detail().unwrap().message()), (ErrorKind::ProviderUnavailable, "gone"));
    assert!(read_frame(&[(":message-type", Text("event"))], "{}").is_none());
    assert!(read_frame(&[], "{}").is_none());
}
