//! Money per calendar window: spent, and reserved for what is in flight.

#[cfg(test)]
mod tests;

use std::time::Duration;

use gw_errors::{ErrorKind, GatewayError};
use gw_types::{Money, UtcTime};
use smallvec::SmallVec;

use crate::{BudgetEstimate, QuotaConfig, QuotaSnapshot, QuotaWindow, config::names};

/// How many calendar windows are kept: the current one and those before it whose requests may still be in flight.
///
/// A request that outlives so many windows settles into nothing, as nobody can ask for its window any more.
const PERIODS_KEPT: usize = 3;

/// In how many parts a rolling window moves on. More parts free what was spent sooner and keep more numbers.
const ROLLING_PARTS: u32 = 16;
/// The parts that a rolling window can touch, and one that it has just left.
const ROLLING_PERIODS_KEPT: usize = ROLLING_PARTS as usize + 2;

/// What a refusal advises where only reservations stand in the way: they settle when their calls end.
const SETTLEMENT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// One cap on money. Guarded by its scope's lock.
///
/// For every window, spent + reserved <= limit + what settlements charged beyond their reservation.
///
/// A calendar window is one period. A rolling window is counted in parts of a sixteenth, and a part counts as long as
/// any of it is inside the window: so the cap holds in every stretch of that length, and what was spent is free again
/// at most a sixteenth later than it might be. (The usual sliding counter assumes an even past and lets bursts pass.)
///
/// The wall clock may step. An instant belongs to the first kept period that ends after it, so a step back never opens
/// a fresh window: it finds the old one with all that was spent in it, or the oldest that is kept.
#[derive(Debug)]
pub(crate) struct Quota {
    rule: Option<QuotaConfig>,
    /// Oldest first, disjoint; the last one is the latest that was ever current.
    periods: SmallVec<[Period; PERIODS_KEPT]>,
    /// The latest instant at which money was reserved or restored.
    seen: UtcTime,
}

/// One window's money, or that of one part of a rolling window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    start: UtcTime,
    end: UtcTime,
    spent: Money,
    reserved: Money,
}

/// Names the period that a reservation was made in, by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeriodKey(UtcTime);

/// Why money was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The window is spent, or what is left does not hold the amount.
    Until(Duration),
    /// It would fit if the reservations in flight settled at nothing.
    Held,
    /// No window holds the amount.
    NeverPossible,
    /// The reservation's window is kept no more, so it cannot be shown that the amount fits into it.
    WindowGone,
}

impl Quota {
    pub(crate) fn new(rule: Option<QuotaConfig>) -> Self {
        Self { rule, periods: SmallVec::new(), seen: UtcTime::from_micros(i64::MIN) }
    }

    pub(crate) const fn has_budget(&self) -> bool {
        self.rule.is_some()
    }

    pub(crate) fn estimate(&self) -> BudgetEstimate {
        self.rule.as_ref().map_or(BudgetEstimate::Bound, |rule| rule.estimate)
    }

    pub(crate) const fn rule(&self) -> Option<&QuotaConfig> {
        self.rule.as_ref()
    }

    /// Changes limit and window; what was spent and reserved stays.
    ///
    /// Another kind of window takes over the current one's money and that of kept windows inside it. From hour to day
    /// the hours that are no longer kept are missing (the ledger knows them: see [`Quota::restore`]); from day to hour
    /// the first hour carries the whole day's spend, because a hard budget errs on the side of refusing.
    pub(crate) fn set_rule(&mut self, rule: Option<QuotaConfig>) {
        let before = std::mem::replace(&mut self.rule, rule);
        let Some(rule) = &self.rule else { return };
        if before.is_some_and(|before| before.window == rule.window) {
            return;
        }
        let Some(mut last) = self.periods.pop() else { return };
        let fresh = Period::fresh(rule, self.seen);
        last.start = last.start.min(fresh.start);
        last.end = fresh.end;
        self.periods.retain(|period| {
            let inside = period.start >= last.start;
            if inside {
                last.spent = last.spent.saturating_add(period.spent);
                last.reserved = last.reserved.saturating_add(period.reserved);
            }
            !inside
        });
        self.periods.push(last);
    }

    /// Refuses if the window is spent; inclusive at the boundary.
    pub(crate) fn check(&self, utc: UtcTime) -> Result<(), Refusal> {
        let Some(rule) = &self.rule else { return Ok(()) };
        let period = self.peek(rule, utc);
        if self.live(rule, &period, utc).spent < rule.limit {
            return Ok(());
        }
        Err(Refusal::Until(self.wait(rule, &period, Money::ZERO, utc)))
    }

    /// Says whether the current window would hold `amount`; opens the window and holds nothing.
    pub(crate) fn verdict(&mut self, amount: Money, utc: UtcTime) -> Result<(), Refusal> {
        let Some(period) = self.current(utc).copied() else { return Ok(()) };
        self.rule.as_ref().map_or(Ok(()), |rule| self.fits(rule, &period, amount, utc))
    }

