//! The scripted provider: the same bytes every time, read by the same code as real answers.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use gw_adapters::{Script, ScriptedAdapter};
use gw_types::{
    Adapter, Answer, AttemptPlan, CompleteAnswer, ErrorKind, FinishReason, GatewayError, ManualClock,
    Operation, StreamItem, TokenCount, UtcTime,
};

use crate::setup::{PLAN, bounded, deployment, parsed, relayed, request};

struct Scripted {
    adapter: ScriptedAdapter,
    clock: ManualClock,
}

impl Scripted {
    fn new(script: Script) -> Self {
        let clock = ManualClock::new(UtcTime::from_micros(1_900_000_000_000_000));
        Self { adapter: ScriptedAdapter::new(script, Arc::new(clock.clone())), clock }
    }

    fn parse(lines: &[&str]) -> Self {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        Self::new(Script::parse(&lines).unwrap())
    }

    async fn call(&self, stream: bool, plan: &AttemptPlan) -> Result<Answer, GatewayError> {
        let asked = request(stream, "one two");
        let prepared = self.adapter.prepare(&asked, &deployment("demo-echo"), plan).unwrap();
        self.adapter.call(prepared).await
    }

    async fn plain(&self, plan: &AttemptPlan) -> Result<CompleteAnswer, GatewayError> {
        match self.call(false, plan).await? {
            Answer::Complete(answer) => Ok(answer),
            Answer::Stream(_) => panic!("a stream"),
        }
    }

    async fn streamed(&self) -> Vec<Result<StreamItem, GatewayError>> {
        match self.call(true, &PLAN).await {
            Ok(Answer::Stream(answer)) => answer.items.collect().await,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn echo_answers_with_the_last_user_text() {
    let scripted = Scripted::new(Script::echo());
    let answer = scripted.plain(&PLAN).await.unwrap();
    let expected = r#"{"choices":[{"finish_reason":"stop","index":0,"logprobs":null,"message":{"content":"echo: one two","refusal":null,"role":"assistant"}}],"created":1900000000,"id":"chatcmpl-scripted-1","model":"demo-echo","object":"chat.completion","usage":{"completion_tokens":3,"prompt_tokens":2,"total_tokens":5}}"#;
    assert_eq!(std::str::from_utf8(&answer.raw).unwrap(), expected);
    let usage = answer.facts.usage.unwrap();
    assert_eq!((usage.input, usage.output), (TokenCount::new(2), TokenCount::new(3)));
    assert_eq!(answer.upstream_request_id.unwrap().as_str(), "scripted-1");
}

#[tokio::test]
async fn i13_two_alike_give_the_same_bytes() {
    let lines = ["429 retry-after=1", "ok", "ok text=a b", "truncate"];
    let (one, two) = (Scripted::parse(&lines), Scripted::parse(&lines));
    for _ in 0..5 {
        let errors = (one.plain(&PLAN).await, two.plain(&PLAN).await);
        match errors {
            (Ok(one), Ok(two)) => assert_eq!((one.raw, one.facts), (two.raw, two.facts)),
            (one, two) => assert_eq!(one.unwrap_err(), two.unwrap_err()),
        }
    }
    let (one, two) = (Scripted::new(Script::echo()), Scripted::new(Script::echo()));
    assert_eq!(relayed(&one.streamed().await), relayed(&two.streamed().await));
}

#[tokio::test]
async fn a_stream_is_valid_and_says_its_usage() {
    let items = Scripted::new(Script::echo()).streamed().await;
    let text = relayed(&items);
    assert_eq!(text.matches("data: ").count(), 6, "{text}");
    assert!(text.contains(r#""delta":{"content":" two"}"#), "{text}");
    let facts: Vec<_> = items.iter().map(|item| &item.as_ref().unwrap().facts).collect();
    assert!(facts.last().unwrap().terminal);
    let usage = facts.iter().rev().find_map(|facts| facts.usage.as_ref()).unwrap();
    assert_eq!((usage.input, usage.output), (TokenCount::new(2), TokenCount::new(3)));
    assert_eq!(facts.iter().map(|facts| facts.content_frames).sum::<u32>(), 3);
}

#[tokio::test]
async fn steps_are_consumed_in_order_and_the_last_repeated() {
    let scripted = Scripted::parse(&["429 retry-after=1 code=slow", "503", "ok"]);
    let error = scripted.plain(&PLAN).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::ProviderRateLimited, Some(429)));
    assert_eq!((error.retry_after(), error.openai_code()), (Some(Duration::from_secs(1)), Some("slow")));
    assert_eq!(error.upstream_request_id(), Some("scripted-1"));
    assert_eq!(scripted.call(true, &PLAN).await.unwrap_err().kind(), ErrorKind::ProviderUnavailable);
    for _ in 0..3 {
        assert!(scripted.plain(&PLAN).await.is_ok());
    }
}

#[tokio::test]
async fn broken_connections_are_ambiguous() {
    for line in ["reset", "truncate"] {
        let error = Scripted::parse(&[line]).plain(&PLAN).await.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true), "{line}");
    }
    let items = Scripted::parse(&["truncate"]).streamed().await;
    assert!(relayed(&items).contains("echo:"));
    assert_eq!(items.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::StreamInterrupted);
    assert!(Scripted::parse(&["hang"]).plain(&PLAN).now_or_never().is_none());
}

#[tokio::test]
async fn an_output_bound_cuts_the_answer() {
    let answer = Scripted::new(Script::echo()).plain(&bounded(2)).await.unwrap();
    assert_eq!(answer.facts.finish, Some(FinishReason::Length));
    assert!(std::str::from_utf8(&answer.raw).unwrap().contains(r#""content":"echo: one""#));
}

#[tokio::test]
async fn slow_waits_by_the_clock() {
    let scripted = Scripted::new(Script::slow(Duration::from_secs(3)));
    let mut call = Box::pin(scripted.call(true, &PLAN));
    assert!((&mut call).now_or_never().is_none());
    scripted.clock.advance(Duration::from_millis(2_999));
    assert!((&mut call).now_or_never().is_none());
    scripted.clock.advance(Duration::from_millis(1));
    let Some(Ok(Answer::Stream(mut answer))) = call.now_or_never() else { panic!("no stream yet") };
    let mut at = Vec::new();
    loop {
        match answer.items.next().now_or_never() {
            Some(Some(item)) => {
                if item.unwrap().facts.content_frames > 0 {
                    at.push(scripted.clock.advance_to_next_sleeper());
                }
            }
            Some(None) => break,
            None => {
                scripted.clock.advance(Duration::from_millis(150));
            }
        }
    }
    assert_eq!(at.len(), 3);
}

#[test]
fn other_operations_are_refused() {
    let adapter = Scripted::new(Script::echo()).adapter;
    let asked = gw_types::NormalizedRequest {
        operation: Operation::Embeddings,
        ..parsed(r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#.to_owned())
    };
    let error = adapter.prepare(&asked, &deployment("m"), &PLAN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}
