//! The limits as configured, and what is refused about them.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    num::{NonZeroU32, NonZeroU64},
};

use gw_types::{DeploymentName, Money, TenantId};
use serde::{Deserialize, Deserializer};

use crate::Window;

/// The limits' names, as the configuration, errors and records spell them.
pub(crate) mod names {
    pub(crate) const REQUESTS: &str = "requests_per_minute";
    pub(crate) const TOKENS: &str = "tokens_per_minute";
    pub(crate) const CONCURRENCY: &str = "max_concurrency";
    pub(crate) const PACE: &str = "requests_per_second";
    pub(crate) const IN_FLIGHT: &str = "in_flight_tokens";
    pub(crate) const QUEUE: &str = "max_queue";
    pub(crate) const POOL: &str = "pool_capacity";
    pub(crate) const BUDGET: &str = "budget";
}

/// What is limited, for every tenant and deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsConfig {
    /// The tenants; each at most once.
    pub tenants: Vec<(TenantId, TenantLimitsConfig)>,
    /// The deployments and their calls at once; each at most once. `None`: no limit.
    pub deployments: Vec<(DeploymentName, Option<NonZeroU32>)>,
    /// Calls at once of all tenants together; at least 1, and at least the sum of the reserved shares.
    pub pool_capacity: u32,
}

/// One tenant's limits. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantLimitsConfig {
    /// Requests a minute, and in one burst. `None`: no limit; 0 is refused.
    pub requests_per_minute: Option<u64>,
    /// Input and output tokens a minute, and in one burst. `None`: no limit; 0 is refused.
    pub tokens_per_minute: Option<u64>,
    /// Calls at once. `None`: as many as the pool has; 0 is refused.
    pub max_concurrency: Option<u32>,
    /// Slots of the pool that no other tenant can take; at most `max_concurrency`. 0: none, the default.
    pub reserved_concurrency: u32,
    /// Money per calendar window. `None`: no limit.
    pub budget: Option<BudgetConfig>,
}

/// A hard cap on money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetConfig {
    /// What may be spent in one window; 0 is refused. Deserialises as `limit_micros`, in micro-USD.
    #[serde(rename = "limit_micros", deserialize_with = "micros")]
    pub limit: Money,
    /// The window.
    pub window: Window,
}

fn micros<'de, D: Deserializer<'de>>(from: D) -> Result<Money, D::Error> {
    u64::deserialize(from).map(Money::from_micros)
}

/// Says what is wrong with configured limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLimits {
    /// A limit of 0 would refuse everything.
    #[error("`{limit}` of tenant `{tenant}` must not be 0; leave it out for no limit")]
    Zero {
        /// The tenant.
        tenant: TenantId,
        /// The limit's name in the configuration.
        limit: &'static str,
    },
    /// A share that the tenant's own cap makes unreachable.
    #[error(
        "`reserved_concurrency` of tenant `{tenant}` is {reserved}, above its `max_concurrency` of {max}"
    )]
    ReservedAboveMax {
        /// The tenant.
        tenant: TenantId,
        /// The share.
        reserved: u32,
        /// The cap.
        max: u32,
    },
    /// More is promised than the pool has.
    #[error(
        "`reserved_concurrency` of all tenants adds up to {sum}, above `pool_capacity` of {capacity}; \
         the largest share is {largest}, of tenant `{tenant}`"
    )]
    ReservedAbovePool {
        /// The tenant with the largest share; of several, the first by name.
        tenant: TenantId,
        /// Its share.
        largest: u32,
        /// All shares together.
        sum: u64,
        /// The pool.
        capacity: u32,
    },
    /// Reserved shares take the whole pool, so a tenant without one could never make a call.
    #[error(
        "tenant `{tenant}` has no `reserved_concurrency`, and the shares of others leave nothing of \
         `pool_capacity` to it"
    )]
    NothingLeft {
        /// The tenant.
        tenant: TenantId,
    },
    /// A pool without a slot.
    #[error("`pool_capacity` must not be 0")]
    EmptyPool,
    /// A tenant stands twice.
    #[error("tenant `{tenant}` is configured twice")]
    DuplicateTenant {
        /// The tenant.
        tenant: TenantId,
    },
    /// A deployment stands twice.
    #[error("deployment `{deployment}` is configured twice")]
    DuplicateDeployment {
        /// The deployment.
        deployment: DeploymentName,
    },
}

