//! Step 8: attempts against one deadline, over the chain.

mod hedged;

use std::{future::Future, pin::pin, sync::Arc, task::Poll, time::Duration};

use gw_limits::{InputEstimate, Worth};
use gw_types::{
    Adapter, Answer, AttemptPlan, AttemptRecord, BoundedText, CompleteAnswer, Deployment, ErrorKind,
    ExclusionRecord, FallOver, GatewayError, MonoTime, NormalizedRequest, Prepared, Sleep, TokenCount,
};

use self::hedged::Call;
use crate::{
    admission::{self, output_bound},
    backoff::{self, backoff},
    estimate,
    flight::Flight,
    health::{Bar, Tried, concerns_credential},
    hedge::HedgeBudget,
    opening::{Opened, open_stream},
    pinned::TargetState,
    policy::{RoutePolicy, Target},
    schema, shared_limits,
    station::{self, Unavailable, Wanted},
    timeout::attempt_timeout,
};

/// What an attempt brought back.
#[derive(Debug)]
pub(crate) enum Served {
    /// The whole answer.
    Complete(CompleteAnswer),
    /// A stream whose first meaningful event is here.
    Stream(Opened),
}

/// The chain of one request, and how much of it may still be spent.
pub(crate) struct Attempts<'a> {
    pub(crate) request: &'a NormalizedRequest,
    pub(crate) chain: &'a [usize],
    pub(crate) max_attempts: u32,
    /// Whether an output bound is sent: a budget or a token limit applies.
    pub(crate) is_bounded: bool,
    /// Whether money is limited for anyone whom the request concerns.
    pub(crate) budgeted: bool,
    pub(crate) route: &'a RoutePolicy,
    /// What the route may spend on hedges; `None`: it does not hedge.
    pub(crate) hedge: Option<&'a HedgeBudget>,
}

/// How far the walk over the chain has come.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The position of the candidate whose attempt runs.
    at: usize,
    /// The last position that was called: a hedge goes ahead of the walk.
    furthest: usize,
    began: MonoTime,
}

/// What to do after a failed attempt.
enum Next {
    Retry(Duration),
    FallOver,
    GiveUp,
}

