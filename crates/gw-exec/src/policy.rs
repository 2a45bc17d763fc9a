//! What the configuration decided, as one immutable value that a reload swaps and a request pins.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc, time::Duration};

use foldhash::fast::FixedState;
use gw_cache::{CachePolicy, Embedder};
use gw_limits::{Priority, Rate, Vocabulary};
use gw_routing::{ModelPattern, Router, RoutingConfig, RoutingError};
use gw_types::{
    Adapter, BoundedText, Classification, CredentialName, Deployment, DeploymentName, KeyIdentity, KeyName,
    Metadata, ModelName, Residency, RouteName, TagRecord, TenantId, TokenCount,
};

/// A deployment and the adapter that calls it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The facts.
    pub deployment: Arc<Deployment>,
    /// What calls it; with the first credential, where there are several.
    pub adapter: Arc<dyn Adapter>,
    /// Every credential that it may be called with, in order of preference, if there are several; at most
    /// [`Target::CREDENTIALS_MAX`]. Empty: the adapter has one of its own, or needs none.
    pub credentials: Arc<[TargetCredential]>,
}

/// One of several credentials, and what calls the deployment with it.
#[derive(Clone, Debug)]
pub struct TargetCredential {
    /// Its name in the configuration.
    pub name: CredentialName,
    /// What calls the deployment: destination and credential are one unit.
    pub adapter: Arc<dyn Adapter>,
}

impl Target {
    /// The most credentials of one deployment.
    pub const CREDENTIALS_MAX: usize = 16;

    /// Returns a deployment that is called in one way alone.
    pub fn new(deployment: Arc<Deployment>, adapter: Arc<dyn Adapter>) -> Self {
        Self { deployment, adapter, credentials: Arc::from([]) }
    }

    /// Returns what calls the deployment with the credential at the place; with its own where there are not several.
    pub(crate) fn adapter_of(&self, credential: Option<usize>) -> &Arc<dyn Adapter> {
        let own = credential.and_then(|index| self.credentials.get(index));
        own.map_or(&self.adapter, |credential| &credential.adapter)
    }

    /// Returns the name of the credential at the place, where there are several.
    pub(crate) fn credential_name(&self, credential: Option<usize>) -> Option<CredentialName> {
        Some(self.credentials.get(credential?)?.name.clone())
    }
}

/// What a route decides beside the chain.
#[derive(Clone, Debug)]
pub struct RoutePolicy {
    /// How its answers are remembered; `None`: not at all.
    pub cache: Option<CachePolicy>,
    /// Who judges would-be hits of similar requests in the background; `None`: equal answers and feedback alone are
    /// labels.
    pub judge: Option<DeploymentName>,
    /// Who turns the questions of the semantic tier into vectors.
    pub embedder: RouteEmbedder,
    /// Digest of the route and its deployments as configured: part of every key of the cache, so that a changed route
    /// never serves what it answered before.
    pub digest: BoundedText,
    /// The output bound for requests that name none, where a budget or a token limit applies.
    pub default_max_output_tokens: Option<TokenCount>,
    /// Provider calls for one request, over all deployments.
    pub max_attempts: NonZeroU32,
    /// Whether a translation that would lose a field is refused, whatever the caller says about it.
    pub strict_translation: bool,
    /// Whether a second deployment is asked where the first is slow to begin its stream; `false` by default.
    pub hedge: bool,
}

impl Default for RoutePolicy {
    /// Returns no cache, no default bound, 3 attempts, translations that report what they lose, no hedging.
    fn default() -> Self {
        const ATTEMPTS: NonZeroU32 = NonZeroU32::new(3).expect("3 is not 0");
        Self {
            cache: None,
            judge: None,
            embedder: RouteEmbedder::default(),
            digest: BoundedText::default(),
            default_max_output_tokens: None,
            max_attempts: ATTEMPTS,
            strict_translation: false,
            hedge: false,
        }
    }
}

/// Says who turns a route's questions into vectors. The route's digest has to change with it: vectors of two embedders
/// do not compare.
#[derive(Clone, Debug, Default)]
pub enum RouteEmbedder {
    /// The embedder of the semantic cache.
    #[default]
    Own,
    /// Another one in this process.
    Local(Arc<dyn Embedder>),
    /// A deployment, asked as a request of the route's tenant. A target of the policy; else nothing is compared.
    Deployment(DeploymentName),
}

/// What a tenant's requests begin with.
#[derive(Clone, Debug)]
pub struct TenantPolicy {
    /// The classification of a request that names none; a request may raise it.
    pub default_classification: Classification,
    /// The group of regions that always holds; a request may demand another one beside it.
    pub residency: Option<Residency>,
    /// How its requests wait for a slot.
    pub queue: QueuePolicy,
    /// Keys whose requests wait in another way.
    pub keys: Vec<(KeyName, QueuePolicy)>,
    /// Keys that may not ask for everything that the tenant may.
    pub scopes: Vec<(KeyName, KeyScope)>,
}

