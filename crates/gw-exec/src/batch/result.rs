//! One item of a batch, as it comes out.

use std::time::Duration;

use bytes::Bytes;
use gw_types::{BoundedText, Choice, DeploymentName, ErrorKind, GatewayError, Money, RequestId, Usage};
use smallvec::SmallVec;

use super::{ModelIdentity, item::Label};

/// How an item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationStatus {
    /// It was answered.
    Ok,
    /// It was not.
    Failed,
    /// The batch ended before it did; what it may have cost stands in the ledger.
    Cancelled,
}

impl GenerationStatus {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What became of one request of a batch. Prints without the answer.
#[derive(Clone)]
pub struct GenerationResult {
    /// The caller's id.
    pub request_id: String,
    /// The task.
    pub task_id: Option<String>,
    /// As the request said.
    pub identity: ModelIdentity,
    /// How it ended.
    pub status: GenerationStatus,
    /// The answers with finish reasons and tool calls; empty where there is none, and for operations whose answers are
    /// no text.
    pub completions: Vec<Choice>,
    /// The answer as the provider wrote it.
    pub raw: Option<Bytes>,
    /// Calls of providers.
    pub attempts: u32,
    /// How each failed call failed, in order: the cause of every retry and fallback, and of the failure.
    pub attempt_error_classes: SmallVec<[ErrorKind; 2]>,
    /// Waiting to be let through: rates, slots, tokens in flight, pace.
    pub admission_wait: Duration,
    /// From the item's begin to its end without that wait; backoff is part of it.
    pub latency: Duration,
    /// What was used; `None`: nothing was called.
    pub usage: Option<Usage>,
    /// What it cost, calls without a known result included.
    pub cost: Money,
    /// Why it failed.
    pub error_class: Option<ErrorKind>,
    /// The same in words, without anything that caller or provider said.
    pub message: Option<String>,
    /// The provider's HTTP status, where that is why.
    pub upstream_status: Option<u16>,
    /// The record in the ledger.
    pub record_id: Option<RequestId>,
    /// Who answered.
    pub deployment: Option<DeploymentName>,
    /// The model that the provider says has answered.
    pub served_model: Option<BoundedText>,
}

impl GenerationResult {
    /// Returns the result of an item of which nothing is known yet.
    pub(super) fn blank(label: &Label, status: GenerationStatus) -> Self {
        Self {
            request_id: label.request_id.clone(),
            task_id: label.task_id.clone(),
            identity: label.identity.clone(),
            status,
            completions: Vec::new(),
            raw: None,
            attempts: 0,
            attempt_error_classes: SmallVec::new(),
            admission_wait: Duration::ZERO,
            latency: Duration::ZERO,
            usage: None,
            cost: Money::ZERO,
            error_class: None,
            message: None,
            upstream_status: None,
            record_id: None,
            deployment: None,
            served_model: None,
        }
    }

    pub(super) fn cancelled(label: &Label) -> Self {
        let error = GatewayError::new(ErrorKind::Cancelled, "the batch ended before the item did");
        Self { status: GenerationStatus::Cancelled, ..Self::refused(label, &error) }
    }

    pub(super) fn refused(label: &Label, error: &GatewayError) -> Self {
        let mut result = Self::blank(label, GenerationStatus::Failed);
        result.fail(error);
        result
    }

    pub(super) fn fail(&mut self, error: &GatewayError) {
        self.status = GenerationStatus::Failed;
        self.error_class = Some(error.kind());
        self.message = Some(error.to_string());
        self.upstream_status = error.status();
    }
}

impl std::fmt::Debug for GenerationResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GenerationResult")
            .field("request_id", &self.request_id)
            .field("status", &self.status)
            .field("completions", &self.completions.len())
            .field("attempts", &self.attempts)
            .field("error_class", &self.error_class)
            .finish_non_exhaustive()
    }
}
