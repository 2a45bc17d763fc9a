//! The adapter that plays a script.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use gw_dialects::openai::{ErrorHead, classify, read_answer};
use gw_types::{
    Adapter, Answer, AttemptPlan, BoundedText, Clock, CompleteAnswer, Deployment, ErrorKind, GatewayError,
    NormalizedRequest, OutputField, Prepared, StreamAnswer,
};

use super::{
    answer::{Reply, error_body},
    question::Question,
    script::{Action, Script},
    stream::ScriptedStream,
};
use crate::openai::prepare_chat;

/// Plays a script: no socket, no key, the same bytes every time.
///
/// Ids count up from 1, `created` and all waiting come from the clock, a word counts as a token. Calls take their steps
/// in the order in which they are made. Answers are read by the same code as a real provider's.
#[derive(Debug)]
pub struct ScriptedAdapter {
    script: Script,
    clock: Arc<dyn Clock>,
    calls: AtomicU64,
}

impl ScriptedAdapter {
    /// Returns the adapter at its first step.
    pub fn new(script: Script, clock: Arc<dyn Clock>) -> Self {
        Self { script, clock, calls: AtomicU64::new(0) }
    }

    async fn wait(&self, delay: Duration) {
        if !delay.is_zero() {
            self.clock.sleep_until(self.clock.now().saturating_add(delay)).await;
        }
    }

    fn refuse(&self, status: u16, retry_after: Option<&str>, code: Option<&str>, id: &str) -> GatewayError {
        let header = |name: &str| match name {
            "retry-after" => retry_after,
            "x-request-id" => Some(id),
            _ => None,
        };
        let head = ErrorHead { status, header: &header, utc: self.clock.utc() };
        classify(&head, &error_body(status, code))
    }
}

#[async_trait]
impl Adapter for ScriptedAdapter {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        prepare_chat(request, deployment, plan, OutputField::MaxCompletionTokens)
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let step = self.script.step(call).clone();
        self.wait(step.delay).await;
        let id = format!("scripted-{}", call + 1);
        let (text, whole) = match &step.action {
            Action::Answer { text } => (text.as_deref(), true),
            Action::Truncate => (None, false),
            Action::Refuse { status, retry_after, code } => {
                return Err(self.refuse(*status, retry_after.as_deref(), code.as_deref(), &id));
            }
            Action::Hang => std::future::pending().await,
            Action::Reset => return Err(broken("the scripted connection broke before an answer")),
        };
        let question = Question::read(&prepared.body);
        let created = self.clock.utc().seconds();
        let reply = Reply::new(&question, text, format!("chatcmpl-{id}"), created);
        if prepared.stream {
            let frames = reply.frames();
            let kept = if whole { frames.len() } else { frames.len() / 2 };
            return Ok(self.stream(frames, kept, &prepared, &id));
        }
        if !whole {
            return Err(broken("the scripted connection broke in the middle of the answer"));
        }
        let raw = reply.body();
        let facts = read_answer(&raw)?;
        Ok(Answer::Complete(CompleteAnswer { raw, facts, upstream_request_id: Some(BoundedText::new(&id)) }))
    }
}

impl ScriptedAdapter {
    fn stream(&self, frames: Vec<Bytes>, kept: usize, prepared: &Prepared, id: &str) -> Answer {
        let clock = Arc::clone(&self.clock);
        let frames = frames.into_iter().take(kept).collect();
        let items = ScriptedStream::new(frames, self.script.pause, prepared.relay_usage, clock);
        Answer::Stream(StreamAnswer {
            items: Box::pin(items),
            upstream_request_id: Some(BoundedText::new(id)),
        })
    }
}

fn broken(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::Transport, message).ambiguous()
}
