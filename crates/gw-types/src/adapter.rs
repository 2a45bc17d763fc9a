//! The seam between the pipeline and a provider.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    Answer, BoundedText, Deployment, GatewayError, ModelName, NormalizedRequest, Operation, PassedHeader,
    RequestId, TokenCount,
};

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
    /// Whether a translation that would lose anything is refused, whatever the caller says about it.
    pub strict: bool,
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
    pub traceparent: Option<BoundedText>,
    /// What the systems of the caller's trace say to each other, passed on beside it.
    pub tracestate: Option<Arc<str>>,
    /// The operation asked for; also names the wire format that the answer must have.
    pub operation: Operation,
    /// The model as the provider knows it.
    pub model: ModelName,
    /// The model as the caller named it: what a translated answer says.
    pub requested_model: Arc<str>,
    /// The request's own id: what a translated answer is called where the provider gives it none.
    pub id: Option<RequestId>,
    /// The caller's headers that a provider of the same format gets.
    pub passed: Vec<(PassedHeader, Arc<str>)>,
    /// The time left for the call, for providers that take it.
    pub timeout: Option<Duration>,
    /// Whether the caller wants embeddings as base64 that the provider only gives as numbers.
    pub vectors_to_base64: bool,
}

impl Prepared {
    /// Returns a call without loss that sends the body as it is; everything else is taken from request and deployment.
    pub fn new(request: &NormalizedRequest, deployment: &Deployment, body: Bytes) -> Self {
        Self {
            body,
            stream: request.facts.stream,
            relay_usage: request.facts.include_usage,
            loss: Loss::default(),
            traceparent: request.context.traceparent.clone(),
            tracestate: request.context.tracestate.clone(),
            operation: request.operation,
            model: deployment.model.clone(),
            requested_model: Arc::clone(&request.facts.model),
            id: request.context.id.clone(),
            passed: request.context.passed.clone(),
            timeout: None,
            vectors_to_base64: false,
        }
    }
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
    /// The fields, in the order of the request or of the answer.
    pub items: Vec<LossItem>,
}

/// One field that a translation lost. Holds no value of request or answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossItem {
    /// The field: of a request by its path in the caller's format, of an answer behind `answer.`.
    pub path: BoundedText,
    /// How it was lost.
    pub kind: LossKind,
    /// Why, in gw's own fixed words.
    pub why: &'static str,
}

/// Says how a field was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The provider's format has no place for it.
    Dropped,
    /// The provider's format has something near.
    Approximated,
    /// The same is brought about by other means, such as a forced tool in the place of a schema.
    Emulated,
}

impl LossKind {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Approximated => "approximated",
            Self::Emulated => "emulated",
        }
    }
}

const _: fn(&dyn Adapter) = |_object_safe| {};
