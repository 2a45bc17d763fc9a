//! The router: a policy without faults, ready to decide.

use std::{collections::BTreeSet, sync::Arc};

use gw_types::{Deployment, DeploymentName, ModelName, Residency, TenantId};

use crate::{
    Explanation, Live, RouteConfig, RouteQuery, RoutingConfig, RoutingError, Selection,
    admissible::{Demand, Facts},
    decide::{Rule, Unwatched},
    index::ModelIndex,
    matches::TenantNumbers,
    refusals::Refusals,
    residency::ResidencyGroups,
    screen::Screen,
    validate::validate,
};

/// Chooses the deployments that may answer a request. Immutable, and equal for equal inputs.
///
/// The answer depends on nothing but the configuration, the facts, the query and what a [`Live`] shows, so a recorded
/// query can be decided again. Limits are the business of others.
#[derive(Debug)]
pub struct Router {
    /// Sorted by (priority, name).
    pub(crate) routes: Box<[RouteConfig]>,
    /// One for each route, in the same order.
    pub(crate) rules: Box<[Rule]>,
    /// One for each deployment, in the order given; so the names.
    pub(crate) facts: Box<[Facts]>,
    names: Box<[DeploymentName]>,
    pub(crate) index: ModelIndex,
    pub(crate) tenants: TenantNumbers,
    pub(crate) screen: Screen,
    pub(crate) residency: ResidencyGroups,
    pub(crate) refusals: Refusals,
}

impl Router {
    /// The most deployments.
    pub const DEPLOYMENTS_MAX: usize = 4_096;
    /// The most routes.
    pub const ROUTES_MAX: usize = 4_096;
    /// The most groups of regions.
    pub const RESIDENCY_GROUPS_MAX: usize = ResidencyGroups::COUNT_MAX;
    /// The longest list of one kind in one route: deployments, models, tenants, metadata values and so on.
    pub const NAMES_PER_ROUTE_MAX: usize = 1_024;
    /// The most classes of requests that a policy declares refused.
    pub const REFUSED_MAX: usize = 256;
    /// The longest key or value of metadata, in bytes.
    pub const METADATA_BYTES_MAX: usize = 128;
    /// The most that one deployment of a route may weigh.
    pub const WEIGHT_MAX: u32 = 1_000_000;
    /// The most exclusions that a [`Selection`] tells of; they go into the request's record.
    pub const EXCLUSIONS_MAX: usize = 256;

    /// Returns the router of a policy that has no fault.
    ///
    /// `deployments` are all there are, whether a route names them or not; a [`Selection`] speaks of them by their
    /// places in this list. Costs O(n log n) in the number of names.
    ///
    /// # Errors
    /// Every fault at once: names that do not exist or are given twice, routes without deployments, groups of regions
    /// that no deployment is in, settings without an effect, and bounds passed (which hide the other faults).
    pub fn new(config: RoutingConfig, deployments: &[Arc<Deployment>]) -> Result<Self, Vec<RoutingError>> {
        let places = validate(&config, deployments)?;
        let mut config = config;
        let mut routes = std::mem::take(&mut config.routes);
        routes.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        let residency = ResidencyGroups::new(&config.residency);
        let facts = |deployment: &Arc<Deployment>| {
            let groups = ResidencyGroups::containing(&config.residency, &deployment.region);
            Facts::new(deployment, groups, config.budgeted.contains(&deployment.name))
        };
        let family =
            |place: usize| config.families.get(&deployments[place].name).unwrap_or(&deployments[place].model);
        let mut tenants = TenantNumbers::default();
        let rules: Box<[Rule]> = routes
            .iter()
            .map(|route| Rule::new(route, &config, &places, &family, &residency, &mut tenants))
            .collect();
        let refusals = Refusals::new(&config, &residency, &mut tenants);
        Ok(Self {
            refusals,
            screen: Screen::new(&rules, &tenants),
            rules,
            tenants,
            facts: deployments.iter().map(facts).collect(),
            names: deployments.iter().map(|deployment| deployment.name.clone()).collect(),
            index: ModelIndex::new(routes.iter().map(|route| route.matches.models.as_slice())),
            residency,
            routes: routes.into(),
        })
    }

