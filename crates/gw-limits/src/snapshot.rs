//! What a tenant has used and has left, read at one instant.

use std::time::Duration;

use gw_types::{Money, UtcTime};

use crate::Window;

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