impl Attempts<'_> {
    /// Tries the candidates in order until one answers.
    ///
    /// The chain is walked once; an error's own kind says whether the walk goes on. What is raised at the end is the
    /// last attempt's error, because the caller needs to know why, not merely that gw stopped.
    pub(crate) async fn run(&self, flight: &mut Flight) -> Result<Served, GatewayError> {
        let mut last: Option<GatewayError> = None;
        let mut next = 0;
        while let Some(&index) = self.chain.get(next) {
            let mut place = Place { at: next, furthest: next, began: flight.now() };
            next += 1;
            let target = flight.policy.target(index).clone();
            let skip = match &last {
                Some(error) => self.cannot_fall_over_to(flight, (index, &target), error).await,
                None => None,
            };
            match skip {
                Some(Skip::Candidate(reason)) => {
                    self.exclude(flight, &target.deployment, reason);
                    continue;
                }
                Some(Skip::Everything(refusal)) => return Err(refusal),
                None => {}
            }
            match self.at_candidate(flight, &mut place).await {
                Ok(served) => return Ok(served),
                Err(CandidateEnd::Unavailable(Unavailable { reason, error })) => {
                    self.exclude(flight, &target.deployment, reason);
                    last = last.or(Some(error));
                }
                Err(CandidateEnd::Final(error)) => return Err(self.deadline_error(flight, error)),
                Err(CandidateEnd::FallOver(error)) => last = Some(error),
            }
            next = place.furthest + 1;
        }
        Err(match last {
            Some(error) => self.deadline_error(flight, error),
            None => GatewayError::new(ErrorKind::NoRouteAvailable, "no deployment could be tried"),
        })
    }

    /// Spends the attempts of one candidate, and of the one that a hedge turns to.
    async fn at_candidate(&self, flight: &mut Flight, place: &mut Place) -> Result<Served, CandidateEnd> {
        let mut retries = 0;
        let mut tried = Tried::default();
        loop {
            let index = self.chain[place.at];
            let target = &flight.policy.target(index).clone();
            let now = flight.now();
            if flight.remaining(now) < target.deployment.timing.min_attempt {
                return Err(CandidateEnd::Final(no_time_left()));
            }
            let deadline = flight.deadline();
            if let Some(claim) = &mut flight.held.claim {
                // Before anything of the deployment is taken: the ledger may be slow.
                claim.dispatch(deadline).await.map_err(CandidateEnd::Final)?;
            }
            self.pass_breaker(flight, place.at, (retries, tried))?;
            // Every attempt for itself: a waiting retry has given all of it back.
            let wanted = self.wanted(flight, self.chain[place.at]);
            let taken = station::take(flight, self.chain[place.at], &target.deployment, wanted).await;
            if let Err(unavailable) = taken {
                flight.held.drop_tickets();
                return Err(CandidateEnd::Unavailable(unavailable));
            }
            if flight.remaining(flight.now()) < target.deployment.timing.min_attempt {
                flight.held.drop_tickets();
                flight.held.call.release();
                return Err(CandidateEnd::Final(no_time_left()));
            }
            place.began = flight.now();
            let outcome = self.attempt(flight, place, target).await;
            // Of a hedged call the other one may have come to an end.
            let policy = Arc::clone(&flight.policy);
            let position = place.at;
            if self.chain[position] != index {
                tried = Tried::default();
            }
            let target = policy.target(self.chain[position]);
            let credential = flight.held.credential.as_ref().map(|chosen| chosen.index);
            self.observe(flight, position, target, place.began, outcome.is_ok());
            judge(flight, &outcome);
            let TargetState { retries: budget, breaker, .. } = policy.target_state(self.chain[position]);
            let error = match outcome {
                Ok(served) => {
                    budget.succeeded();
                    return Ok(served);
                }
                Err(error) => error,
            };
            flight.held.call.release();
            if let Some(index) = credential {
                tried.add(index);
                if self.may_switch(flight, position, &error, tried) {
                    continue;
                }
            }
            if error.may_retry() {
                budget.failed();
            }
            let may_retry = budget.allows_retry() && !breaker.is_open();
            match self.next(flight, (position, &target.deployment), &error, retries, may_retry) {
                Next::Retry(delay) => {
                    retries += 1;
                    tried = Tried::default();
                    if !wait(flight, delay, target.deployment.timing.min_attempt).await {
                        return Err(CandidateEnd::Final(error));
                    }
                }
                Next::FallOver => return Err(CandidateEnd::FallOver(error)),
                Next::GiveUp => return Err(CandidateEnd::Final(error)),
            }
        }
    }

    /// Passes the deployment's breaker, which may have changed since the decision. It must not take the last candidate
    /// from a request that nobody was called for; a retry was let in before.
    fn pass_breaker(
        &self,
        flight: &mut Flight,
        position: usize,
        (retries, tried): (u32, Tried),
    ) -> Result<(), CandidateEnd> {
        let now = flight.now();
        let is_only = retries > 0 || (flight.attempts_made() == 0 && position + 1 == self.chain.len());
        let state = flight.policy.target_state(self.chain[position]);
        let random = flight.state.random.as_ref();
        let barred = |(why, until): (Bar, MonoTime)| {
            let error = GatewayError::new(ErrorKind::NoRouteAvailable, "no deployment may be asked now")
                .with_retry_after(until.saturating_since(now));
            CandidateEnd::Unavailable(Unavailable { reason: why.as_str(), error })
        };
        let ticket = state.breaker.enter(is_only, now, random).map_err(barred)?;
        let credential = state.credentials.choose(tried, is_only, now, random).map_err(barred)?;
        (flight.held.ticket, flight.held.credential) = (Some(ticket), credential);
        Ok(())
    }

    /// Returns whether a call that one credential was refused is made again with another, at once. That is the
    /// request's next attempt and counts as a retry for the whole process, so that no outage is made worse by it; it is
    /// none of the deployment's own, which may be as well as ever.
    fn may_switch(&self, flight: &Flight, position: usize, error: &GatewayError, tried: Tried) -> bool {
        let now = flight.now();
        let state = flight.policy.target_state(self.chain[position]);
        let min_attempt = flight.policy.target(self.chain[position]).deployment.timing.min_attempt;
        concerns_credential(error)
            && !error.is_pinned()
            && !self.request.context.side_effecting
            && flight.attempts_made() < self.max_attempts
            && flight.remaining(now) >= min_attempt
            && state.credentials.has_other(tried, now)
            && flight.state.retries.ratio().take()
    }

    /// Tells the strategies how long the deployment took. What failed counts as if it had taken all its time, so that
    /// what fails fast does not look fast.
    fn observe(&self, flight: &Flight, position: usize, target: &Target, began: MonoTime, worked: bool) {
        let now = flight.now();
        let took =
            if worked { now.saturating_since(began) } else { target.deployment.timing.attempt_timeout };
        flight.policy.strategies().observe(self.chain[position], took, now);
    }

    /// Returns what a call is told beside the request.
    fn plan(&self, output_bound: Option<TokenCount>, timeout: Duration) -> AttemptPlan {
        // An answer that no model writes has no length to bound.
        let output_bound = output_bound.filter(|_| self.request.operation.generates());
        AttemptPlan { output_bound, timeout, strict: self.route.strict_translation }
    }

    /// Makes one call.
    async fn attempt(
        &self,
        flight: &mut Flight,
        place: &mut Place,
        target: &Target,
    ) -> Result<Served, GatewayError> {
        let (position, began) = (place.at, place.began);
        let timeout = self.timeout(flight, position, target, began);
        if let Some(ticket) = &mut flight.held.ticket {
            ticket.set_full_time(timeout >= target.deployment.timing.attempt_timeout);
        }
        let output_bound = self.bound(&target.deployment);
        flight.output_bound = output_bound;
        if let Some(facts) = &mut flight.record().facts {
            facts.output_bound = output_bound;
        }
        let plan = self.plan(output_bound, timeout);
        let credential = flight.held.credential.as_ref().map(|chosen| chosen.index);
        let adapter = target.adapter_of(credential);
        let mut prepared = adapter.prepare(self.request, &target.deployment, &plan)?;
        flight.translated(&prepared.loss);
        let record = attempt_record(target, credential, flight.since_arrival_us(began));
        flight.tell_place(&record, &mut prepared);
        flight.record().attempts.push(record);
        let stream = prepared.stream;
        flight.dispatch(self.chain[position], stream, began);
        let until = began.saturating_add(timeout);
        let result = match self.hedges_after(flight, position) {
            Some(after) => {
                let call = Call { adapter: Arc::clone(adapter), prepared, began, until };
                // Boxed, so that every other request does not carry room for a second call.
                Box::pin(self.call_hedged(flight, place, call, after)).await
            }
            None => self.call(flight, adapter.as_ref(), prepared, (place, until)).await,
        };
        if let Err(error) = &result {
            let now = flight.now();
            flight.attempt_failed(error, now);
        }
        result
    }

    /// Calls the adapter and, for a stream, waits for the first meaningful event; both within the attempt's time.
    async fn call(
        &self,
        flight: &mut Flight,
        adapter: &dyn Adapter,
        prepared: Prepared,
        (place, until): (&Place, MonoTime),
    ) -> Result<Served, GatewayError> {
        let stream = prepared.stream;
        let mut timer = flight.state.clock.sleep_until(until);
        let answer = within(&mut timer, adapter.call(prepared)).await??;
        match (answer, stream) {
            (Answer::Complete(answer), false) => {
                flight.spans.first_byte = Some(flight.now());
                let kept = schema::judge_answer(flight, self.request, &answer.raw);
                self.take_answer(flight, &answer, kept.as_ref().err());
                kept.map(|()| Served::Complete(answer))
            }
            (Answer::Stream(answer), true) => {
                if let (Some(id), Some(attempt)) =
                    (&answer.upstream_request_id, flight.record().attempts.last_mut())
                {
                    attempt.upstream_request_id = Some(id.clone());
                }
                let opened = within(&mut timer, open_stream(answer.items)).await??;
                flight.spans.first_byte = Some(flight.now());
                self.note_first_word(flight, place.at, flight.now().saturating_since(place.began));
                Ok(Served::Stream(opened))
            }
            (Answer::Complete(_), true) | (Answer::Stream(_), false) => Err(wrong_form()),
        }
    }

    /// Notes what the answer says about itself, estimating the usage that it does not report. An answer that is refused
    /// has been paid for all the same.
    fn take_answer(&self, flight: &mut Flight, answer: &CompleteAnswer, refused: Option<&GatewayError>) {
        let now = flight.now();
        flight.answered(answer.facts.usage, answer.facts.content_bytes);
        flight.lose(&answer.facts.loss);
        let record = flight.record();
        record.served_model.clone_from(&answer.facts.served_model);
        if let Some(attempt) = record.attempts.last_mut() {
            attempt.upstream_request_id.clone_from(&answer.upstream_request_id);
        }
        if refused.is_none() {
            flight.finish_attempt(None, now);
        }
    }

    fn timeout(&self, flight: &Flight, position: usize, target: &Target, now: MonoTime) -> Duration {
        let spent = flight.attempts_made();
        // This attempt takes one; a side-effecting request has no other.
        let left =
            if self.request.context.side_effecting { 0 } else { self.max_attempts.saturating_sub(spent + 1) };
        let policy = Arc::clone(&flight.policy);
        let others = self.chain[position + 1..]
            .iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
            .map(|index| &policy.target(*index).deployment.timing);
        attempt_timeout(&target.deployment.timing, flight.remaining(now), others)
    }

    /// Decides what follows a failed attempt. The kind permits; occurrence, budgets and the deadline only forbid.
    fn next(
        &self,
        flight: &mut Flight,
        (position, deployment): (usize, &Deployment),
        error: &GatewayError,
        retries: u32,
        budget_allows: bool,
    ) -> Next {
        if self.request.context.side_effecting || flight.attempts_made() >= self.max_attempts {
            return Next::GiveUp;
        }
        // Whoever asks for a longer wait than gw would ever make of its own is not waited for while another may answer.
        let has_next = position + 1 < self.chain.len() && error.kind().falls_over() != FallOver::Never;
        let is_worth_it = !(has_next && error.retry_after().is_some_and(|wait| wait > backoff::CAP));
        let may_retry = error.may_retry() && budget_allows && is_worth_it;
        if may_retry && retries + 1 < deployment.max_attempts.get() {
            let backoff = backoff(retries, error.retry_after(), flight.state.random.as_ref());
            let need = backoff.delay.saturating_add(deployment.timing.min_attempt);
            if need <= flight.remaining(flight.now()) && flight.state.retries.ratio().take() {
                flight.record().decision.draws.push(backoff.draw);
                return Next::Retry(backoff.delay);
            }
        }
        match error.kind().falls_over() {
            FallOver::Never => Next::GiveUp,
            FallOver::Next | FallOver::LargerWindow | FallOver::BeforeContent if error.is_pinned() => {
                Next::GiveUp
            }
            FallOver::Next | FallOver::LargerWindow | FallOver::BeforeContent => Next::FallOver,
        }
    }

    /// Says why a candidate cannot follow a failed one, if so.
    async fn cannot_fall_over_to(
        &self,
        flight: &mut Flight,
        (index, target): (usize, &Target),
        error: &GatewayError,
    ) -> Option<Skip> {
        let deployment = &target.deployment;
        if error.kind().falls_over() == FallOver::LargerWindow && !self.has_larger_window(flight, deployment)
        {
            return Some(Skip::Candidate("context_window"));
        }
        // Only a call that was made spends the latency budget; a full deployment costs no time.
        if flight.attempts_made() > 0 && flight.remaining(flight.now()) < deployment.timing.expected_latency {
            return Some(Skip::Everything(
                GatewayError::new(
                    ErrorKind::BudgetExhausted,
                    "what is left of the deadline is less than the next deployment is expected to need",
                )
                .with_subject(deployment.name.as_str()),
            ));
        }
        if !self.raise_reservation(flight, index).await {
            return Some(Skip::Candidate("budget"));
        }
        None
    }

    fn has_larger_window(&self, flight: &mut Flight, deployment: &Deployment) -> bool {
        let failed = flight.record().attempts.last().map(|attempt| attempt.deployment.clone());
        let window = failed.and_then(|name| {
            let policy = Arc::clone(&flight.policy);
            self.chain
                .iter()
                .map(|index| &policy.target(*index).deployment)
                .find(|candidate| candidate.name == name)
                .and_then(|candidate| candidate.context_window)
        });
        match (deployment.context_window, window) {
            (Some(own), Some(failed)) => own > failed,
            (Some(_), None) | (None, Some(_) | None) => false,
        }
    }

    /// Raises the reservation to the target's worst case on top of what was spent without a known result.
    async fn raise_reservation(&self, flight: &mut Flight, target: usize) -> bool {
        if flight.held.reservation.is_none() {
            return true;
        }
        let input = admission::expect_at(flight, self.request, target);
        let need = self.worth(flight, target, input).plus(flight.sunk_money());
        let utc = flight.state.clock.utc();
        let is_held = flight.held.reservation.as_mut().is_none_or(|held| held.raise_to(need, utc).is_ok());
        is_held && shared_limits::raise(flight, need).await
    }

    /// Returns the output bound to send to a deployment.
    fn bound(&self, deployment: &Deployment) -> Option<TokenCount> {
        self.is_bounded.then(|| output_bound(self.request, self.route, deployment))
    }

    /// Returns what the request may cost at a target.
    pub(crate) fn worth(&self, flight: &Flight, target: usize, input: InputEstimate) -> Worth {
        let (deployment, tokens) =
            (&flight.policy.target(target).deployment, &flight.policy.deployment_policy(target).tokens);
        let longest = deployment.max_output_tokens.filter(|_| self.request.operation.generates());
        let bound = self.bound(deployment).or(longest).unwrap_or_default();
        estimate::worth(&self.request.facts, tokens, input, bound, deployment)
    }

    /// Returns what a call takes at a target.
    fn wanted(&self, flight: &mut Flight, target: usize) -> Wanted {
        let input = admission::expect_at(flight, self.request, target);
        let state = flight.policy.target_state(target);
        let worth = state.limits.as_ref().map(|_| self.worth(flight, target, input));
        let bound = self.bound(&flight.policy.target(target).deployment).unwrap_or_default();
        let outputs = estimate::times(bound, self.request.facts.choices.max(1));
        Wanted {
            tokens: flight.expected.tokens(),
            in_flight: input.likely.saturating_add(outputs),
            worth: worth.unwrap_or_default(),
        }
    }

    fn exclude(&self, flight: &mut Flight, deployment: &Deployment, reason: &'static str) {
        let record = flight.record();
        if let Some(route) = record.route.clone() {
            record.decision.exclusions.push(ExclusionRecord {
                route,
                deployment: deployment.name.clone(),
                reason: BoundedText::new(reason),
            });
        }
    }

    /// Names the deadline where it, and not the provider, ended the request.
    fn deadline_error(&self, flight: &Flight, error: GatewayError) -> GatewayError {
        let timed_out = error.kind() == ErrorKind::ProviderTimeout && error.status().is_none();
        // The request's own: that others may wait longer for a call that is shared is nothing to this one.
        if timed_out && flight.now() >= flight.deadline {
            let deadline = deadline_passed();
            return if error.is_ambiguous() { deadline.ambiguous() } else { deadline };
        }
        error
    }
}

