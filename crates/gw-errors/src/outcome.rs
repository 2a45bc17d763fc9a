//! How a request ended, as its record says it.

use crate::ErrorKind;

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

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn names_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(outcome.as_str()), Some(outcome));
        }
        assert_eq!(Outcome::from_name("fine"), None);
    }
}
