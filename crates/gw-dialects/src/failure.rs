//! What every format says alike of an answer that cannot be read.

use gw_types::{ErrorKind, GatewayError};

use crate::sse;

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
