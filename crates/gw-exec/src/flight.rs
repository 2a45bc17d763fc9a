//! The one guard of a request: it owns slot, reservation, place in the ledger and the record, and settles on drop.

use std::{sync::Arc, time::Duration};

use gw_limits::{Admission, DeploymentSlot, Reservation, Slot, TenantLimits};
use gw_types::{
    AccountingRecord, Billing, BoundedText, CacheState, DecisionRecord, ErrorKind, GatewayError, KeyIdentity,
    LatencySplit, LedgerPlace, Money, MonoTime, Outcome, Receipt, RequestId, SideCost, TokenCount, Usage,
};

use crate::{
    estimate,
    pinned::Pinned,
    reply::{Failure, ReplyHead},
    state::State,
};

/// A request from step 0 to its record. Dropping it at any moment settles what it holds and leaves the record.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) state: Arc<State>,
    pub(crate) policy: Arc<Pinned>,
    pub(crate) limits: Arc<TenantLimits>,
    pub(crate) arrived: MonoTime,
    pub(crate) deadline: MonoTime,
    pub(crate) held: Held,
    pub(crate) progress: Progress,
    pub(crate) spans: Spans,
    pub(crate) estimated_input: TokenCount,
    pub(crate) output_bound: Option<TokenCount>,
    sunk: Sunk,
    open: Option<Open>,
}

/// What makes a flight open: taken exactly once, when it closes.
#[derive(Debug)]
struct Open {
    record: Box<AccountingRecord>,
    place: LedgerPlace,
}

/// What a request holds and gives back when it closes.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) admission: Option<Admission>,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) slot: Option<Slot>,
    pub(crate) deployment_slot: Option<DeploymentSlot>,
}

/// How far the current provider call has come; decides what is charged if everything ends now.
#[derive(Clone, Debug, Default)]
pub(crate) enum Progress {
    /// No call is open.
    #[default]
    Idle,
    /// A call is open and nothing of its answer is known.
    Called { target: usize, stream: bool },
    /// A stream is being relayed.
    Streaming { target: usize, frames: u64, bytes: u64, usage: Option<Box<Usage>> },
    /// The whole answer is here.
    Answered { target: usize, usage: Box<Usage> },
}

/// Instants and sums from which the latency split is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) first_call: Option<MonoTime>,
    pub(crate) first_byte: Option<MonoTime>,
    pub(crate) attempt: Option<MonoTime>,
    pub(crate) backoff: Duration,
}

/// What attempts that ended without a known result may have cost.
#[derive(Clone, Copy, Debug, Default)]
struct Sunk {
    money: Money,
    tokens: TokenCount,
    dispatched: bool,
}

impl Flight {
    pub(crate) fn new(
        state: Arc<State>,
        policy: Arc<Pinned>,
        limits: Arc<TenantLimits>,
        identity: &KeyIdentity,
        place: LedgerPlace,
    ) -> Self {
        let arrived = state.clock.now();
        let record = Box::new(AccountingRecord {
            id: RequestId::from_bits(state.ids.next_id()),
            tenant: identity.tenant.clone(),
            key: identity.key.clone(),
            started: state.clock.utc(),
            config: policy.digest().clone(),
            client_request_id: None,
            traceparent: None,
            prompt_version: None,
            schema_version: None,
            facts: None,
            route: None,
            primary: None,
            serving: None,
            model_version: None,
            served_model: None,
            decision: DecisionRecord::default(),
            attempts: Vec::new(),
            cache: CacheState::Bypass,
            usage: Usage::default(),
            cost: Money::ZERO,
            priced_by_fallback: false,
            reserved: Money::ZERO,
            overrun: Money::ZERO,
            side_costs: Vec::new(),
            loss: Vec::new(),
            outcome: Outcome::Cancelled,
            error: None,
            latency: LatencySplit::default(),
        });
        Self {
            deadline: arrived.saturating_add(policy.default_deadline()),
            state,
            policy,
            limits,
            arrived,
            held: Held::default(),
            progress: Progress::Idle,
            spans: Spans::default(),
            estimated_input: TokenCount::ZERO,
            output_bound: None,
            sunk: Sunk::default(),
            open: Some(Open { record, place }),
        }
    }

    /// Returns the record while the flight is open.
    pub(crate) fn record(&mut self) -> &mut AccountingRecord {
        &mut self.open.as_mut().expect("a flight is open until it closes, which consumes its owner").record
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.open.as_ref().expect("a flight is open until it closes, which consumes its owner").record.id
    }

    /// Returns the provider calls made so far.
    pub(crate) fn attempts_made(&self) -> u32 {
        let attempts = self.open.as_ref().map_or(0, |open| open.record.attempts.len());
        u32::try_from(attempts).unwrap_or(u32::MAX)
    }

