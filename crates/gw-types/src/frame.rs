//! One step of a streamed answer.

use bytes::Bytes;

use crate::{BoundedText, FinishReason, GatewayError, Loss, Usage};

/// One step of a streamed answer: bytes to relay and what they mean.
///
/// An item may cover several events that arrived together. `raw` is complete events in the caller's wire format,
/// without the dialect's final marker, which gw writes itself; it may be empty.
#[derive(Clone, Default)]
pub struct StreamItem {
    /// The bytes to relay.
    pub raw: Bytes,
    /// What they mean.
    pub facts: FrameFacts,
}

impl std::fmt::Debug for StreamItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamItem")
            .field("raw", &format_args!("[{} bytes redacted]", self.raw.len()))
            .field("facts", &self.facts)
            .finish()
    }
}

/// What the events of an item mean. Holds no completion text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameFacts {
    /// UTF-8 bytes of generated text, reasoning and tool arguments.
    pub content_bytes: u32,
    /// Events that carry any of those. Events without (role, padding, keep-alive) are no progress.
    pub content_frames: u32,
    /// The usage so far, merged over the whole stream; present whenever these events changed it.
    pub usage: Option<Box<Usage>>,
    /// Why the answer ended, once it is known.
    pub finish: Option<FinishReason>,
    /// Whether any event calls a tool.
    pub tool_calls: bool,
    /// The model that the provider says is answering; on the first event that says so.
    pub served_model: Option<BoundedText>,
    /// What of these events the caller's wire format has no place for; each field on the first event that has it.
    pub loss: Option<Box<Loss>>,
    /// Whether the answer is complete: the dialect's terminal event was seen. Nothing follows.
    pub terminal: bool,
    /// An error that the provider sent inside the stream. `raw` holds what came before it; nothing follows.
    pub error: Option<GatewayError>,
}

impl FrameFacts {
    /// Returns whether the item decides that the stream has begun for the caller: content, an end or an error.
    pub fn is_meaningful(&self) -> bool {
        self.content_frames > 0 || self.finish.is_some() || self.terminal || self.error.is_some()
    }
}
