//! The taxonomy as a table: every kind with its flags, status, type and code.

use std::time::Duration;

use gw_errors::{
    Billing, Dialect, ErrorKind as K, FallOver as F, GatewayError, Health as H, Outcome, Retry as R,
    UpstreamDetail, anthropic_type, http_status, openai_code, openai_type,
};

type Row = (K, R, F, H, u16, &'static str, Option<&'static str>);

const IRE: &str = "invalid_request_error";
const SRV: &str = "server_error";

const TABLE: [Row; 28] = [
    (K::InvalidRequest, R::Never, F::Never, H::Harmless, 400, IRE, None),
    (
        K::Unauthenticated,
        R::Never,
        F::Never,
        H::Harmless,
        401,
        "authentication_error",
        Some("invalid_api_key"),
    ),
    (K::Forbidden, R::Never, F::Never, H::Harmless, 403, "permission_error", None),
    (K::UnknownModel, R::Never, F::Never, H::Harmless, 404, IRE, Some("model_not_found")),
    (K::Intake, R::Never, F::Never, H::Harmless, 404, IRE, None),
    (K::TranslationLoss, R::Never, F::Never, H::Harmless, 400, IRE, Some("translation_loss")),
    (K::IdempotencyConflict, R::Never, F::Never, H::Harmless, 409, IRE, Some("idempotency_conflict")),
    (K::NotCached, R::Never, F::Never, H::Harmless, 504, IRE, Some("not_cached")),
    (
        K::ContextLengthExceeded,
        R::Never,
        F::LargerWindow,
        H::Harmless,
        400,
        IRE,
        Some("context_length_exceeded"),
    ),
    (K::ContentFiltered, R::Never, F::Never, H::Harmless, 400, IRE, Some("content_filter")),
    (K::PolicyViolation, R::Never, F::Never, H::Harmless, 403, "permission_error", Some("policy_violation")),
    (
        K::QuotaExceeded,
        R::Never,
        F::Never,
        H::Harmless,
        429,
        "insufficient_quota",
        Some("insufficient_quota"),
    ),
    (K::RateLimited, R::Never, F::Never, H::Harmless, 429, "rate_limit_error", None),
    (K::Overloaded, R::Never, F::Never, H::Harmless, 503, SRV, Some("overloaded")),
    (K::ProviderRateLimited, R::SameDeployment, F::Next, H::Cooldown, 429, "rate_limit_error", None),
    (K::ProviderUnavailable, R::SameDeployment, F::Next, H::Deployment, 503, SRV, None),
    (K::ProviderTimeout, R::SameDeployment, F::Next, H::DeploymentIfFullTime, 504, SRV, Some("timeout")),
    (K::Transport, R::SameDeployment, F::Next, H::Deployment, 502, SRV, None),
    (K::MalformedResponse, R::Never, F::Next, H::Deployment, 502, SRV, None),
    (K::StreamInterrupted, R::Never, F::BeforeContent, H::Deployment, 502, SRV, None),
    (K::ProviderAuth, R::Never, F::Next, H::Credential, 502, SRV, Some("upstream_auth")),
    (K::DeploymentMissing, R::Never, F::Next, H::Deployment, 502, SRV, None),
    (K::StatePinned, R::SameDeployment, F::Never, H::Harmless, 409, "conflict", None),
    (K::BudgetExhausted, R::Never, F::Never, H::Harmless, 504, SRV, Some("budget_exhausted")),
    (K::DeadlineExceeded, R::Never, F::Never, H::Harmless, 504, SRV, Some("deadline_exceeded")),
    (K::NoRouteAvailable, R::Never, F::Never, H::Harmless, 503, SRV, Some("no_route")),
    (K::Cancelled, R::Never, F::Never, H::Harmless, 499, SRV, None),
    (K::Internal, R::Never, F::Never, H::Harmless, 500, SRV, None),
];