/// How one candidate ended without an answer.
enum CandidateEnd {
    /// Something of its own was in use; nothing was called.
    Unavailable(Unavailable),
    /// The walk ends with this error.
    Final(GatewayError),
    /// The next candidate may be asked.
    FallOver(GatewayError),
}

/// Why a fallback is not tried.
enum Skip {
    Candidate(&'static str),
    Everything(GatewayError),
}

/// Returns the entry of a call that begins.
fn attempt_record(target: &Target, credential: Option<usize>, start_us: u64) -> AttemptRecord {
    AttemptRecord {
        deployment: target.deployment.name.clone(),
        credential: target.credential_name(credential),
        model: target.deployment.model.clone(),
        error: None,
        status: None,
        unclassified: false,
        start_us,
        duration_us: 0,
        upstream_request_id: None,
    }
}

/// Tells the deployment's health what became of a call. A stream that has only begun tells the rest when it ends.
fn judge(flight: &mut Flight, outcome: &Result<Served, GatewayError>) {
    match outcome {
        Ok(Served::Complete(_)) => flight.judge(Ok(())),
        Ok(Served::Stream(_)) => {
            let now = flight.now();
            let random = flight.state.random.as_ref();
            if let Some(ticket) = &mut flight.held.ticket {
                ticket.opened(now, random);
            }
            if let Some(credential) = &mut flight.held.credential {
                credential.opened(now, random);
            }
        }
        Err(error) => flight.judge(Err(error)),
    }
}

/// Runs a future until it is ready or the timer is; a future that is dropped by the timer has been cancelled.
async fn within<F: Future>(timer: &mut Sleep, future: F) -> Result<F::Output, GatewayError> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        timer.as_mut().poll(cx).map(|()| {
            Err(GatewayError::new(ErrorKind::ProviderTimeout, "the provider did not answer in time")
                .ambiguous())
        })
    })
    .await
}

/// Waits without slots and takes the tenant's slot again afterwards, in the queue if there is one; returns whether it
/// got one. If not the last error stands, because a retry must not pass the tenant's cap.
async fn wait(flight: &mut Flight, delay: Duration, needs: Duration) -> bool {
    flight.held.slot = None;
    let began = flight.now();
    let until = began.saturating_add(delay);
    flight.state.clock.sleep_until(until).await;
    flight.spans.backoff += flight.now().saturating_since(began);
    admission::take_slot(flight, needs).await.is_ok()
}

fn wrong_form() -> GatewayError {
    GatewayError::new(
        ErrorKind::MalformedResponse,
        "the provider answered in another form than was asked for",
    )
}

fn no_time_left() -> GatewayError {
    GatewayError::new(
        ErrorKind::DeadlineExceeded,
        "no attempt fits into what is left of the request's deadline",
    )
}

pub(crate) fn deadline_passed() -> GatewayError {
    GatewayError::new(ErrorKind::DeadlineExceeded, "the request's deadline has passed")
}
