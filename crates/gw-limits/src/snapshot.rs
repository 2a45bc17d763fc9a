//! What a tenant has used and has left, read at one instant.

use std::time::Duration;

use gw_types::{Money, MonoTime, UtcTime};

use crate::{QuotaWindow, Scope, Window, node::NodeState};

/// A tenant's limits and their use, all read under one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantSnapshot {
    /// Requests a minute; `None`: no limit.
    pub requests: Option<BucketSnapshot>,
    /// Tokens a minute; `None`: no limit.
    pub tokens: Option<BucketSnapshot>,
    /// Calls at once.
    pub concurrency: ConcurrencySnapshot,
    /// The money window that the instant falls into; `None`: no budget.
    pub budget: Option<BudgetSnapshot>,
}

/// A bucket and its fill level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSnapshot {
    /// The most that the bucket holds.
    pub limit: u64,
    /// What is in it; 0 in debt.
    pub remaining: u64,
    /// How long until it is full if nobody takes anything.
    pub reset_after: Duration,
}

/// Calls at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencySnapshot {
    /// The tenant's cap; `None`: only the pool bounds it.
    pub limit: Option<u32>,
    /// Slots that are kept for the tenant alone.
    pub reserved: u32,
    /// Slots in use.
    pub in_use: u32,
}

/// A money window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSnapshot {
    /// The kind of window.
    pub window: Window,
    /// What may be spent in it.
    pub limit: Money,
    /// What was spent in it.
    pub spent: Money,
    /// What is held for requests of this window that are not settled.
    pub reserved: Money,
    /// When the next window begins.
    pub resets_at: UtcTime,
}

/// One scope's limits and their use, all read under one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeSnapshot {
    /// The scope.
    pub scope: Scope,
    /// Requests a minute; `None`: no limit.
    pub requests: Option<BucketSnapshot>,
    /// Tokens a minute; `None`: no limit.
    pub tokens: Option<BucketSnapshot>,
    /// Calls at once; of a deployment see [`DeploymentSlots`] instead.
    ///
    /// [`DeploymentSlots`]: crate::DeploymentSlots
    pub concurrency: ConcurrencySnapshot,
    /// Every cap on money, in the order of the configuration.
    pub budgets: Vec<QuotaSnapshot>,
}

/// A cap on money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaSnapshot {
    /// The window.
    pub window: QuotaWindow,
    /// What may be spent in it.
    pub limit: Money,
    /// What was spent in it.
    pub spent: Money,
    /// What is held for requests of this window that are not settled.
    pub reserved: Money,
    /// When the next window begins; for a rolling window, when all that was spent until now no longer counts.
    pub resets_at: UtcTime,
}

impl ScopeSnapshot {
    pub(crate) fn read(scope: Scope, state: &mut NodeState, now: MonoTime, utc: UtcTime) -> Self {
        let (requests, tokens) = state.rates.snapshot(now);
        let budgets = state.quotas.iter().filter_map(|quota| quota.snapshot(utc)).collect();
        Self { scope, requests, tokens, concurrency: state.share.snapshot(), budgets }
    }
}

impl QuotaSnapshot {
    /// The cap as one of a calendar window, whose time zone does not show.
    pub(crate) fn as_budget(&self) -> Option<BudgetSnapshot> {
        let Self { limit, spent, reserved, resets_at, .. } = *self;
        match self.window {
            QuotaWindow::Calendar { window, .. } => {
                Some(BudgetSnapshot { window, limit, spent, reserved, resets_at })
            }
            QuotaWindow::Rolling { .. } => None,
        }
    }
}
