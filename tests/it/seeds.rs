//! The edge cases and checks of the second seed, and the weak spots of the third, each as a test of the whole gateway.
//! What is tested elsewhere under another name stands in `docs/testing.md`.

use std::time::Duration;

use gw_dialects::openai::read_answer;
use gw_exec::SystemRandom;
use gw_types::{ErrorKind, FinishReason, Outcome, Random};
use serde_json::json;

use crate::support::{Ask, House, Toml};

/// Two scripted deployments in one chain, and what the lines say of them.
fn two(first: &[&str], lines: (&str, &str)) -> Toml {
    Toml::new()
        .scripted_with("one", first, lines.0)
        .scripted_with("two", &["ok text=of the second"], lines.1)
        .route("m", &["one", "two"])
        .tenant("a", "")
}

fn ask() -> Ask {
    Ask::of("a", "m", "hello")
}

fn within(seconds: u64) -> Ask {
    ask().context(|context| context.deadline = Some(Duration::from_secs(seconds)))
}

#[tokio::test(start_paused = true)]
async fn guidance_beyond_the_deadline_is_not_waited_for() {
    // Nobody else is there: the error comes at once, and not at the deadline.
    let toml = Toml::new()
        .scripted_with("one", &["429 retry-after=60", "ok"], "max_attempts = 2")
        .route("m", &["one"])
        .tenant("a", "");
    let house = House::new(&toml).await;
    let failure = house.ask(&within(5)).await.unwrap_err();
    assert_eq!(failure.error.kind(), ErrorKind::ProviderRateLimited);
    assert_eq!(failure.error.retry_after(), Some(Duration::from_secs(60)));
    let record = house.last_record().await;
    assert_eq!(record.attempts.len(), 1);
    assert_eq!(record.latency.total_us, 0);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_without_the_schema_feature_is_not_asked() {
    let toml = two(&["503"], ("", "capabilities = [\"chat\", \"streaming\"]"));
    let house = House::new(&toml).await;
    let schema = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}});
    let asked = ask().with("response_format", schema);
    let failure = house.ask(&asked).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.attempts), (ErrorKind::ProviderUnavailable, 1));
    let out = house.last_record().await.decision.exclusions;
    assert_eq!((out[0].deployment.as_str(), out[0].reason.as_str()), ("two", "capability"));
    // Who asks for no schema gets the fallback.
    assert_eq!(house.ask(&ask()).await.unwrap().head.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn an_outage_leaves_no_target_that_breaks_residency() {
    let toml = two(&["503"], ("region = \"uk-south\"", "region = \"us-east\""))
        .part("[residency]\nonshore = [\"uk-south\"]")
        .tenant("b", "residency = \"onshore\"");
    let house = House::new(&toml).await;
    let asked = Ask::of("b", "m", "hello");
    for _ in 0..10 {
        // However long the outage is, and whatever the breaker says.
        let failure = house.ask(&asked).await.unwrap_err();
        assert!(failure.head.attempts <= 1, "{failure:?}");
        let record = house.last_record().await;
        assert!(record.attempts.iter().all(|attempt| attempt.deployment.as_str() == "one"));
        assert_ne!(record.outcome, Outcome::Ok);
    }
    assert_eq!(house.ask(&ask()).await.unwrap().head.deployment.unwrap().as_str(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_permanent_invalid_request_is_neither_retried_nor_masked() {
    let house = House::new(&two(&["400"], ("max_attempts = 3", ""))).await;
    let failure = house.ask(&ask()).await.unwrap_err();
    assert_eq!((failure.error.kind(), failure.head.attempts), (ErrorKind::InvalidRequest, 1));
    let record = house.last_record().await;
    assert_eq!((record.attempts.len(), record.attempts[0].status), (1, Some(400)));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cancels_in_flight_ends_the_call_and_pays_once() {
    let house = House::new(&two(&["hang"], ("", ""))).await;
    let left = tokio::time::timeout(Duration::from_secs(1), house.ask(&ask())).await;
    assert!(left.is_err());
    let record = house.last_record().await;
    assert_eq!((record.outcome, record.attempts.len()), (Outcome::Cancelled, 1));
    house.holds_nothing("a");
}

#[test]
fn replicas_do_not_wait_alike() {
    // Two processes that were started at one instant must not retry at one instant.
    let draws = || {
        let random = SystemRandom::new().unwrap();
        (0..4).map(|_| random.next_u64()).collect::<Vec<_>>()
    };
    assert_ne!(draws(), draws());
}

#[test]
fn an_answer_that_only_calls_a_tool_is_an_answer() {
    let body = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{
        "index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
        "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}]});
    let facts = read_answer(&body.to_string().into()).unwrap();
    assert_eq!(facts.finish, Some(FinishReason::ToolCalls));
}