    /// Returns the deployments that may answer, and why others may not, whatever the moment.
    ///
    /// The first route that matches and keeps at least one deployment wins; the chain is empty rather than hold a
    /// deployment that the facts forbid. Only [`crate::Strategy::Ordered`] needs no moment: under every other strategy
    /// the chain holds all that may be chosen, as written, and what the choice would then forbid is still in it.
    ///
    /// Costs two hashes, one step for each route that knows the model, and one for each deployment of a route that
    /// matches. Where nothing is excluded and the winning route has at most eight deployments, nothing is allocated.
    pub fn candidates(&self, query: &RouteQuery<'_>) -> Selection {
        self.decide(query, None, &mut Unwatched)
    }

    /// Returns the deployments that may answer now, in the order of the route's strategy.
    ///
    /// Deployments that are not available are out. A route none of whose deployments is available is passed over, unless
    /// it says [`crate::OnUnavailable::Fail`]; if no route has one that is, the one that recovers first is the chain, and
    /// [`Selection::last_resort`] says so.
    pub fn select(&self, query: &RouteQuery<'_>, live: &Live<'_>) -> Selection {
        self.decide(query, Some(live), &mut Unwatched)
    }

    /// Returns the decision step by step: the same code, watched. Without a `live` it is that of
    /// [`Router::candidates`].
    pub fn explain(&self, query: &RouteQuery<'_>, live: Option<&Live<'_>>) -> Explanation {
        Explanation::of(self, query, live)
    }

    /// Returns the names that some route lists and offers this tenant, sorted, none twice. Wildcards name no model and
    /// add none. Costs O(n log n) in the number of names.
    pub fn models(&self, tenant: &TenantId) -> Vec<ModelName> {
        let tenant = self.tenants.get(tenant);
        let offered = self.routes.iter().zip(&self.rules).filter(|(_, rule)| rule.matcher.is_for(tenant));
        let names: BTreeSet<&ModelName> = offered
            .flat_map(|(route, _)| route.matches.models.iter().filter_map(|pattern| pattern.exact()))
            .collect();
        names.into_iter().cloned().collect()
    }

    /// Returns whether some route knows the model's name for this tenant, wildcards included.
    pub fn knows_model(&self, model: &str, tenant: &TenantId) -> bool {
        let tenant = self.tenants.get(tenant);
        self.index.matching(model).any(|route| self.rules[route].matcher.is_for(tenant))
    }

    /// Returns the first fact that keeps a request from a deployment, whatever the routes say: what holds for calls that
    /// gw makes beside a request, such as a judge's. `None`: the deployment may have it. The deployment by its place.
    pub fn against(&self, deployment: usize, query: &RouteQuery<'_>) -> Option<crate::ExclusionReason> {
        self.facts.get(deployment)?.against(&Demand::new(query, &self.residency))
    }

    /// Returns the routes, sorted by (priority, name); [`Selection::route`] counts in this order.
    pub fn routes(&self) -> impl Iterator<Item = &RouteConfig> {
        self.routes.iter()
    }

    /// Returns whether some route, or what is declared refused, goes by a request's metadata.
    pub fn reads_metadata(&self) -> bool {
        let routes = self.rules.iter().map(|rule| &rule.matcher);
        routes.chain(&self.refusals.matchers).any(|matcher| matcher.metadata().next().is_some())
    }

    /// Returns the route at a place of [`Router::routes`].
    pub fn route(&self, place: usize) -> Option<&RouteConfig> {
        self.routes.get(place)
    }

    /// Returns the names of the deployments, in the order given.
    pub fn deployments(&self) -> &[DeploymentName] {
        &self.names
    }

    /// Checks that a group of regions exists, before a tenant or a request may demand it.
    ///
    /// # Errors
    /// [`RoutingError::UnknownResidency`] with the groups there are.
    pub fn check_residency(&self, group: &Residency) -> Result<(), RoutingError> {
        match self.residency.set(std::slice::from_ref(group)) {
            Some(_) => Ok(()),
            None => Err(RoutingError::UnknownResidency {
                group: group.clone(),
                known: self.residency.names().into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
