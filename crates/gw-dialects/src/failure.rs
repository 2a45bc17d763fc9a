//! What every format says alike of an answer that cannot be read.

use gw_types::{ErrorKind, GatewayError};

use crate::{json::Node, sse};

/// Returns the text of an answer's body.
///
/// # Errors
/// `MalformedResponse`, if it is not UTF-8.
pub(crate) fn text_of(body: &[u8]) -> Result<&str, GatewayError> {
    std::str::from_utf8(body).map_err(|_| malformed("the provider's answer is not valid UTF-8"))
}

/// Returns an answer's body as a tree.
///
/// # Errors
/// `MalformedResponse`, if it is not JSON.
pub(crate) fn tree_of(body: &[u8]) -> Result<Node<'_>, GatewayError> {
    Node::read(text_of(body)?).map_err(|_| malformed("the provider's answer is not JSON"))
}

/// Returns the JSON of an error answer's body, which some servers send as an event where a stream was asked for; empty for
/// what is not UTF-8.
pub(crate) fn error_text(body: &[u8]) -> &str {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}').trim_ascii();
    if !text.starts_with("data:") && !text.starts_with("event:") {
        return text;
    }
    text.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or_default().trim_ascii()
}

/// Returns the error of an answer that is not what its format says.
pub(crate) fn malformed(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::MalformedResponse, message)
}

/// Returns the error of a stream that ended early.
pub(crate) fn interrupted() -> GatewayError {
    let message = "the provider's stream ended before the answer was complete";
    GatewayError::new(ErrorKind::StreamInterrupted, message)
}

impl From<sse::EventTooLong> for GatewayError {
    fn from(_: sse::EventTooLong) -> Self {
        malformed("the provider's stream holds an event longer than 8 MiB")
    }
}
