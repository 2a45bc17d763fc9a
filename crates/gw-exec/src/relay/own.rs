//! A streamed answer that the request's own call brings: relayed as it comes, counted, and settled however it ends.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use gw_types::{
    AnswerFacts, AnswerStream, AttemptEnd, BoundedText, ErrorKind, FinishReason, FrameFacts, GatewayError,
    Loss, MonoTime, NormalizedRequest, Outcome, Sleep, StreamCollector, StreamItem, TokenCount,
};

use super::{Ending, RelayItem, poll_ending};

use crate::{
    attempts::deadline_passed,
    estimate::Relayed,
    flight::Flight,
    opening::Opened,
    progress::Progress,
    remember::{COLLECTED_BYTES_MAX, CacheWrite, Remembered},
    schema::{self, Check},
};

/// The stream of a call, with everything that its request holds.
///
/// The record is stored before the last item is returned. Dropping it at any point cancels the provider's call at once
/// and settles what was relayed.
pub(crate) struct Own {
    flight: Option<Box<Flight>>,
    items: Option<AnswerStream>,
    held: VecDeque<StreamItem>,
    ending: Option<Ending>,
    storing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    side_effecting: bool,
    collecting: Option<Collecting>,
    facts: AnswerFacts,
    cap: Option<TokenCount>,
    pace: Pace,
}

/// An answer that is collected while it is relayed: for the cache, or to be checked at its end.
struct Collecting {
    collector: Box<dyn StreamCollector>,
    write: Option<Box<CacheWrite>>,
    check: Option<Check>,
}

/// The idle limit and the deadline on one timer that is armed again only when it fires.
struct Pace {
    timer: Sleep,
    idle: Duration,
    /// When the last content came.
    progress: MonoTime,
    /// When the last item came.
    seen: MonoTime,
}

impl Own {
    /// Begins to relay, and to collect where the answer may be remembered.
    pub(crate) fn begin(
        mut flight: Box<Flight>,
        request: &NormalizedRequest,
        opened: Opened,
        write: Option<Box<CacheWrite>>,
    ) -> Self {
        let (cap, side_effecting) = (flight.cap(), request.context.side_effecting);
        let check = flight.check.take();
        let codec = flight.state.codec(request.operation).filter(|_| write.is_some() || check.is_some());
        let collecting = codec.map(|codec| Collecting { collector: codec.collector(), write, check });
        let now = flight.now();
        let idle = match flight.progress {
            Progress::Called { target, .. } => flight.policy.target(target).deployment.timing.stream_idle,
            Progress::Idle | Progress::Streaming { .. } | Progress::Answered { .. } => Duration::MAX,
        };
        let timer = flight.state.clock.sleep_until(flight.deadline().min(now.saturating_add(idle)));
        Self {
            pace: Pace { timer, idle, progress: now, seen: now },
            flight: Some(flight),
            items: Some(opened.items),
            held: opened.held,
            ending: None,
            storing: None,
            side_effecting,
            collecting,
            facts: AnswerFacts::default(),
            cap,
        }
    }

    /// Breaks the answer off with an error of gw's own: what was relayed is settled and recorded, and the error is the
    /// last item. Does nothing once the answer has ended.
    pub(crate) fn abort(&mut self, error: GatewayError) {
        if let Some(flight) = &self.flight {
            let (error, outcome) = flight.ending(error, self.side_effecting, AttemptEnd::Done);
            let outcome = if outcome == Outcome::Ambiguous { outcome } else { Outcome::Failed };
            self.end(outcome, RelayItem::Failed(error));
        }
    }

    /// Counts an item, then decides what the caller gets of it.
    fn take(&mut self, item: StreamItem) -> Option<RelayItem> {
        self.count(&item.facts);
        if let Some(flight) = &mut self.flight {
            flight.relayed(&item.raw);
        }
        if let Some(collecting) = &mut self.collecting {
            collecting.collector.push(&item);
            if collecting.collector.bytes() > COLLECTED_BYTES_MAX {
                self.collecting = None;
            }
        }
        if let Some(error) = item.facts.error {
            self.fail(error);
        } else if item.facts.terminal {
            self.complete();
        } else if self.flight.as_ref().is_some_and(|flight| self.pace.seen >= flight.deadline()) {
            // The timer is asked only while nothing has come: behind a slow reader something always has.
            self.fail(deadline_passed());
            return None;
        } else if self.is_over_the_cap(&item.facts) {
            // What is beyond the cap is neither delivered nor charged.
            let output = self.cap.unwrap_or_default();
            if let Some(flight) = &mut self.flight {
                flight.keep_events(Some(output));
            }
            self.end(Outcome::Capped, RelayItem::Capped { output });
            return None;
        }
        (!item.raw.is_empty()).then_some(RelayItem::Bytes(item.raw))
    }

    fn count(&mut self, facts: &FrameFacts) {
        let Some(flight) = &mut self.flight else { return };
        self.pace.seen = flight.now();
        if facts.content_frames > 0 {
            self.pace.progress = self.pace.seen;
        }
        if let Progress::Called { target, .. } = flight.progress {
            flight.progress = Progress::Streaming { target, relayed: Relayed::default(), usage: None };
        }
        let scale = flight.expected.scale;
        if let Progress::Streaming { relayed, usage, .. } = &mut flight.progress {
            relayed.push(facts.content_frames, facts.content_bytes);
            if facts.usage.is_some() {
                usage.clone_from(&facts.usage);
                relayed.report();
            }
            let passed = relayed.tokens(scale);
            flight.charge_output(passed, false);
        }
        self.facts.content_bytes += u64::from(facts.content_bytes);
        self.facts.tool_calls |= facts.tool_calls;
        self.facts.finish = worse(self.facts.finish, facts.finish);
        if let Some(loss) = &facts.loss {
            flight.lose(loss);
            self.facts.loss.items.extend_from_slice(&loss.items);
        }
        if let Some(model) = &facts.served_model {
            flight.record().served_model = Some(model.clone());
            self.facts.served_model = Some(model.clone());
        }
    }