#[test]
fn i01_every_kind_equals_the_table() {
    assert_eq!(TABLE.map(|row| row.0), K::ALL);
    for (kind, retry, fall_over, health, status, openai, code) in TABLE {
        assert_eq!(kind.retryable(), retry, "{kind}");
        assert_eq!(kind.falls_over(), fall_over, "{kind}");
        assert_eq!(kind.harms_health(), health, "{kind}");
        assert_eq!(http_status(kind, None, Dialect::OpenAi), status, "{kind}");
        assert_eq!(openai_type(kind), openai, "{kind}");
        assert_eq!(openai_code(kind), code, "{kind}");
        assert_eq!(K::from_name(kind.as_str()), Some(kind));
    }
}

#[test]
fn only_a_call_that_reached_the_provider_may_be_billed() {
    for kind in K::ALL {
        let expected = match kind {
            K::ProviderTimeout | K::MalformedResponse | K::StreamInterrupted => Billing::Likely,
            K::Transport => Billing::IfAmbiguous,
            _ => Billing::Never,
        };
        assert_eq!(kind.billing(), expected, "{kind}");
    }
}

#[test]
fn only_a_providers_failure_moves_on_without_a_larger_window() {
    for kind in K::ALL {
        let moves = matches!(kind.falls_over(), F::Next | F::BeforeContent);
        assert_eq!(kind.is_of_provider(), moves, "{kind}");
    }
}

#[test]
fn status_of_the_occurrence_passes_only_where_the_kind_allows() {
    let openai = |kind, status| http_status(kind, Some(status), Dialect::OpenAi);
    for (kind, status, expected) in [
        (K::InvalidRequest, 422, 422),
        (K::InvalidRequest, 409, 409),
        (K::InvalidRequest, 401, 400),
        (K::InvalidRequest, 500, 400),
        (K::Intake, 413, 413),
        (K::Intake, 200, 404),
        (K::IdempotencyConflict, 422, 422),
        (K::ProviderUnavailable, 500, 500),
        (K::ProviderUnavailable, 502, 502),
        (K::ProviderUnavailable, 529, 503),
        (K::ProviderUnavailable, 200, 503),
        (K::ProviderAuth, 401, 502),
        (K::ProviderAuth, 403, 403),
        (K::ContentFiltered, 403, 400),
        (K::ProviderRateLimited, 402, 429),
    ] {
        assert_eq!(openai(kind, status), expected, "{kind} {status}");
    }
    assert_eq!(http_status(K::ProviderUnavailable, Some(529), Dialect::Anthropic), 529);
}

#[test]
fn anthropic_type_follows_the_status() {
    for (status, expected) in [
        (400, IRE),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
        (504, "timeout_error"),
        (502, "api_error"),
        (500, "api_error"),
    ] {
        assert_eq!(anthropic_type(status), expected);
    }
}

#[test]
fn an_occurrence_forbids_and_never_permits() {
    let unavailable = GatewayError::new(K::ProviderUnavailable, "the provider is unavailable");
    assert!(unavailable.may_retry());
    assert!(!unavailable.without_retry().may_retry());
    assert!(!GatewayError::new(K::ContentFiltered, "refused").may_retry());
}

#[test]
fn outcome_follows_kind_and_occurrence() {
    let timeout = GatewayError::new(K::ProviderTimeout, "no answer in time");
    assert_eq!(timeout.outcome(), Outcome::Failed);
    let unknown = timeout.ambiguous();
    assert_eq!(unknown.outcome(), Outcome::Ambiguous);
    assert_eq!(unknown.unambiguous().outcome(), Outcome::Failed);
    assert_eq!(GatewayError::new(K::RateLimited, "too fast").outcome(), Outcome::Refused);
}

#[test]
fn i18_nothing_of_the_provider_is_printed() {
    let error = GatewayError::new(K::InvalidRequest, "the provider refused the request")
        .with_subject("eu\n")
        .with_param("messages[0].content")
        .with_position(1, 7)
        .with_retry_after(Duration::from_secs(2))
        .with_detail(UpstreamDetail::new("prompt canary").with_code("canary"));
    assert_eq!(error.to_string(), "the provider refused the request: `eu` at line 1 column 7");
    assert!(!format!("{error:?} {error}").contains("canary"));
    assert_eq!(error.openai_code(), Some("canary"));
}