    pub(crate) fn now(&self) -> MonoTime {
        self.state.clock.now()
    }

    pub(crate) fn remaining(&self, now: MonoTime) -> Duration {
        self.deadline.saturating_since(now)
    }

    pub(crate) fn since_arrival_us(&self, at: MonoTime) -> u64 {
        micros(at.saturating_since(self.arrived))
    }

    /// Returns what attempts without a known result may have cost so far: the next reservation stands on top of it.
    pub(crate) fn sunk_money(&self) -> Money {
        self.sunk.money
    }

    /// Notes that a call is about to be made: from here on the reservation is at stake.
    pub(crate) fn dispatch(&mut self, target: usize, stream: bool, now: MonoTime) {
        self.progress = Progress::Called { target, stream };
        self.spans.first_call.get_or_insert(now);
        self.spans.attempt = Some(now);
        self.sunk.dispatched = true;
        if let Some(reservation) = &mut self.held.reservation {
            reservation.dispatched();
        }
    }

    /// Notes that the open call failed. Where its result is unknown, what it may have cost is kept aside.
    pub(crate) fn attempt_failed(&mut self, error: &GatewayError, now: MonoTime) {
        self.finish_attempt(Some(error), now);
        let (target, usage) = match std::mem::take(&mut self.progress) {
            Progress::Idle => return,
            Progress::Called { target, stream } => (target, (!stream).then(|| self.unknown_usage())),
            Progress::Streaming { target, frames, bytes, usage } => (
                target,
                Some(usage.map_or_else(
                    || estimate::cut_usage(self.estimated_input, estimate::output(frames, bytes)),
                    |usage| *usage,
                )),
            ),
            Progress::Answered { target, usage } => (target, Some(*usage)),
        };
        if !may_be_billed(error) {
            return;
        }
        let usage = usage.unwrap_or_else(|| estimate::cut_usage(self.estimated_input, TokenCount::ZERO));
        let policy = Arc::clone(&self.policy);
        let deployment = &policy.target(target).deployment;
        let money = deployment.pricing.cost(&usage).map_or(Money::ZERO, |cost| cost.money);
        self.sunk.money = self.sunk.money.saturating_add(money);
        self.sunk.tokens = self.sunk.tokens.saturating_add(usage.total());
        if !money.is_zero() {
            self.record().side_costs.push(SideCost {
                purpose: BoundedText::new("attempt_without_result"),
                deployment: deployment.name.clone(),
                cost: money,
            });
        }
    }

    /// Returns what the answer that is here costs.
    pub(crate) fn cost_so_far(&self) -> Money {
        match &self.progress {
            Progress::Answered { target, usage } => self
                .policy
                .target(*target)
                .deployment
                .pricing
                .cost(usage)
                .map_or(Money::ZERO, |cost| cost.money),
            Progress::Idle | Progress::Called { .. } | Progress::Streaming { .. } => Money::ZERO,
        }
    }

    /// Closes the attempt's entry in the record.
    pub(crate) fn finish_attempt(&mut self, error: Option<&GatewayError>, now: MonoTime) {
        let Some(began) = self.spans.attempt.take() else { return };
        if let Some(attempt) = self.record().attempts.last_mut() {
            attempt.duration_us = micros(now.saturating_since(began));
            attempt.error = error.map(GatewayError::kind);
            attempt.status = error.and_then(GatewayError::status);
            if let Some(id) = error.and_then(GatewayError::upstream_request_id) {
                attempt.upstream_request_id = Some(BoundedText::new(id));
            }
        }
    }

    /// Ends the request with an error: settles, leaves the record, and returns what the caller sees.
    pub(crate) async fn fail(mut self, error: GatewayError, side_effecting: bool) -> Failure {
        let error = if side_effecting { error } else { error.unambiguous() };
        let outcome = error.outcome();
        let mut head = self.head(outcome);
        let receipt = self.close(outcome, Some(&error));
        head.refresh(&self);
        stored(receipt).await;
        Failure { head: Box::new(head), error }
    }

    /// Returns the evidence as it stands.
    pub(crate) fn head(&mut self, outcome: Outcome) -> ReplyHead {
        let latency = self.now().saturating_since(self.arrived);
        let record = self.record();
        ReplyHead {
            id: record.id.clone(),
            started: record.started,
            config: record.config.clone(),
            route: record.route.clone(),
            deployment: record.serving.clone(),
            attempts: u32::try_from(record.attempts.len()).unwrap_or(u32::MAX),
            cache: record.cache,
            cost: Money::ZERO,
            latency,
            loss: u32::try_from(record.loss.len()).unwrap_or(u32::MAX),
            outcome,
            requests: None,
            tokens: None,
        }
    }

