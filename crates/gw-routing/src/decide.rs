//! One decision: gate one and gate two in their order, over routes in theirs.

use gw_types::{ModelName, MonoTime};

use crate::{
    Exclusion, ExclusionReason, Live, Mismatch, OnUnavailable, RouteConfig, RouteQuery, Router,
    RoutingConfig, Selection, Standing, Strategy,
    admissible::Demand,
    index::Block,
    matches::{Matcher, TenantNumbers},
    residency::ResidencyGroups,
    strategy::{Arranger, Arranging, Chain, Ring},
    validate::Places,
};

/// A route with its names resolved.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) matcher: Matcher,
    /// Places of deployments, as written.
    pub(crate) deployments: Box<[usize]>,
    /// The family of each of them, as a number; empty if families do not matter.
    families: Box<[u16]>,
    arranger: Arranger,
    pub(crate) fails: bool,
    falls_back: bool,
}

/// Sees a decision being made. What is watched is the decision itself: there is no second version of it to explain.
pub(crate) trait Watch {
    /// Whether mismatches are seen. Where they are not, most routes that do not match are never looked at.
    const SEES_MISMATCHES: bool = true;

    /// The route does not take the request.
    fn mismatched(&mut self, route: usize, mismatch: Mismatch);
    /// The route takes the request; its deployments follow.
    fn matched(&mut self, route: usize);
    /// A deployment of the route that matched last may answer, or may not.
    fn judged(&mut self, deployment: usize, reason: Option<ExclusionReason>);
}

/// Sees nothing, and costs nothing.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    const SEES_MISMATCHES: bool = false;

    fn mismatched(&mut self, _route: usize, _mismatch: Mismatch) {}
    fn matched(&mut self, _route: usize) {}
    fn judged(&mut self, _deployment: usize, _reason: Option<ExclusionReason>) {}
}

/// The deployment that recovers first, of the routes passed over so far.
#[derive(Clone, Copy)]
struct Recovery {
    at: MonoTime,
    route: usize,
    deployment: usize,
}

impl Router {
    pub(crate) fn decide<W: Watch>(
        &self,
        query: &RouteQuery<'_>,
        live: Option<&Live<'_>>,
        watch: &mut W,
    ) -> Selection {
        let demand = Demand::new(query, &self.residency);
        let screened = self.screen.of(query, self.tenants.get(query.tenant));
        let mut selection = Selection::default();
        let mut first_back: Option<Recovery> = None;
        'routes: for known in self.index.blocks(query.model) {
            let offered = screened.for_tenant(known);
            if !selection.model_known && !offered.is_empty() {
                selection.model_known = true;
                selection.refused = self.refusals.first(query, &self.tenants, demand.residency);
                if selection.refused.is_some() {
                    return selection;
                }
            }
            for route in if W::SEES_MISMATCHES { known } else { screened.passing(offered) } {
                if let Some(mismatch) = self.mismatch(route, offered, query, &demand) {
                    watch.mismatched(route, mismatch);
                    continue;
                }
                watch.matched(route);
                self.admit(route, &demand, &mut selection, watch);
                let recovery = live.and_then(|live| self.choose(route, query, live, &mut selection, watch));
                first_back = earlier(first_back, recovery);
                if !selection.chain.is_empty() {
                    selection.route = Some(route);
                    return selection;
                }
                if self.rules[route].fails {
                    selection.stopped_at = Some(route);
                    break 'routes;
                }
            }
        }
        if let Some(recovery) = first_back {
            selection.route = Some(recovery.route);
            selection.chain.push(recovery.deployment);
            selection.last_resort = true;
        }
        selection
    }

    /// Returns the first condition of a route, one that knows the model, which the query does not meet. `offered` are
    /// the routes that are for its tenant.
    fn mismatch(
        &self,
        route: usize,
        offered: Block,
        query: &RouteQuery<'_>,
        demand: &Demand,
    ) -> Option<Mismatch> {
        if !offered.has(route) {
            return Some(Mismatch::Tenant);
        }
        if !query.routes.is_empty() && !query.routes.contains(&self.routes[route].name) {
            return Some(Mismatch::Key);
        }
        self.rules[route].matcher.mismatch(query, demand.residency)
    }

    /// Passes the route's deployments through gate two, and through what the route itself forbids its fallbacks.
    fn admit(&self, route: usize, demand: &Demand, selection: &mut Selection, watch: &mut impl Watch) {
        let rule = &self.rules[route];
        // At once, so that a long chain is allocated once and not by doubling.
        selection.chain.reserve_exact(rule.deployments.len());
        for (place, &deployment) in rule.deployments.iter().enumerate() {
            let reason = self.facts[deployment].against(demand).or_else(|| rule.forbids(place));
            watch.judged(deployment, reason);
            match reason {
                None => selection.chain.push(deployment),
                Some(reason) => exclude(selection, route, deployment, reason),
            }
        }
        if rule.is_pinned() {
            selection.chain.truncate(1);
        }
    }

    /// Removes what cannot be had now and puts the rest in order; returns who recovers first if nothing is left.
    fn choose(
        &self,
        route: usize,
        query: &RouteQuery<'_>,
        live: &Live<'_>,
        selection: &mut Selection,
        watch: &mut impl Watch,
    ) -> Option<Recovery> {
        let rule = &self.rules[route];
        let admitted = std::mem::take(&mut selection.chain);
        let mut recovery = None;
        for deployment in admitted {
            match live.availability.state(deployment) {
                Standing::Available => selection.chain.push(deployment),
                Standing::Until(at) => {
                    watch.judged(deployment, Some(ExclusionReason::Unavailable));
                    exclude(selection, route, deployment, ExclusionReason::Unavailable);
                    recovery = earlier(recovery, Some(Recovery { at, route, deployment }));
                }
            }
        }
        if selection.chain.is_empty() {
            return recovery;
        }
        let at = Arranging { route, deployments: &rule.deployments, affinity: query.affinity, live };
        rule.arranger.arrange(&at, &mut selection.chain, &mut selection.draws);
        if !rule.falls_back {
            selection.chain.truncate(1);
        }
        for deployment in rule.remove_other_families(&mut selection.chain) {
            watch.judged(deployment, Some(ExclusionReason::OtherModel));
            exclude(selection, route, deployment, ExclusionReason::OtherModel);
        }
        None
    }
}