/// What a key's requests may ask for; what is empty or absent narrows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyScope {
    /// The models.
    pub models: Vec<ModelPattern>,
    /// The routes.
    pub routes: Vec<RouteName>,
    /// The most sensitive data.
    pub classification_ceiling: Option<Classification>,
}

impl KeyScope {
    /// Returns whether the key is for the model.
    pub fn permits(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|pattern| pattern.matches(model))
    }
}

impl TenantPolicy {
    /// Returns the policy of a tenant that says no more than a classification: nobody waits.
    pub fn new(default_classification: Classification) -> Self {
        Self {
            default_classification,
            residency: None,
            queue: QueuePolicy::default(),
            keys: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// Returns what narrows a key; `None`: nothing does.
    pub(crate) fn scope(&self, key: &KeyName) -> Option<&KeyScope> {
        self.scopes.iter().find(|(name, _)| name == key).map(|(_, scope)| scope)
    }

    pub(crate) fn queue(&self, key: &KeyName) -> QueuePolicy {
        let own = self.keys.iter().find(|(name, _)| name == key);
        own.map_or(self.queue, |(_, queue)| *queue)
    }
}

/// How requests wait for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Requests of the tenant in one priority class that may wait; with 0, the default, what is over the cap is refused
    /// at once.
    pub max_queue: u32,
    /// The tenant's share against others that wait; 1 by default.
    pub weight: NonZeroU32,
    /// The class.
    pub priority: Priority,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self { max_queue: 0, weight: NonZeroU32::MIN, priority: Priority::Normal }
    }
}

/// How a deployment's calls are paced and its tokens counted. By default nothing is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentPolicy {
    /// The pace of its calls, one after another without a burst. `None`: none.
    pub requests_per_second: Option<Rate>,
    /// Tokens of all its calls in flight together, input and output bound. `None`: no limit; 0 refuses everything.
    pub in_flight_tokens: Option<TokenCount>,
    /// How its tokens are estimated before any answer has shown it.
    pub tokens: TokenFacts,
}

/// What is known of how a deployment counts tokens; corrected by what its answers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenFacts {
    /// The family of its tokenizer.
    pub vocabulary: Vocabulary,
    /// Tokens that its template adds to each message; 4 by default.
    pub per_message: TokenCount,
    /// Tokens that its template adds to a request; 3 by default.
    pub per_request: TokenCount,
    /// The most tokens that it makes of one image; by default 1.5 times the largest formula known.
    pub per_image: TokenCount,
}

impl TokenFacts {
    /// 1.5 times 1,536 patches at 2.46 tokens.
    const IMAGE: TokenCount = TokenCount::new(5_668);
}

impl Default for TokenFacts {
    fn default() -> Self {
        Self {
            vocabulary: Vocabulary::default(),
            per_message: TokenCount::new(4),
            per_request: TokenCount::new(3),
            per_image: Self::IMAGE,
        }
    }
}

/// What a policy is made of.
#[derive(Debug)]
pub struct PolicyConfig {
    /// Digest of the configuration, for records and `x-gw-config`.
    pub digest: BoundedText,
    /// Rules and residency groups.
    pub routing: RoutingConfig,
    /// Every deployment.
    pub targets: Vec<Target>,
    /// How deployments are paced and count tokens, by their names; those that are not named: by default.
    pub deployments: Vec<(DeploymentName, DeploymentPolicy)>,
    /// What each route decides beside the chain, by its name.
    pub routes: Vec<(RouteName, RoutePolicy)>,
    /// Every tenant.
    pub tenants: Vec<(TenantId, TenantPolicy)>,
    /// The time budget of a request that names none.
    pub default_deadline: Duration,
    /// The largest time budget that a request may name.
    pub max_deadline: Duration,
}

/// What the configuration decided. Immutable; a request keeps the one it began with.
#[derive(Debug)]
pub struct Policy {
    digest: BoundedText,
    router: Router,
    targets: Vec<Target>,
    /// The place of each among the targets.
    places: HashMap<DeploymentName, usize, FixedState>,
    /// As many as targets, in their order.
    deployments: Vec<DeploymentPolicy>,
    routes: Vec<(RouteName, RoutePolicy)>,
    tenants: HashMap<TenantId, TenantPolicy, FixedState>,
    residencies: Vec<Residency>,
    default_deadline: Duration,
    max_deadline: Duration,
    unnamed_output: TokenCount,
    /// Names in a request's metadata that records keep.
    record_tags: Vec<BoundedText>,
}

impl Policy {
    /// The output that admission counts for a request that names none where no route says more, in tokens.
    pub const UNNAMED_OUTPUT: TokenCount = TokenCount::new(256);

