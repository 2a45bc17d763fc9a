//! One tenant's limits under one lock.

use std::sync::Arc;

use gw_errors::GatewayError;
use gw_types::{Money, MonoTime, TenantId, TokenCount, UtcTime};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    Admission, LimitRefusal, Reservation, Slot, TenantSnapshot,
    config::ValidTenant,
    gauge::Gauge,
    quota::{Quota, Refusal},
    rates::Rates,
    slots::{NoSlot, Share},
};

/// The limits of one tenant and what it has used of them.
///
/// One small lock guards all of it, held for some tens of nanoseconds and never across a call out of this crate, so
/// every decision and every snapshot is one step for other threads. Errors are made after it is released. Nothing is
/// allocated where a request is let through.
#[derive(Debug)]
pub struct TenantLimits {
    id: TenantId,
    /// Slots of the pool that no tenant has reserved.
    shared: Arc<Gauge>,
    state: Mutex<TenantState>,
}

#[derive(Debug)]
pub(crate) struct TenantState {
    pub(crate) rates: Rates,
    pub(crate) quota: Quota,
    share: Share,
}

impl TenantLimits {
    pub(crate) fn new(id: TenantId, limits: &ValidTenant, shared: Arc<Gauge>, now: MonoTime) -> Self {
        let rates = Rates::new(limits, now);
        let state = TenantState { rates, quota: Quota::new(limits.budget), share: Share::new(limits) };
        Self { id, shared, state: Mutex::new(state) }
    }

    /// Returns the tenant's name.
    pub const fn id(&self) -> &TenantId {
        &self.id
    }

    /// Returns whether money is limited.
    pub fn has_budget(&self) -> bool {
        self.state().quota.has_budget()
    }

    /// Returns whether tokens a minute are limited.
    pub fn has_token_limit(&self) -> bool {
        self.state().rates.has_token_limit()
    }

    /// Refuses if the money window is spent: the cheapest refusal, before anything is taken.
    ///
    /// # Errors
    /// `QuotaExceeded` if spent >= limit, with the time to the window's end.
    pub fn check_quota(&self, utc: UtcTime) -> Result<(), GatewayError> {
        let verdict = self.state().quota.check(utc);
        verdict.map_err(Refusal::into_error)
    }

    /// Takes one request and `tokens` tokens from the rates, or nothing from either.
    ///
    /// # Errors
    /// [`LimitRefusal`] names every limit that refused.
    pub fn admit(self: &Arc<Self>, tokens: TokenCount, now: MonoTime) -> Result<Admission, LimitRefusal> {
        let verdict = self.state().rates.take(tokens.get(), now);
        match verdict {
            Ok(taken) => Ok(Admission::new(Arc::clone(self), taken)),
            Err(refused) => Err(LimitRefusal::new(refused, now)),
        }
    }

    /// Holds `amount` of the current money window.
    ///
    /// # Errors
    /// `QuotaExceeded` if spent + reserved + amount would pass the limit or spent has reached it. `retry_after` is the
    /// time to the window's end, or short where only requests in flight stand in the way; an amount above the limit
    /// has none and forbids a retry.
    pub fn reserve(self: &Arc<Self>, amount: Money, utc: UtcTime) -> Result<Reservation, GatewayError> {
        let verdict = self.state().quota.reserve(amount, utc);
        let period = verdict.map_err(Refusal::into_error)?;
        Ok(Reservation::new(Arc::clone(self), amount, period))
    }

    /// Takes a slot: one of the tenant's reserved ones while any is free, else a shared one.
    ///
    /// # Errors
    /// `RateLimited` if the tenant's own cap is reached, `Overloaded` if every shared slot is in use.
    pub fn slot(self: &Arc<Self>) -> Result<Slot, GatewayError> {
        let verdict = self.state().share.take(&self.shared);
        verdict.map_err(NoSlot::into_error)?;
        Ok(Slot::new(Arc::clone(self)))
    }

    /// Raises what the current window has spent to `spent`, as read from the ledger; a repetition changes nothing.
    pub fn restore_spend(&self, spent: Money, utc: UtcTime) {
        self.state().quota.restore(spent, utc);
    }

    /// Returns limits and use, all of the same instant.
    pub fn snapshot(&self, now: MonoTime, utc: UtcTime) -> TenantSnapshot {
        let mut state = self.state();
        let (requests, tokens) = state.rates.snapshot(now);
        let (concurrency, budget) = (state.share.snapshot(), state.quota.snapshot(utc));
        TenantSnapshot { requests, tokens, concurrency, budget }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, TenantState> {
        self.state.lock()
    }

    pub(crate) fn slot_back(&self) {
        self.state().share.give_back(&self.shared);
    }

    /// Changes every limit; fill levels, spend and calls in flight stay.
    pub(crate) fn set(&self, limits: &ValidTenant, now: MonoTime) {
        let mut state = self.state();
        state.rates.set(limits, now);
        state.quota.set_budget(limits.budget);
        state.share.set(limits.max_concurrency, limits.reserved_concurrency, &self.shared);
    }

    /// Reserves at most `reserved` slots from now on.
    pub(crate) fn lower_share(&self, reserved: u32) {
        let mut state = self.state();
        let (max, lower) = (state.share.max(), state.share.snapshot().reserved.min(reserved));
        state.share.set(max, lower, &self.shared);
    }
}