/// One tenant's limits, none of them zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidTenant {
    pub(crate) requests: Option<NonZeroU64>,
    pub(crate) tokens: Option<NonZeroU64>,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) reserved_concurrency: u32,
    pub(crate) budget: Option<BudgetConfig>,
}

/// Limits that may be applied as they stand.
#[derive(Debug)]
pub(crate) struct ValidLimits {
    pub(crate) tenants: Vec<(TenantId, ValidTenant)>,
    pub(crate) deployments: Vec<(DeploymentName, Option<NonZeroU32>)>,
    /// What the reserved shares leave of the pool.
    pub(crate) shared: u32,
}

impl TryFrom<LimitsConfig> for ValidLimits {
    type Error = Vec<InvalidLimits>;

    /// Returns every fault at once: tenants in their order, then deployments, then the pool.
    fn try_from(config: LimitsConfig) -> Result<Self, Vec<InvalidLimits>> {
        let mut faults = Vec::new();
        let mut known = BTreeSet::new();
        let mut tenants = Vec::with_capacity(config.tenants.len());
        for (tenant, limits) in config.tenants {
            faults.extend(tenant_faults(&tenant, &limits));
            if !known.insert(tenant.clone()) {
                faults.push(InvalidLimits::DuplicateTenant { tenant: tenant.clone() });
            }
            tenants.push((tenant, ValidTenant::from(&limits)));
        }
        let mut known = BTreeSet::new();
        for (deployment, _) in &config.deployments {
            if !known.insert(deployment) {
                faults.push(InvalidLimits::DuplicateDeployment { deployment: deployment.clone() });
            }
        }
        let shared = shared_slots(&tenants, config.pool_capacity, &mut faults);
        if faults.is_empty() {
            Ok(Self { tenants, deployments: config.deployments, shared })
        } else {
            Err(faults)
        }
    }
}

impl From<&TenantLimitsConfig> for ValidTenant {
    fn from(limits: &TenantLimitsConfig) -> Self {
        Self {
            requests: limits.requests_per_minute.and_then(NonZeroU64::new),
            tokens: limits.tokens_per_minute.and_then(NonZeroU64::new),
            max_concurrency: limits.max_concurrency,
            reserved_concurrency: limits.reserved_concurrency,
            budget: limits.budget,
        }
    }
}

fn tenant_faults(tenant: &TenantId, limits: &TenantLimitsConfig) -> Vec<InvalidLimits> {
    let zeros = [
        (names::REQUESTS, limits.requests_per_minute == Some(0)),
        (names::TOKENS, limits.tokens_per_minute == Some(0)),
        (names::CONCURRENCY, limits.max_concurrency == Some(0)),
        (names::BUDGET, limits.budget.is_some_and(|budget| budget.limit.is_zero())),
    ];
    let mut faults: Vec<_> = zeros
        .into_iter()
        .filter(|(_, zero)| *zero)
        .map(|(limit, _)| InvalidLimits::Zero { tenant: tenant.clone(), limit })
        .collect();
    let reserved = limits.reserved_concurrency;
    if let Some(max) = limits.max_concurrency.filter(|max| *max > 0 && reserved > *max) {
        faults.push(InvalidLimits::ReservedAboveMax { tenant: tenant.clone(), reserved, max });
    }
    faults
}

/// Returns what the shares leave of the pool, and adds the faults of the whole.
fn shared_slots(tenants: &[(TenantId, ValidTenant)], capacity: u32, faults: &mut Vec<InvalidLimits>) -> u32 {
    if capacity == 0 {
        faults.push(InvalidLimits::EmptyPool);
        return 0;
    }
    let share = |(_, limits): &(TenantId, ValidTenant)| limits.reserved_concurrency;
    let sum: u64 = tenants.iter().map(|tenant| u64::from(share(tenant))).sum();
    let left = u32::try_from(sum).ok().and_then(|sum| capacity.checked_sub(sum));
    let Some(shared) = left else {
        let first = tenants.iter().min_by_key(|tenant| (std::cmp::Reverse(share(tenant)), &tenant.0));
        faults.extend(first.map(|tenant| InvalidLimits::ReservedAbovePool {
            tenant: tenant.0.clone(),
            largest: share(tenant),
            sum,
            capacity,
        }));
        return 0;
    };
    if shared == 0 {
        let without = tenants.iter().filter(|tenant| share(tenant) == 0);
        faults.extend(without.map(|(tenant, _)| InvalidLimits::NothingLeft { tenant: tenant.clone() }));
    }
    shared
}
