//! What the router answers: the chain, and why the others are not in it.

use smallvec::SmallVec;

/// Holds the outcome of one decision.
///
/// The chain is empty exactly if `route` is `None`. Then `model_known` tells an unknown model from a request that no
/// deployment may serve, and `refused` one that none is to serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The route that won, as its place in [`crate::Router::routes`].
    pub route: Option<usize>,
    /// The deployments that may answer, primary first, as places in the list that the router was made with. None stands
    /// in it twice.
    pub chain: SmallVec<[usize; 8]>,
    /// What was removed from the routes that matched, in the order of the decision: routes in their order, each one's
    /// deployments as written, and after them those that cannot be had. At most [`crate::Router::EXCLUSIONS_MAX`]; the
    /// first are kept.
    pub exclusions: Vec<Exclusion>,
    /// Whether some route knows the model's name for this tenant, whatever else it demands.
    ///
    /// The routes behind the one that won are not asked: they cannot change the answer.
    pub model_known: bool,
    /// The route that matched, had nothing to offer and let no other be asked ([`crate::OnUnavailable::Fail`]).
    pub stopped_at: Option<usize>,
    /// The declaration, as its place in [`crate::RoutingConfig::refused`], that refuses the request. No route was asked
    /// then.
    pub refused: Option<usize>,
    /// Whether the chain is the one deployment that recovers first, because none is available. It gets one attempt.
    pub last_resort: bool,
    /// The random numbers drawn, in order.
    pub draws: SmallVec<[u64; 2]>,
}

impl Selection {
    /// Returns whether the request's size alone is why nobody may answer: it fits in no context window of the
    /// deployments that could otherwise.
    pub fn fits_no_window(&self) -> bool {
        let by_size = |exclusion: &Exclusion| exclusion.reason == ExclusionReason::ContextWindow;
        self.chain.is_empty() && !self.exclusions.is_empty() && self.exclusions.iter().all(by_size)
    }
}

/// Says that a deployment was removed from a route's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exclusion {
    /// The route, as its place in [`crate::Router::routes`].
    pub route: usize,
    /// The deployment, as its place in the list that the router was made with.
    pub deployment: usize,
    /// The first thing that stood against it, in the order of [`ExclusionReason::ALL`].
    pub reason: ExclusionReason,
}

/// Names what keeps a request from a deployment of a route that matches.
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
    /// It would be a fallback to another family of models, which the route does not allow.
    OtherModel,
    /// It is ill or cooling down.
    Unavailable,
}

impl ExclusionReason {
    /// Every reason, in the order in which they are checked: the facts, then the route's limits, then the moment.
    pub const ALL: [Self; 9] = [
        Self::Residency,
        Self::ClassificationCeiling,
        Self::Capability,
        Self::ContextWindow,
        Self::MaxOutput,
        Self::Unpriced,
        Self::MissingPrice,
        Self::OtherModel,
        Self::Unavailable,
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
            Self::OtherModel => "other_model",
            Self::Unavailable => "unavailable",
        }
    }
}

impl std::fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names the condition of a route that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mismatch {
    /// The route is for other models.
    Model,
    /// The route is for other tenants.
    Tenant,
    /// The caller's key is for other routes.
    Key,
    /// The route is for data of other classifications.
    Classification,
    /// The route is for streams only, or for whole answers only.
    Streaming,
    /// The request does not need everything that the route is for.
    Needs,
    /// The request demands none of the route's groups of regions.
    Residency,
    /// The request is too small or too large.
    InputTokens,
    /// The route is for other task classes.
    TaskClass,
    /// The metadata lacks a key or has another value.
    Metadata,
    /// The request's key is outside the route's share.
    Share,
}

impl Mismatch {
    /// Every condition, in the order in which they are checked.
    pub const ALL: [Self; 11] = [
        Self::Model,
        Self::Tenant,
        Self::Key,
        Self::Classification,
        Self::Streaming,
        Self::Needs,
        Self::Residency,
        Self::InputTokens,
        Self::TaskClass,
        Self::Metadata,
        Self::Share,
    ];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tenant => "tenant",
            Self::Key => "key",
            Self::Classification => "classification",
            Self::Streaming => "streaming",
            Self::Needs => "needs",
            Self::Residency => "residency",
            Self::InputTokens => "input_tokens",
            Self::TaskClass => "task_class",
            Self::Metadata => "metadata",
            Self::Share => "share",
        }
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
