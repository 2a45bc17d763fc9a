//! Kind `retries`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use gw_testkit::{FakeAnswer, FakeProvider, FakeStream, FaultScript, Step, ok, status};
use gw_types::{Clock, ErrorKind, MonoTime, Outcome, Sleep, UtcTime};
use serde_json::json;

use super::streaming::content;
use crate::support::{Ask, Events, Gw, House, Toml, chat};

/// A clock for real sockets: it stands still, but for the waits between attempts, which it jumps over. Longer waits are
/// limits that a test never reaches.
#[derive(Debug, Default)]
struct JumpingClock(Arc<AtomicU64>);

impl JumpingClock {
    /// Longer than any wait of these tests, shorter than any limit.
    const WAIT_MAX: Duration = Duration::from_secs(5);
}

impl Clock for JumpingClock {
    fn now(&self) -> MonoTime {
        MonoTime::from_nanos(self.0.load(Ordering::SeqCst))
    }

    /// Begins at 2030-01-01T00:00:00Z.
    fn utc(&self) -> UtcTime {
        UtcTime::from_micros(1_893_456_000_000_000)
            .saturating_add(self.now().saturating_since(MonoTime::ZERO))
    }

    fn sleep_until(&self, at: MonoTime) -> Sleep {
        if at.saturating_since(self.now()) > Self::WAIT_MAX {
            return Box::pin(std::future::pending());
        }
        let now = Arc::clone(&self.0);
        Box::pin(async move {
            now.fetch_max(at.nanos(), Ordering::SeqCst);
        })
    }
}

/// What one answer with such headers leads to: the wait before the second call, where there is one, and the result.
async fn waited(status_code: u16, headers: &[(&str, &str)]) -> (Option<Duration>, Option<ErrorKind>) {
    let first = headers
        .iter()
        .fold(status(status_code), |answer: FakeAnswer, (name, value)| answer.header(name, value));
    let provider = FakeProvider::start(FaultScript::of(first).then(ok("hi"))).await.unwrap();
    let lines = "max_attempts = 2\nattempt_timeout_ms = 20_000";
    let toml = Toml::new()
        .server("default_deadline_ms = 30_000")
        .upstream_with("up", &provider.base_url(), "", lines)
        .route("m", &["up"])
        .tenant("a", "");
    let house = House::with_clock(&toml, Arc::new(JumpingClock::default())).await;
    let result = house.ask(&Ask::of("a", "m", "hello")).await;
    let record = house.last_record().await;
    let attempts = &record.attempts;
    assert_eq!(provider.calls().len(), attempts.len());
    let wait = attempts.get(1).map(|second| Duration::from_micros(second.start_us - attempts[0].start_us));
    (wait, result.err().map(|failure| failure.error.kind()))
}

#[tokio::test]
async fn retry_after_seconds_date_and_milliseconds() {
    for (variant, headers, least) in [
        ("V1", &[("retry-after", "2")][..], 2_000),
        ("V2", &[("retry-after", "Tue, 01 Jan 2030 00:00:03 GMT")], 3_000),
        ("V3", &[("retry-after-ms", "250"), ("retry-after", "2")], 250),
        ("V4", &[("retry-after", "Mon, 31 Dec 2029 23:59:00 GMT")], 0),
        ("V5", &[("retry-after", "soon")], 0),
        ("V6", &[("retry-after", "-5")], 0),
        ("V8", &[("retry-after", "1.5")], 1_500),
    ] {
        let (wait, error) = waited(429, headers).await;
        let wait = wait.unwrap_or_else(|| panic!("{variant}: no second call"));
        let least = Duration::from_millis(least);
        assert!((least..=least + Duration::from_millis(500)).contains(&wait), "{variant}: {wait:?}");
        assert_eq!(error, None, "{variant}");
    }
    let (wait, error) = waited(503, &[("x-should-retry", "false")]).await;
    assert_eq!((wait, error), (None, Some(ErrorKind::ProviderUnavailable)), "V7");
}

/// Builds a house of scripted deployments with attempts of at most 3 s and a deadline of 5 s.
async fn scripted(first: &str, second: Option<&str>, attempts: u32) -> House {
    let lines = format!("attempt_timeout_ms = 3_000\nmax_attempts = {attempts}\nmin_attempt_ms = 500");
    let mut toml = Toml::new()
        .server("default_deadline_ms = 5_000")
        .scripted_with("one", &[first], &lines)
        .tenant("a", "");
    let mut chain = vec!["one"];
    if let Some(step) = second {
        toml = toml.scripted_with("two", &[step], &lines);
        chain.push("two");
    }
    House::new(&toml.route_with("m", &chain, "max_attempts = 4")).await
}

