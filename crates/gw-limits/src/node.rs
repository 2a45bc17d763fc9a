//! One scope's limits under one lock.

use std::sync::Arc;

use gw_types::MonoTime;
use smallvec::SmallVec;

use crate::{
    Scope,
    gauge::Gauge,
    queue::Pool,
    quota::Quota,
    rates::Rates,
    scopes::NodeLimits,
    slots::Share,
    sync::{Mutex, MutexGuard},
};

/// The limits of one scope and what has been used of them.
///
/// One small lock guards all of it, held for some tens of nanoseconds and never across a call out of this crate.
#[derive(Debug)]
pub(crate) struct Node {
    scope: Scope,
    /// Only a tenant draws from it.
    pool: Option<Arc<Pool>>,
    state: Mutex<NodeState>,
}

#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) rates: Rates,
    /// By their place in the configuration; one that was removed stays as a cap without a rule, because reservations
    /// name it by its place.
    pub(crate) quotas: SmallVec<[Quota; 1]>,
    pub(crate) share: Share,
}

impl Node {
    pub(crate) fn new(scope: Scope, limits: &NodeLimits, pool: Option<Arc<Pool>>, now: MonoTime) -> Self {
        let state = NodeState {
            rates: Rates::new(limits, now),
            quotas: limits.budgets.iter().cloned().map(Quota::new).collect(),
            share: Share::new(limits),
        };
        Self { scope, pool, state: Mutex::new(state) }
    }

    pub(crate) const fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock()
    }

    pub(crate) const fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// Slots of the pool that no tenant has reserved.
    pub(crate) fn shared(&self) -> Option<&Gauge> {
        self.pool.as_ref().map(|pool| &pool.shared)
    }

    /// Changes every limit; fill levels, spend and calls in flight stay.
    pub(crate) fn set(&self, limits: &NodeLimits, now: MonoTime) {
        let mut state = self.lock();
        state.rates.set(limits, now);
        state.share.set(limits.max_concurrency, limits.reserved_concurrency, self.shared());
        for (at, quota) in state.quotas.iter_mut().enumerate() {
            quota.set_rule(limits.budgets.get(at).cloned().flatten());
        }
        let new = limits.budgets.iter().skip(state.quotas.len()).cloned().map(Quota::new);
        let new: SmallVec<[Quota; 1]> = new.collect();
        state.quotas.extend(new);
    }

    /// Reserves at most `reserved` slots from now on.
    pub(crate) fn lower_share(&self, reserved: u32) {
        let mut state = self.lock();
        let (max, lower) = (state.share.max(), state.share.snapshot().reserved.min(reserved));
        state.share.set(max, lower, self.shared());
    }
}
