//! Limits shared with other replicas: one question a request, in bounded time, and what happens without an answer.
//!
//! A limiter has three answers: yes, no and nobody knows. The third has a policy for each kind of limit and a status of
//! its own; it is never taken for one of the others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gw_limits::{
    SharedAsked, SharedLimit, SharedLimits, SharedLost, SharedSettlement, SharedUse, SharedVerdict, Worth,
};
use gw_types::{BoundedText, Clock, ErrorKind, GatewayError, LimiterVerdict, Money, MonoTime, TokenCount};
use parking_lot::Mutex;

use crate::{admission, flight::Flight, state::State};

/// What decides where the store of shared limits cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPolicy {
    /// Nobody: what the limit applies to is refused, as unavailable.
    #[default]
    Closed,
    /// This process's own limits, as if it were the only one.
    Local,
}

/// Where shared limits are kept, and what happens without them.
#[derive(Clone, Debug)]
pub struct SharedConfig {
    /// The store.
    pub store: Arc<dyn SharedLimits>,
    /// How long one question to it may take.
    pub timeout: Duration,
    /// Where the store is lost: what decides about money.
    pub budget_on_loss: LossPolicy,
    /// Where the store is lost: what decides about requests and tokens a minute.
    pub rate_on_loss: LossPolicy,
}

/// How the store is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSnapshot {
    /// Whether it is left alone at the moment, because it did not answer.
    pub lost: bool,
    /// Questions that it did not answer since the start.
    pub failures: u64,
    /// Settlements that it has not confirmed.
    pub pending: usize,
}

/// The failures in a row after which the store is left alone.
const FAILURES: u32 = 3;
/// How long it is then left alone, until one question tries it again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Settlements that may wait for the store. Beyond them what was held is charged as it was held.
const PENDING_MAX: usize = 65_536;
/// How long after the deadline of a request its settlement is still good.
const HOLD_MARGIN: Duration = Duration::from_secs(600);

/// The shared limits of one gateway.
#[derive(Debug)]
pub(crate) struct SharedStore {
    config: SharedConfig,
    reach: Mutex<Reach>,
    failures: AtomicU64,
    pending: AtomicUsize,
}

/// Whether the store answers.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    in_a_row: u32,
    /// Nobody asks before.
    closed_until: Option<MonoTime>,
}

impl SharedStore {
    pub(crate) fn new(config: SharedConfig) -> Self {
        Self { config, reach: Mutex::default(), failures: AtomicU64::new(0), pending: AtomicUsize::new(0) }
    }

    pub(crate) fn snapshot(&self) -> SharedSnapshot {
        SharedSnapshot {
            lost: self.reach.lock().closed_until.is_some(),
            failures: self.failures.load(Ordering::Relaxed),
            pending: self.pending.load(Ordering::Relaxed),
        }
    }

    /// Returns whether the store may be asked; where it is left alone, once in a while one question may.
    fn may_ask(&self, now: MonoTime) -> bool {
        let mut reach = self.reach.lock();
        match reach.closed_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                reach.closed_until = Some(now.saturating_add(RETRY_AFTER));
                true
            }
        }
    }

    /// Asks the store, if it may be asked, and learns from it.
    async fn ask<T>(
        &self,
        clock: &dyn Clock,
        question: impl Future<Output = Result<T, SharedLost>>,
    ) -> Result<T, SharedLost> {
        if !self.may_ask(clock.now()) {
            return Err(SharedLost);
        }
        let out_of_time = clock.sleep_until(clock.now().saturating_add(self.config.timeout));
        let answer = tokio::select! {
            biased;
            answer = question => answer,
            () = out_of_time => Err(SharedLost),
        };
        let mut reach = self.reach.lock();
        if answer.is_ok() {
            *reach = Reach::default();
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
            reach.in_a_row = reach.in_a_row.saturating_add(1);
            if reach.in_a_row >= FAILURES {
                reach.closed_until = Some(clock.now().saturating_add(RETRY_AFTER));
            }
        }
        answer
    }

    /// Settles in the background, as soon as the store can be asked, and as long as it still holds what is settled.
    fn settle(self: &Arc<Self>, settlement: SharedSettlement, until: MonoTime, state: &State) {
        // Without a runtime the process is ending; what is held is then charged as it was held.
        if !state.tasks.can_spawn() {
            return;
        }
        if self.pending.fetch_add(1, Ordering::Relaxed) >= PENDING_MAX {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!("a settlement of shared limits was given up: too many wait for the store");
            return;
        }
        let pending = Pending(Arc::clone(self));
        let clock = Arc::clone(&state.clock);
        state.tasks.spawn(async move {
            let shared = &pending.0;
            while shared.ask(&*clock, shared.config.store.settle(&settlement)).await.is_err() {
                if clock.now() >= until {
                    return;
                }
                clock.sleep_until(clock.now().saturating_add(RETRY_AFTER)).await;
            }
        });
    }

    /// Says what a lost store means for what was asked.
    fn without_answer(&self, asked: &[SharedLimit]) -> Result<(), GatewayError> {
        let policy = |limit: &&SharedLimit| {
            if limit.is_budget() { self.config.budget_on_loss } else { self.config.rate_on_loss }
        };
        let closed: Vec<&SharedLimit> =
            asked.iter().filter(|limit| policy(limit) == LossPolicy::Closed).collect();
        if closed.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = closed.iter().map(|limit| limit.named().to_string()).collect();
        Err(GatewayError::new(
            ErrorKind::Overloaded,
            "the limiter is unavailable: its shared store does not answer",
        )
        .with_subject(&named.join(", "))
        .with_retry_after(RETRY_AFTER))
    }
}

