//! The closed set of failure kinds and the three tables that drive retry, fallback and health.

/// Says what kind of failure happened.
///
/// The set is closed on purpose: adding a variant breaks every table that has to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The request cannot be served as it was written, by gw's own reading or by the provider's.
    InvalidRequest,
    /// No key, or one that gw does not know.
    Unauthenticated,
    /// A known key that may not do this.
    Forbidden,
    /// No route knows the model name for this caller.
    UnknownModel,
    /// The HTTP request was refused before it was understood: path, method, media type, size, headers or time.
    Intake,
    /// A strict translation would have lost something.
    TranslationLoss,
    /// The idempotency key is in flight or was used with another body.
    IdempotencyConflict,
    /// The caller asked for a cached answer only and there is none.
    NotCached,
    /// The prompt does not fit the context window of the deployment.
    ContextLengthExceeded,
    /// The provider's content filter refused the prompt or the answer.
    ContentFiltered,
    /// A rule of the configuration forbids this request.
    PolicyViolation,
    /// The money window is spent, or the reservation does not fit into what is left of it.
    QuotaExceeded,
    /// A rate or a caller's own concurrency cap of gw refused the request.
    RateLimited,
    /// gw or a deployment has no slot, queue place or store to take the request.
    Overloaded,
    /// The provider answered 429.
    ProviderRateLimited,
    /// The provider answered 5xx or 529.
    ProviderUnavailable,
    /// The provider did not answer in the time it was given.
    ProviderTimeout,
    /// The connection could not be made, was reset or broke the TLS or HTTP protocol.
    Transport,
    /// A 2xx answer that cannot be read as what was asked for.
    MalformedResponse,
    /// A stream that ended without its terminal marker.
    StreamInterrupted,
    /// The provider refused gw's credential (401 or 403).
    ProviderAuth,
    /// The provider does not know the deployment (404).
    DeploymentMissing,
    /// The conversation's state lives at one deployment, which cannot answer now.
    StatePinned,
    /// What is left of the deadline is less than the next candidate is expected to need.
    BudgetExhausted,
    /// The request's deadline has passed, or no attempt fits into what is left.
    DeadlineExceeded,
    /// No deployment may answer this request.
    NoRouteAvailable,
    /// The client went away.
    Cancelled,
    /// A fault of gw's own.
    Internal,
}

/// Says whether a kind may be repeated at the same deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// A repeat cannot help or must not happen.
    Never,
    /// A repeat may help, within the attempt and retry budgets.
    SameDeployment,
}

/// Says whether a kind may move on to the next candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FallOver {
    /// The next candidate must not be asked.
    Never,
    /// The next candidate may be asked.
    Next,
    /// Only a candidate with a larger context window may be asked.
    LargerWindow,
    /// The next candidate may be asked, as long as no content byte has reached the caller.
    BeforeContent,
}

/// Says whether a kind counts against the health of the deployment it happened at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// No evidence about the deployment.
    Harmless,
    /// Not a failure, but the deployment rests until its own `retry_after`.
    Cooldown,
    /// Evidence against the deployment.
    Deployment,
    /// Evidence against the deployment only if the attempt had its full time.
    DeploymentIfFullTime,
    /// Evidence against the credential that was used, not against the deployment's other credentials.
    Credential,
}

/// Says whether a provider may bill a call that failed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Billing {
    /// It said, or gw knows, that nothing was generated.
    Never,
    /// It may have worked on the call if the call reached it: see [`crate::GatewayError::is_ambiguous`].
    IfAmbiguous,
    /// It has worked on the call, and how far nobody knows.
    Likely,
}

impl ErrorKind {
    /// Every kind, in the order of the table in the design.
    pub const ALL: [Self; 28] = [
        Self::InvalidRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::UnknownModel,
        Self::Intake,
        Self::TranslationLoss,
        Self::IdempotencyConflict,
        Self::NotCached,
        Self::ContextLengthExceeded,
        Self::ContentFiltered,
        Self::PolicyViolation,
        Self::QuotaExceeded,
        Self::RateLimited,
        Self::Overloaded,
        Self::ProviderRateLimited,
        Self::ProviderUnavailable,
        Self::ProviderTimeout,
        Self::Transport,
        Self::MalformedResponse,
        Self::StreamInterrupted,
        Self::ProviderAuth,
        Self::DeploymentMissing,
        Self::StatePinned,
        Self::BudgetExhausted,
        Self::DeadlineExceeded,
        Self::NoRouteAvailable,
        Self::Cancelled,
        Self::Internal,
    ];

    /// Returns whether the kind may be repeated at the same deployment.
    pub const fn retryable(self) -> Retry {
        match self {
            Self::ProviderRateLimited
            | Self::ProviderUnavailable
            | Self::ProviderTimeout
            | Self::Transport
            | Self::StatePinned => Retry::SameDeployment,
            Self::InvalidRequest
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::UnknownModel
            | Self::Intake
            | Self::TranslationLoss
            | Self::IdempotencyConflict
            | Self::NotCached
            | Self::ContextLengthExceeded
            | Self::ContentFiltered
            | Self::PolicyViolation
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::Overloaded
            | Self::MalformedResponse
            | Self::StreamInterrupted
            | Self::ProviderAuth
            | Self::DeploymentMissing
            | Self::BudgetExhausted
            | Self::DeadlineExceeded
            | Self::NoRouteAvailable
            | Self::Cancelled
            | Self::Internal => Retry::Never,
        }
    }