    /// Holds an amount that was found to fit under the same lock; `None` where there is no budget to hold it in.
    pub(crate) fn hold(&mut self, amount: Money, utc: UtcTime) -> Option<PeriodKey> {
        let period = self.current(utc)?;
        period.reserved = period.reserved.saturating_add(amount);
        Some(PeriodKey(period.start))
    }

    /// Says whether a reservation may grow from `held` to `amount` in its own window, and changes nothing.
    pub(crate) fn raise_verdict(
        &self,
        key: PeriodKey,
        held: Money,
        amount: Money,
        utc: UtcTime,
    ) -> Result<(), Refusal> {
        let Some(rule) = &self.rule else { return Ok(()) };
        if amount > rule.limit {
            return Err(Refusal::NeverPossible);
        }
        let period = self.find(key).ok_or(Refusal::WindowGone)?;
        let more = amount.saturating_sub(held);
        self.fits(rule, &period, more, utc)?;
        // A rolling window must hold it in every stretch that ends after the reservation was made, not only in today's.
        self.fits(rule, &period, more, utc.min(period.start))
    }

    /// Raises a reservation by `more`, as found to fit under the same lock.
    pub(crate) fn raise(&mut self, key: PeriodKey, more: Money) {
        if let Some(period) = self.find_mut(key) {
            period.reserved = period.reserved.saturating_add(more);
        }
    }

    /// Ends a reservation: `reserved` is no longer held, `spent` is spent.
    pub(crate) fn settle(&mut self, key: PeriodKey, reserved: Money, spent: Money) {
        if let Some(period) = self.find_mut(key) {
            debug_assert!(period.reserved >= reserved, "more was settled than was reserved");
            period.reserved = period.reserved.saturating_sub(reserved);
            period.spent = period.spent.saturating_add(spent);
        }
    }

    /// Raises what the current window has spent to `spent`, if it is lower; so a repetition changes nothing.
    pub(crate) fn restore(&mut self, spent: Money, utc: UtcTime) {
        let Some(rule) = &self.rule else { return };
        let known = self.live(rule, &self.peek(rule, utc), utc).spent;
        if let Some(period) = self.current(utc) {
            period.spent = period.spent.saturating_add(spent.saturating_sub(known));
        }
    }

    pub(crate) fn snapshot(&self, utc: UtcTime) -> Option<QuotaSnapshot> {
        let rule = self.rule.as_ref()?;
        let period = self.peek(rule, utc);
        let Sum { spent, reserved } = self.live(rule, &period, utc);
        let resets_at = match &rule.window {
            QuotaWindow::Calendar { .. } => period.end,
            QuotaWindow::Rolling { length } => period.end.saturating_add(*length),
        };
        Some(QuotaSnapshot { window: rule.window.clone(), limit: rule.limit, spent, reserved, resets_at })
    }

    /// Returns when the current window begins and ends.
    pub(crate) fn bounds(&self, utc: UtcTime) -> Option<(UtcTime, UtcTime)> {
        let period = self.peek(self.rule.as_ref()?, utc);
        Some((period.start, period.end))
    }

    fn find(&self, key: PeriodKey) -> Option<Period> {
        self.periods.iter().find(|period| period.start <= key.0 && key.0 < period.end).copied()
    }

    fn find_mut(&mut self, key: PeriodKey) -> Option<&mut Period> {
        self.periods.iter_mut().find(|period| period.start <= key.0 && key.0 < period.end)
    }

    /// The period that the instant belongs to, as it is or would be.
    fn peek(&self, rule: &QuotaConfig, utc: UtcTime) -> Period {
        // The kept ones first: the bounds of a fresh one may have to be asked of a time zone.
        if let Some(kept) = self.periods.iter().find(|period| utc < period.end) {
            return *kept;
        }
        let fresh = Period::fresh(rule, utc);
        // At the very end of time a fresh window would end no later than the last one, and is not fresh.
        let last = self.periods.last().filter(|last| last.end >= fresh.end);
        *last.unwrap_or(&fresh)
    }

    /// The period that the instant belongs to; it is kept from now on, and the oldest may be dropped for it.
    fn current(&mut self, utc: UtcTime) -> Option<&mut Period> {
        let rule = self.rule.as_ref()?;
        self.seen = self.seen.max(utc);
        let mut period = self.peek(rule, utc);
        let at = self.periods.iter().position(|kept| kept.start == period.start).unwrap_or_else(|| {
            // After a change of the rule a fresh period may reach back into one that is kept.
            period.start = self.periods.last().map_or(period.start, |last| last.end.max(period.start));
            if self.periods.len() >= rule.window.periods_kept() {
                self.periods.remove(0);
            }
            self.periods.push(period);
            self.periods.len() - 1
        });
        self.periods.get_mut(at)
    }

