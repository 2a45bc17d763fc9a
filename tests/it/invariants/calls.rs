//! I11: attempts of a request that changes state elsewhere.

use gw_types::{ErrorKind, Outcome};

use crate::support::{Ask, House, Toml};

async fn one_attempt(step: &str, stream: bool) -> (ErrorKind, Outcome) {
    let toml = Toml::new()
        .scripted_with("first", &[step, "ok"], "max_attempts = 3\nattempt_timeout_ms = 500")
        .scripted("second", &["ok"])
        .route_with("m", &["first", "second"], "max_attempts = 9")
        .tenant("a", "");
    let house = House::new(&toml).await;
    let ask = Ask::of("a", "m", "hello").context(|context| context.side_effecting = true);
    let failure =
        if stream { house.tell(&ask).await.unwrap_err() } else { house.ask(&ask).await.unwrap_err() };
    let record = house.last_record().await;
    assert_eq!((record.attempts.len(), failure.head.attempts), (1, 1), "{step}");
    assert!(record.facts.unwrap().side_effecting);
    house.holds_nothing("a");
    (failure.error.kind(), record.outcome)
}

#[tokio::test(start_paused = true)]
async fn i11_a_side_effecting_request_has_one_attempt_and_its_own_error() {
    for stream in [false, true] {
        assert_eq!(one_attempt("429", stream).await, (ErrorKind::ProviderRateLimited, Outcome::Failed));
        assert_eq!(one_attempt("503", stream).await.0, ErrorKind::ProviderUnavailable);
        let (kind, outcome) = one_attempt("hang", stream).await;
        assert_eq!(
            (kind, outcome),
            (ErrorKind::ProviderTimeout, Outcome::Ambiguous),
            "nobody knows what it did"
        );
        assert_eq!(one_attempt("reset", stream).await, (ErrorKind::Transport, Outcome::Ambiguous));
    }
}

#[tokio::test(start_paused = true)]
async fn i11_a_side_effecting_request_that_works_is_answered_once() {
    let toml = Toml::new()
        .scripted("first", &["ok text=done"])
        .route_with("m", &["first"], "cache = { exact = true }")
        .tenant("a", "");
    let house = House::new(&toml).await;
    let ask = Ask::of("a", "m", "hello").context(|context| context.side_effecting = true);
    for _ in 0..2 {
        assert_eq!(house.ask(&ask).await.unwrap().head.attempts, 1);
    }
    assert_eq!(house.records().await.len(), 2);
}
