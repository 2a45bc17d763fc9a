//! Who a limit applies to.

use gw_types::{DeploymentName, KeyName, ModelName, TenantId};

/// One thing that has limits of its own.
///
/// The order is the one in which locks are taken: by kind as they stand here, then by name. Displays as `kind:name`,
/// as refusals and records spell it.
///
/// ```
/// use gw_limits::Scope;
/// use gw_types::{KeyName, TenantId};
///
/// let key = Scope::Key(TenantId::new("acme").unwrap(), KeyName::new("batch").unwrap());
/// assert_eq!(key.to_string(), "key:acme/batch");
/// assert!(key < Scope::Tenant(TenantId::new("a").unwrap()) && Scope::Global.to_string() == "global");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One key of a tenant.
    Key(TenantId, KeyName),
    /// A tenant.
    Tenant(TenantId),
    /// An organisation: a tenant's parent, or a parent's parent. Its name is no tenant's.
    Organisation(TenantId),
    /// A model as callers name it.
    Model(ModelName),
    /// Everything that passes.
    Global,
    /// A deployment. Last, because it is known last.
    Deployment(DeploymentName),
}

impl Scope {
    /// Returns whether it is a tenant's own.
    pub const fn is_tenant(&self) -> bool {
        match self {
            Self::Tenant(_) => true,
            Self::Key(..) | Self::Organisation(_) | Self::Model(_) | Self::Global | Self::Deployment(_) => {
                false
            }
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(tenant, key) => write!(f, "key:{tenant}/{key}"),
            Self::Tenant(tenant) => write!(f, "tenant:{tenant}"),
            Self::Organisation(organisation) => write!(f, "organisation:{organisation}"),
            Self::Model(model) => write!(f, "model:{model}"),
            Self::Global => f.write_str("global"),
            Self::Deployment(deployment) => write!(f, "deployment:{deployment}"),
        }
    }
}