#[tokio::test(start_paused = true)]
async fn retry_never_outlives_the_deadline() {
    let ask = Ask::of("a", "m", "hello");
    for (variant, seconds) in [("V1", 60_u64), ("V3", 411_132)] {
        let house = scripted(&format!("429 retry-after={seconds}"), None, 3).await;
        let began = tokio::time::Instant::now();
        let failure = house.ask(&ask).await.unwrap_err();
        assert_eq!(failure.error.kind(), ErrorKind::ProviderRateLimited, "{variant}");
        assert_eq!(failure.error.retry_after(), Some(Duration::from_secs(seconds)), "{variant}");
        assert_eq!((failure.head.attempts, began.elapsed()), (1, Duration::ZERO), "{variant}");
    }
    let house = scripted("429 retry-after=60", Some("ok"), 3).await;
    let began = tokio::time::Instant::now();
    assert_eq!((house.ask(&ask).await.unwrap().head.attempts, began.elapsed()), (2, Duration::ZERO), "V2");

    let house = scripted("hang", None, 3).await;
    let began = tokio::time::Instant::now();
    let failure = house.ask(&ask).await.unwrap_err();
    assert_eq!(failure.error.http_status(gw_types::Dialect::OpenAi), 504, "V4");
    let took = began.elapsed();
    assert!((4_900..=5_100).contains(&took.as_millis()), "V4: {took:?}");
    let record = house.last_record().await;
    assert_eq!((record.attempts.len(), record.attempts[0].duration_us), (2, 3_000_000), "V4");

    // An attempt that was expected to need all there is leaves nothing for the next one to be tried in.
    let toml = Toml::new()
        .server("default_deadline_ms = 5_000")
        .scripted_with("one", &["delay=4900 503"], "expected_latency_ms = 4_800")
        .scripted_with("two", &["ok"], "min_attempt_ms = 500")
        .route("m", &["one", "two"])
        .tenant("a", "");
    let house = House::new(&toml).await;
    let failure = house.ask(&ask).await.unwrap_err();
    assert_eq!(failure.error.kind(), ErrorKind::DeadlineExceeded, "V5");
    let record = house.last_record().await;
    let attempts: Vec<_> = record.attempts.iter().map(|one| (one.deployment.as_str(), one.error)).collect();
    assert_eq!(attempts, [("one", Some(ErrorKind::ProviderUnavailable))], "V5");
}

