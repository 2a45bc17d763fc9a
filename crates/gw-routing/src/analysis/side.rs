//! One policy, made ready to be asked about. Two of them make a difference.

use gw_types::RouteName;

use super::{PolicyFacts, TenantFacts};
use crate::{ModelPattern, RouteQuery, Router, RoutingError, decide::Rule, matches::Matcher};

/// A policy with its router, its declared refusals and its tenants.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub(super) facts: &'a PolicyFacts,
    pub(super) router: Router,
}

/// One thing that takes requests: a route, or a declared refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleRef {
    pub(super) side: usize,
    pub(super) place: RulePlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RulePlace {
    Route(usize),
    Refused(usize),
}

impl<'a> Side<'a> {
    pub(super) fn new(facts: &'a PolicyFacts) -> Result<Self, Vec<RoutingError>> {
        Ok(Self { facts, router: Router::new(facts.routing.clone(), &facts.deployments)? })
    }

    /// Returns all that takes requests: the routes in their order, then the refusals.
    pub(super) fn rules(&self, side: usize) -> impl Iterator<Item = RuleRef> {
        let routes = (0..self.router.routes.len()).map(RulePlace::Route);
        routes
            .chain((0..self.router.refusals.matchers.len()).map(RulePlace::Refused))
            .map(move |place| RuleRef { side, place })
    }

    /// Returns the models that each of [`Side::rules`] takes.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &[ModelPattern]> + Clone {
        let routes = self.router.routes.iter().map(|route| route.matches.models.as_slice());
        routes.chain(self.facts.routing.refused.iter().map(|refused| refused.models.as_slice()))
    }

    pub(super) fn matcher(&self, place: RulePlace) -> &Matcher {
        match place {
            RulePlace::Route(place) => &self.router.rules[place].matcher,
            RulePlace::Refused(place) => &self.router.refusals.matchers[place],
        }
    }

    pub(super) fn rule(&self, route: usize) -> &Rule {
        &self.router.rules[route]
    }

    pub(super) fn route_name(&self, route: usize) -> &RouteName {
        &self.router.routes[route].name
    }

    pub(super) fn is_for(&self, place: RulePlace, tenant: &TenantFacts) -> bool {
        self.matcher(place).is_for(self.router.tenants.get(&tenant.id))
    }

    /// Returns whether the facts allow a request that demands what the query demands.
    pub(super) fn allows(&self, deployment: usize, query: &RouteQuery<'_>) -> bool {
        let demand = crate::admissible::Demand::new(query, &self.router.residency);
        self.router.facts[deployment].against(&demand).is_none()
    }
}
