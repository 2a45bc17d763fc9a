//! How often a deployment has failed lately, against how often it used to.

use std::time::Duration;

use gw_types::MonoTime;

/// The length of one slot.
const SLOT: Duration = Duration::from_secs(30);
/// Slots of the last hour.
const SLOTS: usize = 120;
/// Slots that are "lately": the one that runs and the one before it.
const RECENT: u64 = 2;
/// Calls below which a share says nothing, lately as well as before.
const CALLS_MIN: u64 = 20;
/// The square of the standard score that a difference must pass: 3, which chance alone passes once in 741 times.
const SCORE_SQUARED: u128 = 9;
/// How seldom chance alone may bring a run of failures: once in so many calls.
const RUN_CALLS: u64 = 10_000_000;
/// The longest run that is asked for: what fails more often than seven times in ten is judged by its share.
const RUN_LONGEST: u32 = 50;
/// Calls that are told apart; of more the proportion is kept. Keeps the test's products within 128 bits.
const CALLS_MAX: u64 = 1 << 24;

/// Calls and failures of the last hour.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// The number of the slot that runs.
    at: u64,
    slots: Box<[Slot; SLOTS]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    worked: u32,
    failed: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { at: 0, slots: Box::new([Slot::default(); SLOTS]) }
    }
}

/// Returns the number of the slot that an instant is in.
pub(crate) fn slot_of(now: MonoTime) -> u64 {
    now.nanos() / u64::try_from(SLOT.as_nanos()).unwrap_or(u64::MAX)
}

impl History {
    /// Counts what has worked in the slot that ran, and moves on to the one of the instant. Time never goes back.
    pub(crate) fn roll(&mut self, worked: u32, now: MonoTime) {
        let slot = self.slot(self.at);
        slot.worked = slot.worked.saturating_add(worked);
        let to = slot_of(now);
        for skipped in (self.at + 1..=to).take(SLOTS) {
            *self.slot(skipped) = Slot::default();
        }
        self.at = self.at.max(to);
    }

    /// Counts a failure in the slot that runs.
    pub(crate) fn failed(&mut self) {
        let slot = self.slot(self.at);
        slot.failed = slot.failed.saturating_add(1);
    }

    /// Forgets what was lately: it has led to a decision.
    pub(crate) fn forget_recent(&mut self) {
        for back in 0..RECENT.min(self.at + 1) {
            *self.slot(self.at - back) = Slot::default();
        }
    }

    /// Returns how many failures in a row are more than chance: at least `least`, and more where the deployment often
    /// fails, since busy deployments that fail one call in five see five in a row all the time.
    ///
    /// `running` failures of the run so far are no part of what is usual. Without a past it is `least`.
    pub(crate) fn run_of_note(&self, least: u32, running: u32) -> u32 {
        let sum = |of: fn(&Slot) -> u32| self.slots.iter().map(|slot| u64::from(of(slot))).sum::<u64>();
        let failed = sum(|slot| slot.failed).saturating_sub(running.into());
        let calls = failed + sum(|slot| slot.worked);
        if calls < CALLS_MIN {
            return least;
        }
        let (failed, calls) = scaled((failed, calls));
        // The chance of the run, in parts of 2^64; each further failure multiplies it.
        let (mut chance, mut length) = (1_u128 << 64, 0);
        while length < RUN_LONGEST && chance * u128::from(RUN_CALLS) > 1 << 64 {
            chance = chance * failed / calls;
            length += 1;
        }
        length.max(least)
    }

    /// Returns whether at least half of the latest calls failed, and far more than before in the last hour: a
    /// two-proportion test. A deployment that always fails so often has not changed, and one without a past is not judged.
    pub(crate) fn is_unusual(&self) -> bool {
        let mut recent = (0, 0);
        let mut past = (0, 0);
        // Slots before the clock's start are empty.
        for (index, slot) in self.slots.iter().enumerate() {
            let is_recent = (0..RECENT.min(self.at + 1)).any(|back| index == place(self.at - back));
            let (failed, calls) = if is_recent { &mut recent } else { &mut past };
            *failed += u64::from(slot.failed);
            *calls += u64::from(slot.failed) + u64::from(slot.worked);
        }
        let (failed, calls) = recent;
        calls >= CALLS_MIN && past.1 >= CALLS_MIN && failed * 2 >= calls && differs(recent, past)
    }

