//! Money held for one request until it is known what it cost.

use gw_errors::GatewayError;
use gw_types::{Money, UtcTime};
use smallvec::SmallVec;

use crate::{Subject, quota::PeriodKey, refusal::ScopeRefusal, subject::SCOPES_MAX};

/// Caps on money of one request that need no allocation.
const HOLDS_INLINE: usize = 8;

/// Where money is held: the place of the scope, that of its cap, and the period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) node: u8,
    pub(crate) quota: u8,
    pub(crate) period: PeriodKey,
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
    amount: Money,
    dispatched: bool,
    /// Whether it was committed or released; a drop then does nothing.
    settled: bool,
    holds: SmallVec<[Hold; HOLDS_INLINE]>,
}

impl Reservation {
    pub(crate) fn new(subject: Subject, amount: Money, holds: SmallVec<[Hold; HOLDS_INLINE]>) -> Self {
        Self { subject, amount, dispatched: false, settled: false, holds }
    }

    /// Returns the amount held.
    pub const fn amount(&self) -> Money {
        self.amount
    }

    /// Raises the amount, in the reservation's own windows; an amount that is not larger changes nothing.
    ///
    /// # Errors
    /// `QuotaExceeded` if a window does not hold the difference; what was held stays held.
    pub fn raise_to(&mut self, amount: Money, utc: UtcTime) -> Result<(), GatewayError> {
        if amount <= self.amount {
            return Ok(());
        }
        let raised = self.subject.raise(&self.holds, self.amount, amount, utc);
        raised.map_err(|refused| ScopeRefusal::by_budgets(&self.subject, &refused).error)?;
        self.amount = amount;
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
        self.settle(actual);
        actual.saturating_sub(self.amount)
    }

    /// Gives everything back: it is proved that the provider did not process the call.
    pub fn release(mut self) {
        self.settle(Money::ZERO);
    }

    fn settle(&mut self, spent: Money) {
        if !std::mem::replace(&mut self.settled, true) && !self.holds.is_empty() {
            self.subject.settle(&self.holds, self.amount, spent);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let spent = if self.dispatched { self.amount } else { Money::ZERO };
        self.settle(spent);
    }
}
