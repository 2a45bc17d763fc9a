//! The one guard of a request: it owns slot, reservation, place in the ledger and the record, and settles on drop.

mod lost;
mod record;
mod rival;

use std::{
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gw_limits::{InputEstimate, MilliTokens, OutputScale, Subject};
use gw_types::{
    AccountingRecord, AttemptEnd, BoundedText, Deployment, ErrorKind, GatewayError, KeyIdentity, LedgerPlace,
    Loss, Money, MonoTime, Outcome, Receipt, RequestId, SideCost, TokenCount, Usage,
};

use self::record::{blank_record, may_be_billed};
use crate::{
    estimate,
    health::{Chosen, Ticket, concerns_credential},
    held::Held,
    idempotency::{KeptAnswer, KeptContent, attempt_id},
    pinned::Pinned,
    policy::QueuePolicy,
    progress::{Progress, Spans, micros},
    reply::{Failure, ReplyHead, Settled},
    schema::Check,
    shared_limits,
    sharing::Call,
    state::State,
    storing::Storing,
};

/// Tokens of output after which the tenant's place in the queue is charged for them.
const CHARGED_TOKENS: u64 = 16;

/// A request from step 0 to its record. Dropping it at any moment settles what it holds and leaves the record.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) state: Arc<State>,
    pub(crate) policy: Arc<Pinned>,
    /// Everyone whom the request concerns; its tenant alone until its model is known.
    pub(crate) subject: Subject,
    pub(crate) queue: QueuePolicy,
    pub(crate) arrived: MonoTime,
    pub(crate) deadline: MonoTime,
    /// The call that equal requests share, where this one leads it.
    pub(crate) call: Option<Arc<Call>>,
    /// What the request is for, if it is one that gw makes on the side: then its cost is a side cost.
    pub(crate) side: Option<&'static str>,
    pub(crate) held: Held,
    pub(crate) progress: Progress,
    pub(crate) spans: Spans,
    pub(crate) expected: Expected,
    /// What checks the answer by the schema that the request carries.
    pub(crate) check: Option<Check>,
    /// The bound of each answer that is sent, where a budget or a token limit applies.
    pub(crate) output_bound: Option<TokenCount>,
    /// What translations lost of the request and of its answer.
    lost: Loss,
    /// What its idempotency key keeps of the answer.
    kept: Option<KeptContent>,
    /// Whether a call ended without a known result.
    unknown: bool,
    /// Output that the tenant's place in the queue was charged for.
    charged_output: u64,
    sunk: Sunk,
    /// Whether an output bound is sent though nothing else asks for one.
    pub(crate) must_bound: bool,
    /// What settling came to.
    settled: Settled,
    open: Option<Open>,
}

/// What is expected of the request, at the deployment that is asked next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// The input before any calibration.
    pub(crate) raw_input: MilliTokens,
    /// The same as long as no deployment is known.
    pub(crate) raw_anywhere: MilliTokens,
    /// The likely input.
    pub(crate) input: TokenCount,
    /// The deployment that this is expected at, and all that is known of the input there.
    pub(crate) at: Option<(usize, InputEstimate)>,
    /// The likely length of each answer; where nothing limits tokens or money, nobody asks.
    pub(crate) output: TokenCount,
    pub(crate) scale: OutputScale,
    pub(crate) choices: u32,
    /// Whether the answer can teach anything about text.
    pub(crate) is_text_alone: bool,
    /// Whether windows of tokens count the request.
    pub(crate) has_token_limit: bool,
}

impl Expected {
    /// Returns what windows of tokens count.
    pub(crate) fn tokens(&self) -> TokenCount {
        self.input.saturating_add(estimate::times(self.output, self.choices.max(1)))
    }
}

