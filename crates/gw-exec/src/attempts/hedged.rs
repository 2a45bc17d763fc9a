//! Step 8, hedged: a second call beside one that is slow to begin. The first to say something that counts is relayed.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use gw_limits::Worth;
use gw_types::{
    Adapter, Answer, BoundedText, FallOver, GatewayError, Money, MonoTime, Prepared, Sleep, TokenCount,
};

use super::{Attempts, Place, Served, Tried, attempt_record, within, wrong_form};
use crate::{
    estimate,
    flight::Flight,
    hedge::Rival,
    opening::{Opened, open_stream},
    shared_limits, station,
};

/// One call that is ready to be made.
pub(super) struct Call {
    pub(super) adapter: Arc<dyn Adapter>,
    pub(super) prepared: Prepared,
    pub(super) began: MonoTime,
    pub(super) until: MonoTime,
}

/// A stream that has begun, and the provider's id of the call.
type Begun = Result<(Option<BoundedText>, Opened), GatewayError>;

/// A call on its way to its first word.
type Opening = Pin<Box<dyn Future<Output = Begun> + Send>>;

/// Which of two calls has ended, and how.
enum Ended {
    First(Begun),
    Second(Begun),
}

impl Attempts<'_> {
    /// Returns after which silence of the call a second one may be begun; `None`: never.
    pub(super) fn hedges_after(&self, flight: &Flight, position: usize) -> Option<Duration> {
        self.hedge?;
        let (context, facts) = (&self.request.context, &self.request.facts);
        let is_pure = !context.side_effecting && context.idempotency_key.is_none() && !context.pinned;
        let has_other = position + 1 < self.chain.len() && flight.attempts_made() < self.max_attempts;
        if !is_pure || !facts.stream || !has_other {
            return None;
        }
        let words = flight.policy.target_state(self.chain[position]).first_words.as_ref()?;
        words.p95(flight.expected.input_there())
    }

    /// Makes a call, and a second one at the next candidate where nothing has been said after so long.
    pub(super) async fn call_hedged(
        &self,
        flight: &mut Flight,
        place: &mut Place,
        call: Call,
        after: Duration,
    ) -> Result<Served, GatewayError> {
        let (began, clock) = (call.began, Arc::clone(&flight.state.clock));
        let mut first = opening(call, clock.as_ref());
        let mut turn = clock.sleep_until(began.saturating_add(after));
        if let Some(begun) = unless(first.as_mut(), &mut turn).await {
            return self.begun(flight, place, begun);
        }
        let rival = tokio::select! {
            biased;
            begun = &mut first => return self.begun(flight, place, begun),
            rival = self.begin_rival(flight, place.at) => rival,
        };
        let Some(mut second) = rival else { return self.begun(flight, place, first.await) };
        let (slow, other) = (place.at, place.at + 1);
        place.furthest = other;
        match race(first.as_mut(), second.as_mut()).await {
            Ended::First(Ok(begun)) => {
                flight.end_rival(None);
                self.begun(flight, place, Ok(begun))
            }
            Ended::Second(Ok(begun)) => {
                self.note_first_word(flight, slow, flight.now().saturating_since(began));
                flight.turn_to_rival();
                flight.end_rival(None);
                (place.at, place.began) = (other, flight.spans.attempt.unwrap_or(began));
                self.begun(flight, place, Ok(begun))
            }
            // Nothing more may be asked, or not of the other one: then its answer must not be taken either.
            Ended::First(Err(error)) if !self.may_take_over(flight, &error, other) => {
                flight.end_rival(None);
                self.begun(flight, place, Err(error))
            }
            Ended::First(Err(error)) => {
                self.note_failure(flight, place, &error);
                flight.rival_takes_over();
                (place.at, place.began) = (other, flight.spans.attempt.unwrap_or(began));
                self.begun(flight, place, second.await)
            }
            Ended::Second(Err(error)) => {
                flight.end_rival(Some(&error));
                self.begun(flight, place, first.await)
            }
        }
    }

    /// Returns whether the second call may answer for the first, which has failed so.
    fn may_take_over(&self, flight: &mut Flight, error: &GatewayError, other: usize) -> bool {
        let policy = Arc::clone(&flight.policy);
        if error.is_pinned() {
            return false;
        }
        match error.kind().falls_over() {
            FallOver::Never => false,
            FallOver::Next | FallOver::BeforeContent => true,
            FallOver::LargerWindow => {
                self.has_larger_window(flight, &policy.target(self.chain[other]).deployment)
            }
        }
    }

    /// Settles the first call, which has failed while the second is open.
    fn note_failure(&self, flight: &mut Flight, place: &Place, error: &GatewayError) {
        let now = flight.now();
        let target = flight.policy.target(self.chain[place.at]).clone();
        self.observe(flight, place.at, &target, place.began, false);
        flight.judge(Err(error));
        flight.attempt_failed(error, now);
        if error.may_retry() {
            flight.policy.target_state(self.chain[place.at]).retries.failed();
        }
    }

    /// Takes in how a call has begun.
    fn begun(&self, flight: &mut Flight, place: &Place, begun: Begun) -> Result<Served, GatewayError> {
        let (id, opened) = begun?;
        if let (Some(id), Some(attempt)) = (id, flight.record().attempts.last_mut()) {
            attempt.upstream_request_id = Some(id);
        }
        self.note_first_word(flight, place.at, flight.now().saturating_since(place.began));
        flight.spans.first_byte = Some(flight.now());
        Ok(Served::Stream(opened))
    }

    /// Notes how long a deployment took to say its first word.
    pub(super) fn note_first_word(&self, flight: &Flight, position: usize, took: Duration) {
        if let Some(words) = &flight.policy.target_state(self.chain[position]).first_words {
            words.observe(flight.expected.input_there(), took);
        }
    }

    /// Begins a second call at the next candidate, if all that it takes is there and to spare: nothing is waited for.
    async fn begin_rival(&self, flight: &mut Flight, position: usize) -> Option<Opening> {
        let index = self.chain[position + 1];
        let policy = Arc::clone(&flight.policy);
        let (target, state) = (policy.target(index), policy.target_state(index));
        let (now, timing) = (flight.now(), &target.deployment.timing);
        // A second call while either of them is unwell would be load in the place of patience.
        let are_well = state.is_well(now) && policy.target_state(self.chain[position]).is_well(now);
        let has_time = flight.remaining(now) >= timing.expected_latency.max(timing.min_attempt);
        if !are_well || !has_time || !state.lane.is_open() || !self.hedge.is_some_and(|hedge| hedge.take()) {
            return None;
        }
        let own = flight.expected;
        let ready = self.rival(flight, position + 1);
        flight.expected = own;
        let (rival, need) = ready?;
        if flight.held.reservation.is_some() {
            let utc = flight.state.clock.utc();
            let is_held =
                flight.held.reservation.as_mut().is_none_or(|held| held.raise_to(need, utc).is_ok());
            if !is_held || !shared_limits::raise(flight, need).await {
                return None;
            }
        }
        self.dispatch_rival(flight, position + 1, rival)
    }

    /// Takes what a second call needs, and says what both may cost together: one of them in full and the other's input.
    fn rival(&self, flight: &mut Flight, position: usize) -> Option<(Rival, Worth)> {
        let (first, index) = (self.chain[position - 1], self.chain[position]);
        let input = flight.expected.at.map(|(_, input)| input)?;
        let (own, own_cut) = (self.worth(flight, first, input), self.cut_cost(flight, first));
        let wanted = self.wanted(flight, index);
        let input = flight.expected.at.map(|(_, input)| input)?;
        let (other, other_cut) = (self.worth(flight, index, input), self.cut_cost(flight, index));
        let expected = flight.expected;
        let slot = flight.subject.spare_slot()?;
        let policy = Arc::clone(&flight.policy);
        let state = policy.target_state(index);
        let held = station::take_spare(state, wanted, flight.now(), flight.state.clock.utc())?;
        let random = flight.state.random.as_ref();
        let ticket = state.breaker.enter(false, flight.now(), random).ok()?;
        let credential = state.credentials.choose(Tried::default(), false, flight.now(), random).ok()?;
        let (own, other) = (own.plus(other_cut), other.plus(own_cut));
        let need =
            Worth { bound: own.bound.max(other.bound), calibrated: own.calibrated.max(other.calibrated) };
        let rival = Rival {
            target: index,
            began: flight.now(),
            expected,
            output_bound: self.bound(&policy.target(index).deployment),
            held,
            ticket: Some(ticket),
            credential,
            slot: Some(slot),
        };
        Some((rival, need.plus(flight.sunk_money())))
    }

    /// Returns what a stream costs that is cut before its first word.
    fn cut_cost(&self, flight: &Flight, target: usize) -> Money {
        let usage = estimate::cut_usage(flight.expected.input, TokenCount::ZERO);
        let pricing = &flight.policy.target(target).deployment.pricing;
        pricing.cost(&usage).map_or(Money::ZERO, |cost| cost.money)
    }

    /// Makes the second call.
    fn dispatch_rival(&self, flight: &mut Flight, position: usize, mut rival: Rival) -> Option<Opening> {
        let began = flight.now();
        let target = flight.policy.target(self.chain[position]).clone();
        let timeout = self.timeout(flight, position, &target, began);
        let credential = rival.credential.as_ref().map(|chosen| chosen.index);
        let plan = self.plan(rival.output_bound, timeout);
        let adapter = Arc::clone(target.adapter_of(credential));
        // What its format cannot carry is no failure of the request, which the first call may still serve.
        let mut prepared = adapter.prepare(self.request, &target.deployment, &plan).ok()?;
        if let Some(ticket) = &mut rival.ticket {
            ticket.set_full_time(timeout >= target.deployment.timing.attempt_timeout);
        }
        rival.began = began;
        rival.held.dispatched();
        let entry = attempt_record(&target, credential, flight.since_arrival_us(began));
        flight.tell_place(&entry, &mut prepared);
        flight.add_rival(rival, entry);
        let call = Call { adapter, prepared, began, until: began.saturating_add(timeout) };
        Some(opening(call, flight.state.clock.as_ref()))
    }
}

