//! The time to the first token of one deployment, as an estimate that jumps up at once and comes down slowly.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use gw_types::MonoTime;

/// A peak-sensitive moving average (Finagle's peak EWMA).
///
/// A sample above the estimate becomes the estimate; one below pulls it down by the weight of the time that has passed.
/// Reading decays it too, towards zero, so that a deployment that was slow once is tried again.
#[derive(Debug, Default)]
pub(crate) struct PeakEwma(Mutex<Option<Estimate>>);

#[derive(Clone, Copy, Debug)]
struct Estimate {
    nanos: f64,
    at: MonoTime,
}

impl PeakEwma {
    /// What a deployment is taken for that was not called yet, in nanoseconds: 1 s.
    const UNKNOWN: f64 = 1e9;
    /// The time in which an estimate falls to 1/e, in seconds.
    const TAU: f64 = 10.0;

    /// Takes in one sample.
    pub(crate) fn observe(&self, sample: Duration, now: MonoTime) {
        let sample = sample.as_secs_f64() * 1e9;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nanos = match *held {
            Some(old) if sample < old.nanos => {
                let kept = old.kept(now);
                old.nanos * kept + sample * (1.0 - kept)
            }
            Some(_) | None => sample,
        };
        // A clock that steps back must not make the estimate older than it is.
        let at = held.map_or(now, |old| old.at.max(now));
        *held = Some(Estimate { nanos, at });
    }

    /// Returns the estimate in nanoseconds.
    pub(crate) fn nanos(&self, now: MonoTime) -> f64 {
        let held = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.map_or(Self::UNKNOWN, |estimate| estimate.nanos * estimate.kept(now))
    }
}

impl Estimate {
    /// Returns how much of the estimate is left.
    fn kept(self, now: MonoTime) -> f64 {
        (-now.saturating_since(self.at).as_secs_f64() / PeakEwma::TAU).exp()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::MonoTime;

    use super::PeakEwma;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    fn check(estimate: &PeakEwma, now: MonoTime, expected_ms: f64) {
        let found = estimate.nanos(now) / 1e6;
        assert!((found - expected_ms).abs() < 0.01, "{found} is not {expected_ms}");
    }

    #[test]
    fn rises_at_once_and_falls_by_time() {
        let estimate = PeakEwma::default();
        check(&estimate, at(0), 1_000.0);
        estimate.observe(Duration::from_millis(200), at(0));
        check(&estimate, at(0), 200.0);
        estimate.observe(Duration::from_millis(800), at(1));
        check(&estimate, at(1), 800.0);
        // At once, a lower sample has no weight; after ten seconds it has 1 - 1/e.
        estimate.observe(Duration::from_millis(100), at(1));
        check(&estimate, at(1), 800.0);
        estimate.observe(Duration::from_millis(100), at(11));
        check(&estimate, at(11), 800.0 * 0.367_879 + 100.0 * 0.632_121);
    }

    #[test]
    fn decays_on_reading_and_survives_a_clock_that_steps_back() {
        let estimate = PeakEwma::default();
        estimate.observe(Duration::from_millis(1_000), at(10));
        check(&estimate, at(20), 367.879);
        check(&estimate, at(5), 1_000.0);
        estimate.observe(Duration::from_millis(10), at(5));
        check(&estimate, at(10), 1_000.0);
    }
}