    fn slot(&mut self, number: u64) -> &mut Slot {
        &mut self.slots[place(number)]
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number % SLOTS as u64).unwrap_or_default()
}

/// Returns whether the first share of failures is above the second by more than chance explains. In integers: with
/// failures `f` of `n` and `g` of `m`, `(f m - g n)^2 (n + m) > z^2 (f + g) (n + m - f - g) n m`.
fn differs(recent: (u64, u64), past: (u64, u64)) -> bool {
    let ((f, n), (g, m)) = (scaled(recent), scaled(past));
    let (one, other) = (f * m, g * n);
    let worked = (n + m) - (f + g);
    one > other && (one - other).pow(2) * (n + m) > SCORE_SQUARED * (f + g) * worked * n * m
}

fn scaled((failed, calls): (u64, u64)) -> (u128, u128) {
    if calls <= CALLS_MAX {
        return (u128::from(failed), u128::from(calls));
    }
    (u128::from(failed) * u128::from(CALLS_MAX) / u128::from(calls), u128::from(CALLS_MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::MonoTime;

    use super::{History, differs};

    /// So many calls a slot: a quiet past, then the last slot.
    fn history(past_slots: u64, past: (u32, u32), recent: (u32, u32)) -> History {
        let mut history = History::default();
        let at = |slot: u64| MonoTime::ZERO.saturating_add(Duration::from_secs(30 * slot));
        let mut count = |slot: u64, (failed, worked): (u32, u32)| {
            history.roll(0, at(slot));
            (0..failed).for_each(|_| history.failed());
            history.roll(worked, at(slot));
        };
        (0..past_slots).for_each(|slot| count(slot, past));
        count(past_slots + 1, recent);
        history
    }

    #[track_caller]
    fn check(past_slots: u64, past: (u32, u32), recent: (u32, u32), unusual: bool) {
        assert_eq!(history(past_slots, past, recent).is_unusual(), unusual);
    }

    #[test]
    fn half_of_the_calls_must_fail_and_far_more_than_before() {
        check(10, (0, 100), (50, 50), true);
        check(10, (1, 99), (49, 51), false);
        check(10, (50, 50), (55, 45), false);
        check(10, (90, 10), (100, 0), true);
    }

    #[test]
    fn few_calls_and_no_past_say_nothing() {
        check(10, (0, 100), (10, 9), false);
        check(10, (0, 100), (10, 10), true);
        check(0, (0, 0), (50, 50), false);
        check(1, (0, 19), (50, 50), false);
        check(1, (0, 20), (50, 50), true);
    }

    #[track_caller]
    fn run(past: (u32, u32), running: u32, expected: u32) {
        let mut history = history(1, past, (0, 0));
        (0..running).for_each(|_| history.failed());
        assert_eq!(history.run_of_note(5, running), expected, "{past:?}");
    }

    #[test]
    fn a_run_is_of_note_where_chance_would_not_bring_it() {
        run((0, 1_000), 5, 5);
        run((3, 97), 5, 5);
        run((20, 80), 5, 11);
        run((20, 80), 11, 11);
        run((50, 50), 5, 24);
        run((95, 5), 5, super::RUN_LONGEST);
    }

    #[test]
    fn a_run_without_a_past_is_of_note_at_once() {
        run((0, 0), 5, 5);
        run((10, 9), 5, 5);
    }

    #[test]
    fn the_past_is_an_hour() {
        let mut history = history(10, (0, 100), (0, 0));
        let later = MonoTime::ZERO.saturating_add(Duration::from_secs(3_700 + 300));
        history.roll(0, later);
        (0..50).for_each(|_| history.failed());
        assert!(!history.is_unusual());
    }

    #[test]
    fn what_led_to_a_decision_is_forgotten() {
        let mut history = history(10, (0, 100), (50, 50));
        history.forget_recent();
        assert!(!history.is_unusual());
    }

    #[test]
    fn the_test_holds_for_any_number_of_calls() {
        let many = 120 * u64::from(u32::MAX);
        assert!(differs((many, many), (0, many)));
        assert!(!differs((0, many), (many, many)));
        assert!(!differs((many / 2, many), (many / 2, many)));
    }
}
