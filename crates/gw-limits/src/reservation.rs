//! Money held for one request until it is known what it cost.

use std::sync::Arc;

use gw_errors::GatewayError;
use gw_types::{Money, UtcTime};

use crate::{
    TenantLimits,
    quota::{PeriodKey, Refusal},
};

/// Money held for one request: reserved, then dispatched, then committed or released exactly once.
///
/// It belongs to the window in which it was made, and counts as reserved there until it is settled, also after the
/// window's end. Dropped before [`Reservation::dispatched`] it is released; dropped after, the provider may have
/// billed the call, so the reserved amount is committed. A tenant without a budget gets one that holds nothing.
#[must_use = "dropping it settles it"]
#[derive(Debug)]
pub struct Reservation {
    tenant: Arc<TenantLimits>,
    amount: Money,
    dispatched: bool,
    /// `None` once settled, and where there is no budget.
    period: Option<PeriodKey>,
}

impl Reservation {
    pub(crate) const fn new(tenant: Arc<TenantLimits>, amount: Money, period: Option<PeriodKey>) -> Self {
        Self { tenant, amount, dispatched: false, period }
    }

    /// Returns the amount held.
    pub const fn amount(&self) -> Money {
        self.amount
    }

    /// Raises the amount, in the reservation's own window; an amount that is not larger changes nothing.
    ///
    /// # Errors
    /// `QuotaExceeded` if the window does not hold the difference; what was held stays held.
    pub fn raise_to(&mut self, amount: Money, utc: UtcTime) -> Result<(), GatewayError> {
        if amount <= self.amount {
            return Ok(());
        }
        if let Some(period) = self.period {
            let raised = self.tenant.state().quota.raise(period, self.amount, amount, utc);
            raised.map_err(Refusal::into_error)?;
        }
        self.amount = amount;
        Ok(())
    }

    /// Marks that the call may have reached the provider: from now on a drop commits.
    pub const fn dispatched(&mut self) {
        self.dispatched = true;
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
        if let Some(period) = self.period.take() {
            self.tenant.state().quota.settle(period, self.amount, spent);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let spent = if self.dispatched { self.amount } else { Money::ZERO };
        self.settle(spent);
    }
}