    /// Returns whether the kind may move on to the next candidate.
    pub const fn falls_over(self) -> FallOver {
        match self {
            Self::ContextLengthExceeded => FallOver::LargerWindow,
            Self::StreamInterrupted => FallOver::BeforeContent,
            Self::ProviderRateLimited
            | Self::ProviderUnavailable
            | Self::ProviderTimeout
            | Self::Transport
            | Self::MalformedResponse
            | Self::ProviderAuth
            | Self::DeploymentMissing => FallOver::Next,
            Self::InvalidRequest
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::UnknownModel
            | Self::Intake
            | Self::TranslationLoss
            | Self::IdempotencyConflict
            | Self::NotCached
            | Self::ContentFiltered
            | Self::PolicyViolation
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::Overloaded
            | Self::StatePinned
            | Self::BudgetExhausted
            | Self::DeadlineExceeded
            | Self::NoRouteAvailable
            | Self::Cancelled
            | Self::Internal => FallOver::Never,
        }
    }

    /// Returns what the kind says about the health of the deployment it happened at.
    pub const fn harms_health(self) -> Health {
        match self {
            Self::ProviderRateLimited => Health::Cooldown,
            Self::ProviderTimeout => Health::DeploymentIfFullTime,
            Self::ProviderAuth => Health::Credential,
            Self::ProviderUnavailable
            | Self::Transport
            | Self::MalformedResponse
            | Self::StreamInterrupted
            | Self::DeploymentMissing => Health::Deployment,
            Self::InvalidRequest
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::UnknownModel
            | Self::Intake
            | Self::TranslationLoss
            | Self::IdempotencyConflict
            | Self::NotCached
            | Self::ContextLengthExceeded
            | Self::ContentFiltered
            | Self::PolicyViolation
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::Overloaded
            | Self::StatePinned
            | Self::BudgetExhausted
            | Self::DeadlineExceeded
            | Self::NoRouteAvailable
            | Self::Cancelled
            | Self::Internal => Health::Harmless,
        }
    }

    /// Returns whether a provider may bill a call that failed so.
    pub const fn billing(self) -> Billing {
        match self {
            Self::ProviderTimeout | Self::MalformedResponse | Self::StreamInterrupted => Billing::Likely,
            Self::Transport => Billing::IfAmbiguous,
            Self::InvalidRequest
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::UnknownModel
            | Self::Intake
            | Self::TranslationLoss
            | Self::IdempotencyConflict
            | Self::NotCached
            | Self::ContextLengthExceeded
            | Self::ContentFiltered
            | Self::PolicyViolation
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::Overloaded
            | Self::ProviderRateLimited
            | Self::ProviderUnavailable
            | Self::ProviderAuth
            | Self::DeploymentMissing
            | Self::StatePinned
            | Self::BudgetExhausted
            | Self::DeadlineExceeded
            | Self::NoRouteAvailable
            | Self::Cancelled
            | Self::Internal => Billing::Never,
        }
    }

    /// Returns whether the failure is a provider's, which gw's own attempts are spent on.
    pub const fn is_of_provider(self) -> bool {
        match self {
            Self::ProviderRateLimited
            | Self::ProviderUnavailable
            | Self::ProviderTimeout
            | Self::Transport
            | Self::MalformedResponse
            | Self::StreamInterrupted
            | Self::ProviderAuth
            | Self::DeploymentMissing => true,
            Self::InvalidRequest
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::UnknownModel
            | Self::Intake
            | Self::TranslationLoss
            | Self::IdempotencyConflict
            | Self::NotCached
            | Self::ContextLengthExceeded
            | Self::ContentFiltered
            | Self::PolicyViolation
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::Overloaded
            | Self::StatePinned
            | Self::BudgetExhausted
            | Self::DeadlineExceeded
            | Self::NoRouteAvailable
            | Self::Cancelled
            | Self::Internal => false,
        }
    }

    /// Returns the kind's stable name, as records, metrics and `x-gw-error` carry it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::UnknownModel => "unknown_model",
            Self::Intake => "intake",
            Self::TranslationLoss => "translation_loss",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::NotCached => "not_cached",
            Self::ContextLengthExceeded => "context_length_exceeded",
            Self::ContentFiltered => "content_filtered",
            Self::PolicyViolation => "policy_violation",
            Self::QuotaExceeded => "quota_exceeded",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ProviderRateLimited => "provider_rate_limited",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::ProviderTimeout => "provider_timeout",
            Self::Transport => "transport",
            Self::MalformedResponse => "malformed_response",
            Self::StreamInterrupted => "stream_interrupted",
            Self::ProviderAuth => "provider_auth",
            Self::DeploymentMissing => "deployment_missing",
            Self::StatePinned => "state_pinned",
            Self::BudgetExhausted => "budget_exhausted",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::NoRouteAvailable => "no_route_available",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// Returns the kind with the given stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
