//! The state of one breaker: a pure function of what happens and when.

use std::time::Duration;

use gw_types::{MonoTime, Random};

/// Failures in a row after which a deployment is left alone, as in Envoy's outlier detection; one that often fails is
/// given more.
pub(crate) const FAILURES_MIN: u32 = 5;
/// Answers after which a deployment that was left alone is trusted again.
pub(crate) const SUCCESSES_MIN: u32 = 3;
/// How long it is left alone the first time; the n-th time in a row it is n times as long (gRPC proposal A50).
pub(crate) const OPEN_BASE: Duration = Duration::from_secs(30);
/// How long it is left alone at most.
pub(crate) const OPEN_MAX: Duration = Duration::from_secs(300);
/// The longest rest that a provider may ask for; one that asks for more is asked once again after it.
pub(crate) const COOLDOWN_MAX: Duration = Duration::from_secs(600);
/// How long the share of requests grows after a deployment is trusted again.
pub(crate) const RETURN: Duration = Duration::from_secs(30);
/// The share that it begins with, in thousandths.
const RETURN_FROM_MILLI: u64 = 100;
/// When a probe will answer nobody knows; so long is assumed where deployments are compared by when they recover.
const PROBE_GUESS: Duration = Duration::from_secs(1);

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Requests pass; `since` an instant, if it was ever open.
    Closed { since: Option<MonoTime> },
    /// No request passes until an instant; the first one after it is a probe.
    Open { until: MonoTime },
    /// One request at a time passes, as a probe.
    HalfOpen { successes: u32, probing: bool },
}

/// What happens to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request goes there as a probe.
    Probed,
    /// The deployment has answered.
    Succeeded,
    /// The deployment has failed; `unusual`: it fails far more often than it used to; `run`: how many failures in a row
    /// are more than chance there.
    Failed { unusual: bool, run: u32 },
}

/// What a request finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Any request may pass.
    Free,
    /// A share of the requests may pass, in thousandths.
    Share(u64),
    /// One request may pass, as a probe.
    Probe,
    /// No request may pass before an instant, as far as is known.
    Barred { until: MonoTime, why: Bar },
}

/// Why no request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// It has failed too often.
    Open,
    /// Another request is finding out whether it is well again.
    Probing,
    /// The provider asked for a rest.
    Cooldown,
}

/// A breaker and a cooldown: the first follows from failures, the second from what the provider asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    phase: Phase,
    /// Failures since the last success.
    failures: u32,
    /// Times that it opened without having been well for long in between.
    openings: u32,
    cooldown: MonoTime,
}

impl Default for Machine {
    fn default() -> Self {
        Self { phase: Phase::Closed { since: None }, failures: 0, openings: 0, cooldown: MonoTime::ZERO }
    }
}

impl Machine {
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns when the rest that the provider asked for is over.
    pub(crate) fn cooldown(&self) -> MonoTime {
        self.cooldown
    }

    /// Returns whether a success changes nothing.
    pub(crate) fn is_well(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. }) && self.failures == 0
    }

    /// Rests for as long as the provider asks. The longest of all demands counts.
    pub(crate) fn cool(&mut self, rest: Duration, now: MonoTime) {
        self.cooldown = self.cooldown.max(now.saturating_add(rest.min(COOLDOWN_MAX)));
    }

    /// Takes back the leave to probe, whatever came of the probe: the next request may probe.
    pub(crate) fn return_probe(&mut self) {
        if let Phase::HalfOpen { probing, .. } = &mut self.phase {
            *probing = false;
        }
    }

    /// Takes an event in; draws chance only where it opens.
    pub(crate) fn on(&mut self, event: Event, now: MonoTime, random: &dyn Random) {
        self.failures = match event {
            Event::Failed { .. } => self.failures.saturating_add(1),
            Event::Succeeded => 0,
            Event::Probed => self.failures,
        };
        self.phase = match (self.phase, event) {
            // ## Closed => Closed | Open
            (Phase::Closed { since }, Event::Failed { unusual, run }) if unusual || self.failures >= run => {
                let is_relapse = since.is_some_and(|since| now.saturating_since(since) < OPEN_MAX);
                self.openings = if is_relapse { self.openings.saturating_add(1) } else { 1 };
                self.opened(now, random)
            }
            (closed @ Phase::Closed { .. }, Event::Probed | Event::Succeeded | Event::Failed { .. }) => {
                closed
            }
            // ## Open => Open | HalfOpen
            (Phase::Open { until }, Event::Probed) if now >= until => {
                Phase::HalfOpen { successes: 0, probing: true }
            }
            // Nobody else could be asked, and it has answered.
            (Phase::Open { .. }, Event::Succeeded) => Phase::HalfOpen { successes: 1, probing: false },
            (open @ Phase::Open { .. }, Event::Probed | Event::Failed { .. }) => open,
            // ## HalfOpen => HalfOpen | Closed | Open
            (Phase::HalfOpen { successes, .. }, Event::Probed) => {
                Phase::HalfOpen { successes, probing: true }
            }
            (Phase::HalfOpen { successes, .. }, Event::Succeeded) if successes + 1 >= SUCCESSES_MIN => {
                Phase::Closed { since: Some(now) }
            }
            (Phase::HalfOpen { successes, probing }, Event::Succeeded) => {
                Phase::HalfOpen { successes: successes + 1, probing }
            }
            (Phase::HalfOpen { .. }, Event::Failed { .. }) => {
                self.openings = self.openings.saturating_add(1);
                self.opened(now, random)
            }
        };
    }

    /// Shorter by up to a fifth, so that replicas do not all probe at one instant.
    fn opened(&self, now: MonoTime, random: &dyn Random) -> Phase {
        let period = OPEN_BASE.saturating_mul(self.openings).min(OPEN_MAX);
        let micros = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        let jitter = Duration::from_micros(random.below(micros / 5 + 1));
        Phase::Open { until: now.saturating_add(period.saturating_sub(jitter)) }
    }

    /// Returns what a request finds.
    pub(crate) fn access(&self, now: MonoTime) -> Access {
        let breaker = match self.phase {
            Phase::Closed { since: None } => Access::Free,
            Phase::Closed { since: Some(since) } => returning(now.saturating_since(since)),
            Phase::Open { until } if now < until => Access::Barred { until, why: Bar::Open },
            Phase::Open { .. } | Phase::HalfOpen { probing: false, .. } => Access::Probe,
            Phase::HalfOpen { probing: true, .. } => {
                Access::Barred { until: now.saturating_add(PROBE_GUESS), why: Bar::Probing }
            }
        };
        if now >= self.cooldown {
            return breaker;
        }
        match breaker {
            Access::Barred { until, why } => Access::Barred { until: until.max(self.cooldown), why },
            Access::Free | Access::Share(_) | Access::Probe => {
                Access::Barred { until: self.cooldown, why: Bar::Cooldown }
            }
        }
    }
}

/// Returns the share that passes so long after the breaker closed; it grows evenly.
fn returning(passed: Duration) -> Access {
    if passed >= RETURN {
        return Access::Free;
    }
    let share = |of: Duration| u64::try_from(of.as_millis()).unwrap_or(u64::MAX);
    let grown = (1_000 - RETURN_FROM_MILLI) * share(passed) / share(RETURN);
    Access::Share(RETURN_FROM_MILLI + grown)
}

#[cfg(test)]
mod tests;
