//! What the router answers: the chain, and why the others are not in it.

use smallvec::SmallVec;

/// Holds the outcome of one decision.
///
/// The chain is empty exactly if `route` is `None`. Then `model_known` tells an unknown model from a request that no
/// deployment may serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The route that won, as its place in [`crate::Router::routes`].
    pub route: Option<usize>,
    /// The deployments that may answer, primary first, as places in the list that the router was made with. None stands
    /// in it twice.
    pub chain: SmallVec<[usize; 8]>,
    /// What the facts removed from the routes that matched, in the order of the decision: routes in their order, each
    /// one's deployments as written. At most [`crate::Router::EXCLUSIONS_MAX`]; the first are kept.
    pub exclusions: Vec<Exclusion>,
    /// Whether some route knows the model's name for this tenant, whatever else it demands.
    ///
    /// The routes behind the one that won are not asked: they cannot change the answer.
    pub model_known: bool,
}

/// Says that the facts removed a deployment from a route's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exclusion {
    /// The route, as its place in [`crate::Router::routes`].
    pub route: usize,
    /// The deployment, as its place in the list that the router was made with.
    pub deployment: usize,
    /// The first fact that stood against it, in the order of [`ExclusionReason::ALL`].
    pub reason: ExclusionReason,
}

/// Names the fact that keeps a request from a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// The region is outside a demanded group, or a demanded group does not exist.
    Residency,
    /// The data is more sensitive than the deployment may see.
    ClassificationCeiling,
    /// The deployment cannot do something that the request needs.
    Capability,
    /// Input and demanded output together do not fit the context window.
    ContextWindow,
    /// The demanded output is longer than the deployment's longest answer.
    MaxOutput,
    /// There is a budget and the deployment's price is unknown.
    Unpriced,
    /// There is a budget, the request has audio or images, and the deployment has no price for them.
    MissingPrice,
}

impl ExclusionReason {
    /// Every reason, in the order in which the facts are checked.
    pub const ALL: [Self; 7] = [
        Self::Residency,
        Self::ClassificationCeiling,
        Self::Capability,
        Self::ContextWindow,
        Self::MaxOutput,
        Self::Unpriced,
        Self::MissingPrice,
    ];

    /// Returns the name, as records hold it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Residency => "residency",
            Self::ClassificationCeiling => "classification_ceiling",
            Self::Capability => "capability",
            Self::ContextWindow => "context_window",
            Self::MaxOutput => "max_output",
            Self::Unpriced => "unpriced",
            Self::MissingPrice => "missing_price",
        }
    }
}

impl std::fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
