//! What an adapter brings back: the provider's bytes beside the facts that the pipeline acts on.

use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;

use crate::{BoundedText, FinishReason, GatewayError, Loss, StreamItem, Usage};

/// The items of a streamed answer, in order. An `Err` ends the stream; so does an item whose facts are terminal.
pub type AnswerStream = Pin<Box<dyn Stream<Item = Result<StreamItem, GatewayError>> + Send>>;

/// A provider's answer.
#[derive(Debug)]
pub enum Answer {
    /// The whole answer.
    Complete(CompleteAnswer),
    /// An answer that has begun.
    Stream(StreamAnswer),
}

/// A whole answer.
#[derive(Clone)]
pub struct CompleteAnswer {
    /// The body in the caller's wire format, byte for byte the provider's where the dialect is the same.
    pub raw: Bytes,
    /// What the pipeline acts on.
    pub facts: AnswerFacts,
    /// The provider's id of the call.
    pub upstream_request_id: Option<BoundedText>,
}

impl std::fmt::Debug for CompleteAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompleteAnswer")
            .field("raw", &format_args!("[{} bytes redacted]", self.raw.len()))
            .field("facts", &self.facts)
            .field("upstream_request_id", &self.upstream_request_id)
            .finish()
    }
}

/// An answer that has begun.
pub struct StreamAnswer {
    /// The items, in order.
    pub items: AnswerStream,
    /// The provider's id of the call.
    pub upstream_request_id: Option<BoundedText>,
}

impl std::fmt::Debug for StreamAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamAnswer")
            .field("upstream_request_id", &self.upstream_request_id)
            .finish_non_exhaustive()
    }
}

/// What the pipeline acts on in a whole answer. Holds no completion text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerFacts {
    /// What the call used, as the provider reported it.
    pub usage: Option<Usage>,
    /// Why the first choice ended; where choices differ, the first reason that is not `Stop`.
    pub finish: Option<FinishReason>,
    /// The model that the provider says has answered.
    pub served_model: Option<BoundedText>,
    /// UTF-8 bytes of generated text and tool arguments.
    pub content_bytes: u64,
    /// Whether any choice calls a tool.
    pub tool_calls: bool,
    /// What of the answer the caller's wire format has no place for.
    pub loss: Loss,
}