    /// What counts at `utc`: the period alone, or all parts that the rolling window up to then touches.
    fn live(&self, rule: &QuotaConfig, period: &Period, utc: UtcTime) -> Sum {
        match rule.window {
            QuotaWindow::Calendar { .. } => Sum { spent: period.spent, reserved: period.reserved },
            QuotaWindow::Rolling { length } => {
                let inside = self.periods.iter().filter(|kept| kept.end.saturating_add(length) > utc);
                inside.fold(Sum::default(), |sum, kept| Sum {
                    spent: sum.spent.saturating_add(kept.spent),
                    reserved: sum.reserved.saturating_add(kept.reserved),
                })
            }
        }
    }

    fn fits(&self, rule: &QuotaConfig, period: &Period, amount: Money, utc: UtcTime) -> Result<(), Refusal> {
        let fits = |sum: Option<Money>| sum.is_some_and(|sum| sum <= rule.limit);
        if amount > rule.limit {
            return Err(Refusal::NeverPossible);
        }
        let Sum { spent, reserved } = self.live(rule, period, utc);
        let settled = spent.checked_add(amount);
        if spent >= rule.limit || !fits(settled) {
            return Err(Refusal::Until(self.wait(rule, period, amount, utc)));
        }
        if !fits(settled.and_then(|sum| sum.checked_add(reserved))) {
            return Err(Refusal::Held);
        }
        Ok(())
    }

    /// The time until what is spent leaves room for `amount`, if nothing more is spent.
    fn wait(&self, rule: &QuotaConfig, period: &Period, amount: Money, utc: UtcTime) -> Duration {
        let QuotaWindow::Rolling { length } = rule.window else { return time_between(utc, period.end) };
        let mut spent = self.live(rule, period, utc).spent;
        for kept in self.periods.iter().filter(|kept| kept.end.saturating_add(length) > utc) {
            spent = spent.saturating_sub(kept.spent);
            if spent < rule.limit && spent.saturating_add(amount) <= rule.limit {
                return time_between(utc, kept.end.saturating_add(length));
            }
        }
        length
    }
}

/// Money spent and held.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    spent: Money,
    reserved: Money,
}

impl QuotaWindow {
    /// The first instant that counts at `utc`.
    pub(crate) fn start_of(&self, utc: UtcTime) -> UtcTime {
        match self {
            Self::Calendar { window, zone } => zone.window(*window, utc).0,
            Self::Rolling { length } => {
                let length = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
                UtcTime::from_micros(utc.micros().saturating_sub(length))
            }
        }
    }

    const fn periods_kept(&self) -> usize {
        match self {
            Self::Calendar { .. } => PERIODS_KEPT,
            Self::Rolling { .. } => ROLLING_PERIODS_KEPT,
        }
    }
}

impl Period {
    fn fresh(rule: &QuotaConfig, utc: UtcTime) -> Self {
        let (start, end) = match &rule.window {
            QuotaWindow::Calendar { window, zone } => zone.window(*window, utc),
            QuotaWindow::Rolling { length } => {
                let part = (length.as_micros() / u128::from(ROLLING_PARTS)).max(1);
                let part = i64::try_from(part).unwrap_or(i64::MAX);
                let start = utc.micros().saturating_sub(utc.micros().rem_euclid(part));
                (UtcTime::from_micros(start), UtcTime::from_micros(start.saturating_add(part)))
            }
        };
        Self { start, end, spent: Money::ZERO, reserved: Money::ZERO }
    }
}

fn time_between(utc: UtcTime, end: UtcTime) -> Duration {
    let micros = i128::from(end.micros()) - i128::from(utc.micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

impl Refusal {
    /// Returns the one that waiting helps least against; of several waits the longest.
    pub(crate) fn hardest(refused: &[(usize, Self)]) -> Self {
        let rank = |refusal: &Self| match refusal {
            Self::Held => (0, Duration::ZERO),
            Self::Until(wait) => (1, *wait),
            Self::WindowGone => (2, Duration::ZERO),
            Self::NeverPossible => (3, Duration::ZERO),
        };
        refused.iter().map(|(_, refusal)| *refusal).max_by_key(rank).unwrap_or(Self::Held)
    }

    pub(crate) fn into_error(self) -> GatewayError {
        let error =
            |message| GatewayError::new(ErrorKind::QuotaExceeded, message).with_subject(names::BUDGET);
        match self {
            Self::Until(wait) => error("too little is left of the money window").with_retry_after(wait),
            Self::Held => error("requests in flight hold what is left of the money window")
                .with_retry_after(SETTLEMENT_RETRY_AFTER),
            Self::NeverPossible => {
                error("the request may cost more than a whole money window holds").without_retry()
            }
            Self::WindowGone => error("the money window of the request ended too long ago").without_retry(),
        }
    }
}
