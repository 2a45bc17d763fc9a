//! A policy together with the state of what it names, looked up once and not once a request.

use std::{
    collections::{HashMap, HashSet},
    ops::Deref,
    sync::Arc,
};

use foldhash::fast::FixedState;
use gw_limits::{DeploymentSlots, Subject, SubjectIds};
use gw_routing::{BoundStrategies, Strategy};
use gw_types::{DeploymentName, MonoTime, TenantId};

use crate::{
    budget::RetryBudget,
    health::{Access, Breaker, Credentials},
    hedge::{FirstWords, HedgeBudget},
    lanes::Lane,
    policy::{Policy, TargetCredential},
    state::State,
};

/// What a request pins: the policy of the moment, and the long-lived state of its tenants and deployments.
#[derive(Debug)]
pub(crate) struct Pinned {
    policy: Arc<Policy>,
    tenants: HashMap<TenantId, Subject, FixedState>,
    /// Whether keys or models have limits of their own, so that a tenant has more than one subject.
    narrow: bool,
    targets: Vec<TargetState>,
    /// What the routes that hedge may spend on it, in their order.
    hedges: Vec<Option<Arc<HedgeBudget>>>,
    strategies: BoundStrategies,
    is_sticky: bool,
}

/// The long-lived state of a deployment.
#[derive(Debug)]
pub(crate) struct TargetState {
    pub(crate) slots: Option<Arc<DeploymentSlots>>,
    /// Its own rates and caps on money, if it has any.
    pub(crate) limits: Option<Subject>,
    pub(crate) lane: Lane,
    /// Whether an output bound must be known before a call.
    pub(crate) counts_tokens: bool,
    pub(crate) retries: Arc<RetryBudget>,
    pub(crate) breaker: Arc<Breaker>,
    /// The health of each credential, where there are several.
    pub(crate) credentials: Credentials,
    /// How long it takes to begin, where a route that hedges may ask it.
    pub(crate) first_words: Option<Arc<FirstWords>>,
}

impl TargetState {
    /// Returns whether it has not failed lately, and nothing bars the way to it.
    pub(crate) fn is_well(&self, now: MonoTime) -> bool {
        self.breaker.is_well() && matches!(self.look(now), Access::Free)
    }

    /// Returns what a request finds: a deployment that is well and has a credential that is.
    pub(crate) fn look(&self, now: MonoTime) -> Access {
        let own = self.breaker.look(now);
        match (own, self.credentials.look(now)) {
            (Access::Barred { until, why }, Access::Barred { until: keys, .. }) => {
                Access::Barred { until: until.max(keys), why }
            }
            (Access::Barred { .. }, Access::Free | Access::Share(_) | Access::Probe) => own,
            (Access::Free | Access::Share(_) | Access::Probe, barred @ Access::Barred { .. }) => barred,
            (
                Access::Free | Access::Share(_) | Access::Probe,
                Access::Free | Access::Share(_) | Access::Probe,
            ) => own,
        }
    }
}

impl Pinned {
    pub(crate) fn new(policy: Policy, state: &State) -> Self {
        let now = state.clock.now();
        let subject = |tenant: TenantId| {
            let ids = SubjectIds { key: None, tenant: tenant.as_str(), model: None };
            let subject = state.limits.subject(&ids)?;
            Some((tenant, subject))
        };
        let hedges: Vec<Option<Arc<HedgeBudget>>> = policy
            .routes()
            .iter()
            .map(|(name, route)| route.hedge.then(|| state.hedges.route(name)))
            .collect();
        let hedging = policy.router().routes().zip(&hedges).filter(|(_, hedge)| hedge.is_some());
        let hedged: HashSet<DeploymentName> =
            hedging.flat_map(|(route, _)| route.deployments.iter().cloned()).collect();
        let targets = policy.targets().iter().enumerate().map(|(index, target)| {
            let name = &target.deployment.name;
            let slots = state.limits.deployment(name);
            let limits = slots.as_ref().map(Subject::of_deployment).filter(Subject::is_limited);
            let lane = state.lanes.set(name, policy.deployment_policy(index), now);
            let has_windows = |limits: &Subject| limits.has_budget() || limits.has_token_limit();
            let counts_tokens = lane.tokens.is_some() || limits.as_ref().is_some_and(has_windows);
            let (retries, breaker) = (state.retries.deployment(name), state.breakers.deployment(name));
            let breaker_of = |credential: &TargetCredential| {
                (credential.name.clone(), state.breakers.credential(name, &credential.name))
            };
            let credentials = Credentials::new(target.credentials.iter().map(breaker_of).collect());
            let first_words = hedged.contains(name).then(|| state.hedges.deployment(name));
            TargetState { limits, slots, lane, counts_tokens, retries, breaker, credentials, first_words }
        });
        let (tenants, targets) =
            (policy.tenants().into_iter().filter_map(subject).collect(), targets.collect());
        let strategies = state.strategies.bind(policy.router());
        let is_sticky = policy.router().routes().any(|route| route.strategy == Strategy::Sticky);
        let narrow = state.limits.has_narrow_scopes();
        Self { policy: Arc::new(policy), tenants, narrow, targets, hedges, strategies, is_sticky }
    }

    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Returns a tenant's scopes, as long as no more of a request is known.
    pub(crate) fn subject(&self, tenant: &TenantId) -> Option<&Subject> {
        self.tenants.get(tenant)
    }

    /// Returns whether a request must be looked at for the limits of its key and model.
    pub(crate) fn has_narrow_scopes(&self) -> bool {
        self.narrow
    }

    /// Returns what the strategies remember of routes and deployments.
    pub(crate) fn strategies(&self) -> &BoundStrategies {
        &self.strategies
    }

    /// Returns whether any route keeps a conversation at one deployment.
    pub(crate) fn is_sticky(&self) -> bool {
        self.is_sticky
    }

    /// Returns what a route may spend on hedges; `None`: it does not hedge.
    pub(crate) fn hedge(&self, route: usize) -> Option<&HedgeBudget> {
        self.hedges.get(route)?.as_deref()
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
