//! Hedging: when a second call may be begun beside one that is slow to say its first word.
//!
//! Source: Dean and Barroso, "The Tail at Scale" (2013). A hedge goes to the next candidate of the chain once the first
//! call has said nothing for as long as 19 of 20 calls of its kind take to begin; who speaks first is relayed, the other is
//! cancelled. Only streams are hedged: of a plain call nothing is seen before its end, so there is no first word to wait
//! for, and the loser would be paid in full.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use foldhash::fast::FixedState;
use gw_limits::{InputEstimate, Slot};
use gw_types::{DeploymentName, MonoTime, RouteName, TokenCount};
use parking_lot::Mutex;

use crate::{
    flight::Expected,
    health::{Chosen, Ticket},
    held::CallHeld,
};

/// The latest times to the first word of one kind of call that are remembered.
const SAMPLES: usize = 128;
/// Samples without which nothing is known: of fewer, one outlier would be the 95th percentile.
const SAMPLES_MIN: usize = 40;
/// Input tokens from which a call is of the next kind: how long a provider reads shows in the time to its first word.
const INPUT_KINDS: [u64; 3] = [1_000, 8_000, 64_000];

/// How long one deployment took to say its first word, by the size of the input. A slow call that was hedged counts with the
/// time after which it was given up, so that hedges do not make the slow ones invisible.
#[derive(Debug, Default)]
pub(crate) struct FirstWords([Mutex<Window>; INPUT_KINDS.len() + 1]);

/// A ring of samples, in microseconds.
#[derive(Debug, Default)]
struct Window {
    samples: Vec<u32>,
    next: usize,
}

impl FirstWords {
    /// Notes that a call took so long.
    pub(crate) fn observe(&self, input: TokenCount, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let mut window = self.of(input).lock();
        let next = window.next;
        match window.samples.get_mut(next) {
            Some(sample) => *sample = micros,
            None => window.samples.push(micros),
        }
        window.next = (next + 1) % SAMPLES;
    }

    /// Returns what 19 of 20 calls did not take longer than; `None` as long as too little is known. O(n) for n samples.
    pub(crate) fn p95(&self, input: TokenCount) -> Option<Duration> {
        let mut samples = self.of(input).lock().samples.clone();
        let rank = (samples.len() * 95).div_ceil(100).checked_sub(1)?;
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let (_, nth, _) = samples.select_nth_unstable(rank);
        Some(Duration::from_micros(u64::from(*nth)))
    }

    fn of(&self, input: TokenCount) -> &Mutex<Window> {
        let kind = INPUT_KINDS.iter().filter(|from| input.get() >= **from).count();
        &self.0[kind]
    }
}

/// How many hedges a route may make: one for 20 of its streamed requests, so that its calls are at most a twentieth more.
#[derive(Debug, Default)]
pub(crate) struct HedgeBudget {
    milli: AtomicI64,
}

impl HedgeBudget {
    const PER_REQUEST: i64 = 50;
    const HEDGE: i64 = 1_000;
    /// What quiet times save up, at most: ten hedges.
    const FULL: i64 = 10_000;

    /// Counts a request that might be hedged.
    pub(crate) fn request(&self) {
        let next = |milli: i64| Some((milli + Self::PER_REQUEST).min(Self::FULL));
        let _unchanged = self.milli.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Takes a hedge; returns whether there was one.
    pub(crate) fn take(&self) -> bool {
        let next = |milli: i64| (milli >= Self::HEDGE).then_some(milli - Self::HEDGE);
        self.milli.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// What hedging remembers of routes and deployments. It outlives a reload; names come from the configuration, so both maps
/// are bounded by it.
#[derive(Debug, Default)]
pub(crate) struct Hedges {
    deployments: Mutex<HashMap<DeploymentName, Arc<FirstWords>, FixedState>>,
    routes: Mutex<HashMap<RouteName, Arc<HedgeBudget>, FixedState>>,
}

impl Hedges {
    pub(crate) fn deployment(&self, name: &DeploymentName) -> Arc<FirstWords> {
        Arc::clone(self.deployments.lock().entry(name.clone()).or_default())
    }

    pub(crate) fn route(&self, name: &RouteName) -> Arc<HedgeBudget> {
        Arc::clone(self.routes.lock().entry(name.clone()).or_default())
    }
}

/// The other one of two calls that are open at once: which of them, is turned round when the first ends.
#[derive(Debug)]
pub(crate) struct Rival {
    pub(crate) target: usize,
    pub(crate) began: MonoTime,
    pub(crate) expected: Expected,
    pub(crate) output_bound: Option<TokenCount>,
    pub(crate) held: CallHeld,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) credential: Option<Chosen>,
    /// A second slot of the tenant.
    pub(crate) slot: Option<Slot>,
}

impl Expected {
    /// Returns the likely input at the deployment that is asked next.
    pub(crate) fn input_there(&self) -> TokenCount {
        self.at.map_or(self.input, |(_, InputEstimate { likely, .. })| likely)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::TokenCount;

    use super::{FirstWords, HedgeBudget, SAMPLES, SAMPLES_MIN};

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_95th_percentile_is_known_from_enough_calls_of_the_same_size() {
        let (words, small) = (FirstWords::default(), TokenCount::new(10));
        for at in 1..SAMPLES_MIN as u64 {
            words.observe(small, millis(at));
            assert_eq!(words.p95(small), None);
        }
        words.observe(small, millis(SAMPLES_MIN as u64));
        assert_eq!(words.p95(small), Some(millis(38)));
        assert_eq!(words.p95(TokenCount::new(1_000)), None);
        for _ in 0..SAMPLES {
            words.observe(small, millis(7));
        }
        assert_eq!(words.p95(small), Some(millis(7)));
    }

    #[test]
    fn hedges_are_a_twentieth_of_the_requests() {
        let budget = HedgeBudget::default();
        assert!(!budget.take());
        let hedges = (0..2_000).filter(|_| {
            budget.request();
            budget.take()
        });
        assert_eq!(hedges.count(), 100);
        (0..10_000).for_each(|_| budget.request());
        assert_eq!((0..100).filter(|_| budget.take()).count(), 10);
    }
}
