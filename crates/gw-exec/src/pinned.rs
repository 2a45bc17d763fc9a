//! A policy together with the state of what it names, looked up once and not once a request.

use std::{collections::HashMap, ops::Deref, sync::Arc};

use foldhash::fast::FixedState;
use gw_limits::{DeploymentSlots, TenantLimits};
use gw_types::TenantId;

use crate::{budget::RetryBudget, policy::Policy, state::State};

/// What a request pins: the policy of the moment, and the long-lived state of its tenants and deployments.
#[derive(Debug)]
pub(crate) struct Pinned {
    policy: Arc<Policy>,
    tenants: HashMap<TenantId, Arc<TenantLimits>, FixedState>,
    targets: Vec<TargetState>,
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
        Self { tenants: tenants.collect(), targets: targets.collect(), policy: Arc::new(policy) }
    }

    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    pub(crate) fn limits(&self, tenant: &TenantId) -> Option<&Arc<TenantLimits>> {
        self.tenants.get(tenant)
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
