//! One deployment's breaker, shared by all requests, and the ticket of a call that passes it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use gw_types::{GatewayError, Health, MonoTime, Random, UtcTime};
use parking_lot::Mutex;

use super::{
    history::{History, slot_of},
    machine::{Access, Bar, Event, FAILURES_MIN, Machine, Phase},
};

/// A bit of the gate: a decision must look at the machine.
const GUARDED: u64 = 1;
/// A bit of the gate: a success must be told to the machine.
const UNWELL: u64 = 2;
/// The rest of the gate numbers the phases, so that a call is evidence only in the phase that it began in.
const EPOCH: u64 = 4;

/// A breaker. While all is well a decision costs one load, and a success one more and a count.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    gate: AtomicU64,
    /// Successes of the slot that runs, and its number. One that is counted while the slot ends may fall into the next.
    worked: AtomicU32,
    slot: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    machine: Machine,
    history: History,
}

/// Says where a deployment's breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests pass.
    Closed,
    /// No request passes.
    Open,
    /// One request at a time passes, as a probe.
    HalfOpen,
}

impl BreakerState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// How a deployment's breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSnapshot {
    /// The state.
    pub state: BreakerState,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// When the first probe may pass; only while it is open.
    pub open_until: Option<UtcTime>,
    /// When the rest is over that the provider asked for; only while it lasts.
    pub cooldown_until: Option<UtcTime>,
}

impl Breaker {
    /// Returns what a request finds.
    pub(crate) fn look(&self, now: MonoTime) -> Access {
        if self.gate.load(Ordering::Acquire) & GUARDED == 0 {
            return Access::Free;
        }
        let inner = self.inner.lock();
        let access = inner.machine.access(now);
        if access == Access::Free {
            self.publish(&inner.machine, now, false);
        }
        access
    }

    /// Lets a call pass. `is_only`: nobody else can be asked, so that a barred deployment is asked all the same.
    ///
    /// # Errors
    /// What bars the way, and until when.
    pub(crate) fn enter(
        self: &Arc<Self>,
        is_only: bool,
        now: MonoTime,
        random: &dyn Random,
    ) -> Result<Ticket, (Bar, MonoTime)> {
        let gate = self.gate.load(Ordering::Acquire);
        if gate & GUARDED == 0 {
            return Ok(self.ticket(gate / EPOCH, false));
        }
        let mut inner = self.inner.lock();
        let probe = match inner.machine.access(now) {
            Access::Free | Access::Share(_) => false,
            Access::Probe => true,
            Access::Barred { until, why } if !is_only => return Err((why, until)),
            Access::Barred { .. } => false,
        };
        if probe {
            self.apply(&mut inner, Event::Probed, now, random);
        }
        Ok(self.ticket(self.epoch(), probe))
    }

    fn ticket(self: &Arc<Self>, epoch: u64, probe: bool) -> Ticket {
        Ticket { breaker: Arc::clone(self), epoch, probe, has_full_time: false, counted: false }
    }

    /// Returns whether nothing has failed since the last success, and nothing bars the way.
    pub(crate) fn is_well(&self) -> bool {
        self.gate.load(Ordering::Acquire) & (GUARDED | UNWELL) == 0
    }

    /// Returns whether it has failed too often to be asked again at once.
    pub(crate) fn is_open(&self) -> bool {
        self.gate.load(Ordering::Acquire) & GUARDED != 0
            && matches!(self.inner.lock().machine.phase(), Phase::Open { .. })
    }

    pub(crate) fn snapshot(&self, now: MonoTime, utc: UtcTime) -> BreakerSnapshot {
        let machine = self.inner.lock().machine;
        let at = |until: MonoTime| (now < until).then(|| utc.saturating_add(until.saturating_since(now)));
        let (state, open_until) = match machine.phase() {
            Phase::Closed { .. } => (BreakerState::Closed, None),
            Phase::Open { until } if now < until => (BreakerState::Open, at(until)),
            Phase::Open { .. } | Phase::HalfOpen { .. } => (BreakerState::HalfOpen, None),
        };
        let (consecutive_failures, cooldown_until) = (machine.failures(), at(machine.cooldown()));
        BreakerSnapshot { state, consecutive_failures, open_until, cooldown_until }
    }

    fn epoch(&self) -> u64 {
        self.gate.load(Ordering::Acquire) / EPOCH
    }

    /// Takes an event in, under the lock.
    fn apply(&self, inner: &mut Inner, event: Event, now: MonoTime, random: &dyn Random) {
        let before = std::mem::discriminant(&inner.machine.phase());
        inner.machine.on(event, now, random);
        let moved = before != std::mem::discriminant(&inner.machine.phase());
        if moved && matches!(inner.machine.phase(), Phase::Open { .. }) {
            inner.history.forget_recent();
        }
        self.publish(&inner.machine, now, moved);
    }

    /// Shows at the gate what the machine says; called under the lock alone.
    fn publish(&self, machine: &Machine, now: MonoTime, moved: bool) {
        let guarded = if machine.access(now) == Access::Free { 0 } else { GUARDED };
        let unwell = if machine.is_well() { 0 } else { UNWELL };
        let epoch = self.epoch().wrapping_add(u64::from(moved));
        self.gate.store(epoch.wrapping_mul(EPOCH) | guarded | unwell, Ordering::Release);
    }

