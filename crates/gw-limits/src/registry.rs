//! Where every scope is found, and what becomes of those that leave the configuration.

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroU32,
    sync::Arc,
};

use foldhash::fast::FixedState;
use gw_types::{DeploymentName, KeyName, ModelName, MonoTime, TenantId, UtcTime};

use crate::{
    DeploymentSlots, Scope, Subject, SubjectIds, TenantLimits,
    config::ValidTenant,
    limits::BudgetPeriod,
    node::Node,
    queue::Pool,
    scopes::{NodeLimits, ValidScopes},
    subject::PerScope,
};

/// How many tenants, and how many other scopes, are remembered after they left the configuration, so that one that
/// comes back finds its spend.
const RETIRED_MAX: usize = 10_000;

// The names come from the configuration, not from callers, so a fixed hash is safe, and runs repeat.
pub(crate) type Map<K, V> = HashMap<K, V, FixedState>;

/// What tells resolved subjects apart: a key or model stands here only if it has limits of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainKey {
    tenant: TenantId,
    key: Option<KeyName>,
    model: Option<ModelName>,
}

#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// Counts changes, to tell which tenant left first.
    changes: u64,
    pub(crate) tenants: Map<TenantId, Arc<TenantLimits>>,
    retired_tenants: Map<TenantId, (u64, Arc<TenantLimits>)>,
    pub(crate) deployments: Map<DeploymentName, Arc<DeploymentSlots>>,
    /// Those that left with calls in flight: a deployment that comes back must still count them.
    retired_deployments: Map<DeploymentName, Arc<DeploymentSlots>>,
    keys: Map<TenantId, Map<KeyName, Arc<Node>>>,
    models: Map<ModelName, Arc<Node>>,
    /// Of tenants that belong to any.
    organisations: Map<TenantId, Vec<Arc<Node>>>,
    global: Option<Arc<Node>>,
    /// Keys, organisations, models and the whole, with the change at which they left; `None`: they are configured.
    scopes: BTreeMap<Scope, (Option<u64>, Arc<Node>)>,
}

impl Registry {
    pub(crate) fn chain_key(&self, ids: &SubjectIds<'_>) -> Option<ChainKey> {
        let (tenant, _) = self.tenants.get_key_value(ids.tenant)?;
        let keys = || self.keys.get(tenant)?.get_key_value(ids.key?);
        let model = || self.models.get_key_value(ids.model?);
        Some(ChainKey {
            tenant: tenant.clone(),
            key: keys().map(|(key, _)| key.clone()),
            model: model().map(|(model, _)| model.clone()),
        })
    }

    pub(crate) fn has_narrow_scopes(&self) -> bool {
        !self.keys.is_empty() || !self.models.is_empty()
    }

    /// Brings together the scopes of a combination.
    pub(crate) fn chain(&self, key: &ChainKey) -> Option<Subject> {
        let mut nodes = PerScope::new();
        nodes.push(Arc::clone(self.tenants.get(&key.tenant)?.node()));
        let own = || self.keys.get(&key.tenant)?.get(key.key.as_ref()?);
        nodes.extend(own().cloned());
        nodes.extend(self.organisations.get(&key.tenant).into_iter().flatten().cloned());
        nodes.extend(key.model.as_ref().and_then(|model| self.models.get(model)).cloned());
        nodes.extend(self.global.iter().cloned());
        Some(Subject::new(nodes))
    }