    /// Builds the policy.
    ///
    /// # Errors
    /// Every fault of the routing at once.
    pub fn new(config: PolicyConfig) -> Result<Self, Vec<RoutingError>> {
        let deployments: Vec<Arc<Deployment>> =
            config.targets.iter().map(|target| Arc::clone(&target.deployment)).collect();
        let residencies = config.routing.residency.keys().cloned().collect();
        let router = Router::new(config.routing, &deployments)?;
        let mut by_name: HashMap<RouteName, RoutePolicy, FixedState> = config.routes.into_iter().collect();
        let routes: Vec<(RouteName, RoutePolicy)> = router
            .routes()
            .map(|route| (route.name.clone(), by_name.remove(&route.name).unwrap_or_default()))
            .collect();
        let mut by_name: HashMap<DeploymentName, DeploymentPolicy, FixedState> =
            config.deployments.into_iter().collect();
        let policy_of = |target: &Target| by_name.remove(&target.deployment.name).unwrap_or_default();
        let deployments_in_order = config.targets.iter().map(policy_of).collect();
        let unnamed_output = routes
            .iter()
            .filter_map(|(_, route)| route.default_max_output_tokens)
            .min()
            .unwrap_or(Self::UNNAMED_OUTPUT);
        Ok(Self {
            digest: config.digest,
            router,
            places: config
                .targets
                .iter()
                .enumerate()
                .map(|(place, target)| (target.deployment.name.clone(), place))
                .collect(),
            targets: config.targets,
            deployments: deployments_in_order,
            routes,
            tenants: config.tenants.into_iter().collect(),
            residencies,
            default_deadline: config.default_deadline,
            max_deadline: config.max_deadline,
            unnamed_output,
            record_tags: Vec::new(),
        })
    }

    /// Returns the digest of the configuration.
    pub fn digest(&self) -> &BoundedText {
        &self.digest
    }

    /// Returns every deployment, in configuration order.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Returns the tenants' names, sorted.
    pub fn tenants(&self) -> Vec<TenantId> {
        let mut names: Vec<TenantId> = self.tenants.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the model names that a tenant may ask for, sorted.
    pub fn models(&self, tenant: &TenantId) -> Vec<ModelName> {
        self.router.models(tenant)
    }

    /// Returns the model names that a caller's key may ask for, sorted.
    pub fn models_of(&self, caller: &KeyIdentity) -> Vec<ModelName> {
        let mut names = self.router.models(&caller.tenant);
        if let Some(scope) = self.tenants.get(&caller.tenant).and_then(|tenant| tenant.scope(&caller.key)) {
            names.retain(|name| {
                scope.permits(name.as_str()) && self.router.knows_model_by(&scope.routes, name.as_str())
            });
        }
        names
    }

    /// Returns whether some deployment has the name.
    pub fn has_deployment(&self, name: &DeploymentName) -> bool {
        self.places.contains_key(name)
    }

    /// Returns whether some route, or what is declared refused, goes by a request's metadata, or records keep some of it:
    /// only then need it be read.
    pub fn reads_metadata(&self) -> bool {
        self.router.reads_metadata() || !self.record_tags.is_empty()
    }

    /// Keeps in each record what the request's metadata says under these names.
    #[must_use]
    pub fn with_record_tags(self, names: Vec<BoundedText>) -> Self {
        Self { record_tags: names, ..self }
    }

    pub(crate) fn tags(&self, metadata: &Metadata) -> Vec<TagRecord> {
        let tag = |name: &BoundedText| {
            let value = BoundedText::new(metadata.get(name.as_str())?);
            Some(TagRecord { name: name.clone(), value })
        };
        self.record_tags.iter().filter_map(tag).collect()
    }

    pub(crate) fn router(&self) -> &Router {
        &self.router
    }

    /// Returns the place of a deployment among the targets.
    pub(crate) fn place_of(&self, name: &DeploymentName) -> Option<usize> {
        self.places.get(name).copied()
    }

    pub(crate) fn target(&self, index: usize) -> &Target {
        &self.targets[index]
    }

    pub(crate) fn deployment_policy(&self, index: usize) -> &DeploymentPolicy {
        &self.deployments[index]
    }

    pub(crate) fn routes(&self) -> &[(RouteName, RoutePolicy)] {
        &self.routes
    }

    pub(crate) fn route(&self, index: usize) -> &(RouteName, RoutePolicy) {
        &self.routes[index]
    }

    pub(crate) fn tenant(&self, id: &TenantId) -> Option<&TenantPolicy> {
        self.tenants.get(id)
    }

    /// Returns how a caller's requests wait for a slot.
    pub(crate) fn queue(&self, caller: &KeyIdentity) -> QueuePolicy {
        self.tenant(&caller.tenant).map(|tenant| tenant.queue(&caller.key)).unwrap_or_default()
    }

    pub(crate) fn knows_residency(&self, residency: &Residency) -> bool {
        self.residencies.contains(residency)
    }

    pub(crate) fn default_deadline(&self) -> Duration {
        self.default_deadline
    }

    pub(crate) fn max_deadline(&self) -> Duration {
        self.max_deadline
    }

    /// Returns the output that admission counts for a request that names none: the route is not known yet.
    pub(crate) fn unnamed_output(&self) -> TokenCount {
        self.unnamed_output
    }
}
