//! Runs every class through the gates and tells what follows.

use std::collections::{BTreeMap, BTreeSet};

use gw_types::{CapabilitySet, Pricing, TenantId};

use super::{
    DemandKind, Finding, FindingKind, PolicyFacts, Report, Severity, Witness,
    block::{Atlas, Block, Choice, Class, DEMANDS, NEEDS},
    outcome::{Offer, Offers, Verdict, name, offers, verdict},
    side::RulePlace,
    timing,
};
use crate::{ExclusionReason, RoutingError, admissible::Demand};

/// Analyses a policy: what refuses its start, and what its author should know.
///
/// Costs one intersection of bits a dimension for each class of requests, and one step for each route that takes it.
///
/// # Errors
/// Every fault of the policy's names; then there is nothing to analyse.
pub fn analyse(facts: &PolicyFacts) -> Result<Report, Vec<RoutingError>> {
    let atlas = Atlas::new(&[facts])?;
    let mut report = Report { classes: atlas.count, ..Report::default() };
    let mut findings = if atlas.is_within_bounds() {
        let mut survey = Survey::new(&atlas);
        for place in 0..atlas.blocks.len() {
            survey.block(place);
        }
        survey.findings()
    } else {
        vec![too_many(&atlas)]
    };
    findings.extend(timing::findings(&atlas.sides[0]));
    for finding in findings {
        match finding.kind.severity() {
            Severity::Error => report.errors.push(finding),
            Severity::Warning => report.warnings.push(finding),
        }
    }
    Ok(report)
}

fn too_many(atlas: &Atlas<'_>) -> Finding {
    let finding = FindingKind::TooManyClasses(atlas.count).found();
    match atlas.passed_at.map(|rule| rule.place) {
        Some(RulePlace::Route(route)) => finding.at_route(atlas.sides[0].route_name(route)),
        Some(RulePlace::Refused(_)) | None => finding,
    }
}

/// A class of a block, as (place of the block, class).
type Seen = (usize, Class);

/// What the classes show of one route.
#[derive(Debug, Default)]
struct RouteSurvey {
    /// The first class that the route takes.
    taken: Option<Seen>,
    /// The first class that the route takes and has a chain for.
    satisfied: Option<Seen>,
    wins: bool,
    /// The routes that win or stop in its place, and the first class in which one does.
    beaten: Option<Seen>,
    beaten_by: BTreeSet<usize>,
    /// By the place of the deployment in the route.
    deployments: Vec<DeploymentSurvey>,
    /// The first class that this route and an earlier one of its priority take, by the earlier one.
    overlaps: BTreeMap<usize, Seen>,
    /// The first class of a tenant with a budget.
    budgeted: Option<Seen>,
}

/// What the classes show of one deployment of a route.
#[derive(Debug, Default)]
struct DeploymentSurvey {
    in_chain: bool,
    reached: bool,
    /// The first class that the route takes and in which the facts forbid the deployment.
    out: Option<Seen>,
    /// The same where the route serves with others.
    partly: Option<Seen>,
}

/// Collects what the classes show.
struct Survey<'a> {
    atlas: &'a Atlas<'a>,
    routes: Vec<RouteSurvey>,
    served: BTreeSet<TenantId>,
    /// The first class by the first route that takes it and by tenant.
    unserved: BTreeMap<(usize, TenantId), Seen>,
    demands: BTreeMap<(usize, Vec<DemandKind>), (Seen, u64)>,
    /// By the first route that knows the model, and by the dimensions in which the request is not the least.
    no_route: BTreeMap<(usize, Vec<usize>), (Seen, u64)>,
    /// The declarations that refuse something.
    refusing: BTreeSet<usize>,
}

impl<'a> Survey<'a> {
    fn new(atlas: &'a Atlas<'a>) -> Self {
        let of_route = |rule: &crate::decide::Rule| RouteSurvey {
            deployments: rule.deployments.iter().map(|_| DeploymentSurvey::default()).collect(),
            ..RouteSurvey::default()
        };
        Self {
            atlas,
            routes: atlas.sides[0].router.rules.iter().map(of_route).collect(),
            served: BTreeSet::new(),
            unserved: BTreeMap::new(),
            demands: BTreeMap::new(),
            no_route: BTreeMap::new(),
            refusing: BTreeSet::new(),
        }
    }