/// Counts a settlement until it ends.
struct Pending(Arc<SharedStore>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request holds in the store; settled on drop.
#[derive(Debug)]
pub(crate) struct SharedHeld {
    state: Arc<State>,
    id: u128,
    /// Empty: nothing was taken.
    asked: SharedAsked,
    /// What the windows of money were asked for.
    worth: Worth,
    until: MonoTime,
    used: SharedUse,
}

impl SharedHeld {
    /// Ends it: with what the request used, or with nothing.
    pub(crate) fn settle(mut self, used: SharedUse) {
        self.used = used;
    }

    /// Ends it where nothing was taken.
    fn forget(mut self) {
        self.asked.clear();
    }
}

impl Drop for SharedHeld {
    fn drop(&mut self) {
        let limits = std::mem::take(&mut self.asked).into_vec();
        if limits.is_empty() {
            return;
        }
        let settlement = SharedSettlement { id: self.id, limits, used: self.used };
        if let Some(shared) = &self.state.shared_limits {
            shared.settle(settlement, self.until, &self.state);
        }
    }
}

/// Step 7: takes of the limits that replicas share what this process's own have let through.
pub(crate) async fn take(flight: &mut Flight, worth: Option<Worth>) -> Result<(), GatewayError> {
    let Some(shared) = flight.state.shared_limits.clone() else { return Ok(()) };
    let utc = flight.state.clock.utc();
    let (tokens, money) = (flight.expected.tokens(), worth.unwrap_or_default());
    let mut asked = flight.subject.shared_limits(tokens, money, utc);
    asked.retain(|limit| worth.is_some() || !limit.is_budget());
    Box::pin(hold(flight, shared, asked, money)).await
}

/// Raises the money that is held to `worth`, for a deployment that costs more; returns whether it is there.
pub(crate) async fn raise(flight: &mut Flight, worth: Worth) -> bool {
    let Some(shared) = flight.state.shared_limits.clone() else { return true };
    let mut more = worth;
    for held in &flight.held.shared_limits {
        more.bound = more.bound.saturating_sub(held.worth.bound);
        more.calibrated = more.calibrated.saturating_sub(held.worth.calibrated);
    }
    if more == Worth::default() {
        return true;
    }
    let utc = flight.state.clock.utc();
    let mut asked = flight.subject.shared_limits(TokenCount::ZERO, more, utc);
    asked.retain(|limit| limit.is_budget());
    Box::pin(hold(flight, shared, asked, more)).await.is_ok()
}

/// Callers box it: a request that shares no limits carries no room for it.
async fn hold(
    flight: &mut Flight,
    shared: Arc<SharedStore>,
    asked: SharedAsked,
    worth: Worth,
) -> Result<(), GatewayError> {
    if asked.is_empty() {
        return Ok(());
    }
    let (id, now) = (flight.state.ids.next_id(), flight.now());
    let until = flight.deadline.saturating_add(HOLD_MARGIN);
    // Owned before the question is asked: whoever leaves while it is open, or gets no answer, settles what it may have
    // taken.
    let state = Arc::clone(&flight.state);
    let held = SharedHeld { state, id, asked, worth, until, used: SharedUse::Nothing };
    let question = shared.config.store.take(id, &held.asked, until.saturating_since(now));
    match shared.ask(&*held.state.clock, question).await {
        Ok(SharedVerdict::Taken) => {
            flight.held.shared_limits.push(held);
            Ok(())
        }
        Ok(SharedVerdict::Refused(refused)) => {
            let refusal = SharedLimit::refusal(&held.asked, &refused);
            held.forget();
            Err(admission::refused(flight, refusal))
        }
        Err(SharedLost) => {
            let decided = shared.without_answer(&held.asked);
            let refused_by = match &decided {
                Ok(()) => Vec::new(),
                Err(_) => {
                    held.asked.iter().map(|limit| BoundedText::new(&limit.named().to_string())).collect()
                }
            };
            flight.record().decision.limiter =
                Some(LimiterVerdict { admitted: decided.is_ok(), refused_by, degraded: true });
            decided
        }
    }
}

/// Ends what a request holds in the store: the first hold says all that was used, what was added to it goes.
pub(crate) fn settle(flight: &mut Flight, used: Option<(TokenCount, Money)>) {
    let mut used = used.map_or(SharedUse::Nothing, |(tokens, money)| SharedUse::Used(tokens, money));
    for held in std::mem::take(&mut flight.held.shared_limits) {
        held.settle(used);
        used = SharedUse::Nothing;
    }
}
