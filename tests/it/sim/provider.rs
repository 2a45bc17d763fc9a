//! The scripted providers, in virtual time. What they send is read by the code that reads real providers.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use futures_core::Stream;
use gw_dialects::openai::{StreamDecoder, StreamOptions, read_answer};
use gw_types::{
    Adapter, Answer, AttemptPlan, BoundedText, Clock, CompleteAnswer, Deployment, ErrorKind, FinishReason,
    GatewayError, NormalizedRequest, Prepared, Sleep, StreamAnswer, StreamItem,
};

use super::{
    script::{Does, Play},
    stage::{CallGuard, Stage},
    wire::{self, Frame},
};

/// One deployment's provider.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) stage: Arc<Stage>,
    pub(crate) deployment: usize,
    /// Which of several credentials it is asked with.
    pub(crate) credential: usize,
}

/// Names a request towards the provider: in its trace context, which no key of the cache holds.
pub(crate) fn name_of(ask: usize) -> BoundedText {
    BoundedText::new(&format!("ask-{ask}"))
}

/// Returns the request of a name.
pub(crate) fn ask_of(name: Option<&BoundedText>) -> usize {
    name.and_then(|name| name.as_str().strip_prefix("ask-")?.parse().ok()).unwrap()
}

/// Returns what an answer begins with: whose it is, and of which call.
pub(crate) fn marker(tenant: usize, ask: usize, call: usize) -> String {
    format!("t{tenant}a{ask}c{call}.")
}

#[async_trait]
impl Adapter for Provider {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(Prepared::new(request, deployment, request.body.clone()))
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        let ask = ask_of(prepared.traceparent.as_ref());
        let guard = self.stage.call(ask, (self.deployment, self.credential));
        let (play, marker) = self.stage.with(|log| {
            let seen = &log.asks[ask];
            let call = seen.calls.len() - 1;
            let plays = &seen.ask.plays;
            let play = plays.get(call).or(plays.last()).cloned().unwrap_or_default();
            (play, marker(seen.ask.tenant, ask, call))
        });
        wait(&self.stage, play.after).await;
        let refusal = wire::refusal(play.does, self.stage.clock.utc());
        match refusal {
            Some(_) if prepared.stream && play.does == Does::ResetsAfter => {}
            Some(error) => {
                guard.fails(&error);
                return Err(error);
            }
            None => {}
        }
        match play.does {
            Does::Hangs => std::future::pending().await,
            Does::Stalls | Does::KeepsAlive if !prepared.stream => std::future::pending().await,
            _ if prepared.stream => Ok(self.stream(&prepared, &play, &marker, guard)),
            _ => whole(&play, &marker, &guard),
        }
    }
}

impl Provider {
    fn stream(&self, prepared: &Prepared, play: &Play, marker: &str, guard: CallGuard) -> Answer {
        let items = Playing {
            frames: wire::frames(play, marker),
            // Comments have no content, so only they may be slow without end.
            pause: Duration::from_millis(match play.does {
                Does::KeepsAlive => play.pause.max(100).into(),
                _ => play.pause.into(),
            }),
            sleep: None,
            decoder: StreamDecoder::new(StreamOptions { relay_usage: prepared.relay_usage }),
            ready: VecDeque::new(),
            over: false,
            works: false,
            finish: None,
            stage: Arc::clone(&self.stage),
            guard,
        };
        Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: None })
    }
}

fn whole(play: &Play, marker: &str, guard: &CallGuard) -> Result<Answer, GatewayError> {
    let raw = wire::body(play, marker);
    let facts = read_answer(&raw).inspect_err(|error| guard.fails(error))?;
    guard.works();
    guard.completes(facts.finish == Some(FinishReason::Stop));
    Ok(Answer::Complete(CompleteAnswer { raw, facts, upstream_request_id: None }))
}

async fn wait(stage: &Stage, millis: u32) {
    if millis > 0 {
        let until = stage.clock.now().saturating_add(Duration::from_millis(millis.into()));
        stage.clock.sleep_until(until).await;
    }
}

/// A stream that is being played.
struct Playing {
    frames: VecDeque<Frame>,
    pause: Duration,
    sleep: Option<Sleep>,
    decoder: StreamDecoder,
    ready: VecDeque<StreamItem>,
    over: bool,
    works: bool,
    finish: Option<FinishReason>,
    stage: Arc<Stage>,
    guard: CallGuard,
}

impl Playing {
    fn give(&mut self, item: StreamItem) -> Result<StreamItem, GatewayError> {
        if item.facts.content_frames > 0 {
            self.guard.says();
        }
        if let Some(error) = &item.facts.error {
            self.guard.fails(error);
        } else if item.facts.is_meaningful() && !std::mem::replace(&mut self.works, true) {
            self.guard.works();
        }
        self.finish = item.facts.finish.or(self.finish);
        if item.facts.terminal {
            self.guard.completes(self.finish == Some(FinishReason::Stop));
        }
        Ok(item)
    }

    fn fail(&mut self, error: GatewayError) -> Poll<Option<Result<StreamItem, GatewayError>>> {
        self.over = true;
        self.guard.fails(&error);
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for Playing {
    type Item = Result<StreamItem, GatewayError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.ready.pop_front() {
                return Poll::Ready(Some(this.give(item)));
            }
            if this.over {
                return Poll::Ready(None);
            }
            if let Some(sleep) = &mut this.sleep {
                std::task::ready!(Pin::new(sleep).poll(cx));
                this.sleep = None;
            } else if !this.pause.is_zero() && !this.frames.is_empty() {
                let until = this.stage.clock.now().saturating_add(this.pause);
                this.sleep = Some(this.stage.clock.sleep_until(until));
                continue;
            }
            match this.frames.pop_front() {
                Some(Frame::Bytes(bytes)) => this.decoder.push(bytes, &mut this.ready),
                Some(Frame::Break) => {
                    return this.fail(GatewayError::new(ErrorKind::Transport, "scripted").ambiguous());
                }
                Some(Frame::Hang) => {
                    this.frames.push_back(Frame::Hang);
                    return Poll::Pending;
                }
                None => {
                    this.over = true;
                    match this.decoder.end() {
                        Ok(item) => return Poll::Ready(Some(this.give(item))),
                        Err(error) => return this.fail(error),
                    }
                }
            }
        }
    }
}