    fn count_success(&self, now: MonoTime) {
        let slot = slot_of(now);
        if self.slot.load(Ordering::Acquire) < slot {
            self.roll(&mut self.inner.lock(), now);
        }
        self.worked.fetch_add(1, Ordering::Relaxed);
    }

    fn roll(&self, inner: &mut Inner, now: MonoTime) {
        inner.history.roll(self.worked.swap(0, Ordering::Relaxed), now);
        self.slot.fetch_max(slot_of(now), Ordering::Release);
    }
}

/// A call on its way past the breaker. It says at most once what became of the call; dropped without a word, because the
/// client has gone or the deadline has cut it, it is no evidence. A probe is given back in any case.
#[derive(Debug)]
pub(crate) struct Ticket {
    breaker: Arc<Breaker>,
    epoch: u64,
    probe: bool,
    has_full_time: bool,
    /// Whether the beginning of a stream has counted as an answer.
    counted: bool,
}

impl Ticket {
    /// Notes whether the call has all the time that its deployment may take.
    pub(crate) fn set_full_time(&mut self, has_full_time: bool) {
        self.has_full_time = has_full_time;
    }

    /// Notes that a stream has said something that counts. That ends a probe: a stream may run for long, and the next
    /// probe need not wait for its end. Elsewhere only the end of a stream is a success.
    pub(crate) fn opened(&mut self, now: MonoTime, random: &dyn Random) {
        // From here on the idle limit holds, which no deadline shortens.
        self.has_full_time = true;
        if self.breaker.gate.load(Ordering::Acquire) & UNWELL == 0 {
            return;
        }
        let breaker = Arc::clone(&self.breaker);
        let mut inner = breaker.inner.lock();
        if breaker.epoch() != self.epoch || matches!(inner.machine.phase(), Phase::Closed { .. }) {
            return;
        }
        self.give_probe_back(&mut inner);
        breaker.apply(&mut inner, Event::Succeeded, now, random);
        (self.epoch, self.counted) = (breaker.epoch(), true);
    }

    /// Says what became of the call.
    pub(crate) fn judge(self, result: Result<(), &GatewayError>, now: MonoTime, random: &dyn Random) {
        let Err(error) = result else { return self.succeeded(now, random) };
        match error.kind().harms_health() {
            Health::Harmless => {}
            Health::Cooldown => self.cool(error, now),
            Health::Deployment | Health::Credential => self.failed(now, random),
            // A timeout with a status is the provider's own word, however long gw would have waited.
            Health::DeploymentIfFullTime => {
                if self.has_full_time || error.status().is_some() {
                    self.failed(now, random);
                }
            }
        }
    }

    fn succeeded(mut self, now: MonoTime, random: &dyn Random) {
        self.breaker.count_success(now);
        if self.breaker.gate.load(Ordering::Acquire) & UNWELL == 0 {
            return;
        }
        let breaker = Arc::clone(&self.breaker);
        let mut inner = breaker.inner.lock();
        if breaker.epoch() != self.epoch {
            return;
        }
        self.give_probe_back(&mut inner);
        if !self.counted || matches!(inner.machine.phase(), Phase::Closed { .. }) {
            breaker.apply(&mut inner, Event::Succeeded, now, random);
        }
    }

    fn failed(mut self, now: MonoTime, random: &dyn Random) {
        let breaker = Arc::clone(&self.breaker);
        let mut inner = breaker.inner.lock();
        breaker.roll(&mut inner, now);
        if breaker.epoch() != self.epoch {
            return;
        }
        // What fails while it is left alone says nothing about how often it fails when it is well.
        if matches!(inner.machine.phase(), Phase::Closed { .. }) {
            inner.history.failed();
        }
        self.give_probe_back(&mut inner);
        let unusual = inner.history.is_unusual();
        let run = inner.history.run_of_note(FAILURES_MIN, inner.machine.failures() + 1);
        breaker.apply(&mut inner, Event::Failed { unusual, run }, now, random);
    }

    /// Opens at once: what was shown is not accepted.
    pub(crate) fn refused(mut self, now: MonoTime, random: &dyn Random) {
        let breaker = Arc::clone(&self.breaker);
        let mut inner = breaker.inner.lock();
        if breaker.epoch() == self.epoch {
            self.give_probe_back(&mut inner);
            breaker.apply(&mut inner, Event::Failed { unusual: true, run: 1 }, now, random);
        }
    }

    /// Rests for a while.
    pub(crate) fn rest(self, rest: Duration, now: MonoTime) {
        let mut inner = self.breaker.inner.lock();
        inner.machine.cool(rest, now);
        self.breaker.publish(&inner.machine, now, false);
    }

    /// Rests where the provider says for how long. A 429 without that says nothing about when to ask again.
    fn cool(self, error: &GatewayError, now: MonoTime) {
        if let Some(rest) = error.retry_after() {
            self.rest(rest, now);
        }
    }

    /// Under the lock, in the ticket's own epoch.
    fn give_probe_back(&mut self, inner: &mut Inner) {
        if std::mem::take(&mut self.probe) {
            inner.machine.return_probe();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.probe {
            return;
        }
        let mut inner = self.breaker.inner.lock();
        if self.breaker.epoch() == self.epoch {
            inner.machine.return_probe();
        }
    }
}

#[cfg(test)]
mod tests;
