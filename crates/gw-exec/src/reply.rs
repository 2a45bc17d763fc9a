//! What a caller gets: the evidence beside the answer or the error.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_limits::BucketSnapshot;
use gw_types::{
    BoundedText, CacheState, Completion, DeploymentName, ErrorKind, GatewayError, Money, Outcome, RequestId,
    RouteName, TokenCount, Usage, UtcTime,
};

use smallvec::SmallVec;

use crate::Relay;

/// The evidence that goes into response headers.
#[derive(Clone, Debug)]
pub struct ReplyHead {
    /// The record's id.
    pub id: RequestId,
    /// When the request arrived.
    pub started: UtcTime,
    /// Digest of the configuration that decided.
    pub config: BoundedText,
    /// The route that was chosen.
    pub route: Option<RouteName>,
    /// The deployment that answered.
    pub deployment: Option<DeploymentName>,
    /// The model that the provider says has answered.
    pub served_model: Option<BoundedText>,
    /// The request whose answer this is, where an idempotency key was used again.
    pub replay_of: Option<RequestId>,
    /// Provider calls made for this request.
    pub attempts: u32,
    /// How those of them that failed did, in order.
    pub attempt_errors: SmallVec<[ErrorKind; 2]>,
    /// What the cache did.
    pub cache: CacheState,
    /// What this call cost; for a stream, what is known when it begins (the record has the rest).
    pub cost: Money,
    /// From arrival to now.
    pub latency: Duration,
    /// Fields that a translation dropped or approximated.
    pub loss: u32,
    /// How the request ended, as far as it has.
    pub outcome: Outcome,
    /// The tenant's request rate after this request; `None`: not limited.
    pub requests: Option<BucketSnapshot>,
    /// The tenant's token rate after this request; `None`: not limited.
    pub tokens: Option<BucketSnapshot>,
    /// What settling came to; for a stream that has only begun: nothing yet.
    pub settled: Settled,
}

/// What a request came to once everything that it held was settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// What was used; `None`: nothing was called.
    pub usage: Option<Usage>,
    /// What it cost, calls without a known result included.
    pub cost: Money,
    /// Waiting for slots, for tokens in flight, for the pace.
    pub queue: Duration,
}

/// An answer and its evidence.
#[derive(Debug)]
pub struct Reply<B> {
    /// The evidence.
    pub head: ReplyHead,
    /// The answer.
    pub body: B,
}

/// A whole answer.
#[derive(Clone)]
pub enum Body {
    /// Bytes in the caller's wire format.
    Raw(Bytes),
    /// A remembered answer, to be written in the caller's wire format.
    Completion(Arc<Completion>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Raw(raw) => write!(f, "Body::Raw([{} bytes redacted])", raw.len()),
            Self::Completion(_) => f.write_str("Body::Completion([redacted])"),
        }
    }
}

/// A streamed answer.
#[derive(Debug)]
pub enum StreamBody {
    /// An answer that has begun; boxed because it owns everything that the request holds.
    Relay(Box<Relay>),
    /// A remembered answer, to be written as a stream in the caller's wire format.
    Completion(Arc<Completion>),
    /// An answer that was relayed before, for an idempotency key that is used again.
    Kept(KeptEvents),
}

/// The events of a stream that was relayed before.
#[derive(Clone)]
pub struct KeptEvents {
    /// The events in the caller's wire format, without what ends the stream.
    pub events: Bytes,
    /// Set where the stream was ended at its output bound: a finish reason `length` is due with this output.
    pub capped: Option<TokenCount>,
}

impl std::fmt::Debug for KeptEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptEvents([{} bytes redacted])", self.events.len())
    }
}

/// An error and its evidence.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The evidence.
    pub head: Box<ReplyHead>,
    /// The error.
    pub error: GatewayError,
}
