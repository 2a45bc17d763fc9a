//! How a request ended, as its record says it.

use crate::{ErrorKind, GatewayError};

/// Says how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// A complete answer.
    Ok,
    /// gw or the provider declined the request for what it is.
    Refused,
    /// No answer, or an incomplete one.
    Failed,
    /// The client went away.
    Cancelled,
    /// A single attempt of a side-effecting request ended without a known result.
    Ambiguous,
    /// The answer was ended at the reserved token or cost cap.
    Capped,
}

impl Outcome {
    /// Every outcome, in declaration order.
    pub const ALL: [Self; 6] =
        [Self::Ok, Self::Refused, Self::Failed, Self::Cancelled, Self::Ambiguous, Self::Capped];

    /// Returns the outcome of a request that ended with an error of this kind.
    ///
    /// [`Outcome::Ambiguous`] depends on what the request was, so the pipeline decides it, not this table.
    pub const fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidRequest
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::UnknownModel
            | ErrorKind::Intake
            | ErrorKind::TranslationLoss
            | ErrorKind::IdempotencyConflict
            | ErrorKind::NotCached
            | ErrorKind::ContextLengthExceeded
            | ErrorKind::ContentFiltered
            | ErrorKind::PolicyViolation
            | ErrorKind::QuotaExceeded
            | ErrorKind::RateLimited
            | ErrorKind::Overloaded
            | ErrorKind::NoRouteAvailable => Self::Refused,
            ErrorKind::ProviderRateLimited
            | ErrorKind::ProviderUnavailable
            | ErrorKind::ProviderTimeout
            | ErrorKind::Transport
            | ErrorKind::MalformedResponse
            | ErrorKind::StreamInterrupted
            | ErrorKind::ProviderAuth
            | ErrorKind::DeploymentMissing
            | ErrorKind::StatePinned
            | ErrorKind::BudgetExhausted
            | ErrorKind::DeadlineExceeded
            | ErrorKind::Internal => Self::Failed,
            ErrorKind::Cancelled => Self::Cancelled,
        }
    }

    /// Returns the outcome's stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Ambiguous => "ambiguous",
            Self::Capped => "capped",
        }
    }

    /// Returns the outcome with the given stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says what a provider has done about a call that failed, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttemptEnd {
    /// It has answered, if only to decline.
    Done,
    /// It is proved that it did nothing: the call did not reach it, or it said so.
    NotProcessed,
    /// It may have done what was asked.
    Unknown,
}

impl GatewayError {
    /// Returns what the call that ended so has done. For a request that changes state elsewhere, only
    /// [`AttemptEnd::NotProcessed`] could be repeated without asking anybody.
    ///
    /// A 503 with a `retry-after` and a 529 are pushback: the provider turned the call away at its door.
    pub fn attempt_end(&self) -> AttemptEnd {
        let if_ambiguous =
            || if self.is_ambiguous() { AttemptEnd::Unknown } else { AttemptEnd::NotProcessed };
        match self.kind() {
            ErrorKind::InvalidRequest
            | ErrorKind::TranslationLoss
            | ErrorKind::ContextLengthExceeded
            | ErrorKind::ContentFiltered
            | ErrorKind::PolicyViolation
            | ErrorKind::ProviderAuth
            | ErrorKind::DeploymentMissing => AttemptEnd::Done,
            ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::UnknownModel
            | ErrorKind::Intake
            | ErrorKind::IdempotencyConflict
            | ErrorKind::NotCached
            | ErrorKind::QuotaExceeded
            | ErrorKind::RateLimited
            | ErrorKind::Overloaded
            | ErrorKind::ProviderRateLimited
            | ErrorKind::StatePinned
            | ErrorKind::NoRouteAvailable => AttemptEnd::NotProcessed,
            ErrorKind::ProviderUnavailable => match (self.status(), self.retry_after()) {
                (Some(529), _) | (Some(503), Some(_)) => AttemptEnd::NotProcessed,
                (Some(_) | None, _) => AttemptEnd::Unknown,
            },
            ErrorKind::Transport | ErrorKind::BudgetExhausted | ErrorKind::DeadlineExceeded => if_ambiguous(),
            ErrorKind::ProviderTimeout
            | ErrorKind::MalformedResponse
            | ErrorKind::StreamInterrupted
            | ErrorKind::Cancelled
            | ErrorKind::Internal => AttemptEnd::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{AttemptEnd, Outcome};
    use crate::{ErrorKind, GatewayError};

    #[track_caller]
    fn ends(error: &GatewayError, expected: AttemptEnd) {
        assert_eq!(error.attempt_end(), expected, "{error:?}");
    }

    #[test]
    fn only_what_is_proved_not_to_be_processed_counts_as_that() {
        let error = |kind| GatewayError::new(kind, "x");
        let unavailable = |status| error(ErrorKind::ProviderUnavailable).with_status(status);
        ends(&error(ErrorKind::Transport), AttemptEnd::NotProcessed);
        ends(&error(ErrorKind::Transport).ambiguous(), AttemptEnd::Unknown);
        ends(&error(ErrorKind::ProviderRateLimited), AttemptEnd::NotProcessed);
        ends(&unavailable(500), AttemptEnd::Unknown);
        ends(&unavailable(503), AttemptEnd::Unknown);
        ends(&unavailable(503).with_retry_after(Duration::ZERO), AttemptEnd::NotProcessed);
        ends(&unavailable(529), AttemptEnd::NotProcessed);
        ends(&error(ErrorKind::MalformedResponse), AttemptEnd::Unknown);
        ends(&error(ErrorKind::ContentFiltered), AttemptEnd::Done);
        ends(&error(ErrorKind::DeadlineExceeded).ambiguous(), AttemptEnd::Unknown);
    }

    #[test]
    fn names_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(outcome.as_str()), Some(outcome));
        }
        assert_eq!(Outcome::from_name("fine"), None);
    }
}
