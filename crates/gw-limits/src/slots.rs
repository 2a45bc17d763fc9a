//! Calls at once: a tenant's reserved share and the pool that the rest shares, and a deployment's own cap.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use gw_errors::{ErrorKind, GatewayError};
use gw_types::DeploymentName;

use crate::{
    ConcurrencySnapshot, TenantLimits,
    config::{ValidTenant, names},
    gauge::Gauge,
};

/// What a refusal for want of a slot advises. Nobody knows when a call will end, so this is advice, not a promise.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A tenant's part of the pool. Guarded by the tenant's lock.
///
/// With `r` slots reserved, the first `r` calls in flight use those, and each call beyond takes one of the shared
/// slots, whose number is what all reservations leave of the pool. So a tenant with a free reserved slot is admitted
/// whatever the others do, and idle reserved slots are lent to nobody: calls last seconds and cannot be pre-empted.
/// Instead of one lock over the pool, the shared slots are one atomic count; the rest is the tenant's own.
#[derive(Debug)]
pub(crate) struct Share {
    max: Option<u32>,
    reserved: u32,
    in_use: u32,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// The tenant's own cap.
    Cap,
    /// The shared part of the pool is in use.
    Pool,
}

impl Share {
    pub(crate) const fn new(limits: &ValidTenant) -> Self {
        Self { max: limits.max_concurrency, reserved: limits.reserved_concurrency, in_use: 0 }
    }

    pub(crate) fn take(&mut self, shared: &Gauge) -> Result<(), NoSlot> {
        let cap = self.max.unwrap_or(Gauge::UNLIMITED);
        if self.in_use >= cap {
            return Err(NoSlot::Cap);
        }
        if self.in_use >= self.reserved && !shared.try_take() {
            return Err(NoSlot::Pool);
        }
        self.in_use += 1;
        Ok(())
    }

    pub(crate) fn give_back(&mut self, shared: &Gauge) {
        debug_assert!(self.in_use > 0, "a slot came back that was not taken");
        if self.in_use > self.reserved {
            shared.give_back(1);
        }
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// Changes cap and reservation; calls in flight move between reserved and shared slots as the new numbers say.
    pub(crate) fn set(&mut self, max: Option<u32>, reserved: u32, shared: &Gauge) {
        let before = self.in_use.saturating_sub(self.reserved);
        let after = self.in_use.saturating_sub(reserved);
        if after > before {
            shared.count_held(after - before);
        } else if before > after {
            shared.give_back(before - after);
        }
        (self.max, self.reserved) = (max, reserved);
    }

    pub(crate) const fn max(&self) -> Option<u32> {
        self.max
    }

    pub(crate) const fn snapshot(&self) -> ConcurrencySnapshot {
        ConcurrencySnapshot { limit: self.max, reserved: self.reserved, in_use: self.in_use }
    }
}

impl NoSlot {
    pub(crate) fn into_error(self) -> GatewayError {
        match self {
            Self::Cap => GatewayError::new(ErrorKind::RateLimited, "the tenant has too many calls in flight")
                .with_subject(names::CONCURRENCY),
            Self::Pool => GatewayError::new(ErrorKind::Overloaded, "every shared slot is in use")
                .with_subject(names::POOL),
        }
        .with_retry_after(RETRY_AFTER)
    }
}

/// One call of a tenant in flight; dropping it gives the slot back.
#[must_use = "dropping it gives the slot back"]
#[derive(Debug)]
pub struct Slot {
    tenant: Arc<TenantLimits>,
}

impl Slot {
    pub(crate) const fn new(tenant: Arc<TenantLimits>) -> Self {
        Self { tenant }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.tenant.slot_back();
    }
}

/// A deployment's calls at once.
#[derive(Debug)]
pub struct DeploymentSlots {
    name: DeploymentName,
    gauge: Gauge,
}

impl DeploymentSlots {
    pub(crate) fn new(name: DeploymentName, limit: Option<NonZeroU32>) -> Self {
        let gauge = Gauge::new(limit.map_or(Gauge::UNLIMITED, NonZeroU32::get));
        Self { name, gauge }
    }

    pub(crate) fn set_limit(&self, limit: Option<NonZeroU32>) {
        self.gauge.set_limit(limit.map_or(Gauge::UNLIMITED, NonZeroU32::get));
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// `Overloaded`, naming the deployment, if all are in use.
    pub fn try_acquire(self: &Arc<Self>) -> Result<DeploymentSlot, GatewayError> {
        if self.gauge.try_take() {
            return Ok(DeploymentSlot { slots: Arc::clone(self) });
        }
        Err(GatewayError::new(ErrorKind::Overloaded, "every slot of the deployment is in use")
            .with_subject(self.name.as_str())
            .with_retry_after(RETRY_AFTER))
    }

    /// Returns the deployment's name.
    pub const fn name(&self) -> &DeploymentName {
        &self.name
    }

    /// Returns how many calls are in flight; more than the limit after the limit was lowered under load.
    pub fn in_use(&self) -> u32 {
        self.gauge.in_use()
    }

    /// Returns the limit; `None`: there is none.
    pub fn limit(&self) -> Option<u32> {
        Some(self.gauge.limit()).filter(|limit| *limit != Gauge::UNLIMITED)
    }
}

/// One call of a deployment in flight; dropping it gives the slot back.
#[must_use = "dropping it gives the slot back"]
#[derive(Debug)]
pub struct DeploymentSlot {
    slots: Arc<DeploymentSlots>,
}

impl Drop for DeploymentSlot {
    fn drop(&mut self) {
        self.slots.gauge.give_back(1);
    }
}
