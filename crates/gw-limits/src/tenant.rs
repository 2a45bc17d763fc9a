//! One tenant's own limits: the case of a request that concerns one scope.

use std::sync::Arc;

use gw_errors::GatewayError;
use gw_types::{Money, MonoTime, TenantId, TokenCount, UtcTime};
use smallvec::smallvec;

use crate::{
    Admission, LimitRefusal, Reservation, Slot, Subject, TenantSnapshot,
    node::Node,
    quota::{Quota, Refusal},
    slots::NoSlot,
};

/// The limits of one tenant and what it has used of them.
///
/// Every decision and every snapshot is one step for other threads. Errors are made after the lock is released.
/// Nothing is allocated where a request is let through. Its keys, organisations and models have limits of their own,
/// which only a [`Subject`] brings together.
#[derive(Debug)]
pub struct TenantLimits {
    id: TenantId,
    node: Arc<Node>,
    /// The tenant and nobody else.
    alone: Subject,
}

impl TenantLimits {
    pub(crate) fn new(id: TenantId, node: Node) -> Self {
        let node = Arc::new(node);
        let alone = Subject::new(smallvec![Arc::clone(&node)]);
        Self { id, node, alone }
    }

    /// Returns the tenant's name.
    pub const fn id(&self) -> &TenantId {
        &self.id
    }

    /// Returns whether money is limited.
    pub fn has_budget(&self) -> bool {
        self.alone.has_budget()
    }

    /// Returns whether tokens a minute are limited.
    pub fn has_token_limit(&self) -> bool {
        self.alone.has_token_limit()
    }

    /// Refuses if the money window is spent: the cheapest refusal, before anything is taken.
    ///
    /// # Errors
    /// `QuotaExceeded` if spent >= limit, with the time to the window's end.
    pub fn check_quota(&self, utc: UtcTime) -> Result<(), GatewayError> {
        self.alone.quota_verdicts(utc).map_err(|refused| Refusal::hardest(&refused).into_error())
    }

    /// Takes one request and `tokens` tokens from the rates, or nothing from either.
    ///
    /// # Errors
    /// [`LimitRefusal`] names every limit that refused.
    pub fn admit(self: &Arc<Self>, tokens: TokenCount, now: MonoTime) -> Result<Admission, LimitRefusal> {
        self.alone.take_rates(tokens, now).map_err(|refused| LimitRefusal::by_rates(&refused, now))
    }

    /// Holds `amount` of the current money window.
    ///
    /// # Errors
    /// `QuotaExceeded` if spent + reserved + amount would pass the limit or spent has reached it. `retry_after` is the
    /// time to the window's end, or short where only requests in flight stand in the way; an amount above the limit
    /// has none and forbids a retry.
    pub fn reserve(self: &Arc<Self>, amount: Money, utc: UtcTime) -> Result<Reservation, GatewayError> {
        self.alone.hold(amount.into(), utc).map_err(|refused| Refusal::hardest(&refused).into_error())
    }

    /// Takes a slot: one of the tenant's reserved ones while any is free, else a shared one.
    ///
    /// # Errors
    /// `RateLimited` if the tenant's own cap is reached, `Overloaded` if every shared slot is in use.
    pub fn slot(self: &Arc<Self>) -> Result<Slot, GatewayError> {
        let why = |refused: &[(usize, NoSlot)]| refused.first().map_or(NoSlot::Pool, |(_, why)| *why);
        self.alone.try_slot().map_err(|refused| why(&refused).into_error())
    }

    /// Raises what the current window has spent to `spent`, as read from the ledger; a repetition changes nothing.
    pub fn restore_spend(&self, spent: Money, utc: UtcTime) {
        if let Some(quota) = self.node.lock().quotas.first_mut() {
            quota.restore(spent, utc);
        }
    }

    /// Returns limits and use, all of the same instant; of several budgets the first that is one of a calendar window.
    pub fn snapshot(&self, now: MonoTime, utc: UtcTime) -> TenantSnapshot {
        let mut state = self.node.lock();
        let (requests, tokens) = state.rates.snapshot(now);
        let calendar = |quota: &Quota| quota.snapshot(utc)?.as_budget();
        let budget = state.quotas.iter().find_map(calendar);
        TenantSnapshot { requests, tokens, concurrency: state.share.snapshot(), budget }
    }

    pub(crate) const fn node(&self) -> &Arc<Node> {
        &self.node
    }
}