/// What makes a flight open: taken exactly once, when it closes.
#[derive(Debug)]
struct Open {
    record: Box<AccountingRecord>,
    place: LedgerPlace,
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
        subject: Subject,
        queue: QueuePolicy,
        identity: &KeyIdentity,
        place: LedgerPlace,
    ) -> Box<Self> {
        let arrived = state.clock.now();
        let id = RequestId::from_bits(state.ids.next_id());
        let record = blank_record(id, identity, state.clock.utc(), policy.digest());
        // On the heap: it moves through many futures, each of which would hold two of it.
        Box::new(Self {
            deadline: arrived.saturating_add(policy.default_deadline()),
            state,
            policy,
            subject,
            queue,
            arrived,
            call: None,
            side: None,
            held: Held::default(),
            progress: Progress::Idle,
            spans: Spans::default(),
            expected: Expected::default(),
            check: None,
            output_bound: None,
            lost: Loss::default(),
            kept: None,
            unknown: false,
            charged_output: 0,
            sunk: Sunk::default(),
            must_bound: false,
            settled: Settled::default(),
            open: Some(Open { record: Box::new(record), place }),
        })
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

    /// Returns until when a call may last: for this request, or for one that shares it.
    pub(crate) fn deadline(&self) -> MonoTime {
        self.call.as_ref().map_or(self.deadline, |call| self.deadline.max(call.until()))
    }

    pub(crate) fn remaining(&self, now: MonoTime) -> Duration {
        self.deadline().saturating_since(now)
    }

    pub(crate) fn since_arrival_us(&self, at: MonoTime) -> u64 {
        micros(at.saturating_since(self.arrived))
    }

    /// Returns what attempts without a known result may have cost so far: the next reservation stands on top of it.
    pub(crate) fn sunk_money(&self) -> Money {
        self.sunk.money
    }

    /// Returns the bound of all answers together, where one was sent.
    pub(crate) fn cap(&self) -> Option<TokenCount> {
        self.output_bound.map(|bound| estimate::times(bound, self.expected.choices.max(1)))
    }

    /// Notes that a call is about to be made: from here on the reservation is at stake.
    pub(crate) fn dispatch(&mut self, target: usize, stream: bool, now: MonoTime) {
        self.progress = Progress::Called { target, stream };
        if stream {
            self.expected.scale = self.scale(target);
        }
        self.spans.first_call.get_or_insert(now);
        self.spans.attempt = Some(now);
        self.sunk.dispatched = true;
        if let Some(call) = &self.call {
            call.attempted();
        }
        self.held.dispatched();
    }

    /// Says what became of the open call, for its deployment's health. Says nothing the second time.
    pub(crate) fn judge(&mut self, result: Result<(), &GatewayError>) {
        let (ticket, credential) = (self.held.ticket.take(), self.held.credential.take());
        self.judge_with(ticket, credential, result);
    }

    fn judge_with(
        &self,
        ticket: Option<Ticket>,
        credential: Option<Chosen>,
        result: Result<(), &GatewayError>,
    ) {
        let (now, random) = (self.now(), &self.state.random);
        // What concerns one credential of several says nothing about the deployment.
        let mut concerns_deployment = true;
        if let Some(credential) = credential {
            concerns_deployment = !result.is_err_and(concerns_credential);
            credential.judge(result, now, random.as_ref());
        }
        if let Some(ticket) = ticket.filter(|_| concerns_deployment) {
            ticket.judge(result, now, random.as_ref());
        }
    }

    /// Notes that the open call failed. Where its result is unknown, what it may have cost is kept aside.
    pub(crate) fn attempt_failed(&mut self, error: &GatewayError, now: MonoTime) {
        self.finish_attempt(Some(error), now);
        self.unknown |= error.attempt_end() == AttemptEnd::Unknown;
        let Some(target) = self.progress.target() else { return self.held.call.release() };
        if !may_be_billed(error) {
            self.progress = Progress::Idle;
            return self.held.call.settle(Money::ZERO, TokenCount::ZERO, now);
        }
        let Some((usage, _)) = self.charged_usage() else { return };
        let policy = Arc::clone(&self.policy);
        let deployment = &policy.target(target).deployment;
        let money = deployment.pricing.cost(&usage).map_or(Money::ZERO, |cost| cost.money);
        self.held.call.settle(money, usage.total(), now);
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

    /// Takes the usage that a whole answer reports, or estimates what it does not report or cannot have used.
    pub(crate) fn answered(&mut self, reported: Option<Usage>, bytes: u64) {
        let Some(target) = self.progress.target() else { return };
        let counted = || self.scale(target).tokens(bytes);
        let usage = Box::new(self.believed(target, reported, counted));
        self.progress = Progress::Answered { target, bytes, usage };
    }

    fn scale(&self, target: usize) -> OutputScale {
        self.state.estimator.output_scale(&self.policy.target(target).deployment.name)
    }

    fn believed(
        &self,
        target: usize,
        reported: Option<Usage>,
        counted: impl FnOnce() -> TokenCount,
    ) -> Usage {
        let deployment = &self.policy.target(target).deployment;
        let bound = self.cap().or(deployment.max_output_tokens).unwrap_or_default();
        match reported {
            Some(usage) if estimate::is_plausible(&usage, deployment, bound) => usage,
            Some(_) => Usage { implausible: true, ..estimate::cut_usage(self.expected.input, counted()) },
            None => estimate::cut_usage(self.expected.input, counted()),
        }
    }

    /// Returns what the answer that is here costs.
    pub(crate) fn cost_so_far(&self) -> Money {
        let Progress::Answered { target, usage, .. } = &self.progress else { return Money::ZERO };
        let pricing = &self.policy.target(*target).deployment.pricing;
        pricing.cost(usage).map_or(Money::ZERO, |cost| cost.money)
    }

    /// Charges the tenant's place in the queue for output as it passes, so that who gets much waits for others.
    pub(crate) fn charge_output(&mut self, passed: TokenCount, is_all: bool) {
        let more = passed.get().saturating_sub(self.charged_output);
        if more >= CHARGED_TOKENS || (is_all && more > 0) {
            self.charged_output = passed.get();
            let QueuePolicy { priority, weight, .. } = self.queue;
            self.subject.charge_output(priority, weight, TokenCount::new(more));
        }
    }

    /// Closes the attempt's entry in the record.
    pub(crate) fn finish_attempt(&mut self, error: Option<&GatewayError>, now: MonoTime) {
        let Some(began) = self.spans.attempt.take() else { return };
        if let Some(attempt) = self.record().attempts.last_mut() {
            attempt.duration_us = micros(now.saturating_since(began));
            attempt.error = error.map(GatewayError::kind);
            attempt.status = error.and_then(GatewayError::status);
            attempt.unclassified = error.is_some_and(GatewayError::is_unclassified);
            if let Some(id) = error.and_then(GatewayError::upstream_request_id) {
                attempt.upstream_request_id = Some(BoundedText::new(id));
            }
        }
    }

    /// Ends the request with an error: settles, leaves the record, and returns what the caller sees.
    pub(crate) async fn fail(mut self: Box<Self>, error: GatewayError, side_effecting: bool) -> Failure {
        let (error, outcome) = self.ending(error, side_effecting, AttemptEnd::NotProcessed);
        let mut head = self.head(outcome);
        let mut storing = self.close_and_store(outcome, Some(&error));
        head.refresh(&self);
        // At the deadline the caller is told in any case, and this is what the record says.
        let _late = poll_fn(|cx| storing.poll_record(cx)).await;
        Failure { head: Box::new(head), error }
    }

    /// Returns what a failed request is told, and how it ended. Where the call of a side-effecting request may have done
    /// what was asked, both say so; `proved` is what counts as the proof that it has done nothing.
    pub(crate) fn ending(
        &self,
        error: GatewayError,
        side_effecting: bool,
        proved: AttemptEnd,
    ) -> (GatewayError, Outcome) {
        let attempts = self.attempts_made();
        if attempts == 0 {
            // The ambiguity of a used key is that of an earlier request.
            let outcome = Outcome::of(error.kind());
            return (error, outcome);
        }
        let end = error.attempt_end();
        if !side_effecting || end == AttemptEnd::Done || end == proved {
            let error = error.unambiguous();
            let outcome = error.outcome();
            return (error, outcome);
        }
        let error = error.ambiguous().with_attempt(&attempt_id(self.id(), attempts));
        (error, Outcome::Ambiguous)
    }

    /// Returns the evidence as it stands.
    pub(crate) fn head(&mut self, outcome: Outcome) -> ReplyHead {
        let (latency, record) = (self.now().saturating_since(self.arrived), self.record());
        ReplyHead {
            id: record.id.clone(),
            started: record.started,
            config: record.config.clone(),
            route: record.route.clone(),
            deployment: record.serving.clone(),
            served_model: record.served_model.clone(),
            replay_of: record.replay_of.clone(),
            attempts: u32::try_from(record.attempts.len()).unwrap_or(u32::MAX),
            attempt_errors: record.attempts.iter().filter_map(|attempt| attempt.error).collect(),
            cache: record.cache,
            cost: Money::ZERO,
            latency,
            loss: u32::try_from(record.loss.len()).unwrap_or(u32::MAX),
            outcome,
            requests: None,
            tokens: None,
            settled: Settled::default(),
        }
    }

    /// As [`Flight::close`], for those who wait for the record: until the deadline of all who share the call.
    pub(crate) fn close_and_store(&mut self, outcome: Outcome, error: Option<&GatewayError>) -> Storing {
        let (deadline, attempts) = (self.deadline(), self.attempts_made());
        let changes = attempts > 0 && self.record().facts.as_ref().is_some_and(|facts| facts.side_effecting);
        let attempt = changes.then(|| attempt_id(self.id(), attempts));
        Storing::new(self.close(outcome, error), Arc::clone(&self.state), deadline).with_attempt(attempt)
    }

    /// Settles everything that the request holds and leaves its record. Does nothing the second time.
    pub(crate) fn close(&mut self, outcome: Outcome, error: Option<&GatewayError>) -> Receipt {
        if self.open.is_some() {
            self.end_rival(None);
        }
        let Some(mut open) = self.open.take() else { return Receipt::Queued };
        let now = self.state.clock.now();
        let record = &mut open.record;
        record.outcome = outcome;
        record.error =
            error.map(GatewayError::kind).or((outcome == Outcome::Cancelled).then_some(ErrorKind::Cancelled));
        // The call went on for others, and is paid by who began it; what became of this request is another matter.
        if let Some(left) = self.call.take().and_then(|call| call.record(error)) {
            (record.outcome, record.error) = (left.outcome, Some(left.error));
        }
        if let (Some(began), Some(attempt)) = (self.spans.attempt.take(), record.attempts.last_mut()) {
            attempt.duration_us = micros(now.saturating_since(began));
            attempt.error = record.error;
        }
        self.settle_key(record);
        let bytes = self.progress.content_bytes();
        match self.charged_usage() {
            Some((usage, target)) => {
                let policy = Arc::clone(&self.policy);
                let deployment = &policy.target(target).deployment;
                price(record, usage, deployment);
                self.held.call.settle(record.cost, usage.total(), now);
                self.charge_output(usage.output_total(), true);
                self.learn(record, deployment, bytes);
            }
            None => self.held.call.release(),
        }
        self.settle(record, now);
        if let Some(purpose) = self.side {
            as_side_cost(record, purpose);
        }
        record.latency = self.spans.split(self.arrived, now);
        self.settled = Settled {
            usage: self.sunk.dispatched.then_some(record.usage),
            cost: record.cost.saturating_add(self.sunk.money),
            queue: Duration::from_micros(record.latency.queue_us),
        };
        self.held.slot = None;
        open.place.append(open.record)
    }

    /// Keeps an answer for whoever uses the request's idempotency key again.
    pub(crate) fn keep_answer(&mut self, content: KeptContent) {
        if self.held.claim.is_some() {
            self.kept = Some(content);
        }
    }

    /// Notes events of a stream that the caller gets.
    pub(crate) fn relayed(&mut self, events: &[u8]) {
        if let Some(claim) = &mut self.held.claim {
            claim.relayed(events);
        }
    }

    /// Keeps the events of a stream that has ended well.
    pub(crate) fn keep_events(&mut self, capped: Option<TokenCount>) {
        self.kept = self.held.claim.as_mut().and_then(|claim| claim.take_events(capped));
    }

    /// Says what became of the request to its idempotency key.
    fn settle_key(&mut self, record: &AccountingRecord) {
        let Some(claim) = self.held.claim.take() else { return };
        let has_ended_well = matches!(record.outcome, Outcome::Ok | Outcome::Capped);
        if self.kept.is_some() || has_ended_well {
            claim.answered(self.kept.take().map(|content| KeptAnswer {
                content,
                serving: record.serving.clone(),
                model_version: record.model_version.clone(),
                served_model: record.served_model.clone(),
                loss: self.lost.clone(),
            }));
        } else {
            claim.failed(self.unknown || !matches!(self.progress, Progress::Idle));
        }
    }

    /// Returns what the open call is charged for if it ends now.
    fn charged_usage(&mut self) -> Option<(Usage, usize)> {
        let input = self.expected.input;
        match std::mem::take(&mut self.progress) {
            Progress::Idle => None,
            Progress::Called { target, stream: true } => {
                Some((estimate::cut_usage(input, TokenCount::ZERO), target))
            }
            // A plain call whose result nobody knows may have used everything that was reserved.
            Progress::Called { target, stream: false } => {
                Some((estimate::cut_usage(input, self.cap().unwrap_or_default()), target))
            }
            Progress::Streaming { target, relayed, usage } => {
                // A stream is cut at its cap, so more than that was not delivered and is not billed by gw.
                let counted = relayed.tokens(self.expected.scale);
                let counted = self.cap().map_or(counted, |cap| counted.min(cap));
                let (scale, cap) = (self.expected.scale, self.cap());
                let usage = usage.map(|usage| relayed.corrected(*usage, scale, cap));
                Some((self.believed(target, usage, || counted), target))
            }
            Progress::Answered { target, usage, .. } => Some((*usage, target)),
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
        let used = self.sunk.dispatched.then(|| {
            let tokens = record.usage.total().saturating_add(self.sunk.tokens);
            (tokens, record.cost.saturating_add(self.sunk.money))
        });
        shared_limits::settle(self, used);
        if let Some(admission) = self.held.admission.take() {
            if record.cache.is_hit() || record.replay_of.is_some() {
                admission.settle_hit();
            } else if self.sunk.dispatched {
                admission.settle(record.usage.total().saturating_add(self.sunk.tokens), now);
            }
            // Else: dropped, and all of it goes back.
        }
    }

    /// Learns from what a provider has reported.
    fn learn(&self, record: &AccountingRecord, deployment: &Deployment, content_bytes: u64) {
        let usage = &record.usage;
        if usage.estimated || usage.implausible || usage.inconsistent || !self.expected.is_text_alone {
            return;
        }
        let (estimator, expected) = (&self.state.estimator, &self.expected);
        let (tenant, input) = (&record.tenant, usage.input_total());
        estimator.observe_input(Some(&deployment.name), tenant, expected.raw_input, input);
        estimator.observe_output_bytes(&deployment.name, content_bytes, usage.output);
        // Only windows of tokens ask for these.
        if expected.has_token_limit {
            estimator.observe_input(None, tenant, expected.raw_anywhere, input);
            if let (Outcome::Ok, Some(route)) = (record.outcome, &record.route) {
                let task_class = record.facts.as_ref().and_then(|facts| facts.task_class.as_ref());
                let each = usage.output_total().get().div_ceil(u64::from(expected.choices.max(1)));
                estimator.observe_output(tenant, route, task_class, TokenCount::new(each));
            }
        }
    }
}

/// Puts what a call on the side has cost where it belongs: nobody asked for its answer.
fn as_side_cost(record: &mut AccountingRecord, purpose: &'static str) {
    let cost = std::mem::replace(&mut record.cost, Money::ZERO);
    if let Some(deployment) = record.serving.clone().or_else(|| record.primary.clone())
        && !cost.is_zero()
    {
        record.side_costs.push(SideCost { purpose: BoundedText::new(purpose), deployment, cost });
    }
}

fn price(record: &mut AccountingRecord, usage: Usage, deployment: &Deployment) {
    record.usage = usage;
    if let Ok(cost) = deployment.pricing.cost(&usage) {
        record.cost = cost.money;
        record.priced_by_fallback = cost.by_fallback;
    }
}

impl ReplyHead {
    /// Brings in what settling has changed: the rates of those whom the request concerns, after it.
    pub(crate) fn refresh(&mut self, flight: &Flight) {
        (self.requests, self.tokens) = flight.subject.rates(flight.now());
        self.settled = flight.settled;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Only a caller that went away leaves a flight open, or the end of the gateway; the receipt has nobody to wait
        // for it.
        if self.open.is_none() {
            return;
        }
        // A fault of gw's own unwinds through it.
        if std::thread::panicking() {
            let fault = GatewayError::new(ErrorKind::Internal, "the gateway met a fault of its own");
            drop(self.close(Outcome::Failed, Some(&fault)));
            return;
        }
        let ends = self.state.ends.load(Ordering::Relaxed);
        let is_open_call = !matches!(self.progress, Progress::Idle | Progress::Answered { .. });
        let changes = self.record().facts.as_ref().is_some_and(|facts| facts.side_effecting);
        let error = if ends { shutting_down() } else { gone() };
        let outcome = match (is_open_call && changes, ends) {
            (true, _) => Outcome::Ambiguous,
            (false, true) => Outcome::Failed,
            (false, false) => Outcome::Cancelled,
        };
        drop(self.close(outcome, Some(&error)));
    }
}

fn gone() -> GatewayError {
    GatewayError::new(ErrorKind::Cancelled, "the client went away")
}

fn shutting_down() -> GatewayError {
    GatewayError::new(ErrorKind::Overloaded, "the gateway is shutting down")
}
