//! The seam between the pipeline and a provider.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Answer, Deployment, GatewayError, NormalizedRequest, TokenCount};

/// Calls one provider.
///
/// # Contract
/// `prepare` is pure and cheap: it builds body and headers anew from the neutral request and says what the provider's
/// format cannot carry; strict refusal happens here, before any call. Destination and credential come from the
/// adapter's own configuration and nothing in the request can change either.
///
/// `call` makes exactly one call and never retries. Dropping its future or the stream it returned cancels the call
/// and gives its connection back at once. It does not time itself: the pipeline does, by dropping. An error carries a
/// kind, the upstream's status, request id and `retry_after` where there were any, and what the provider said as an
/// [`crate::UpstreamDetail`]; `no_retry` where the provider said so. A refused connection is
/// [`crate::ErrorKind::Transport`] and not ambiguous; an error after the request was written is marked
/// [`GatewayError::ambiguous`], which the pipeline heeds for side-effecting requests only.
///
/// A stream ends with one item whose facts are `terminal` or carry an `error`, or with an `Err`; ending without any of
/// these is reported as [`crate::ErrorKind::StreamInterrupted`].
#[async_trait]
pub trait Adapter: Send + Sync + std::fmt::Debug {
    /// Builds the call.
    ///
    /// # Errors
    /// `InvalidRequest` or `TranslationLoss`, if the provider's format cannot carry the request.
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError>;

    /// Makes the call.
    ///
    /// # Errors
    /// Any kind of the provider's side of the table.
    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError>;
}

/// What the pipeline decided for one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPlan {
    /// The output bound to send; `None` leaves the body alone.
    pub output_bound: Option<TokenCount>,
    /// The time left for this attempt, for providers that take it.
    pub timeout: Duration,
}

/// A call that is ready to be made.
#[derive(Clone)]
pub struct Prepared {
    /// The body to send.
    pub body: Bytes,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether the caller wants to see the usage chunk.
    pub relay_usage: bool,
    /// What the translation loses.
    pub loss: Loss,
    /// The caller's trace context, passed on.
    pub traceparent: Option<crate::BoundedText>,
    /// The operation asked for.
    pub operation: crate::Operation,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("body", &format_args!("[{} bytes redacted]", self.body.len()))
            .field("stream", &self.stream)
            .field("relay_usage", &self.relay_usage)
            .field("loss", &self.loss)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// What a translation lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The fields, in the order of the request.
    pub items: Vec<LossItem>,
}

/// One field that a translation lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossItem {
    /// The field, by its path in the caller's format.
    pub field: &'static str,
    /// How it was lost.
    pub kind: LossKind,
}

/// Says how a field was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The provider's format has no place for it.
    Dropped,
    /// The provider's format has something near.
    Approximated,
}

const _: fn(&dyn Adapter) = |_object_safe| {};
