//! Who makes a shared call, and the call itself.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures_core::Stream;
use gw_cache::flight::{Abandoned, Next};
use gw_types::{ErrorKind, GatewayError, MonoTime, Outcome, Sleep};

use super::{
    Call, Origin, Part, PartReader, PartUpstream, Sharing,
    call::{Left, Recorded},
    wrong_form,
};
use crate::{
    attempts::{Served, deadline_passed},
    pipeline::{finish, remember},
    relay::{Own, Relay, RelayItem},
    reply::{Body, Failure, Reply, ReplyHead, StreamBody},
    state::State,
    storing::{self, record_late},
};

/// How long a leader waits, after its deadline, for its call to say so itself: then the record is written before the
/// answer goes out.
const GRACE: Duration = Duration::from_millis(1);

/// A request that leads. Its flight is in the call; dropping the leader gives the call up, unless somebody follows.
pub(crate) struct Leader {
    reader: PartReader,
    call: Arc<Call>,
    state: Arc<State>,
    /// The evidence before the call, for an end that comes without it.
    head: Box<ReplyHead>,
    arrived: MonoTime,
    deadline: MonoTime,
    timer: Sleep,
    /// Whether the deadline has passed once.
    late: bool,
    /// What the record said when the deadline passed, where it was made by then.
    recorded: Option<Recorded>,
    /// Whether the answer has ended for the leader.
    over: bool,
}

impl Leader {
    /// Hands the request over to its call.
    pub(super) fn begin<F>(
        mut sharing: Sharing,
        mut upstream: PartUpstream,
        mut reader: PartReader,
        drive: impl FnOnce(Sharing, PartUpstream) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let call = Call::new();
        let flight = &mut sharing.flight;
        let (state, deadline, arrived) = (Arc::clone(&flight.state), flight.deadline(), flight.arrived);
        let head = Box::new(flight.head(Outcome::Failed));
        flight.call = Some(Arc::clone(&call));
        upstream.push(Part::Call(Arc::clone(&call)), 0);
        // For those who follow; its leader knows its own.
        let _own = reader.poll_next(&mut Context::from_waker(Waker::noop()));
        call.set(Box::pin(drive(sharing, upstream)));
        let timer = state.clock.sleep_until(deadline);
        Self { reader, call, state, head, arrived, deadline, timer, late: false, recorded: None, over: false }
    }

    /// Returns the whole answer.
    pub(super) async fn whole(mut self) -> Result<Reply<Body>, Failure> {
        match poll_fn(|cx| self.poll_next(cx)).await {
            Next::Item(Part::Whole(origin, raw)) => {
                self.over = true;
                Ok(Reply { head: origin.head.clone(), body: Body::Raw(raw) })
            }
            next => Err(self.failed(next)),
        }
    }

    /// Returns the stream once it has begun.
    pub(super) async fn stream(mut self) -> Result<Reply<StreamBody>, Failure> {
        match poll_fn(|cx| self.poll_next(cx)).await {
            Next::Item(Part::Opened(origin)) => {
                let head = origin.head.clone();
                Ok(Reply { head, body: StreamBody::Relay(Box::new(Relay::leading(self))) })
            }
            next => Err(self.failed(next)),
        }
    }

    fn failed(&mut self, next: Next<Part, Failure>) -> Failure {
        match next {
            Next::Failed(failure) => failure,
            Next::Item(_) => self.without_call(wrong_form()),
            Next::Complete | Next::Lost | Next::TooSlow | Next::Again => self.without_call(lost()),
        }
    }

    /// Returns an end that the call does not know of.
    fn without_call(&mut self, error: GatewayError) -> Failure {
        let mut head = self.head.clone();
        head.latency = self.state.clock.now().saturating_since(self.arrived);
        head.attempts = self.call.attempts();
        Failure { head, error }
    }

    /// Leaves the call with an error of gw's own, which the record of the request says too.
    ///
    /// # Errors
    /// The record says something else already, and the call's own end is near.
    pub(crate) fn leave(&mut self, error: &GatewayError) -> Result<(), Recorded> {
        self.call.leave(Left { outcome: error.outcome(), error: error.kind() })
    }

    /// Waits for nothing but the ledger from now on, and not for long: the call itself may last for others.
    fn wait_for(&mut self, recorded: Recorded) {
        self.recorded = Some(recorded);
        self.timer = self.state.clock.sleep_until(self.state.clock.now().saturating_add(storing::GRACE));
    }

