//! Calls at once: a tenant's reserved share and the pool that the rest shares, and a deployment's own cap.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use gw_errors::{ErrorKind, GatewayError};
use gw_types::{DeploymentName, MonoTime};

use crate::{
    ConcurrencySnapshot, Scope, Subject, config::names, gauge::Gauge, node::Node, scopes::NodeLimits,
};

/// What a refusal for want of a slot advises. Nobody knows when a call will end, so this is advice, not a promise.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A scope's calls at once; for a tenant, its part of the pool. Guarded by the scope's lock.
///
/// With `r` slots reserved, the first `r` calls in flight use those, and each call beyond takes one of the shared
/// slots, whose number is what all reservations leave of the pool. So a tenant with a free reserved slot is admitted
/// whatever the others do, and idle reserved slots are lent to nobody: calls last seconds and cannot be pre-empted.
/// Instead of one lock over the pool, the shared slots are one atomic count; the rest is the scope's own. A scope that
/// is no tenant has no shared slots, and nothing but its own cap.
#[derive(Debug)]
pub(crate) struct Share {
    max: Option<u32>,
    reserved: u32,
    in_use: u32,
}

/// Why there is no slot; the first kind that occurs is what the caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoSlot {
    /// The scope's own cap.
    Cap,
    /// The shared part of the pool is in use.
    Pool,
    /// The deployment's slots are in use.
    Deployment,
}

impl Share {
    pub(crate) const fn new(limits: &NodeLimits) -> Self {
        Self { max: limits.max_concurrency, reserved: limits.reserved_concurrency, in_use: 0 }
    }

    /// Says whether a slot is there, and takes none.
    pub(crate) fn verdict(&self, shared: Option<&Gauge>) -> Result<(), NoSlot> {
        if self.in_use >= self.max.unwrap_or(Gauge::UNLIMITED) {
            return Err(NoSlot::Cap);
        }
        if self.needs_shared() && shared.is_some_and(Gauge::is_full) {
            return Err(NoSlot::Pool);
        }
        Ok(())
    }

    /// Says whether the next slot is one of the shared ones.
    pub(crate) const fn needs_shared(&self) -> bool {
        self.in_use >= self.reserved
    }

    /// Counts a slot that [`Share::verdict`] allowed and for which a shared one was taken where it needs one.
    pub(crate) const fn count(&mut self) {
        self.in_use += 1;
    }

    pub(crate) fn give_back(&mut self, shared: Option<&Gauge>) {
        debug_assert!(self.in_use > 0, "a slot came back that was not taken");
        if let Some(shared) = shared.filter(|_| self.in_use > self.reserved) {
            shared.give_back(1);
        }
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// Changes cap and reservation; calls in flight move between reserved and shared slots as the new numbers say.
    pub(crate) fn set(&mut self, max: Option<u32>, reserved: u32, shared: Option<&Gauge>) {
        let before = self.in_use.saturating_sub(self.reserved);
        let after = self.in_use.saturating_sub(reserved);
        match shared {
            Some(shared) if after > before => shared.count_held(after - before),
            Some(shared) if before > after => shared.give_back(before - after),
            Some(_) | None => {}
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
    /// The limit's name in the configuration.
    pub(crate) const fn limit(self) -> &'static str {
        match self {
            Self::Cap | Self::Deployment => names::CONCURRENCY,
            Self::Pool => names::POOL,
        }
    }

    pub(crate) fn into_error(self) -> GatewayError {
        match self {
            Self::Cap => GatewayError::new(ErrorKind::RateLimited, "too many calls are in flight"),
            Self::Pool => GatewayError::new(ErrorKind::Overloaded, "every shared slot is in use"),
            Self::Deployment => {
                GatewayError::new(ErrorKind::Overloaded, "every slot of the deployment is in use")
            }
        }
        .with_subject(self.limit())
        .with_retry_after(RETRY_AFTER)
    }
}

/// One call in flight, counted in one or more scopes; dropping it gives the slot back.
#[must_use = "dropping it gives the slot back"]
#[derive(Debug)]
pub struct Slot {
    subject: Subject,
}

impl Slot {
    pub(crate) const fn new(subject: Subject) -> Self {
        Self { subject }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.subject.slot_back();
    }
}

/// A deployment's calls at once.
#[derive(Debug)]
pub struct DeploymentSlots {
    name: DeploymentName,
    gauge: Gauge,
    /// Its rates and budgets.
    node: Node,
}

impl DeploymentSlots {
    pub(crate) fn new(name: DeploymentName, limit: Option<NonZeroU32>, now: MonoTime) -> Self {
        let gauge = Gauge::new(limit.map_or(Gauge::UNLIMITED, NonZeroU32::get));
        let node = Node::new(Scope::Deployment(name.clone()), &NodeLimits::default(), None, now);
        Self { name, gauge, node }
    }

    pub(crate) const fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
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
        Err(NoSlot::Deployment.into_error().with_subject(self.name.as_str()))
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
