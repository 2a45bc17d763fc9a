//! What the analysis finds, in words.

use std::time::Duration;

use gw_types::{DeploymentName, RouteName, TenantId};

use super::Witness;
use crate::ExclusionReason;

/// Holds what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What refuses the start.
    pub errors: Vec<Finding>,
    /// What does not.
    pub warnings: Vec<Finding>,
    /// How many classes of requests there are.
    pub classes: u128,
}

/// One thing that was found: what, where, a request that shows it, and ([`Finding::fix`]) what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub kind: FindingKind,
    /// The route it is about, or the one that is nearest to it.
    pub route: Option<RouteName>,
    /// The deployment it is about.
    pub deployment: Option<DeploymentName>,
    /// The tenant it is about.
    pub tenant: Option<TenantId>,
    /// A request that shows it; `None` where none can.
    pub witness: Option<Witness>,
}

/// Says whether a finding refuses the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, unless the user is strict.
    Warning,
}

/// Names what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// No request that the route takes may use the deployment. Holds what stands against it, for the one or the other
    /// request; empty: a deployment before it may always answer, and the route allows no fallback.
    DeadDeployment(Vec<ExclusionReason>),
    /// A request demands no more than its tenant and the route that takes it say, and no deployment may answer. Holds
    /// what stands against each deployment of the route.
    Unserved(Vec<(DeploymentName, ExclusionReason)>),
    /// The policy tells more classes apart than are looked at.
    TooManyClasses(u128),
    /// The route serves requests that the deployment may not answer. Holds what stands against it.
    PartlyUsable(Vec<ExclusionReason>),
    /// A request that demands more than it must is taken by a route and no deployment may answer.
    UnservedDemand {
        /// What the request demands of its own accord; without any of it some deployment might answer.
        demands: Vec<DemandKind>,
        /// How many classes of requests are so.
        classes: u64,
    },
    /// Routes know the model, and none takes the request. Holds how many classes of requests are so.
    NoRoute(u64),
    /// No request reaches the deployment. Holds whether a route names it.
    UnreachableDeployment(bool),
    /// The route never wins. Holds the routes that win in its place.
    Shadowed(Vec<RouteName>),
    /// No request meets the route's conditions, or no deployment of it may answer any that does.
    Unsatisfiable,
    /// No request of the tenant's keys has a deployment that may answer.
    TenantReachesNothing,
    /// Two routes of equal priority take one request, so their names decide. Holds the other route.
    Overlap(RouteName),
    /// A request under a budget may meet a deployment without a price.
    PriceMissing,
    /// A fallback's expected latency is a guess, and the deadline is divided by it.
    LatencyMissing,
    /// The shortest attempt that makes sense is longer than the longest allowed.
    MinAttemptAboveTimeout,
    /// The default deadline is too short for the attempts that the route plans.
    DeadlineTooShort {
        /// What they need.
        needed: Duration,
        /// What there is.
        deadline: Duration,
    },
    /// No request that some route knows is of the class that a declaration refuses. Holds the declaration's place.
    RefusesNothing(usize),
}

/// Names a demand that a request may make of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DemandKind {
    /// A classification above the tenant's default.
    Classification,
    /// A group of regions beyond the tenant's floor.
    Residency,
    /// Something that the deployment must be able to do.
    Needs,
    /// A size.
    Size,
}

impl DemandKind {
    /// Every kind, in the order of the dimensions.
    pub const ALL: [Self; 4] = [Self::Classification, Self::Residency, Self::Needs, Self::Size];

    /// Returns the kind in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Residency => "residency",
            Self::Needs => "needs",
            Self::Size => "size",
        }
    }
}

impl FindingKind {
    /// Returns whether it refuses the start.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::DeadDeployment(_) | Self::Unserved(_) | Self::TooManyClasses(_) => Severity::Error,
            Self::PartlyUsable(_)
            | Self::UnservedDemand { .. }
            | Self::NoRoute(_)
            | Self::UnreachableDeployment(_)
            | Self::Shadowed(_)
            | Self::Unsatisfiable
            | Self::TenantReachesNothing
            | Self::Overlap(_)
            | Self::PriceMissing
            | Self::LatencyMissing
            | Self::MinAttemptAboveTimeout
            | Self::DeadlineTooShort { .. }
            | Self::RefusesNothing(_) => Severity::Warning,
        }
    }

    /// Returns a name that stays, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::DeadDeployment(_) => "dead_deployment",
            Self::Unserved(_) => "unserved",
            Self::TooManyClasses(_) => "too_many_classes",
            Self::PartlyUsable(_) => "partly_usable",
            Self::UnservedDemand { .. } => "unserved_demand",
            Self::NoRoute(_) => "no_route",
            Self::UnreachableDeployment(_) => "unreachable_deployment",
            Self::Shadowed(_) => "shadowed_route",
            Self::Unsatisfiable => "unsatisfiable_route",
            Self::TenantReachesNothing => "tenant_reaches_nothing",
            Self::Overlap(_) => "overlap",
            Self::PriceMissing => "price_missing",
            Self::LatencyMissing => "latency_missing",
            Self::MinAttemptAboveTimeout => "min_attempt_above_timeout",
            Self::DeadlineTooShort { .. } => "deadline_too_short",
            Self::RefusesNothing(_) => "refuses_nothing",
        }
    }

    /// Returns a finding without a place.
    pub(super) const fn found(self) -> Finding {
        Finding { kind: self, route: None, deployment: None, tenant: None, witness: None }
    }
}

impl Finding {
    pub(super) fn at_route(self, route: &RouteName) -> Self {
        Self { route: Some(route.clone()), ..self }
    }

    pub(super) fn at_deployment(self, deployment: &DeploymentName) -> Self {
        Self { deployment: Some(deployment.clone()), ..self }
    }

    /// The witness's tenant is the one it is about.
    pub(super) fn shown_by(self, witness: Witness) -> Self {
        Self { tenant: Some(witness.tenant.clone()), witness: Some(witness), ..self }
    }
}
