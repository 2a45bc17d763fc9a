//! Money held for one request until it is known what it cost.

use gw_errors::GatewayError;
use gw_types::{Money, UtcTime};
use smallvec::SmallVec;

use crate::{BudgetEstimate, Subject, quota::PeriodKey, refusal::ScopeRefusal, subject::SCOPES_MAX};

/// Caps on money of one request that need no allocation.
const HOLDS_INLINE: usize = 8;

/// What a request may cost, as each kind of cap reserves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worth {
    /// The most that it can cost.
    pub bound: Money,
    /// What it will hardly ever cost more than; at most the bound, and the bound as long as that is not known.
    pub calibrated: Money,
}

impl Worth {
    /// Returns the sums.
    #[must_use]
    pub const fn plus(self, money: Money) -> Self {
        Self { bound: self.bound.saturating_add(money), calibrated: self.calibrated.saturating_add(money) }
    }

    /// Returns what a cap reserves.
    pub(crate) const fn by(self, estimate: BudgetEstimate) -> Money {
        match estimate {
            BudgetEstimate::Bound => self.bound,
            BudgetEstimate::Calibrated => self.calibrated,
        }
    }

    fn max(self, other: Self) -> Self {
        Self { bound: self.bound.max(other.bound), calibrated: self.calibrated.max(other.calibrated) }
    }
}

impl From<Money> for Worth {
    fn from(money: Money) -> Self {
        Self { bound: money, calibrated: money }
    }
}

/// Where money is held: the place of the scope, that of its cap, the period, and which amount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) node: u8,
    pub(crate) quota: u8,
    pub(crate) period: PeriodKey,
    pub(crate) estimate: BudgetEstimate,
}

const _: () = assert!(SCOPES_MAX <= u8::MAX as usize, "a place fits into a byte");

/// Money held for one request: reserved, then dispatched, then committed or released exactly once.
///
/// It belongs to the windows in which it was made, and counts as reserved there until it is settled, also after a
/// window's end. Dropped before [`Reservation::dispatched`] it is released; dropped after, the provider may have
/// billed the call, so the reserved amount is committed. A subject without a budget gets one that holds nothing.
#[must_use = "dropping it settles it"]
#[derive(Debug)]
pub struct Reservation {
    subject: Subject,
    worth: Worth,
    dispatched: bool,
    /// Whether it was committed or released; a drop then does nothing.
    settled: bool,
    holds: SmallVec<[Hold; HOLDS_INLINE]>,
}

impl Reservation {
    pub(crate) fn new(subject: Subject, worth: Worth, holds: SmallVec<[Hold; HOLDS_INLINE]>) -> Self {
        Self { subject, worth, dispatched: false, settled: false, holds }
    }

    /// Returns the amount held: where caps hold different ones, the smallest, so that no cap has more overrun than is
    /// reported against it.
    pub fn amount(&self) -> Money {
        let held = self.holds.iter().map(|hold| self.worth.by(hold.estimate)).min();
        held.unwrap_or(self.worth.bound)
    }

    /// Returns whether any cap holds the amount.
    pub fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Raises the amounts, in the reservation's own windows; one that is not larger changes nothing.
    ///
    /// # Errors
    /// `QuotaExceeded` if a window does not hold the difference; what was held stays held.
    pub fn raise_to(&mut self, worth: impl Into<Worth>, utc: UtcTime) -> Result<(), GatewayError> {
        let worth = self.worth.max(worth.into());
        if worth == self.worth {
            return Ok(());
        }
        let raised = self.subject.raise(&self.holds, self.worth, worth, utc);
        raised.map_err(|refused| ScopeRefusal::by_budgets(&self.subject, &refused).error)?;
        self.worth = worth;
        Ok(())
    }

    /// Marks that the call may have reached the provider: from now on a drop commits.
    pub const fn dispatched(&mut self) {
        self.dispatched = true;
    }

    /// Returns whether a drop would commit.
    pub const fn is_dispatched(&self) -> bool {
        self.dispatched
    }

    /// Spends the actual cost and gives the rest back; returns the overrun, what the cost is above the amount held.
    ///
    /// The whole cost is spent, overrun included: it was billed.
    pub fn commit(mut self, actual: Money) -> Money {
        self.settle(Some(actual));
        actual.saturating_sub(self.amount())
    }

    /// Gives everything back: it is proved that the provider did not process the call.
    pub fn release(mut self) {
        self.settle(Some(Money::ZERO));
    }

    /// Ends it; `None`: each cap spends what it holds.
    fn settle(&mut self, spent: Option<Money>) {
        if !std::mem::replace(&mut self.settled, true) && !self.holds.is_empty() {
            self.subject.settle(&self.holds, self.worth, spent);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.settle(if self.dispatched { None } else { Some(Money::ZERO) });
    }
}
