//! Money per calendar window: spent, and reserved for what is in flight.

#[cfg(test)]
mod tests;

use std::time::Duration;

use gw_errors::{ErrorKind, GatewayError};
use gw_types::{Money, UtcTime};
use smallvec::SmallVec;

use crate::{BudgetConfig, BudgetSnapshot, config::names};

/// How many windows are kept: the current one and those before it whose requests may still be in flight.
///
/// A request that outlives so many windows settles into nothing, as nobody can ask for its window any more.
const PERIODS_KEPT: usize = 3;

/// What a refusal advises where only reservations stand in the way: they settle when their calls end.
const SETTLEMENT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A tenant's money. Guarded by the tenant's lock.
///
/// For every window, spent + reserved <= limit + what settlements charged beyond their reservation.
///
/// The wall clock may step. An instant belongs to the first kept window that ends after it, so a step back never opens
/// a fresh window: it finds the old one with all that was spent in it, or the oldest that is kept.
#[derive(Debug)]
pub(crate) struct Quota {
    budget: Option<BudgetConfig>,
    /// Oldest first, disjoint; the last one is the latest that was ever current.
    periods: SmallVec<[Period; PERIODS_KEPT]>,
    /// The latest instant at which money was reserved or restored.
    seen: UtcTime,
}

/// One window's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    start: UtcTime,
    end: UtcTime,
    spent: Money,
    reserved: Money,
}

/// Names the window that a reservation was made in, by its start.
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
    pub(crate) fn new(budget: Option<BudgetConfig>) -> Self {
        Self { budget, periods: SmallVec::new(), seen: UtcTime::from_micros(i64::MIN) }
    }

    pub(crate) const fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Changes limit and window; what was spent and reserved stays.
    ///
    /// Another kind of window takes over the current one's money and that of kept windows inside it. From hour to day
    /// the hours that are no longer kept are missing (the ledger knows them: see [`Quota::restore`]); from day to hour
    /// the first hour carries the whole day's spend, because a hard budget errs on the side of refusing.
    pub(crate) fn set_budget(&mut self, budget: Option<BudgetConfig>) {
        let before = self.budget.map(|budget| budget.window);
        self.budget = budget;
        let Some(window) = budget.map(|budget| budget.window).filter(|window| before != Some(*window)) else {
            return;
        };
        let Some(mut last) = self.periods.pop() else {
            return;
        };
        last.start = last.start.min(window.start_of(self.seen));
        last.end = window.end_of(self.seen);
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
        let Some(budget) = self.budget else { return Ok(()) };
        let period = self.peek(budget, utc);
        if period.spent >= budget.limit { Err(Refusal::Until(period.wait(utc))) } else { Ok(()) }
    }

    /// Holds `amount` in the current window; `None` where there is no budget to hold it in.
    pub(crate) fn reserve(&mut self, amount: Money, utc: UtcTime) -> Result<Option<PeriodKey>, Refusal> {
        let Some(budget) = self.budget else { return Ok(None) };
        let period = self.current(budget, utc);
        period.hold(amount, budget.limit, utc)?;
        Ok(Some(PeriodKey(period.start)))
    }

    /// Raises a reservation from `held` to `amount`, in the window that it was made in.
    pub(crate) fn raise(
        &mut self,
        key: PeriodKey,
        held: Money,
        amount: Money,
        utc: UtcTime,
    ) -> Result<(), Refusal> {
        let limit = self.budget.map(|budget| budget.limit);
        let more = amount.saturating_sub(held);
        match (self.find(key), limit) {
            (Some(_), Some(limit)) if amount > limit => Err(Refusal::NeverPossible),
            (Some(period), Some(limit)) => period.hold(more, limit, utc),
            (Some(period), None) => {
                period.reserved = period.reserved.saturating_add(more);
                Ok(())
            }
            (None, Some(_)) => Err(Refusal::WindowGone),
            (None, None) => Ok(()),
        }
    }

    /// Ends a reservation: `reserved` is no longer held, `spent` is spent.
    pub(crate) fn settle(&mut self, key: PeriodKey, reserved: Money, spent: Money) {
        if let Some(period) = self.find(key) {
            debug_assert!(period.reserved >= reserved, "more was settled than was reserved");
            period.reserved = period.reserved.saturating_sub(reserved);
            period.spent = period.spent.saturating_add(spent);
        }
    }

    /// Raises what the current window has spent to `spent`, if it is lower; so a repetition changes nothing.
    pub(crate) fn restore(&mut self, spent: Money, utc: UtcTime) {
        if let Some(budget) = self.budget {
            let period = self.current(budget, utc);
            period.spent = period.spent.max(spent);
        }
    }

    pub(crate) fn snapshot(&self, utc: UtcTime) -> Option<BudgetSnapshot> {
        let budget = self.budget?;
        let Period { spent, reserved, end, .. } = self.peek(budget, utc);
        Some(BudgetSnapshot { window: budget.window, limit: budget.limit, spent, reserved, resets_at: end })
    }

    fn find(&mut self, key: PeriodKey) -> Option<&mut Period> {
        self.periods.iter_mut().find(|period| period.start <= key.0 && key.0 < period.end)
    }

    /// The window that the instant belongs to, as it is or would be.
    fn peek(&self, budget: BudgetConfig, utc: UtcTime) -> Period {
        let fresh = Period::fresh(budget, utc);
        let kept = self.periods.iter().find(|period| utc < period.end);
        // At the very end of time a fresh window would end no later than the last one, and is not fresh.
        let last = self.periods.last().filter(|last| last.end >= fresh.end);
        *kept.or(last).unwrap_or(&fresh)
    }

    /// The window that the instant belongs to; it is kept from now on, and the oldest may be dropped for it.
    fn current(&mut self, budget: BudgetConfig, utc: UtcTime) -> &mut Period {
        self.seen = self.seen.max(utc);
        let period = self.peek(budget, utc);
        let at = self.periods.iter().position(|kept| kept.start == period.start).unwrap_or_else(|| {
            if self.periods.len() == PERIODS_KEPT {
                self.periods.remove(0);
            }
            self.periods.push(period);
            self.periods.len() - 1
        });
        &mut self.periods[at]
    }
}

impl Period {
    const fn fresh(budget: BudgetConfig, utc: UtcTime) -> Self {
        let (start, end) = (budget.window.start_of(utc), budget.window.end_of(utc));
        Self { start, end, spent: Money::ZERO, reserved: Money::ZERO }
    }

    fn hold(&mut self, amount: Money, limit: Money, utc: UtcTime) -> Result<(), Refusal> {
        let fits = |sum: Option<Money>| sum.is_some_and(|sum| sum <= limit);
        if amount > limit {
            return Err(Refusal::NeverPossible);
        }
        let settled = self.spent.checked_add(amount);
        if self.spent >= limit || !fits(settled) {
            return Err(Refusal::Until(self.wait(utc)));
        }
        if !fits(settled.and_then(|sum| sum.checked_add(self.reserved))) {
            return Err(Refusal::Held);
        }
        self.reserved = self.reserved.saturating_add(amount);
        Ok(())
    }

    fn wait(&self, utc: UtcTime) -> Duration {
        let micros = i128::from(self.end.micros()) - i128::from(utc.micros());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

impl Refusal {
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