    /// Polls for the next part of the answer, driving the call where no task does.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next<Part, Failure>> {
        loop {
            self.reader.hush();
            self.call.poll(cx);
            match self.reader.poll_next(cx) {
                Poll::Ready(Next::Item(part)) => {
                    // The timer is asked only while nothing has come: behind a slow reader something always has.
                    if self.state.clock.now() > self.deadline {
                        let error = deadline_passed();
                        match self.leave(&error) {
                            Ok(()) => return Poll::Ready(Next::Failed(self.without_call(error))),
                            Err(Recorded(Some(error))) => {
                                return Poll::Ready(Next::Failed(self.without_call(error)));
                            }
                            // The answer ended in time, and all of it is here.
                            Err(recorded @ Recorded(None)) => self.wait_for(recorded),
                        }
                    }
                    return Poll::Ready(Next::Item(part));
                }
                Poll::Ready(end) => {
                    self.over = true;
                    return Poll::Ready(end);
                }
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(cx));
                    if let Some(Recorded(error)) = self.recorded.take() {
                        let error = error.unwrap_or_else(record_late);
                        return Poll::Ready(Next::Failed(self.without_call(error)));
                    }
                    if self.late || self.call.until() > self.deadline {
                        // The call goes on for others.
                        let error = deadline_passed();
                        match self.leave(&error) {
                            Ok(()) => return Poll::Ready(Next::Failed(self.without_call(error))),
                            Err(recorded) => self.wait_for(recorded),
                        }
                    } else {
                        self.late = true;
                        self.timer = self.state.clock.sleep_until(self.deadline.saturating_add(GRACE));
                    }
                }
            }
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.over {
            let _recorded = self.call.leave(Left::CANCELLED);
        }
        self.call.give_up();
    }
}

impl std::fmt::Debug for Leader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leader").field("call", &self.call).field("over", &self.over).finish_non_exhaustive()
    }
}

/// Makes the call of a whole answer.
pub(super) async fn whole(sharing: Sharing, mut upstream: PartUpstream) {
    let Sharing { mut flight, request, mut outgoing, .. } = sharing;
    let made = unless_abandoned(&mut upstream, pin!(outgoing.make(&mut flight, &request))).await;
    let Some(made) = made else {
        // Nobody waits any more: dropping the flight cancels, settles and leaves the record.
        return;
    };
    match made {
        Ok(Served::Complete(answer)) => {
            remember(&mut flight, outgoing.write.take(), &answer).await;
            let origin = Origin::of(&mut flight);
            let head = match finish(flight).await {
                Ok(head) => head,
                Err(failure) => return upstream.fail(failure),
            };
            let bytes = answer.raw.len();
            upstream.push(Part::Whole(Arc::new(origin(head)), answer.raw), bytes);
            upstream.complete();
        }
        Ok(Served::Stream(_)) => upstream.fail(flight.fail(wrong_form(), false).await),
        Err(error) => upstream.fail(flight.fail(error, false).await),
    }
}

/// Makes the call of a streamed answer.
pub(super) async fn stream(sharing: Sharing, mut upstream: PartUpstream) {
    let Sharing { mut flight, request, mut outgoing, .. } = sharing;
    let made = unless_abandoned(&mut upstream, pin!(outgoing.make(&mut flight, &request))).await;
    let Some(made) = made else {
        return;
    };
    match made {
        Ok(Served::Stream(opened)) => {
            let mut head = flight.head(Outcome::Ok);
            head.refresh(&flight);
            let origin = Origin::of(&mut flight)(head.clone());
            let relay = Own::begin(flight, &request, opened, outgoing.write.take());
            upstream.push(Part::Opened(Arc::new(origin)), 0);
            pump(relay, upstream, head).await;
        }
        Ok(Served::Complete(_)) => upstream.fail(flight.fail(wrong_form(), false).await),
        Err(error) => upstream.fail(flight.fail(error, false).await),
    }
}

/// Passes a stream on, no faster than the fastest who reads it.
async fn pump(mut relay: Own, mut upstream: PartUpstream, head: ReplyHead) {
    let mut served = None;
    loop {
        let Ok(item) = poll_fn(|cx| poll_item(&mut relay, &mut upstream, cx)).await else { return };
        if let Some(model) = relay.served_model().filter(|model| served.as_ref() != Some(*model)) {
            served = Some(model.clone());
            upstream.push(Part::Served(model.clone()), 0);
        }
        let loss = relay.take_loss();
        if !loss.items.is_empty() {
            upstream.push(Part::Lost(Arc::new(loss)), 0);
        }
        match item {
            Some(RelayItem::Bytes(bytes)) => {
                let weight = bytes.len();
                upstream.push(Part::Bytes(bytes), weight);
            }
            Some(RelayItem::Done) => return upstream.complete(),
            Some(RelayItem::Capped { output }) => {
                upstream.push(Part::Capped(output), 0);
                return upstream.complete();
            }
            Some(RelayItem::Failed(error)) => return upstream.fail(Failure { head: Box::new(head), error }),
            None => return,
        }
    }
}

fn poll_item(
    relay: &mut Own,
    upstream: &mut PartUpstream,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<RelayItem>, Abandoned>> {
    // An end was decided with what came before it, whoever has left since.
    if !relay.is_ending() {
        ready!(upstream.poll_ready(cx))?;
    }
    match Pin::new(&mut *relay).poll_next(cx) {
        Poll::Ready(item) => Poll::Ready(Ok(item)),
        Poll::Pending if relay.is_ending() => Poll::Pending,
        Poll::Pending => upstream.poll_abandoned(cx).map(Err),
    }
}

/// Runs a future for as long as anybody waits for what comes of it.
///
/// It stands where its caller pinned it: a future by value would lie in this one a second time.
async fn unless_abandoned<F: Future>(
    upstream: &mut PartUpstream,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    poll_fn(|cx| {
        // Before the call goes on: it must not try another deployment for nobody.
        if upstream.poll_abandoned(cx).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

fn lost() -> GatewayError {
    GatewayError::new(ErrorKind::Internal, "the shared call ended without an answer")
}