    /// Every scope that is configured, in no order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        let scopes = self.scopes.values().filter(|(left, _)| left.is_none()).map(|(_, node)| &**node);
        let tenants = self.tenants.values().map(|tenant| &**tenant.node());
        scopes.chain(tenants).chain(self.deployments.values().map(|deployment| deployment.node()))
    }

    pub(crate) fn node(&self, scope: &Scope) -> Option<&Node> {
        match scope {
            Scope::Tenant(tenant) => self.tenants.get(tenant).map(|tenant| &**tenant.node()),
            Scope::Deployment(name) => self.deployments.get(name).map(|deployment| deployment.node()),
            Scope::Key(..) | Scope::Organisation(_) | Scope::Model(_) | Scope::Global => {
                let (left, node) = self.scopes.get(scope)?;
                left.is_none().then_some(&**node)
            }
        }
    }

    /// Takes away the shares that shrink, and retires the tenants that are no longer named.
    pub(crate) fn retire_tenants(&mut self, named: &[(TenantId, ValidTenant)]) {
        self.changes += 1;
        let shares: Map<&TenantId, u32> =
            named.iter().map(|(id, limits)| (id, limits.reserved_concurrency)).collect();
        for (id, tenant) in &self.tenants {
            tenant.node().lower_share(shares.get(id).copied().unwrap_or(0));
        }
        let gone = self.tenants.extract_if(|id, _| !shares.contains_key(id));
        self.retired_tenants.extend(gone.map(|(id, tenant)| (id, (self.changes, tenant))));
        let excess = self.retired_tenants.len().saturating_sub(RETIRED_MAX);
        if excess > 0 {
            let mut oldest: Vec<_> =
                self.retired_tenants.iter().map(|(id, (change, _))| (*change, id.clone())).collect();
            oldest.sort_unstable();
            for (_, id) in oldest.into_iter().take(excess) {
                self.retired_tenants.remove(&id);
            }
        }
    }

    pub(crate) fn set_tenants(
        &mut self,
        named: Vec<(TenantId, ValidTenant)>,
        scopes: &ValidScopes,
        pool: &Arc<Pool>,
        now: MonoTime,
    ) {
        for (id, limits) in named {
            let more = scopes.tenants.get(&id).map_or(&[][..], |membership| &membership.budgets);
            let limits = NodeLimits::of_tenant(&limits, more);
            let known = self.retired_tenants.remove(&id).map(|(_, tenant)| tenant);
            if let Some(tenant) = self.tenants.get(&id).cloned().or(known) {
                tenant.node().set(&limits, now);
                self.tenants.insert(id, tenant);
            } else {
                let node = Node::new(Scope::Tenant(id.clone()), &limits, Some(Arc::clone(pool)), now);
                self.tenants.insert(id.clone(), Arc::new(TenantLimits::new(id, node)));
            }
        }
    }

    pub(crate) fn set_deployments(
        &mut self,
        named: Vec<(DeploymentName, Option<NonZeroU32>)>,
        scopes: &ValidScopes,
        now: MonoTime,
    ) {
        let mut before = std::mem::take(&mut self.deployments);
        before.extend(std::mem::take(&mut self.retired_deployments));
        for (name, limit) in named {
            let slots = before.remove(&name).inspect(|slots| slots.set_limit(limit));
            let slots = slots.unwrap_or_else(|| Arc::new(DeploymentSlots::new(name.clone(), limit, now)));
            let none = NodeLimits::default();
            slots.node().set(scopes.nodes.get(&Scope::Deployment(name.clone())).unwrap_or(&none), now);
            self.deployments.insert(name, slots);
        }
        before.retain(|_, slots| slots.in_use() > 0);
        self.retired_deployments = before;
    }

    /// Sets keys, organisations, models and the whole, and finds them anew.
    pub(crate) fn set_scopes(&mut self, scopes: &ValidScopes, now: MonoTime) {
        for (scope, (left, _)) in &mut self.scopes {
            *left = left.or_else(|| (!scopes.nodes.contains_key(scope)).then_some(self.changes));
        }
        (self.keys, self.models, self.global) = (Map::default(), Map::default(), None);
        for (scope, limits) in &scopes.nodes {
            let fresh = || Arc::new(Node::new(scope.clone(), limits, None, now));
            if matches!(scope, Scope::Deployment(_)) {
                continue;
            }
            let (left, node) = self.scopes.entry(scope.clone()).or_insert_with(|| (None, fresh()));
            *left = None;
            node.set(limits, now);
            let node = Arc::clone(node);
            match scope {
                Scope::Key(tenant, key) => {
                    self.keys.entry(tenant.clone()).or_default().insert(key.clone(), node);
                }
                Scope::Model(model) => drop(self.models.insert(model.clone(), node)),
                Scope::Global => self.global = Some(node),
                Scope::Organisation(_) | Scope::Tenant(_) | Scope::Deployment(_) => {}
            }
        }
        let organisation = |id: &TenantId| {
            let (_, node) = self.scopes.get(&Scope::Organisation(id.clone()))?;
            Some(Arc::clone(node))
        };
        self.organisations = scopes
            .tenants
            .iter()
            .filter(|(_, membership)| !membership.organisations.is_empty())
            .map(|(id, membership)| {
                (id.clone(), membership.organisations.iter().filter_map(organisation).collect())
            })
            .collect();
        self.forget_scopes();
    }

    fn forget_scopes(&mut self) {
        let mut left: Vec<_> =
            self.scopes.iter().filter_map(|(scope, (left, _))| Some(((*left)?, scope.clone()))).collect();
        left.sort_unstable();
        let excess = left.len().saturating_sub(RETIRED_MAX);
        for (_, scope) in left.into_iter().take(excess) {
            self.scopes.remove(&scope);
        }
    }
}

impl BudgetPeriod {
    /// The caps of one scope.
    pub(crate) fn of(node: &Node, utc: UtcTime) -> Vec<Self> {
        let state = node.lock();
        let caps = state.quotas.iter().enumerate();
        caps.filter_map(|(place, quota)| {
            let rule = quota.rule()?;
            let (scope, window) = (node.scope().clone(), rule.window.clone());
            Some(Self { scope, place, start: rule.window.start_of(utc), window })
        })
        .collect()
    }
}
