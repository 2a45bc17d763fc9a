//! The names of the configuration, as label values.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use gw_exec::Policy;
use gw_types::{CredentialName, DeploymentName, Outcome, RouteName, TenantId};
use prometheus_client::{
    encoding::{EncodeLabelValue, LabelValueEncoder},
    metrics::counter::Counter,
};

/// Tenants with series of their own, whatever the configuration holds: a page of metrics must stay a page.
pub(super) const TENANT_LABELS_MAX: usize = 1_000;

/// A label value from the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    /// There is none.
    None,
    /// A name that the configuration does not have, or no longer has.
    Other,
    /// A route.
    Route(RouteName),
    /// A deployment.
    Deployment(DeploymentName),
    /// One of several credentials of a provider.
    Credential(CredentialName),
    /// A tenant.
    Tenant(TenantId),
}

impl Label {
    /// Returns the label of a tenant that the configuration has.
    pub(crate) fn of_tenant(tenant: &TenantId) -> Self {
        Self::Tenant(tenant.clone())
    }

    fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Other => "other",
            Self::Route(name) => name.as_str(),
            Self::Deployment(name) => name.as_str(),
            Self::Credential(name) => name.as_str(),
            Self::Tenant(name) => name.as_str(),
        }
    }
}

impl EncodeLabelValue for Label {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.as_str().encode(encoder)
    }
}

/// What is counted for one tenant; found once, then counted without a look-up.
#[derive(Debug, Default)]
pub(super) struct TenantCounters {
    /// In the order of [`Outcome::ALL`].
    pub(super) requests: [Counter; Outcome::ALL.len()],
    pub(super) input: Counter,
    pub(super) cached_input: Counter,
    pub(super) output: Counter,
    pub(super) cost: Counter,
}

/// The names of the policy in force.
#[derive(Debug, Default)]
pub(super) struct Names {
    deployments: HashSet<DeploymentName, FixedState>,
    tenants: HashMap<TenantId, TenantCounters, FixedState>,
    other: Option<TenantCounters>,
}

impl Names {
    pub(super) fn of(
        policy: &Policy,
        tenants: Vec<(TenantId, TenantCounters)>,
        other: TenantCounters,
    ) -> Self {
        Self {
            deployments: policy.targets().iter().map(|target| target.deployment.name.clone()).collect(),
            tenants: tenants.into_iter().collect(),
            other: Some(other),
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(tenants: Vec<(TenantId, TenantCounters)>, other: TenantCounters) -> Self {
        Self { deployments: HashSet::default(), tenants: tenants.into_iter().collect(), other: Some(other) }
    }

    pub(super) fn deployment(&self, name: &DeploymentName) -> Label {
        self.deployments.get(name).map_or(Label::Other, |name| Label::Deployment(name.clone()))
    }

    pub(super) fn tenant(&self, id: &TenantId) -> Option<&TenantCounters> {
        self.tenants.get(id).or(self.other.as_ref())
    }
}
