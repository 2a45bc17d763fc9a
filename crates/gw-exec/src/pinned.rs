//! A policy together with the state of what it names, looked up once and not once a request.

use std::{collections::HashMap, ops::Deref, sync::Arc};

use foldhash::fast::FixedState;
use gw_limits::{DeploymentSlots, TenantLimits};
use gw_routing::{BoundStrategies, Strategy};
use gw_types::TenantId;

use crate::{budget::RetryBudget, policy::Policy, state::State};

/// What a request pins: the policy of the moment, and the long-lived state of its tenants and deployments.
#[derive(Debug)]
pub(crate) struct Pinned {
    policy: Arc<Policy>,
    tenants: HashMap<TenantId, Arc<TenantLimits>, FixedState>,
    targets: Vec<TargetState>,
    strategies: BoundStrategies,
    is_sticky: bool,
}

/// The long-lived state of a deployment.
#[derive(Debug)]
pub(crate) struct TargetState {
    pub(crate) slots: Option<Arc<DeploymentSlots>>,
    pub(crate) retries: Arc<RetryBudget>,
}

impl Pinned {
    pub(crate) fn new(policy: Policy, state: &State) -> Self {
        let tenants = policy.tenants().into_iter();
        let tenants =
            tenants.filter_map(|tenant| state.limits.tenant(&tenant).map(|limits| (tenant, limits)));
        let targets = policy.targets().iter().map(|target| TargetState {
            slots: state.limits.deployment(&target.deployment.name),
            retries: state.retries.deployment(&target.deployment.name),
        });
        let (tenants, targets) = (tenants.collect(), targets.collect());
        let strategies = state.strategies.bind(policy.router());
        let is_sticky = policy.router().routes().any(|route| route.strategy == Strategy::Sticky);
        Self { policy: Arc::new(policy), tenants, targets, strategies, is_sticky }
    }

    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    pub(crate) fn limits(&self, tenant: &TenantId) -> Option<&Arc<TenantLimits>> {
        self.tenants.get(tenant)
    }

    /// Returns what the strategies remember of routes and deployments.
    pub(crate) fn strategies(&self) -> &BoundStrategies {
        &self.strategies
    }

    /// Returns whether any route keeps a conversation at one deployment.
    pub(crate) fn is_sticky(&self) -> bool {
        self.is_sticky
    }

    pub(crate) fn target_state(&self, index: usize) -> &TargetState {
        &self.targets[index]
    }
}

impl Deref for Pinned {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}
