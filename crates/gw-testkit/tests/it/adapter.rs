//! The scripted adapter: steps, pauses by the clock, and what it writes down.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use gw_testkit::{AdapterStep, CallEnd, ScriptAdapter, sample_deployment, sample_request};
use gw_types::{
    Adapter, Answer, AttemptPlan, Clock, DeploymentName, ErrorKind, GatewayError, ManualClock, MonoTime,
    Prepared,
};

const PLAN: AttemptPlan = AttemptPlan { output_bound: None, timeout: Duration::from_secs(1), strict: false };

fn adapter(steps: impl IntoIterator<Item = AdapterStep>) -> (ScriptAdapter, ManualClock) {
    let clock = ManualClock::default();
    (ScriptAdapter::new(steps, Arc::new(clock.clone())), clock)
}

fn prepare(adapter: &ScriptAdapter, stream: bool) -> Result<Prepared, GatewayError> {
    let deployment = sample_deployment(&DeploymentName::new("eu").unwrap());
    adapter.prepare(&sample_request("m", "hi").stream(stream).build(), &deployment, &PLAN)
}

fn ends(adapter: &ScriptAdapter) -> Vec<CallEnd> {
    adapter.calls().iter().map(|call| call.end).collect()
}

#[test]
fn plays_in_order_and_repeats_the_last() {
    let (adapter, _clock) =
        adapter([AdapterStep::error(ErrorKind::ProviderRateLimited), AdapterStep::ok("hi you")]);
    let call = || adapter.call(prepare(&adapter, false).unwrap()).now_or_never().unwrap();
    assert_eq!(call().unwrap_err().kind(), ErrorKind::ProviderRateLimited);
    for _ in 0..2 {
        let Answer::Complete(answer) = call().unwrap() else { panic!("not a whole answer") };
        assert_eq!((answer.facts.content_bytes, answer.facts.usage.unwrap().output.get()), (6, 2));
        let body: serde_json::Value = serde_json::from_slice(&answer.raw).unwrap();
        assert_eq!(body["usage"]["completion_tokens"], 2);
    }
    assert_eq!(ends(&adapter), [CallEnd::Failed, CallEnd::Answered, CallEnd::Answered]);
    assert_eq!(adapter.plans(), [PLAN; 3]);
}

#[test]
fn waits_by_the_clock_and_notices_a_drop() {
    let delayed = AdapterStep::ok("a b").after(Duration::from_millis(5));
    let (adapter, clock) = adapter([AdapterStep::Hang, delayed]);
    let mut hanging = adapter.call(prepare(&adapter, false).unwrap());
    assert!(hanging.as_mut().now_or_never().is_none());
    assert_eq!(ends(&adapter), [CallEnd::Open]);
    drop(hanging);
    assert_eq!(ends(&adapter), [CallEnd::Dropped]);
    let mut call = adapter.call(prepare(&adapter, true).unwrap());
    assert!(call.as_mut().now_or_never().is_none());
    assert_eq!(clock.advance_to_next_sleeper(), Some(MonoTime::from_nanos(5_000_000)));
    let Answer::Stream(answer) = call.now_or_never().unwrap().unwrap() else { panic!("not a stream") };
    let items: Vec<_> = answer.items.map(Result::unwrap).collect().now_or_never().unwrap();
    assert_eq!(items.iter().map(|item| item.facts.content_frames).sum::<u32>(), 2);
    assert!(items.last().unwrap().facts.terminal);
    assert_eq!(ends(&adapter), [CallEnd::Dropped, CallEnd::Answered]);
    assert_eq!(adapter.calls()[1].at, MonoTime::ZERO);
}

/// Reads a stream as far as it goes: items with content, error, whether it ended, and how the call ended after a drop.
fn check(step: AdapterStep, expected: (usize, Option<ErrorKind>, bool, CallEnd)) {
    let (adapter, clock) = adapter([step]);
    let answer = adapter.call(prepare(&adapter, true).unwrap()).now_or_never().unwrap().unwrap();
    let Answer::Stream(mut answer) = answer else { panic!("not a stream") };
    let (mut content, mut error, mut ended) = (0, None, false);
    loop {
        match answer.items.next().now_or_never() {
            Some(Some(Ok(item))) => content += usize::from(item.facts.content_frames > 0),
            Some(Some(Err(failed))) => error = Some(failed.kind()),
            Some(None) => ended = true,
            None if clock.advance_to_next_sleeper().is_some() => {}
            None => break,
        }
        if ended {
            break;
        }
    }
    drop(answer);
    assert_eq!((content, error, ended, ends(&adapter)[0]), expected);
}

#[test]
fn streams_end_as_the_script_says() {
    let whole = AdapterStep::stream("a b c", Duration::ZERO, None);
    check(whole, (3, None, true, CallEnd::Answered));
    check(AdapterStep::truncated("a b"), (2, None, true, CallEnd::Answered));
    check(AdapterStep::stalled("a b"), (2, None, false, CallEnd::Dropped));
    let failed = AdapterStep::stream_error("a", ErrorKind::Transport);
    check(failed, (1, Some(ErrorKind::Transport), true, CallEnd::Failed));
}

#[test]
fn paced_streams_wait_before_each_item() {
    let (adapter, clock) = adapter([AdapterStep::stream("a b", Duration::from_millis(1), None)]);
    let answer = adapter.call(prepare(&adapter, true).unwrap()).now_or_never().unwrap().unwrap();
    let Answer::Stream(answer) = answer else { panic!("not a stream") };
    let mut all = answer.items.collect::<Vec<_>>();
    while (&mut all).now_or_never().is_none() {
        clock.advance_to_next_sleeper().unwrap();
    }
    assert_eq!(clock.now(), MonoTime::from_nanos(4_000_000));
}

#[test]
fn refuses_to_prepare() {
    let (adapter, _clock) = adapter([]);
    let adapter = adapter.with_refusal(GatewayError::new(ErrorKind::TranslationLoss, "scripted"));
    assert_eq!(prepare(&adapter, false).unwrap_err().kind(), ErrorKind::TranslationLoss);
    assert_eq!(adapter.calls(), []);
}

#[test]
fn i18_calls_print_without_their_content() {
    let (adapter, _clock) = adapter([]);
    let deployment = sample_deployment(&DeploymentName::new("eu").unwrap());
    let prepared = adapter.prepare(&sample_request("m", "canary").build(), &deployment, &PLAN).unwrap();
    adapter.call(prepared).now_or_never().unwrap().unwrap();
    assert!(!format!("{adapter:?}").contains("canary"));
}
