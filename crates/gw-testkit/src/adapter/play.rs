//! Plays one step for one call.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::stream;
use gw_types::{
    Answer, AnswerStream, BoundedText, Clock, CompleteAnswer, GatewayError, MonoTime, Prepared, StreamAnswer,
};

use super::{AdapterCall, AdapterStep, CALLS_KEPT, CallEnd, Calls, TimedItem, step};

/// Writes down how a call ended; a guard that is dropped untold says that the caller dropped the call.
pub(super) struct CallGuard {
    calls: Calls,
    at: usize,
    end: CallEnd,
}

impl CallGuard {
    pub(super) fn open(calls: &Calls, prepared: &Prepared, now: MonoTime) -> Self {
        let mut kept = calls.lock();
        let at = kept.len();
        if at >= CALLS_KEPT {
            return Self { calls: Arc::clone(calls), at: usize::MAX, end: CallEnd::Dropped };
        }
        kept.push(AdapterCall {
            body: prepared.body.clone(),
            stream: prepared.stream,
            relay_usage: prepared.relay_usage,
            at: now,
            end: CallEnd::Open,
        });
        Self { calls: Arc::clone(calls), at, end: CallEnd::Dropped }
    }

    fn ends(mut self, end: CallEnd) {
        self.end = end;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(call) = self.calls.lock().get_mut(self.at) {
            call.end = self.end;
        }
    }
}

pub(super) async fn play(
    mut step: AdapterStep,
    stream: bool,
    clock: Arc<dyn Clock>,
    guard: CallGuard,
) -> Result<Answer, GatewayError> {
    loop {
        step = match step {
            AdapterStep::After { delay, then } => {
                sleep(&*clock, delay).await;
                *then
            }
            AdapterStep::Ok { text, usage, finish } if stream => {
                let items = step::stream_items(&text, usage, finish);
                let at_once = |item| TimedItem { after: Duration::ZERO, item: Ok(item) };
                AdapterStep::Stream { items: items.into_iter().map(at_once).collect(), hang: false }
            }
            AdapterStep::Ok { text, usage, finish } => {
                AdapterStep::Answer(Box::new(step::complete(&text, usage, finish)))
            }
            AdapterStep::Answer(answer) => return Ok(answered(*answer, guard)),
            AdapterStep::Error(error) => {
                guard.ends(CallEnd::Failed);
                return Err(error);
            }
            AdapterStep::Hang => std::future::pending().await,
            AdapterStep::Stream { items, hang } => {
                let items = streamed(Playing { items: items.into(), hang, clock, guard: Some(guard) });
                let upstream_request_id = Some(BoundedText::new("req-scripted"));
                return Ok(Answer::Stream(StreamAnswer { items, upstream_request_id }));
            }
        };
    }
}

fn answered(answer: CompleteAnswer, guard: CallGuard) -> Answer {
    guard.ends(CallEnd::Answered);
    Answer::Complete(answer)
}

/// A stream that is being played.
struct Playing {
    items: VecDeque<TimedItem>,
    hang: bool,
    clock: Arc<dyn Clock>,
    /// Gone once the end was written down.
    guard: Option<CallGuard>,
}

fn streamed(playing: Playing) -> AnswerStream {
    Box::pin(stream::unfold(playing, |mut playing| async move {
        let Some(next) = playing.items.pop_front() else {
            if playing.hang {
                std::future::pending::<()>().await;
            }
            playing.end(CallEnd::Answered);
            return None;
        };
        sleep(&*playing.clock, next.after).await;
        match &next.item {
            Ok(item) if item.facts.terminal => playing.end(CallEnd::Answered),
            Ok(_) => {}
            Err(_) => playing.end(CallEnd::Failed),
        }
        Some((next.item, playing))
    }))
}

impl Playing {
    fn end(&mut self, end: CallEnd) {
        if let Some(guard) = self.guard.take() {
            guard.ends(end);
        }
    }
}

async fn sleep(clock: &dyn Clock, duration: Duration) {
    // A pause of nothing does not even yield, so that scripts without pauses need nobody to move the clock.
    if !duration.is_zero() {
        clock.sleep_until(clock.now().saturating_add(duration)).await;
    }
}