    /// Says whether the provider has certainly sent more than was reserved, and goes on: it ignores its bound.
    fn is_over_the_cap(&self, facts: &FrameFacts) -> bool {
        let (Some(cap), Some(flight)) = (self.cap, &self.flight) else { return false };
        let Progress::Streaming { relayed, usage, .. } = &flight.progress else { return false };
        let scale = flight.expected.scale;
        let reported = usage.as_ref().map_or(TokenCount::ZERO, |usage| usage.output_total());
        let passed = reported.saturating_add(relayed.behind_report().tokens_at_least(scale));
        facts.finish.is_none() && passed > cap
    }

    fn complete(&mut self) {
        if let Some(flight) = &mut self.flight {
            flight.keep_events(None);
        }
        let collected = self.collecting.take().and_then(|Collecting { collector, write, check }| {
            let completion = collector.finish();
            let broken = schema::note(self.flight.as_deref_mut(), check.as_ref(), completion.as_ref());
            Some((write.filter(|_| !broken)?, Arc::new(completion?)))
        });
        if let (Some((write, completion)), Some(flight)) = (collected, &mut self.flight) {
            let loss = flight.lost().clone();
            let record = flight.record();
            if let Some(serving) = record.serving.clone() {
                let answer = Remembered {
                    raw: None,
                    completion: Some(completion),
                    facts: AnswerFacts { loss, ..self.facts.clone() },
                    serving,
                    model_version: record.model_version.clone(),
                    origin: record.id.clone(),
                    complete: true,
                };
                self.storing = Some(Box::pin(write.store(Arc::clone(&flight.state), answer)));
            }
        }
        self.end(Outcome::Ok, RelayItem::Done);
    }

    fn fail(&mut self, error: GatewayError) {
        let Some(flight) = &self.flight else { return };
        // Content has come, so a provider that turns the call away now has worked on it all the same.
        let (error, outcome) = flight.ending(error, self.side_effecting, AttemptEnd::Done);
        self.end(outcome, RelayItem::Failed(error));
    }

    /// Cancels what is left of the call, settles and leaves the record; the last item waits for the receipt.
    fn end(&mut self, outcome: Outcome, item: RelayItem) {
        self.items = None;
        self.held.clear();
        let error = match &item {
            RelayItem::Failed(error) => Some(error),
            RelayItem::Bytes(_) | RelayItem::Done | RelayItem::Capped { .. } => None,
        };
        let storing = self.flight.take().map(|mut flight| {
            flight.judge(error.map_or(Ok(()), Err));
            flight.close_and_store(outcome, error)
        });
        self.ending = Some(Ending::new(storing, item));
    }

    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<Option<RelayItem>> {
        if let Some(storing) = &mut self.storing {
            ready!(storing.as_mut().poll(cx));
            self.storing = None;
        }
        poll_ending(&mut self.ending, cx)
    }

    /// Returns whether the answer has ended, and only its end is still to be given.
    pub(crate) fn is_ending(&self) -> bool {
        self.flight.is_none()
    }

    /// Returns the model that the provider says is answering, once it has.
    pub(crate) fn served_model(&self) -> Option<&BoundedText> {
        self.facts.served_model.as_ref()
    }

    /// Returns what the translation of the answer has lost since the last time.
    pub(crate) fn take_loss(&mut self) -> Loss {
        std::mem::take(&mut self.facts.loss)
    }

    /// Ends the stream when its deadline has passed or nothing has come for too long.
    fn poll_pace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.pace.timer.as_mut().poll(cx));
            let Some(flight) = &self.flight else { return Poll::Ready(()) };
            let now = flight.now();
            let idle_until = self.pace.progress.saturating_add(self.pace.idle);
            if now >= flight.deadline() {
                self.fail(deadline_passed());
                return Poll::Ready(());
            }
            if now >= idle_until {
                self.fail(
                    GatewayError::new(ErrorKind::ProviderTimeout, "the provider's stream has stalled")
                        .ambiguous(),
                );
                return Poll::Ready(());
            }
            self.pace.timer = flight.state.clock.sleep_until(flight.deadline().min(idle_until));
        }
    }
}

impl Stream for Own {
    type Item = RelayItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RelayItem>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.held.pop_front() {
                if let Some(relayed) = this.take(item) {
                    return Poll::Ready(Some(relayed));
                }
                continue;
            }
            let Some(items) = &mut this.items else { return this.poll_ending(cx) };
            match items.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(item))) => {
                    if let Some(relayed) = this.take(item) {
                        return Poll::Ready(Some(relayed));
                    }
                }
                Poll::Ready(Some(Err(error))) => this.fail(error),
                Poll::Ready(None) => this.fail(GatewayError::new(
                    ErrorKind::StreamInterrupted,
                    "the provider's stream ended before its terminal event",
                )),
                Poll::Pending => ready!(this.poll_pace(cx)),
            }
        }
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Own").field("flight", &self.flight).finish_non_exhaustive()
    }
}

/// Returns the reason that speaks against storing, if either does.
fn worse(one: Option<FinishReason>, other: Option<FinishReason>) -> Option<FinishReason> {
    match (one, other) {
        (None | Some(FinishReason::Stop), Some(reason)) => Some(reason),
        (kept, _) => kept,
    }
}