    fn block(&mut self, place: usize) {
        let block = &self.atlas.blocks[place];
        let offers = offers(&self.atlas.sides[0], 0, block);
        let budgeted = block.budgeted[0];
        let mut is_served = false;
        block.each(|class| {
            let verdict = verdict(&offers, class);
            let seen = || (place, class.clone());
            self.routes(&offers, class, verdict, budgeted, &seen);
            match verdict {
                Verdict::Served(_) => is_served = true,
                Verdict::Unserved { first, .. } => self.unserved(block, &offers, first, seen()),
                Verdict::NoRoute => self.no_route(block, &offers, seen()),
                Verdict::Refused(_) => self.refusing.extend(offers.refusals(class)),
            }
        });
        if is_served {
            self.served.extend(self.atlas.tenant_ids(block));
        }
    }

    fn routes(
        &mut self,
        offers: &Offers,
        class: &Class,
        verdict: Verdict,
        budgeted: bool,
        seen: &impl Fn() -> Seen,
    ) {
        let winner = match verdict {
            Verdict::Served(place) => Some(place),
            Verdict::Unserved { stopped, .. } => stopped,
            Verdict::NoRoute => None,
            // No route is asked.
            Verdict::Refused(_) => return,
        };
        let mut former: Option<usize> = None;
        for (place, offer) in offers.iter().enumerate().filter(|(_, offer)| offer.takes(class)) {
            let route = &mut self.routes[offer.route];
            route.taken.get_or_insert_with(seen);
            if budgeted {
                route.budgeted.get_or_insert_with(seen);
            }
            let has_chain = offer.has_chain(class);
            if has_chain {
                route.satisfied.get_or_insert_with(seen);
            }
            match winner {
                Some(winner) if winner < place && has_chain => {
                    route.beaten.get_or_insert_with(seen);
                    route.beaten_by.insert(offers[winner].route);
                }
                Some(winner) if winner == place && has_chain => route.wins = true,
                Some(_) | None => {}
            }
            route.deployments(offer, class, winner == Some(place), seen);
            let routes = &self.atlas.sides[0].router.routes;
            if let Some(former) = former.filter(|one| routes[*one].priority == routes[offer.route].priority) {
                route.overlaps.entry(former).or_insert_with(seen);
            }
            former = Some(offer.route);
        }
    }

    /// A class that a route takes and nobody serves.
    fn unserved(&mut self, block: &Block, offers: &Offers, first: usize, seen: Seen) {
        let made = demands(&seen.1);
        let is_named = |offer: &Offer| made.iter().all(|kind| self.names(block, offer, *kind, &seen.1));
        let route = offers[first].route;
        if offers.iter().filter(|offer| offer.takes(&seen.1)).any(is_named) {
            let tenant = self.atlas.tenants[block.pairs[0].1].ids[0].clone();
            self.unserved.entry((route, tenant)).or_insert(seen);
            return;
        }
        let is_still_unserved = |kind: &DemandKind| {
            let relaxed = block.class(without(seen.1.at, *kind as usize));
            matches!(verdict(offers, &relaxed), Verdict::Unserved { .. })
        };
        // Only what asks for no more than it takes to be refused is told of.
        if !made.iter().any(is_still_unserved) {
            self.demands.entry((route, made)).or_insert((seen, 0)).1 += 1;
        }
    }

    fn no_route(&mut self, block: &Block, offers: &Offers, seen: Seen) {
        let special: Vec<usize> =
            (0..seen.1.at.len()).filter(|dimension| seen.1.at[*dimension] > 0).collect();
        let is_still_so = |dimension: &usize| {
            verdict(offers, &block.class(without(seen.1.at, *dimension))) == Verdict::NoRoute
        };
        if let Some(nearest) = offers.first()
            && !special.iter().any(is_still_so)
        {
            self.no_route.entry((nearest.route, special)).or_insert((seen, 0)).1 += 1;
        }
    }