    /// Settles everything that the request holds and leaves its record. Does nothing the second time.
    pub(crate) fn close(&mut self, outcome: Outcome, error: Option<&GatewayError>) -> Receipt {
        let Some(mut open) = self.open.take() else { return Receipt::Queued };
        let now = self.state.clock.now();
        let record = &mut open.record;
        record.outcome = outcome;
        record.error =
            error.map(GatewayError::kind).or((outcome == Outcome::Cancelled).then_some(ErrorKind::Cancelled));
        if let (Some(began), Some(attempt)) = (self.spans.attempt.take(), record.attempts.last_mut()) {
            attempt.duration_us = micros(now.saturating_since(began));
            attempt.error = record.error;
        }
        if let Some((usage, target)) = self.charged_usage() {
            self.price(record, usage, target);
        }
        self.settle(record, now);
        record.latency = self.latency(now);
        self.held.slot = None;
        self.held.deployment_slot = None;
        open.place.append(open.record)
    }

    /// Returns what the open call is charged for if it ends now.
    fn charged_usage(&mut self) -> Option<(Usage, usize)> {
        match std::mem::take(&mut self.progress) {
            Progress::Idle => None,
            Progress::Called { target, stream: true } => {
                Some((estimate::cut_usage(self.estimated_input, TokenCount::ZERO), target))
            }
            Progress::Called { target, stream: false } => Some((self.unknown_usage(), target)),
            Progress::Streaming { target, usage: Some(usage), .. } => Some((*usage, target)),
            Progress::Streaming { target, frames, bytes, usage: None } => {
                Some((estimate::cut_usage(self.estimated_input, estimate::output(frames, bytes)), target))
            }
            Progress::Answered { target, usage } => Some((*usage, target)),
        }
    }

    /// Returns the usage of a plain call whose result nobody knows: everything that was reserved.
    fn unknown_usage(&self) -> Usage {
        estimate::cut_usage(self.estimated_input, self.output_bound.unwrap_or_default())
    }

    fn price(&self, record: &mut AccountingRecord, usage: Usage, target: usize) {
        record.usage = usage;
        if let Ok(cost) = self.policy.target(target).deployment.pricing.cost(&usage) {
            record.cost = cost.money;
            record.priced_by_fallback = cost.by_fallback;
        }
    }

    fn settle(&mut self, record: &mut AccountingRecord, now: MonoTime) {
        if let Some(reservation) = self.held.reservation.take() {
            record.reserved = reservation.amount();
            if self.sunk.dispatched {
                record.overrun = reservation.commit(record.cost.saturating_add(self.sunk.money));
            } else {
                reservation.release();
            }
        }
        if let Some(admission) = self.held.admission.take() {
            if record.cache.is_hit() {
                admission.settle_hit();
            } else if self.sunk.dispatched {
                admission.settle(record.usage.total().saturating_add(self.sunk.tokens), now);
            }
            // Else: dropped, and all of it goes back.
        }
    }

    fn latency(&self, now: MonoTime) -> LatencySplit {
        let total = now.saturating_since(self.arrived);
        let until_first = match self.spans.first_call {
            Some(call) => {
                self.spans.first_byte.unwrap_or(now).saturating_since(call).saturating_sub(self.spans.backoff)
            }
            None => Duration::ZERO,
        };
        let rest = self.spans.first_byte.map_or(Duration::ZERO, |first| now.saturating_since(first));
        LatencySplit {
            total_us: micros(total),
            queue_us: 0,
            backoff_us: micros(self.spans.backoff),
            upstream_first_byte_us: micros(until_first),
            upstream_rest_us: micros(rest),
            own_us: micros(
                total.saturating_sub(self.spans.backoff).saturating_sub(until_first).saturating_sub(rest),
            ),
        }
    }
}

impl ReplyHead {
    /// Brings in what settling has changed: the tenant's limits after this request.
    pub(crate) fn refresh(&mut self, flight: &Flight) {
        let snapshot = flight.limits.snapshot(flight.now(), flight.state.clock.utc());
        self.requests = snapshot.requests;
        self.tokens = snapshot.tokens;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Only a caller that went away leaves a flight open; the receipt has nobody to wait for it.
        drop(self.close(Outcome::Cancelled, None));
    }
}

/// Waits until the record is as durable as the ledger promises. A ledger that cannot say so has kept the record.
pub(crate) async fn stored(receipt: Receipt) {
    match receipt {
        Receipt::Queued => {}
        Receipt::Pending(stored) => {
            if stored.await.is_err() {
                tracing::error!("the ledger could not confirm a record");
            }
        }
    }
}

/// Says whether a provider may bill a call that failed so, by kind and occurrence.
fn may_be_billed(error: &GatewayError) -> bool {
    match error.kind().billing() {
        Billing::Never => false,
        Billing::IfAmbiguous => error.is_ambiguous(),
        Billing::Likely => true,
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
