//! What a fault server does to one item, and what must come of it.

use std::time::Duration;

use gw_testkit::{FakeAnswer, FakeStream, Fault, Step, html_200, ok, status};
use serde_json::{Value, json};

use super::{
    finding::{Finding, micros, told},
    scene::{Scene, Setup, item},
};

/// The time of one call where a server that says nothing is asked.
const SHORT_MS: u64 = 200;

/// The time that the slow answers take.
const SLOW_MS: u64 = 120;

/// What the server says is to be waited.
const GUIDANCE_MS: u64 = 150;

/// One fault and what must come of it.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) claim: &'static str,
    /// The faults of the item's calls; the last one repeats.
    faults: Vec<Fault>,
    attempt_timeout_ms: u64,
    expected: Expected,
    /// The least time from the first call to the end.
    least: Duration,
}

struct Expected {
    error_class: Option<&'static str>,
    attempts: u32,
    classes: &'static [&'static str],
    text: Option<&'static str>,
    finish: Option<&'static str>,
    tools: &'static [&'static str],
}

const fn answered(attempts: u32, classes: &'static [&'static str]) -> Expected {
    Expected { error_class: None, attempts, classes, text: Some("fine"), finish: Some("stop"), tools: &[] }
}

const fn failed(class: &'static str, attempts: u32, classes: &'static [&'static str]) -> Expected {
    Expected { error_class: Some(class), attempts, classes, text: None, finish: None, tools: &[] }
}

fn row(name: &'static str, claim: &'static str, faults: Vec<Fault>, expected: Expected) -> Row {
    Row { name, claim, faults, attempt_timeout_ms: 5_000, expected, least: Duration::ZERO }
}

impl Row {
    fn lasting(self, millis: u64) -> Self {
        Self { least: Duration::from_millis(millis), ..self }
    }

    fn impatient(self) -> Self {
        Self { attempt_timeout_ms: SHORT_MS, ..self }
    }
}

fn fine() -> Fault {
    ok("fine").into()
}

fn slow(delay_ms: u64) -> Fault {
    Fault::SlowHead { delay_ms, then: Box::new(fine()) }
}

/// A whole answer with this message.
fn answer(message: &Value, finish: &str) -> FakeAnswer {
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    });
    FakeAnswer { status: 200, headers: Vec::new(), body: body.to_string().into(), cut_after_bytes: None }
}

/// A whole answer in four pieces with pauses between them.
fn drip() -> Fault {
    let body = answer(&json!({"role": "assistant", "content": "fine"}), "stop").body;
    let piece = body.len().div_ceil(4);
    let steps = body
        .chunks(piece)
        .flat_map(|piece| [Step::PauseMs(SLOW_MS / 4), Step::text(&String::from_utf8_lossy(piece))]);
    FakeStream::new(steps).header("content-type", "application/json").into()
}

/// Returns every row.
pub(super) fn rows() -> Vec<Row> {
    retried().into_iter().chain(terminal()).chain(plain()).collect()
}

/// Failures that are tried again.
fn retried() -> Vec<Row> {
    let cut = answer(&json!({"role": "assistant", "content": "fine"}), "stop").cut_after(40);
    let hint = status(429).header("retry-after-ms", &GUIDANCE_MS.to_string());
    vec![
        row(
            "rate_limit_with_guidance",
            "a 429 that names a time is asked again no sooner than then",
            vec![hint.into(), fine()],
            answered(2, &["provider_rate_limited"]),
        )
        .lasting(GUIDANCE_MS),
        row(
            "rate_limit_without_guidance",
            "a 429 that names no time is asked again after a backoff",
            vec![status(429).into(), fine()],
            answered(2, &["provider_rate_limited"]),
        ),
        row(
            "server_error",
            "a 5xx is asked again",
            vec![status(503).into(), fine()],
            answered(2, &["provider_unavailable"]),
        ),
        row(
            "server_error_to_the_end",
            "a 5xx that does not end uses the bounded attempts up and no more",
            vec![status(500).into()],
            failed("provider_unavailable", 3, &["provider_unavailable"; 3]),
        ),
        row(
            "silence",
            "a server that says nothing is given up at the timeout of the call and asked again",
            vec![Fault::HangBeforeHead, fine()],
            answered(2, &["provider_timeout"]),
        )
        .impatient()
        .lasting(SHORT_MS),
        row(
            "disconnect_before_the_answer",
            "a connection that is reset before the answer is a transport failure and asked again",
            vec![Fault::ResetBeforeHead, fine()],
            answered(2, &["transport"]),
        ),
        row(
            "disconnect_within_the_answer",
            "an answer that breaks off is no success but a transport failure, and asked again",
            vec![cut.into(), fine()],
            answered(2, &["transport"]),
        ),
        row(
            "history",
            "every failure on the way to an answer is kept, in order",
            vec![status(503).into(), status(429).into(), fine()],
            answered(3, &["provider_unavailable", "provider_rate_limited"]),
        ),
    ]
}