/// Makes a call up to its first word, within its time.
fn opening(call: Call, clock: &dyn gw_types::Clock) -> Opening {
    let Call { adapter, prepared, until, .. } = call;
    let mut timer = clock.sleep_until(until);
    Box::pin(async move {
        match within(&mut timer, adapter.call(prepared)).await?? {
            Answer::Stream(answer) => {
                let id = answer.upstream_request_id;
                let opened = within(&mut timer, open_stream(answer.items)).await?;
                match (opened, id) {
                    (Ok(opened), id) => Ok((id, opened)),
                    (Err(error), Some(id)) if error.upstream_request_id().is_none() => {
                        Err(error.with_upstream_request_id(id.as_str()))
                    }
                    (Err(error), Some(_) | None) => Err(error),
                }
            }
            Answer::Complete(_) => Err(wrong_form()),
        }
    })
}

/// Returns how a call has begun, unless the timer fires first.
async fn unless(mut call: Pin<&mut (dyn Future<Output = Begun> + Send)>, timer: &mut Sleep) -> Option<Begun> {
    poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(begun) => Poll::Ready(Some(begun)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Waits for the first of two calls; where both are there at once, the first one wins.
async fn race(
    mut first: Pin<&mut (dyn Future<Output = Begun> + Send)>,
    mut second: Pin<&mut (dyn Future<Output = Begun> + Send)>,
) -> Ended {
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(begun) => Poll::Ready(Ended::First(begun)),
        Poll::Pending => second.as_mut().poll(cx).map(Ended::Second),
    })
    .await
}
