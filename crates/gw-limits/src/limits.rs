//! Every tenant and deployment by name, and the change of their limits at run time.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use foldhash::fast::FixedState;
use gw_types::{DeploymentName, MonoTime, TenantId};
use parking_lot::RwLock;

use crate::{
    DeploymentSlots, InvalidLimits, LimitsConfig, TenantLimits,
    config::{ValidLimits, ValidTenant},
    gauge::Gauge,
};

/// How many tenants are remembered after they left the configuration, so that one that comes back finds its spend.
const RETIRED_TENANTS_MAX: usize = 10_000;

/// The limits of all tenants and deployments.
///
/// A look-up is O(1) and takes a read lock; who serves many requests looks up once and keeps the `Arc`, which stays
/// good across [`Limits::reconfigure`]. The maps hold what the configuration names, no more.
#[derive(Debug)]
pub struct Limits {
    /// The slots of the pool that no tenant has reserved.
    shared: Arc<Gauge>,
    registry: RwLock<Registry>,
}

// The names come from the configuration, not from callers, so a fixed hash is safe, and runs repeat.
type Map<K, V> = HashMap<K, V, FixedState>;

#[derive(Debug, Default)]
struct Registry {
    /// Counts changes, to tell which tenant left first.
    changes: u64,
    tenants: Map<TenantId, Arc<TenantLimits>>,
    retired_tenants: Map<TenantId, (u64, Arc<TenantLimits>)>,
    deployments: Map<DeploymentName, Arc<DeploymentSlots>>,
    /// Those that left with calls in flight: a deployment that comes back must still count them.
    retired_deployments: Map<DeploymentName, Arc<DeploymentSlots>>,
}

impl Limits {
    /// Returns the limits as configured: buckets full, nothing spent, nothing in flight.
    ///
    /// # Errors
    /// Every fault of the configuration at once.
    pub fn new(config: LimitsConfig, now: MonoTime) -> Result<Self, Vec<InvalidLimits>> {
        let limits = Self { shared: Arc::new(Gauge::new(0)), registry: RwLock::default() };
        limits.reconfigure(config, now)?;
        Ok(limits)
    }

    /// Changes every limit and keeps fill levels, spend, reservations and slots.
    ///
    /// Each tenant changes in one step; those that are no longer named keep their limits for whoever still holds them,
    /// without their reserved share. Calls in flight are never cut: where less is allowed now, nothing new starts until
    /// enough of them have ended, except in free reserved slots.
    ///
    /// # Errors
    /// Every fault of the configuration at once; then nothing was changed.
    pub fn reconfigure(&self, config: LimitsConfig, now: MonoTime) -> Result<(), Vec<InvalidLimits>> {
        let ValidLimits { tenants, deployments, shared } = ValidLimits::try_from(config)?;
        let mut registry = self.registry.write();
        // First all that shrinks, then all that grows: at no moment is more promised than the pool has.
        self.shared.set_limit(self.shared.limit().min(shared));
        registry.retire_tenants(&tenants);
        registry.set_tenants(tenants, &self.shared, now);
        self.shared.set_limit(shared);
        registry.set_deployments(deployments);
        Ok(())
    }

    /// Returns the tenant's limits.
    pub fn tenant(&self, id: &TenantId) -> Option<Arc<TenantLimits>> {
        self.registry.read().tenants.get(id).cloned()
    }

    /// Returns every tenant's limits, sorted by name.
    pub fn tenants(&self) -> Vec<Arc<TenantLimits>> {
        let mut all: Vec<_> = self.registry.read().tenants.values().cloned().collect();
        all.sort_unstable_by(|a, b| a.id().cmp(b.id()));
        all
    }

    /// Returns the deployment's slots.
    pub fn deployment(&self, name: &DeploymentName) -> Option<Arc<DeploymentSlots>> {
        self.registry.read().deployments.get(name).cloned()
    }
}

impl Registry {
    /// Takes away the shares that shrink, and retires the tenants that are no longer named.
    fn retire_tenants(&mut self, named: &[(TenantId, ValidTenant)]) {
        self.changes += 1;
        let shares: Map<&TenantId, u32> =
            named.iter().map(|(id, limits)| (id, limits.reserved_concurrency)).collect();
        for (id, tenant) in &self.tenants {
            tenant.lower_share(shares.get(id).copied().unwrap_or(0));
        }
        let gone = self.tenants.extract_if(|id, _| !shares.contains_key(id));
        self.retired_tenants.extend(gone.map(|(id, tenant)| (id, (self.changes, tenant))));
        let excess = self.retired_tenants.len().saturating_sub(RETIRED_TENANTS_MAX);
        if excess > 0 {
            let mut oldest: Vec<_> =
                self.retired_tenants.iter().map(|(id, (change, _))| (*change, id.clone())).collect();
            oldest.sort_unstable();
            for (_, id) in oldest.into_iter().take(excess) {
                self.retired_tenants.remove(&id);
            }
        }
    }

    fn set_tenants(&mut self, named: Vec<(TenantId, ValidTenant)>, shared: &Arc<Gauge>, now: MonoTime) {
        for (id, limits) in named {
            let known = self.retired_tenants.remove(&id).map(|(_, tenant)| tenant);
            if let Some(tenant) = self.tenants.get(&id).cloned().or(known) {
                tenant.set(&limits, now);
                self.tenants.insert(id, tenant);
            } else {
                let tenant = TenantLimits::new(id.clone(), &limits, Arc::clone(shared), now);
                self.tenants.insert(id, Arc::new(tenant));
            }
        }
    }

    fn set_deployments(&mut self, named: Vec<(DeploymentName, Option<NonZeroU32>)>) {
        let mut before = std::mem::take(&mut self.deployments);
        before.extend(std::mem::take(&mut self.retired_deployments));
        for (name, limit) in named {
            let slots = before.remove(&name).inspect(|slots| slots.set_limit(limit));
            let slots = slots.unwrap_or_else(|| Arc::new(DeploymentSlots::new(name.clone(), limit)));
            self.deployments.insert(name, slots);
        }
        before.retain(|_, slots| slots.in_use() > 0);
        self.retired_deployments = before;
    }
}