/// Ties go to the route and the deployment that come first.
fn earlier(one: Option<Recovery>, other: Option<Recovery>) -> Option<Recovery> {
    match (one, other) {
        (Some(one), Some(other)) if other.at < one.at => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}

fn exclude(selection: &mut Selection, route: usize, deployment: usize, reason: ExclusionReason) {
    if selection.exclusions.len() < Router::EXCLUSIONS_MAX {
        selection.exclusions.push(Exclusion { route, deployment, reason });
    }
}

impl Rule {
    pub(crate) fn new<'a>(
        route: &RouteConfig,
        config: &RoutingConfig,
        places: &Places<'_>,
        family: &impl Fn(usize) -> &'a ModelName,
        groups: &ResidencyGroups,
        tenants: &mut TenantNumbers,
    ) -> Self {
        // Every name was found when the policy was validated.
        let deployments: Box<[usize]> =
            route.deployments.iter().filter_map(|name| places.get(name).copied()).collect();
        let weight = |name| route.weights.get(name).copied().unwrap_or(1);
        let is = |strategy| route.strategy == strategy;
        Self {
            matcher: Matcher::new(route.name.as_str(), &route.matches, config, groups, tenants),
            families: families(route.allow_other_models, deployments.iter().map(|place| family(*place))),
            deployments,
            arranger: Arranger {
                strategy: route.strategy,
                weights: if is(Strategy::Weighted) {
                    route.deployments.iter().map(weight).collect()
                } else {
                    Box::default()
                },
                ring: is(Strategy::Sticky)
                    .then(|| Ring::new(route.deployments.iter().map(|name| name.as_str()))),
            },
            fails: match route.on_unavailable {
                OnUnavailable::Fail => true,
                OnUnavailable::FallThrough => false,
            },
            falls_back: route.allow_fallback,
        }
    }

    /// Returns whether only the first deployment that the facts allow may ever answer, ill or not: to go to the second
    /// because of the first one's health would be a fallback.
    pub(crate) fn is_pinned(&self) -> bool {
        !self.falls_back && self.arranger.strategy == Strategy::Ordered
    }

    /// Returns why the route's deployment at the place may never answer, whatever the request.
    pub(crate) fn forbids(&self, place: usize) -> Option<ExclusionReason> {
        let is_other = self.arranger.strategy == Strategy::Ordered
            && self.families.get(place).is_some_and(|family| *family != self.families[0]);
        is_other.then_some(ExclusionReason::OtherModel)
    }

    /// Removes from a chain whatever is of another family than its first.
    fn remove_other_families(&self, chain: &mut Chain) -> Chain {
        let mut removed = Chain::new();
        if self.families.is_empty() {
            return removed;
        }
        let family = |deployment: usize| {
            self.deployments.iter().position(|one| *one == deployment).map(|place| self.families[place])
        };
        let home = chain.first().and_then(|first| family(*first));
        chain.retain(|deployment| {
            let stays = family(*deployment) == home;
            if !stays {
                removed.push(*deployment);
            }
            stays
        });
        removed
    }
}

/// Numbers the families; nothing where all are one, or where they do not matter.
fn families<'a>(all_allowed: bool, names: impl Iterator<Item = &'a ModelName> + Clone) -> Box<[u16]> {
    let mut seen: Vec<&ModelName> = Vec::new();
    let mut number = |name: &'a ModelName| {
        let place = seen.iter().position(|one| *one == name).unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    };
    let numbers: Box<[u16]> = names.map(&mut number).collect();
    if all_allowed || seen.len() < 2 { Box::default() } else { numbers }
}
