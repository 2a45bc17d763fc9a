//! Every tenant, deployment and other scope by name, and the change of their limits at run time.

use std::sync::Arc;

use gw_types::{DeploymentName, Money, MonoTime, TenantId, UtcTime};
use parking_lot::RwLock;

use crate::{
    DeploymentSlots, InvalidLimits, InvalidScopes, LimitsConfig, PoolSnapshot, QuotaWindow, Scope,
    ScopesConfig, Subject, SubjectIds, TenantLimits,
    config::ValidLimits,
    queue::Pool,
    registry::{ChainKey, Map, Registry},
    scopes::ValidScopes,
};

/// How many combinations of key, tenant and model are kept resolved. Only those with limits of their own tell
/// combinations apart; beyond the bound all are forgotten and resolved anew.
const CHAINS_MAX: usize = 100_000;

/// The limits of all scopes.
///
/// A look-up is O(1) and takes a read lock; who serves many requests looks up once and keeps the `Arc`, which stays
/// good across [`Limits::reconfigure`]. The maps hold what the configuration names, no more.
#[derive(Debug)]
pub struct Limits {
    pool: Arc<Pool>,
    registry: RwLock<Registry>,
    /// Locked after the registry.
    chains: RwLock<Map<ChainKey, Subject>>,
}

impl Limits {
    /// Returns the limits as configured: buckets full, nothing spent, nothing in flight.
    ///
    /// # Errors
    /// Every fault of the configuration at once.
    pub fn new(config: LimitsConfig, now: MonoTime) -> Result<Self, Vec<InvalidLimits>> {
        let limits = Self::empty();
        limits.reconfigure(config, now)?;
        Ok(limits)
    }

    /// Returns the limits of tenants, deployments and all other scopes.
    ///
    /// # Errors
    /// Every fault of the configuration at once.
    pub fn with_scopes(
        config: LimitsConfig,
        scopes: &ScopesConfig,
        now: MonoTime,
    ) -> Result<Self, Vec<InvalidScopes>> {
        let limits = Self::empty();
        limits.reconfigure_scopes(config, scopes, now)?;
        Ok(limits)
    }

    fn empty() -> Self {
        Self { pool: Arc::new(Pool::new()), registry: RwLock::default(), chains: RwLock::new(Map::default()) }
    }

    /// Changes every limit and keeps fill levels, spend, reservations and slots; no scope but tenants and deployments
    /// is limited from now on.
    ///
    /// Each scope changes in one step; those that are no longer named keep their limits for whoever still holds them,
    /// without their reserved share. Calls in flight are never cut: where less is allowed now, nothing new starts until
    /// enough of them have ended, except in free reserved slots.
    ///
    /// # Errors
    /// Every fault of the configuration at once; then nothing was changed.
    pub fn reconfigure(&self, config: LimitsConfig, now: MonoTime) -> Result<(), Vec<InvalidLimits>> {
        let valid = ValidLimits::try_from(config)?;
        self.apply(valid, &ValidScopes::default(), now);
        Ok(())
    }

    /// Changes every limit as [`Limits::reconfigure`] does, those of other scopes included.
    ///
    /// # Errors
    /// Every fault of the configuration at once; then nothing was changed.
    pub fn reconfigure_scopes(
        &self,
        config: LimitsConfig,
        scopes: &ScopesConfig,
        now: MonoTime,
    ) -> Result<(), Vec<InvalidScopes>> {
        let as_scopes =
            |faults: Vec<InvalidLimits>| -> Vec<_> { faults.into_iter().map(InvalidScopes::from).collect() };
        let valid = ValidLimits::try_from(config).map_err(as_scopes)?;
        let deployments: Vec<_> = valid.deployments.iter().map(|(name, _)| name.clone()).collect();
        let scopes = ValidScopes::new(scopes, &valid.tenants, &deployments)?;
        self.apply(valid, &scopes, now);
        Ok(())
    }

    fn apply(&self, valid: ValidLimits, scopes: &ValidScopes, now: MonoTime) {
        let ValidLimits { tenants, deployments, shared } = valid;
        let mut registry = self.registry.write();
        // First all that shrinks, then all that grows: at no moment is more promised than the pool has.
        self.pool.shared.set_limit(self.pool.shared.limit().min(shared));
        registry.retire_tenants(&tenants);
        registry.set_tenants(tenants, scopes, &self.pool, now);
        self.pool.shared.set_limit(shared);
        registry.set_deployments(deployments, scopes, now);
        registry.set_scopes(scopes, now);
        self.chains.write().clear();
        drop(registry);
        self.pool.reconfigured();
    }

    /// Returns all scopes that a request concerns; `None` if there is no such tenant.
    ///
    /// Costs up to four look-ups and no allocation once the combination is known.
    pub fn subject(&self, ids: &SubjectIds<'_>) -> Option<Subject> {
        let registry = self.registry.read();
        let key = registry.chain_key(ids)?;
        if let Some(known) = self.chains.read().get(&key) {
            return Some(known.clone());
        }
        // Under the registry's lock, so that no change of the limits comes in between.
        let subject = registry.chain(&key)?;
        let mut chains = self.chains.write();
        if chains.len() >= CHAINS_MAX {
            chains.clear();
        }
        chains.insert(key, subject.clone());
        Some(subject)
    }

    /// Returns whether any key or model has limits of its own: if not, a tenant has one subject for all its requests.
    pub fn has_narrow_scopes(&self) -> bool {
        self.registry.read().has_narrow_scopes()
    }

    /// Returns the pool of slots and its queue.
    pub fn pool(&self) -> PoolSnapshot {
        self.pool.snapshot()
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

    /// Returns every cap on money that is configured, with the scope, its place and the start of the window that holds
    /// `utc`: what a ledger must be asked for at start. Sorted by scope.
    pub fn budgets(&self, utc: UtcTime) -> Vec<BudgetPeriod> {
        let registry = self.registry.read();
        let mut all: Vec<_> = registry.nodes().flat_map(|node| BudgetPeriod::of(node, utc)).collect();
        all.sort_unstable_by(|a, b| (&a.scope, a.place).cmp(&(&b.scope, b.place)));
        all
    }

    /// Raises what the current window of a cap has spent to `spent`, as read from the ledger; a repetition changes
    /// nothing. Returns whether there is such a cap.
    pub fn restore_spend(&self, scope: &Scope, place: usize, spent: Money, utc: UtcTime) -> bool {
        let registry = self.registry.read();
        let Some(node) = registry.node(scope) else { return false };
        let mut state = node.lock();
        let quota = state.quotas.get_mut(place).filter(|quota| quota.has_budget());
        quota.map(|quota| quota.restore(spent, utc)).is_some()
    }
}

/// A cap on money and the window that is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetPeriod {
    /// The scope.
    pub scope: Scope,
    /// The cap's place among those of its scope; a tenant's `budget` has place 0.
    pub place: usize,
    /// The kind of window.
    pub window: QuotaWindow,
    /// The first instant that counts.
    pub start: UtcTime,
}
