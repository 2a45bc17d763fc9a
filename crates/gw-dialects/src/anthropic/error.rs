//! Errors as a caller of the dialect reads them.

use bytes::Bytes;
use gw_types::{Dialect, GatewayError, UpstreamDetail};

use crate::json::Writer;

/// Returns the error's JSON body: `{"type": "error", "error": {"type", "message"}, "request_id"}`.
///
/// The type follows the status that the caller gets. The message is the provider's own where it gave one, scrubbed and
/// bounded; else gw's. A call of a side-effecting request that ended without a known result says so in two more fields of
/// the error, `"outcome"`: `"ambiguous"` and `"attempt"` with the id of the call.
///
/// ```
/// use gw_dialects::anthropic::error_body;
/// use gw_types::{ErrorKind, GatewayError};
///
/// let body = error_body(&GatewayError::new(ErrorKind::Overloaded, "no slot is free"), Some("req_1"));
/// let error = r#"{"type":"overloaded_error","message":"no slot is free"}"#;
/// assert_eq!(body, format!(r#"{{"type":"error","error":{error},"request_id":"req_1"}}"#));
/// ```
pub fn error_body(error: &GatewayError, request_id: Option<&str>) -> Bytes {
    let mut json = Writer::default();
    write(&mut json, error, request_id);
    json.into_bytes()
}

/// Returns the error as an event of a stream that has begun, after which nothing may follow.
pub fn error_event(error: &GatewayError, request_id: Option<&str>) -> Bytes {
    let mut event = bytes::BytesMut::from(&b"event: error\ndata: "[..]);
    Writer::within(&mut event, |json| write(json, error, request_id));
    event.extend_from_slice(b"\n\n");
    event.freeze()
}

fn write(json: &mut Writer, error: &GatewayError, request_id: Option<&str>) {
    let said = error.detail().map(UpstreamDetail::message).filter(|message| !message.is_empty());
    let own = own_message(error);
    json.object(|json| {
        json.member_string("type", "error");
        json.member_object("error", |json| {
            let status = error.http_status(Dialect::Anthropic);
            json.member_string("type", gw_errors::anthropic_type(status));
            json.member_string("message", said.unwrap_or(&own));
            if error.is_ambiguous() {
                json.member_string("outcome", error.outcome().as_str());
                if let Some(attempt) = error.attempt() {
                    json.member_string("attempt", attempt);
                }
            }
        });
        if let Some(id) = request_id {
            json.member_string("request_id", id);
        }
    });
}

/// Returns gw's text; names the field at fault where the text does not, because the format has no field for it.
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
        let expected = format!(r#"{{"type":"error","error":{expected}}}"#);
        assert_eq!(error_body(error, None), expected);
        assert_eq!(error_event(error, None), format!("event: error\ndata: {expected}\n\n"));
    }

    #[test]
    fn the_type_follows_the_status() {
        let error = |kind| GatewayError::new(kind, "x");
        check(&error(ErrorKind::UnknownModel), r#"{"type":"not_found_error","message":"x"}"#);
        check(&error(ErrorKind::QuotaExceeded), r#"{"type":"rate_limit_error","message":"x"}"#);
        check(&error(ErrorKind::DeadlineExceeded), r#"{"type":"timeout_error","message":"x"}"#);
        let overloaded = error(ErrorKind::ProviderUnavailable).with_status(529);
        check(&overloaded, r#"{"type":"overloaded_error","message":"x"}"#);
        let ambiguous = error(ErrorKind::Transport).ambiguous().with_attempt("r.1");
        check(&ambiguous, r#"{"type":"api_error","message":"x","outcome":"ambiguous","attempt":"r.1"}"#);
    }

    #[test]
    fn the_providers_words_come_first() {
        let error = GatewayError::new(ErrorKind::InvalidRequest, "refused").with_param("messages[0]");
        check(&error, r#"{"type":"invalid_request_error","message":"refused in `messages[0]`"}"#);
        let error = error.with_detail(UpstreamDetail::new("too \"long\""));
        check(&error, r#"{"type":"invalid_request_error","message":"too \"long\""}"#);
    }
}
