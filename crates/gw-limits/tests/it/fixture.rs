//! Short ways to limits with one tenant.

use std::{sync::Arc, time::Duration};

use gw_limits::{
    BudgetConfig, InvalidLimits, Limits, LimitsConfig, TenantLimits, TenantLimitsConfig, Window,
};
use gw_types::{Money, MonoTime, TenantId, UtcTime};

pub(crate) const START: MonoTime = MonoTime::ZERO;
/// 2030-01-01T00:00:00Z.
pub(crate) const UTC: UtcTime = UtcTime::from_micros(1_893_456_000_000_000);
pub(crate) const POOL: u32 = 1_000;

pub(crate) fn id(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(crate) fn usd(micros: u64) -> Money {
    Money::from_micros(micros)
}

pub(crate) fn none() -> TenantLimitsConfig {
    TenantLimitsConfig::default()
}

pub(crate) fn budget(micros: u64, window: Window) -> Option<BudgetConfig> {
    Some(BudgetConfig { limit: usd(micros), window })
}

pub(crate) fn config(tenants: &[(&str, &TenantLimitsConfig)], pool_capacity: u32) -> LimitsConfig {
    let tenants = tenants.iter().map(|(name, limits)| (id(name), (*limits).clone())).collect();
    LimitsConfig { tenants, deployments: vec![], pool_capacity }
}

pub(crate) fn limits(tenants: &[(&str, &TenantLimitsConfig)], pool_capacity: u32) -> Limits {
    Limits::new(config(tenants, pool_capacity), START).unwrap()
}

/// One tenant in a pool that is never full.
pub(crate) fn tenant(limits_of_it: &TenantLimitsConfig) -> Arc<TenantLimits> {
    limits(&[("a", limits_of_it)], POOL).tenant(&id("a")).unwrap()
}

pub(crate) fn seconds(n: u64) -> MonoTime {
    START.saturating_add(Duration::from_secs(n))
}

pub(crate) fn faults(result: Result<(), Vec<InvalidLimits>>) -> usize {
    result.err().map_or(0, |faults| faults.len())
}
