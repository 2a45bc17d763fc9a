//! The head of a stream: held back until the provider has said something that counts.

use std::{collections::VecDeque, future::poll_fn};

use gw_types::{AnswerStream, ErrorKind, GatewayError, StreamItem};

/// Bytes of meaningless events (role deltas, padding) that are held before the stream is given up.
const HELD_BYTES_MAX: usize = 64 * 1_024;
/// Items that are held before the stream is given up: many tiny ones are no progress either.
const HELD_ITEMS_MAX: usize = 256;

/// A stream whose first meaningful event is here.
pub(crate) struct Opened {
    /// What has come so far, in order; the last item is meaningful.
    pub(crate) held: VecDeque<StreamItem>,
    /// The rest.
    pub(crate) items: AnswerStream,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("held", &self.held).finish_non_exhaustive()
    }
}

/// Waits for the first meaningful event, so that until then retry and fallback work as for a plain call.
///
/// # Errors
/// The provider's error where it is the first thing said; `StreamInterrupted` where the stream ends before that;
/// `MalformedResponse` where nothing meaningful comes within the bounds.
pub(crate) async fn open_stream(mut items: AnswerStream) -> Result<Opened, GatewayError> {
    let mut held = VecDeque::new();
    let mut bytes = 0_usize;
    loop {
        let item = match poll_fn(|cx| items.as_mut().poll_next(cx)).await {
            Some(item) => item?,
            None => {
                return Err(GatewayError::new(
                    ErrorKind::StreamInterrupted,
                    "the provider's stream ended before its terminal event",
                ));
            }
        };
        // An item may carry content and the error behind it: then the content has come first.
        if item.facts.content_frames == 0
            && let Some(error) = item.facts.error
        {
            return Err(error);
        }
        let meaningful = item.facts.is_meaningful();
        bytes = bytes.saturating_add(item.raw.len());
        held.push_back(item);
        if meaningful {
            return Ok(Opened { held, items });
        }
        if bytes > HELD_BYTES_MAX || held.len() > HELD_ITEMS_MAX {
            return Err(GatewayError::new(
                ErrorKind::MalformedResponse,
                "the provider's stream says nothing within its first 64 KiB",
            ));
        }
    }
}
