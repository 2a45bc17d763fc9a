//! I1: what each kind of failure permits.

use gw_errors::{ErrorKind, FallOver, Health, Retry};

use crate::support::{Ask, House, Toml};

/// The table of the design, row by row, written down a second time.
fn row(kind: ErrorKind) -> (Retry, FallOver, Health) {
    use ErrorKind as K;
    let (never, same) = (Retry::Never, Retry::SameDeployment);
    match kind {
        K::InvalidRequest
        | K::Unauthenticated
        | K::Forbidden
        | K::UnknownModel
        | K::Intake
        | K::TranslationLoss
        | K::IdempotencyConflict
        | K::NotCached
        | K::ContentFiltered
        | K::PolicyViolation
        | K::QuotaExceeded
        | K::RateLimited
        | K::Overloaded
        | K::BudgetExhausted
        | K::DeadlineExceeded
        | K::NoRouteAvailable
        | K::Cancelled
        | K::Internal => (never, FallOver::Never, Health::Harmless),
        K::ContextLengthExceeded => (never, FallOver::LargerWindow, Health::Harmless),
        K::ProviderRateLimited => (same, FallOver::Next, Health::Cooldown),
        K::ProviderUnavailable | K::Transport => (same, FallOver::Next, Health::Deployment),
        K::ProviderTimeout => (same, FallOver::Next, Health::DeploymentIfFullTime),
        K::MalformedResponse | K::DeploymentMissing => (never, FallOver::Next, Health::Deployment),
        K::StreamInterrupted => (never, FallOver::BeforeContent, Health::Deployment),
        K::ProviderAuth => (never, FallOver::Next, Health::Credential),
        K::StatePinned => (same, FallOver::Never, Health::Harmless),
    }
}

#[test]
fn i01_the_flags_of_every_kind_equal_the_table() {
    for kind in ErrorKind::ALL {
        assert_eq!((kind.retryable(), kind.falls_over(), kind.harms_health()), row(kind), "{kind}");
    }
}

/// Plays a first deployment's answer in front of a healthy second one; returns the deployments called.
async fn called_after(step: &str, lines: &str) -> Vec<String> {
    let toml = Toml::new()
        .scripted_with("first", &[step], lines)
        .scripted("second", &["ok"])
        .route("m", &["first", "second"])
        .tenant("a", "");
    let house = House::new(&toml).await;
    let _either = house.ask(&Ask::of("a", "m", "hello")).await;
    let record = house.last_record().await;
    record.attempts.iter().map(|attempt| attempt.deployment.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn i01_a_content_filter_is_final_and_an_outage_is_not() {
    for final_step in ["400 code=content_filter", "400", "400 code=context_length_exceeded", "422"] {
        assert_eq!(called_after(final_step, "").await, ["first"], "{final_step}");
    }
    for step in ["429", "500", "503", "529", "401", "404", "reset", "truncate", "hang"] {
        let lines = "attempt_timeout_ms = 1_000";
        assert_eq!(called_after(step, lines).await, ["first", "second"], "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn i01_only_retryable_kinds_are_repeated() {
    assert_eq!(called_after("503", "max_attempts = 2").await, ["first", "first", "second"]);
    assert_eq!(called_after("401", "max_attempts = 2").await, ["first", "second"]);
    assert_eq!(called_after("400 code=content_filter", "max_attempts = 2").await, ["first"]);
}