/// Failures that are not.
fn terminal() -> Vec<Row> {
    let broken = FakeAnswer { body: "{\"choices\": [".into(), ..status(200) };
    vec![
        row(
            "client_error",
            "a 4xx about the request itself is not asked again",
            vec![status(400).into()],
            failed("invalid_request", 1, &["invalid_request"]),
        ),
        row(
            "malformed_json",
            "a 200 whose body is no JSON is terminal",
            vec![broken.into()],
            failed("malformed_response", 1, &["malformed_response"]),
        ),
        row(
            "web_page",
            "a 200 with a web page is terminal",
            vec![html_200().into()],
            failed("malformed_response", 1, &["malformed_response"]),
        ),
    ]
}

/// No failures.
fn plain() -> Vec<Row> {
    let tool = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Bern\"}"}}
    ]});
    let empty = answer(&json!({"role": "assistant", "content": ""}), "stop");
    vec![
        row("answer", "an answer is a result", vec![fine()], answered(1, &[])),
        row("slow_answer", "a slow answer is waited for", vec![slow(SLOW_MS)], answered(1, &[]))
            .lasting(SLOW_MS),
        row("slow_drip", "an answer in small pieces is put together", vec![drip()], answered(1, &[]))
            .lasting(SLOW_MS),
        row(
            "tool_call",
            "a call of a tool is a result with its name and no text",
            vec![answer(&tool, "tool_calls").into()],
            Expected { text: Some(""), finish: Some("tool_calls"), tools: &["weather"], ..answered(1, &[]) },
        ),
        row(
            "empty_content",
            "an empty answer is a result with an empty text",
            vec![empty.into()],
            Expected { text: Some(""), ..answered(1, &[]) },
        ),
    ]
}

/// Plays a row.
pub(super) async fn play(row: Row) -> Result<Finding, String> {
    let Row { name, faults, attempt_timeout_ms, expected, least, .. } = row;
    let setup = Setup { attempt_timeout_ms, ..Setup::default() };
    let scene = Scene::start(setup, move |_, nth| {
        let at = usize::try_from(nth).unwrap_or(usize::MAX).min(faults.len()).saturating_sub(1);
        faults.get(at).cloned().unwrap_or_else(fine)
    })
    .await?;
    let results = scene.run(vec![item("item-000", 64)?], 1).await?;
    let arrivals = scene.arrivals();
    let first = arrivals.first().map_or(Duration::ZERO, |arrival| arrival.at);
    let lasted = scene.elapsed().saturating_sub(first);
    let result = results.first().ok_or("the item has no result")?;
    let told = told(result);
    let wanted = json!({
        "status": if expected.error_class.is_some() { "failed" } else { "ok" },
        "attempts": expected.attempts,
        "attempt_error_classes": expected.classes,
        "error_class": expected.error_class,
        "text": expected.text,
        "finish_reason": expected.finish,
        "tool_calls": expected.tools,
    });
    let counted = u64::try_from(arrivals.len()) == Ok(u64::from(expected.attempts));
    let passed = told == wanted && counted && lasted >= least && scene.holds_nothing();
    Ok(Finding::new(name, &arrivals, &results)
        .observe("result", told)
        .observe("calls", arrivals.len())
        .measure("lasted_us", micros(lasted))
        .passed_if(passed))
}