    /// Returns whether the route's own conditions say what the request demands, so that its author has asked for it.
    fn names(&self, block: &Block, offer: &Offer, kind: DemandKind, class: &Class) -> bool {
        let matcher = &self.atlas.sides[0].rule(offer.route).matcher;
        let dimension = kind as usize;
        let choice = block.dimensions[dimension][class.at[dimension]].choices.first();
        match (kind, choice) {
            (DemandKind::Classification, _) => matcher.names_classifications(),
            (DemandKind::Residency, _) => matcher.names_residency(),
            (DemandKind::Needs, Some(Choice::Needs(needs))) => {
                let operation = match block.dimensions[NEEDS].first().and_then(|value| value.choices.first())
                {
                    Some(Choice::Needs(operation)) => *operation,
                    Some(_) | None => CapabilitySet::EMPTY,
                };
                needs.without(operation).without(matcher.named_needs()).is_empty()
            }
            (DemandKind::Size, Some(Choice::Size(size))) => {
                size.estimate == matcher.input().0 && size.at_least == 0 && size.output == 0
            }
            (DemandKind::Needs | DemandKind::Size, _) => false,
        }
    }

    // === what follows ===

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for route in 0..self.routes.len() {
            self.of_route(route, &mut findings);
        }
        for ((route, _), seen) in &self.unserved {
            let kind = FindingKind::Unserved(self.reasons(*route, seen));
            findings.push(self.at(kind, *route, seen));
        }
        for ((route, demands), (seen, classes)) in &self.demands {
            let kind = FindingKind::UnservedDemand { demands: demands.clone(), classes: *classes };
            findings.push(self.at(kind, *route, seen));
        }
        for ((route, _), (seen, classes)) in &self.no_route {
            findings.push(self.at(FindingKind::NoRoute(*classes), *route, seen));
        }
        let declared = self.atlas.sides[0].facts.routing.refused.len();
        let idle = (0..declared).filter(|place| !self.refusing.contains(place));
        findings.extend(idle.map(|place| FindingKind::RefusesNothing(place).found()));
        findings.extend(self.unreachable());
        findings.extend(timing::unreached(&self.atlas.sides[0], &self.served));
        findings
    }

    fn of_route(&self, at: usize, findings: &mut Vec<Finding>) {
        let (route, side) = (&self.routes[at], &self.atlas.sides[0]);
        let name = side.route_name(at);
        for (place, survey) in route.deployments.iter().enumerate() {
            findings.extend(self.of_deployment(at, place, survey));
        }
        match (&route.taken, &route.satisfied, &route.beaten) {
            (None, _, _) => findings.push(FindingKind::Unsatisfiable.found().at_route(name)),
            (Some(taken), None, _) => findings.push(self.at(FindingKind::Unsatisfiable, at, taken)),
            (Some(_), Some(_), Some(beaten)) if !route.wins => {
                let by = route.beaten_by.iter().map(|one| side.route_name(*one).clone()).collect();
                findings.push(self.at(FindingKind::Shadowed(by), at, beaten));
            }
            (Some(_), Some(_), _) => {}
        }
        for (former, seen) in &route.overlaps {
            let with = side.route_name(*former).clone();
            findings.push(self.at(FindingKind::Overlap(with), at, seen));
        }
    }

    fn of_deployment(&self, route: usize, place: usize, survey: &DeploymentSurvey) -> Vec<Finding> {
        let (of_route, side) = (&self.routes[route], &self.atlas.sides[0]);
        let rule = side.rule(route);
        let deployment = &side.facts.deployments[rule.deployments[place]];
        let mut findings = Vec::new();
        if let Some(taken) = &of_route.taken
            && !survey.in_chain
        {
            let seen = survey.out.as_ref().unwrap_or(taken);
            let reason = rule.forbids(place).or_else(|| self.reason(route, place, seen));
            let kind = FindingKind::DeadDeployment(reason.into_iter().collect());
            findings.push(self.at(kind, route, seen).at_deployment(&deployment.name));
        } else if let Some(seen) = &survey.partly {
            let reason = self.reason(route, place, seen);
            let kind = FindingKind::PartlyUsable(reason.into_iter().collect());
            findings.push(self.at(kind, route, seen).at_deployment(&deployment.name));
        }
        if let (Pricing::Unpriced, Some(seen)) = (&deployment.pricing, &of_route.budgeted) {
            findings.push(self.at(FindingKind::PriceMissing, route, seen).at_deployment(&deployment.name));
        }
        findings
    }

    fn unreachable(&self) -> Vec<Finding> {
        let side = &self.atlas.sides[0];
        let (mut named, mut reached) = (BTreeSet::new(), BTreeSet::new());
        for (route, survey) in self.routes.iter().enumerate() {
            for (deployment, survey) in side.rule(route).deployments.iter().zip(&survey.deployments) {
                named.insert(*deployment);
                reached.extend(survey.reached.then_some(*deployment));
            }
        }
        let all = side.facts.deployments.iter().enumerate().filter(|(place, _)| !reached.contains(place));
        all.map(|(place, deployment)| {
            FindingKind::UnreachableDeployment(named.contains(&place)).found().at_deployment(&deployment.name)
        })
        .collect()
    }

    fn witness(&self, seen: &Seen) -> Witness {
        self.atlas.witness(&self.atlas.blocks[seen.0], &seen.1)
    }

    fn at(&self, kind: FindingKind, route: usize, seen: &Seen) -> Finding {
        kind.found().at_route(self.atlas.sides[0].route_name(route)).shown_by(self.witness(seen))
    }

    /// Returns the fact against a deployment of a route.
    fn reason(&self, route: usize, place: usize, seen: &Seen) -> Option<ExclusionReason> {
        let side = &self.atlas.sides[0];
        let facts = &side.router.facts[side.rule(route).deployments[place]];
        self.witness(seen).ask(|query| facts.against(&Demand::new(query, &side.router.residency)))
    }

    fn reasons(&self, route: usize, seen: &Seen) -> Vec<(gw_types::DeploymentName, ExclusionReason)> {
        let (side, block) = (&self.atlas.sides[0], &self.atlas.blocks[seen.0]);
        let rule = side.rule(route);
        let of = |(place, deployment): (usize, &usize)| {
            let reason = self.reason(route, place, seen).or_else(|| rule.forbids(place))?;
            let local = block.deployments.binary_search(&(0, *deployment)).ok()?;
            Some((name(self.atlas, block, local).clone(), reason))
        };
        rule.deployments.iter().enumerate().filter_map(of).collect()
    }
}

impl RouteSurvey {
    fn deployments(&mut self, offer: &Offer, class: &Class, wins: bool, seen: &impl Fn() -> Seen) {
        let has_chain = offer.has_chain(class);
        for (deployment, survey) in offer.chain.iter().zip(&mut self.deployments) {
            if !class.deployments.contains(*deployment) {
                survey.out.get_or_insert_with(seen);
                if has_chain {
                    survey.partly.get_or_insert_with(seen);
                }
            }
        }
        for deployment in offer.chain(class) {
            if let Some(place) = offer.chain.iter().position(|one| *one == deployment) {
                self.deployments[place].in_chain = true;
                self.deployments[place].reached |= wins;
            }
        }
    }
}

/// Returns what a class demands beyond the least.
fn demands(class: &Class) -> Vec<DemandKind> {
    DemandKind::ALL.into_iter().filter(|kind| class.at[*kind as usize] > 0).collect()
}

/// Returns the class without the demand in one dimension.
fn without<const N: usize>(mut at: [usize; N], dimension: usize) -> [usize; N] {
    at[dimension] = 0;
    at
}

const _: () = assert!(DemandKind::ALL.len() == DEMANDS);
