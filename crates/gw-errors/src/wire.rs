//! How each kind looks to a client: HTTP status, OpenAI type and code, Anthropic type.

use crate::ErrorKind;

/// Names the family of wire formats whose error shape a caller expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// `{"error": {"message", "type", "param", "code"}}`.
    OpenAi,
    /// `{"type": "error", "error": {"type", "message"}, "request_id"}`.
    Anthropic,
}

/// Returns the HTTP status for a kind.
///
/// `occurrence` is the status that belongs to this occurrence: the provider's, or for [`ErrorKind::Intake`] and
/// [`ErrorKind::IdempotencyConflict`] the one that gw chose. A status that the kind cannot have is not passed on.
///
/// ```
/// use gw_errors::{Dialect, ErrorKind, http_status};
///
/// assert_eq!(http_status(ErrorKind::ProviderUnavailable, Some(529), Dialect::Anthropic), 529);
/// assert_eq!(http_status(ErrorKind::ProviderUnavailable, Some(529), Dialect::OpenAi), 503);
/// assert_eq!(http_status(ErrorKind::ProviderAuth, Some(401), Dialect::OpenAi), 502);
/// ```
pub const fn http_status(kind: ErrorKind, occurrence: Option<u16>, dialect: Dialect) -> u16 {
    match kind {
        ErrorKind::InvalidRequest => match occurrence {
            // A provider's more precise refusal keeps its class; a 401, 403, 404 or 429 is never an invalid request.
            Some(status @ (400 | 405 | 406 | 409 | 410 | 411 | 413 | 415 | 422 | 424 | 451)) => status,
            Some(_) | None => 400,
        },
        ErrorKind::TranslationLoss | ErrorKind::ContextLengthExceeded | ErrorKind::ContentFiltered => 400,
        ErrorKind::Unauthenticated => 401,
        ErrorKind::Forbidden | ErrorKind::PolicyViolation => 403,
        ErrorKind::UnknownModel => 404,
        ErrorKind::Intake => match occurrence {
            Some(status @ (404 | 405 | 408 | 413 | 415 | 431)) => status,
            Some(_) | None => 404,
        },
        ErrorKind::IdempotencyConflict => match occurrence {
            Some(422) => 422,
            Some(_) | None => 409,
        },
        ErrorKind::NotCached
        | ErrorKind::ProviderTimeout
        | ErrorKind::BudgetExhausted
        | ErrorKind::DeadlineExceeded => 504,
        ErrorKind::QuotaExceeded | ErrorKind::RateLimited | ErrorKind::ProviderRateLimited => 429,
        ErrorKind::Overloaded | ErrorKind::NoRouteAvailable => 503,
        ErrorKind::ProviderUnavailable => match (occurrence, dialect) {
            (Some(529), Dialect::Anthropic) => 529,
            (Some(status @ 500..=528), _) => status,
            (Some(_) | None, _) => 503,
        },
        ErrorKind::ProviderAuth => match occurrence {
            // 403 tells the caller that this request is not permitted there. A 401 would be read as a fault of the
            // caller's own key, so it never passes.
            Some(403) => 403,
            Some(_) | None => 502,
        },
        ErrorKind::Transport
        | ErrorKind::MalformedResponse
        | ErrorKind::StreamInterrupted
        | ErrorKind::DeploymentMissing => 502,
        ErrorKind::StatePinned => 409,
        ErrorKind::Cancelled => 499,
        ErrorKind::Internal => 500,
    }
}

/// Returns the `error.type` of an OpenAI error body.
pub const fn openai_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest
        | ErrorKind::UnknownModel
        | ErrorKind::Intake
        | ErrorKind::TranslationLoss
        | ErrorKind::IdempotencyConflict
        | ErrorKind::NotCached
        | ErrorKind::ContextLengthExceeded
        | ErrorKind::ContentFiltered => "invalid_request_error",
        ErrorKind::Unauthenticated => "authentication_error",
        ErrorKind::Forbidden | ErrorKind::PolicyViolation => "permission_error",
        ErrorKind::QuotaExceeded => "insufficient_quota",
        ErrorKind::RateLimited | ErrorKind::ProviderRateLimited => "rate_limit_error",
        ErrorKind::StatePinned => "conflict",
        ErrorKind::Overloaded
        | ErrorKind::ProviderUnavailable
        | ErrorKind::ProviderTimeout
        | ErrorKind::Transport
        | ErrorKind::MalformedResponse
        | ErrorKind::StreamInterrupted
        | ErrorKind::ProviderAuth
        | ErrorKind::DeploymentMissing
        | ErrorKind::BudgetExhausted
        | ErrorKind::DeadlineExceeded
        | ErrorKind::NoRouteAvailable
        | ErrorKind::Cancelled
        | ErrorKind::Internal => "server_error",
    }
}

/// Returns the `error.code` of an OpenAI error body, where the kind has one of its own.
pub const fn openai_code(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::Unauthenticated => Some("invalid_api_key"),
        ErrorKind::UnknownModel => Some("model_not_found"),
        ErrorKind::TranslationLoss => Some("translation_loss"),
        ErrorKind::IdempotencyConflict => Some("idempotency_conflict"),
        ErrorKind::NotCached => Some("not_cached"),
        ErrorKind::ContextLengthExceeded => Some("context_length_exceeded"),
        ErrorKind::ContentFiltered => Some("content_filter"),
        ErrorKind::PolicyViolation => Some("policy_violation"),
        ErrorKind::QuotaExceeded => Some("insufficient_quota"),
        ErrorKind::Overloaded => Some("overloaded"),
        ErrorKind::ProviderTimeout => Some("timeout"),
        ErrorKind::ProviderAuth => Some("upstream_auth"),
        ErrorKind::BudgetExhausted => Some("budget_exhausted"),
        ErrorKind::DeadlineExceeded => Some("deadline_exceeded"),
        ErrorKind::NoRouteAvailable => Some("no_route"),
        ErrorKind::InvalidRequest
        | ErrorKind::Forbidden
        | ErrorKind::Intake
        | ErrorKind::RateLimited
        | ErrorKind::ProviderRateLimited
        | ErrorKind::ProviderUnavailable
        | ErrorKind::Transport
        | ErrorKind::MalformedResponse
        | ErrorKind::StreamInterrupted
        | ErrorKind::DeploymentMissing
        | ErrorKind::StatePinned
        | ErrorKind::Cancelled
        | ErrorKind::Internal => None,
    }
}

/// Returns the `error.type` of an Anthropic error body, which follows the status.
pub const fn anthropic_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        _ => "api_error",
    }
}