#[tokio::test(start_paused = true)]
async fn attempts_add_up_and_do_not_multiply() {
    for (variant, second, total, calls) in [("V1", None, 3, &[3_usize][..]), ("V2", Some("503"), 4, &[3, 1])]
    {
        let lines = "max_attempts = 3";
        let mut toml = Toml::new().scripted_with("one", &["503"], lines).tenant("a", "");
        let mut chain = vec!["one"];
        if let Some(step) = second {
            toml = toml.scripted_with("two", &[step], lines);
            chain.push("two");
        }
        let house = House::new(&toml.route_with("m", &chain, "max_attempts = 4")).await;
        let failure = house.ask(&Ask::of("a", "m", "hello")).await.unwrap_err();
        assert_eq!(
            (failure.error.kind(), failure.head.attempts),
            (ErrorKind::ProviderUnavailable, total),
            "{variant}"
        );
        let record = house.last_record().await;
        for (name, count) in chain.iter().zip(calls) {
            let of = record.attempts.iter().filter(|attempt| attempt.deployment.as_str() == *name);
            assert_eq!(of.count(), *count, "{variant}: {name}");
        }
        assert!(record.attempts.iter().all(|attempt| attempt.error == Some(ErrorKind::ProviderUnavailable)));
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_add_up_and_do_not_multiply_for_many_at_once() {
    let toml =
        Toml::new().scripted_with("one", &["503"], "max_attempts = 3").route("m", &["one"]).tenant("a", "");
    let house = House::new(&toml).await;
    let ask = Ask::of("a", "m", "hello");
    let house = &house;
    let mut all = Vec::new();
    for _ in 0..100 {
        all.push(Box::pin(house.ask(&ask)));
    }
    // Driven side by side, all of them in one task.
    std::future::poll_fn(|cx| {
        all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
        if all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let records = house.records().await;
    let calls: usize = records.iter().map(|record| record.attempts.len()).sum();
    assert_eq!(records.len(), 100);
    // The deployment's own retry budget closes while everything fails: far fewer than the 300 that the settings allow.
    assert!((100..=220).contains(&calls), "{calls} calls");
    let mut seconds: Vec<u64> =
        records.iter().filter_map(|record| Some(record.attempts.get(1)?.start_us)).collect();
    seconds.sort_unstable();
    if let (Some(first), Some(last)) = (seconds.first(), seconds.last()) {
        assert!(seconds.len() < 3 || last - first > 10_000, "second attempts at one instant: {seconds:?}");
    }
}

/// Two upstreams, three attempts each.
async fn two(script: FaultScript) -> (FakeProvider, FakeProvider, Gw) {
    let one = FakeProvider::start(script).await.unwrap();
    let two = FakeProvider::start(FaultScript::of(ok("42"))).await.unwrap();
    let lines = "max_attempts = 3";
    let toml = Toml::new()
        .upstream_with("one", &one.base_url(), "", lines)
        .upstream_with("two", &two.base_url(), "", lines)
        .route_with("m", &["one", "two"], "cache = { exact = true }")
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    (one, two, gw)
}

#[tokio::test]
async fn content_filter_refusal_is_final() {
    let filtered = r#"{"error":{"message":"filtered","type":"invalid_request_error","code":"content_policy_violation"}}"#;
    let too_long = r#"{"error":{"code":"context_length_exceeded"}}"#;
    let script = FaultScript::of(status(400).body(filtered))
        .then(ok("harmless"))
        .then(status(400).body(too_long))
        .then(ok("half an ans").finish("content_filter"))
        .then(ok("again"));
    let (one, second, gw) = two(script).await;
    let refused = gw.chat("a", &chat("m", "r1")).send().await;
    assert_eq!((refused.status, refused.error()["code"].as_str()), (400, Some("content_policy_violation")));
    assert_eq!(refused.error()["message"], "filtered");
    assert_eq!((one.calls().len(), second.calls().len()), (1, 0));
    let next = gw.chat("a", &chat("m", "r2")).send().await;
    assert_eq!((next.said().as_str(), next.header("x-gw-deployment")), ("harmless", "one"));
    let long = gw.chat("a", &chat("m", "r3")).send().await;
    assert_eq!((long.status, long.error()["code"].as_str()), (400, Some("context_length_exceeded")), "V2");
    let cut = gw.chat("a", &chat("m", "r4")).send().await;
    assert_eq!(
        (cut.said().as_str(), &cut.json()["choices"][0]["finish_reason"]),
        ("half an ans", &json!("content_filter"))
    );
    assert_eq!(gw.chat("a", &chat("m", "r4")).send().await.said(), "again", "V3 was not stored");
    assert_eq!((one.calls().len(), second.calls().len()), (5, 0));
    let records = gw.records(5).await;
    assert_eq!(records[0]["error"], "content_filtered");
    assert_eq!(records[0]["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn no_second_answer_after_content_was_sent() {
    let role = || {
        Step::event(
            r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        )
    };
    let tool = Step::event(
        r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":"{\"p\""}}]},"finish_reason":null}]}"#,
    );
    let mut body = chat("m", "what is the answer");
    body["stream"] = true.into();
    for (variant, steps, text, calls) in [
        ("V1", vec![role(), content("The answer is "), Step::Reset], "The answer is ", (1, 0)),
        ("V2", vec![Step::text(": thinking\n\n"), role(), Step::Reset], "42", (1, 1)),
        ("V3", vec![role(), tool, Step::Reset], "", (1, 0)),
    ] {
        let (one, second, gw) = two(FaultScript::of(FakeStream::new(steps))).await;
        // One attempt at each, so that V2 shows the fallback and not a retry.
        let stream = gw.chat("a", &body).stream().await;
        let events = Events::read(&stream.rest().await);
        assert_eq!(events.text(), text, "{variant}");
        assert_eq!((one.calls().len(), second.calls().len()), calls, "{variant}");
        let ids: std::collections::BTreeSet<_> =
            events.chunks.iter().map(|chunk| chunk["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "{variant}: one answer has one id");
        let record = &gw.records(1).await[0];
        if variant == "V2" {
            let roles = events.chunks.iter().filter(|chunk| chunk["choices"][0]["delta"]["role"].is_string());
            assert_eq!((roles.count(), events.done), (1, true));
            assert_eq!(
                (record["outcome"].as_str(), record["attempts"].as_array().unwrap().len()),
                (Some("ok"), 2)
            );
        } else {
            assert!(events.error.is_some() && !events.done, "{variant}");
            assert_eq!(record["outcome"], Outcome::Failed.as_str(), "{variant}");
            assert_eq!(record["attempts"].as_array().unwrap().len(), 1, "{variant}");
        }
        if variant == "V1" {
            assert_eq!(
                record["usage"]["output"].as_u64(),
                Some(4),
                "the tokens that were delivered: {record}"
            );
        }
    }
}
