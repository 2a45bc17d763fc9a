//! Errors as a caller of the dialect reads them.

use bytes::Bytes;
use gw_types::{GatewayError, UpstreamDetail};
use serde::Serialize;

/// Returns the error's JSON body: `{"error": {"message", "type", "param", "code"}}`.
///
/// A call of a side-effecting request that ended without a known result says so in two more fields, `"outcome"`:
/// `"ambiguous"` and `"attempt"` with the id of the call; clients read over them.
///
/// The provider's own message, type, code and parameter where it gave them, scrubbed and bounded; else gw's. This is the
/// only place where a provider's text reaches anybody.
///
/// ```
/// use gw_dialects::openai::error_body;
/// use gw_types::{ErrorKind, GatewayError};
///
/// let body = error_body(&GatewayError::new(ErrorKind::Unauthenticated, "unknown key"));
/// assert_eq!(
///     body,
///     r#"{"error":{"message":"unknown key","type":"authentication_error","param":null,"code":"invalid_api_key"}}"#
/// );
/// ```
pub fn error_body(error: &GatewayError) -> Bytes {
    Bytes::from(json(error))
}

/// Returns the error as an event of a stream that has begun, after which only the end may follow.
pub fn error_event(error: &GatewayError) -> Bytes {
    let body = json(error);
    let mut event = Vec::with_capacity(body.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(&body);
    event.extend_from_slice(b"\n\n");
    Bytes::from(event)
}

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<&'a str>,
}

fn json(error: &GatewayError) -> Vec<u8> {
    let detail = error.detail();
    let own = own_message(error);
    let param = detail.and_then(UpstreamDetail::param).or(error.param());
    let body = Body {
        error: Inner {
            message: detail
                .map(UpstreamDetail::message)
                .filter(|message| !message.is_empty())
                .unwrap_or(&own),
            kind: detail.and_then(UpstreamDetail::kind).unwrap_or(gw_errors::openai_type(error.kind())),
            param,
            code: error.openai_code(),
            outcome: error.is_ambiguous().then(|| error.outcome().as_str()),
            attempt: error.attempt().filter(|_| error.is_ambiguous()),
        },
    };
    serde_json::to_vec(&body).expect("text fields always serialise")
}

/// Returns gw's text; names the field at fault where the text does not, because clients show the message alone.
fn own_message(error: &GatewayError) -> String {
    match error.param() {
        Some(param) if !error.message().contains(param) => format!("{error} in `{param}`"),
        Some(_) | None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{ErrorKind, GatewayError, UpstreamDetail};

    use super::{error_body, error_event};

    #[track_caller]
    fn check(error: &GatewayError, expected: &str) {
        assert_eq!(error_body(error), expected);
        assert_eq!(error_event(error), format!("data: {expected}\n\n"));
    }

    #[test]
    fn an_unknown_result_is_said() {
        check(
            &GatewayError::new(ErrorKind::Transport, "reset").ambiguous().with_attempt("r.1"),
            r#"{"error":{"message":"reset","type":"server_error","param":null,"code":null,"outcome":"ambiguous","attempt":"r.1"}}"#,
        );
    }

    #[test]
    fn own_errors_name_field_and_place() {
        let error = GatewayError::new(ErrorKind::InvalidRequest, "expected a string")
            .with_param("messages[3].content")
            .with_position(2, 7);
        let message = "expected a string at line 2 column 7 in `messages[3].content`";
        let expected = format!(
            r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":"messages[3].content","code":null}}}}"#
        );
        check(&error, &expected);
    }

    #[test]
    fn the_providers_words_come_first() {
        let detail = UpstreamDetail::new("too \"long\"")
            .with_kind("their_type")
            .with_code("their_code")
            .with_param("messages");
        let error = GatewayError::new(ErrorKind::ContextLengthExceeded, "too long").with_detail(detail);
        check(
            &error,
            r#"{"error":{"message":"too \"long\"","type":"their_type","param":"messages","code":"their_code"}}"#,
        );
    }

    #[test]
    fn what_the_provider_left_out_is_filled_in() {
        let error =
            GatewayError::new(ErrorKind::ContentFiltered, "refused").with_detail(UpstreamDetail::new(""));
        check(
            &error,
            r#"{"error":{"message":"refused","type":"invalid_request_error","param":null,"code":"content_filter"}}"#,
        );
    }
}
