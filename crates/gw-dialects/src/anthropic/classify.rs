//! From a provider's status, headers and body to one kind of failure.

use gw_types::GatewayError;

use crate::{
    json::Node,
    openai::{self, ErrorHead},
};

/// Classifies a provider's error answer, by the same reading of status and words as [`openai::classify`].
///
/// ```
/// use gw_dialects::{anthropic::classify, openai::ErrorHead};
/// use gw_types::{ErrorKind, UtcTime};
///
/// let header = |_: &str| None;
/// let head = ErrorHead { status: 529, header: &header, utc: UtcTime::default() };
/// let error = classify(&head, br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
/// assert_eq!((error.kind(), error.status()), (ErrorKind::ProviderUnavailable, Some(529)));
/// ```
pub fn classify(head: &ErrorHead<'_>, body: &[u8]) -> GatewayError {
    openai::classify(head, body)
}

/// The status that stands for each type of error, where one comes inside a 2xx answer or stream.
const STATUSES: [(&str, u16); 10] = [
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// Classifies an error that came inside a 2xx answer or stream; `body` is the JSON that holds it.
pub(super) fn in_band(body: &[u8]) -> GatewayError {
    let kind = std::str::from_utf8(body)
        .ok()
        .and_then(|text| Node::read(text).ok())
        .and_then(|node| node.get("error")?.filled("type"));
    let status = STATUSES.iter().find(|(name, _)| kind.as_deref() == Some(name)).map(|(_, status)| *status);
    match status {
        Some(status) => openai::classify::of_status(status, body),
        None => openai::classify::in_band(body),
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{ErrorKind, UtcTime};

    use super::{classify, in_band};
    use crate::openai::ErrorHead;

    #[track_caller]
    fn check(status: u16, body: &str, kind: ErrorKind, forbids_retry: bool) {
        let header = |_: &str| None;
        let head = ErrorHead { status, header: &header, utc: UtcTime::default() };
        let error = classify(&head, body.as_bytes());
        assert_eq!((error.kind(), error.forbids_retry()), (kind, forbids_retry), "{status} {body}");
    }

    fn body(kind: &str, message: &str) -> String {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
        )
    }

    #[test]
    fn every_status_has_its_kind() {
        check(
            400,
            &body("invalid_request_error", "max_tokens: must be greater"),
            ErrorKind::InvalidRequest,
            false,
        );
        let long = body("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum");
        check(400, &long, ErrorKind::ContextLengthExceeded, false);
        let credit = body("invalid_request_error", "Your credit balance is too low to access the API");
        check(400, &credit, ErrorKind::ProviderRateLimited, true);
        check(401, &body("authentication_error", "invalid x-api-key"), ErrorKind::ProviderAuth, false);
        check(402, &body("billing_error", "x"), ErrorKind::ProviderRateLimited, true);
        check(403, &body("permission_error", "x"), ErrorKind::ProviderAuth, false);
        check(404, &body("not_found_error", "model: x"), ErrorKind::DeploymentMissing, false);
        check(413, &body("request_too_large", "x"), ErrorKind::InvalidRequest, false);
        check(429, &body("rate_limit_error", "x"), ErrorKind::ProviderRateLimited, false);
        check(500, &body("api_error", "x"), ErrorKind::ProviderUnavailable, false);
        check(504, &body("timeout_error", "x"), ErrorKind::ProviderUnavailable, false);
        check(529, &body("overloaded_error", "Overloaded"), ErrorKind::ProviderUnavailable, false);
    }

    #[test]
    fn in_band_errors_get_the_status_of_their_type() {
        for (kind, status, expected) in [
            ("overloaded_error", 529, ErrorKind::ProviderUnavailable),
            ("rate_limit_error", 429, ErrorKind::ProviderRateLimited),
            ("invalid_request_error", 400, ErrorKind::InvalidRequest),
            ("authentication_error", 401, ErrorKind::ProviderAuth),
        ] {
            let error = in_band(body(kind, "x").as_bytes());
            assert_eq!((error.kind(), error.status()), (expected, Some(status)), "{kind}");
        }
        assert_eq!(in_band(body("other", "x").as_bytes()).kind(), ErrorKind::ProviderUnavailable);
    }
}
