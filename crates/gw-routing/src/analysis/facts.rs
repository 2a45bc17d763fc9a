//! What the analysis is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use gw_types::{
    Classification, Deployment, DeploymentName, KeyName, ModelName, Residency, RouteName, TenantId,
};

use crate::RoutingConfig;

/// Holds a whole policy as the analysis sees it.
#[derive(Clone, Debug, Default)]
pub struct PolicyFacts {
    /// Routes, groups, families, declared refusals.
    pub routing: RoutingConfig,
    /// All deployments.
    pub deployments: Vec<Arc<Deployment>>,
    /// All tenants. Nobody else sends requests.
    pub tenants: Vec<TenantFacts>,
    /// The models, by the name asked for, whose cost is held against a budget whoever asks.
    pub budgeted_models: BTreeSet<ModelName>,
    /// How much time there is.
    pub timing: TimingFacts,
}

/// What is true of every request of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    /// The tenant. Its groups are [`RoutingConfig::tenant_groups`].
    pub id: TenantId,
    /// The lowest classification of its requests, which each may raise.
    pub default_classification: Classification,
    /// The group of regions that all its requests demand.
    pub residency: Option<Residency>,
    /// Whether its cost is held against a budget, whichever key it comes with.
    pub budgeted: bool,
    /// The keys with a budget of their own: what comes with them is held against one.
    pub budgeted_keys: BTreeSet<KeyName>,
    /// Whether anybody holds a key of the tenant.
    pub has_keys: bool,
}

/// How much time a request has and how many attempts it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingFacts {
    /// The deadline of a request that names none.
    pub deadline: Duration,
    /// The attempts that a request gets in all.
    pub attempts: NonZeroU32,
    /// The same for routes that say so.
    pub attempts_of_routes: BTreeMap<RouteName, NonZeroU32>,
    /// The deployments whose expected latency nobody stated.
    pub latency_undeclared: BTreeSet<DeploymentName>,
}

impl TenantFacts {
    /// Returns a tenant with a key, without a floor and without a budget.
    pub const fn new(id: TenantId, default_classification: Classification) -> Self {
        let budgeted_keys = BTreeSet::new();
        Self { id, default_classification, residency: None, budgeted: false, budgeted_keys, has_keys: true }
    }
}

impl Default for TimingFacts {
    /// Returns ten minutes and three attempts.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(600),
            attempts: NonZeroU32::MIN.saturating_add(2),
            attempts_of_routes: BTreeMap::new(),
            latency_undeclared: BTreeSet::new(),
        }
    }
}
