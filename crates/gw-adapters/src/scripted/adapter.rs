//! The adapter that plays a script.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gw_dialects::openai::{ErrorHead, classify};
use gw_types::{
    Adapter, Answer, AttemptPlan, BoundedText, Clock, CompleteAnswer, Deployment, ErrorKind, GatewayError,
    NormalizedRequest, Operation, Prepared, StreamAnswer,
};

use super::{
    answer::{Reply, error_body},
    question::Question,
    script::{Action, Script},
    stream::ScriptedStream,
};
use crate::http::{Format, Habits, Received, Way, not_available};

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
        way(request.operation)?.prepare(request, deployment, plan, &Habits::OPENAI)
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        let way = way(prepared.operation)?;
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
        let now = self.clock.utc();
        let reply = Reply::new(&question, text, format!("chatcmpl-{id}"), now.seconds());
        let id = BoundedText::new(&id);
        let received = Received { prepared: &prepared, id: Some(&id), now };
        if prepared.stream {
            let mut frames = reply.frames();
            frames.truncate(if whole { frames.len() } else { frames.len() / 2 });
            let clock = Arc::clone(&self.clock);
            let items = ScriptedStream::new(frames.into(), self.script.pause, way.decoder(&received)?, clock);
            return Ok(Answer::Stream(StreamAnswer {
                items: Box::pin(items),
                upstream_request_id: Some(id),
            }));
        }
        if !whole {
            return Err(broken("the scripted connection broke in the middle of the answer"));
        }
        let (raw, facts) = way.read(reply.body(), &received)?;
        Ok(Answer::Complete(CompleteAnswer { raw, facts, upstream_request_id: Some(id) }))
    }
}

/// The script speaks chat completions; other conversations are translated, as at a real provider.
fn way(operation: Operation) -> Result<Way, GatewayError> {
    match operation {
        Operation::Chat => Ok(Way::Chat),
        Operation::Responses | Operation::Messages => Ok(Way::Translated(Format::Chat)),
        Operation::Completions | Operation::Embeddings | Operation::CountTokens => {
            Err(not_available(operation))
        }
    }
}

fn broken(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::Transport, message).ambiguous()
}
