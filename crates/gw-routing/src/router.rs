//! The router: gate one and gate two in their order, over routes in theirs.

use std::{collections::BTreeSet, sync::Arc};

use gw_types::{Deployment, ModelName, Residency, TenantId};
use smallvec::SmallVec;

use crate::{
    Exclusion, RouteConfig, RouteQuery, RoutingConfig, RoutingError, Selection, Strategy,
    admissible::{Demand, Facts},
    index::ModelIndex,
    matches::{Matcher, TenantNumbers},
    residency::ResidencyGroups,
    validate::{Places, validate},
};

/// Chooses the deployments that may answer a request. Immutable, and equal for equal inputs.
///
/// The answer depends on nothing but the configuration, the facts and the query, so a recorded query can be decided
/// again. Health, limits and load are the business of others.
#[derive(Debug)]
pub struct Router {
    /// Sorted by (priority, name).
    routes: Box<[RouteConfig]>,
    /// One for each route, in the same order.
    rules: Box<[Rule]>,
    /// One for each deployment, in the order given.
    facts: Box<[Facts]>,
    index: ModelIndex,
    tenants: TenantNumbers,
    residency: ResidencyGroups,
}

/// A route with its names resolved.
#[derive(Debug)]
struct Rule {
    matcher: Matcher,
    strategy: Strategy,
    /// Places in `facts`, as written.
    deployments: Box<[usize]>,
}

impl Router {
    /// The most deployments.
    pub const DEPLOYMENTS_MAX: usize = 4_096;
    /// The most routes.
    pub const ROUTES_MAX: usize = 4_096;
    /// The most groups of regions.
    pub const RESIDENCY_GROUPS_MAX: usize = ResidencyGroups::COUNT_MAX;
    /// The longest list of one kind in one route: deployments, models, task classes, classifications, tenants.
    pub const NAMES_PER_ROUTE_MAX: usize = 1_024;
    /// The most exclusions that a [`Selection`] tells of; they go into the request's record.
    pub const EXCLUSIONS_MAX: usize = 256;

    /// Returns the router of a policy that has no fault.
    ///
    /// `deployments` are all there are, whether a route names them or not; a [`Selection`] speaks of them by their
    /// places in this list. Costs O(n log n) in the number of names.
    ///
    /// # Errors
    /// Every fault at once: deployments that do not exist, names given twice, routes without deployments, groups of
    /// regions that no deployment is in, and bounds passed (which hide the other faults).
    pub fn new(config: RoutingConfig, deployments: &[Arc<Deployment>]) -> Result<Self, Vec<RoutingError>> {
        let places = validate(&config, deployments)?;
        let RoutingConfig { mut routes, residency } = config;
        routes.sort_by(|a, b| (a.priority, &a.name).cmp(&(b.priority, &b.name)));
        let facts = |deployment: &Arc<Deployment>| {
            Facts::new(deployment, ResidencyGroups::containing(&residency, &deployment.region))
        };
        let mut tenants = TenantNumbers::default();
        Ok(Self {
            rules: routes.iter().map(|route| Rule::new(route, &places, &mut tenants)).collect(),
            tenants,
            facts: deployments.iter().map(facts).collect(),
            index: ModelIndex::new(&routes),
            residency: ResidencyGroups::new(&residency),
            routes: routes.into(),
        })
    }

    /// Returns the deployments that may answer, and why others may not.
    ///
    /// The first route that matches and keeps at least one deployment wins; the chain is empty rather than hold a
    /// deployment that the facts forbid. Costs two hashes, one step for each route that knows the model, and one for
    /// each deployment of a route that matches. Where nothing is excluded and the winning route has at most eight
    /// deployments, nothing is allocated.
    pub fn candidates(&self, query: &RouteQuery<'_>) -> Selection {
        let demand = Demand::new(query, &self.residency);
        let tenant = self.tenants.get(query.tenant);
        let mut selection = Selection::default();
        for route in self.index.matching(query.model) {
            let rule = &self.rules[route];
            if !rule.matcher.is_for(tenant) {
                continue;
            }
            selection.model_known = true;
            if !rule.matcher.takes(query) {
                continue;
            }
            self.admit(route, &demand, &mut selection);
            if !selection.chain.is_empty() {
                selection.route = Some(route);
                break;
            }
        }
        selection
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

    /// Returns the routes, sorted by (priority, name); [`Selection::route`] counts in this order.
    pub fn routes(&self) -> impl Iterator<Item = &RouteConfig> {
        self.routes.iter()
    }

    /// Returns the route at a place of [`Router::routes`].
    pub fn route(&self, place: usize) -> Option<&RouteConfig> {
        self.routes.get(place)
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

    /// Passes the route's deployments through gate two.
    fn admit(&self, route: usize, demand: &Demand, selection: &mut Selection) {
        let rule = &self.rules[route];
        // At once, so that a long chain is allocated once and not by doubling.
        selection.chain.reserve_exact(rule.deployments.len());
        for &deployment in &rule.deployments {
            match self.facts[deployment].against(demand) {
                None => selection.chain.push(deployment),
                Some(reason) if selection.exclusions.len() < Self::EXCLUSIONS_MAX => {
                    selection.exclusions.push(Exclusion { route, deployment, reason });
                }
                Some(_) => {}
            }
        }
        rule.strategy.arrange(&mut selection.chain);
    }
}

impl Rule {
    fn new(route: &RouteConfig, places: &Places<'_>, tenants: &mut TenantNumbers) -> Self {
        Self {
            matcher: Matcher::new(&route.matches, tenants),
            strategy: route.strategy,
            // Every name was found when the policy was validated.
            deployments: route.deployments.iter().filter_map(|name| places.get(name).copied()).collect(),
        }
    }
}

impl Strategy {
    /// Puts the admissible deployments, which come as written, into the strategy's order. It neither adds nor removes.
    fn arrange(self, _chain: &mut SmallVec<[usize; 8]>) {
        match self {
            Self::Ordered => {}
        }
    }
}

#[cfg(test)]
mod tests;
