//! Whether the attempts fit the time.

use std::{collections::BTreeSet, time::Duration};

use gw_types::{Deployment, TenantId};

use super::{
    finding::{Finding, FindingKind},
    side::Side,
};

/// What is left for each further candidate beside its expected latency.
const MARGIN: Duration = Duration::from_millis(10);

/// Returns what does not fit, deployments first, then routes in their order.
pub(super) fn findings(side: &Side<'_>) -> Vec<Finding> {
    let is_upside_down =
        |deployment: &&Deployment| deployment.timing.min_attempt > deployment.timing.attempt_timeout;
    let of_deployments = side
        .facts
        .deployments
        .iter()
        .map(AsRef::as_ref)
        .filter(is_upside_down)
        .map(|deployment| FindingKind::MinAttemptAboveTimeout.found().at_deployment(&deployment.name));
    let of_routes = (0..side.router.routes.len()).flat_map(|route| of_route(side, route));
    of_deployments.chain(of_routes).collect()
}

fn of_route(side: &Side<'_>, route: usize) -> Vec<Finding> {
    let timing = &side.facts.timing;
    let config = &side.router.routes[route];
    let attempts = timing.attempts_of_routes.get(&config.name).copied().unwrap_or(timing.attempts).get();
    let planned = if config.allow_fallback { usize::try_from(attempts).unwrap_or(usize::MAX) } else { 1 };
    let rule = side.rule(route);
    let places = (0..rule.deployments.len()).filter(|place| rule.forbids(*place).is_none());
    let chain: Vec<&Deployment> =
        places.map(|place| side.facts.deployments[rule.deployments[place]].as_ref()).take(planned).collect();
    let mut findings: Vec<Finding> = chain
        .iter()
        .skip(1)
        .filter(|deployment| timing.latency_undeclared.contains(&deployment.name))
        .map(|one| FindingKind::LatencyMissing.found().at_route(&config.name).at_deployment(&one.name))
        .collect();
    let margins = MARGIN.saturating_mul(u32::try_from(chain.len().saturating_sub(1)).unwrap_or(u32::MAX));
    let expected = chain.iter().map(|deployment| deployment.timing.expected_latency);
    let needed = expected.fold(margins, Duration::saturating_add);
    if needed > timing.deadline {
        let kind = FindingKind::DeadlineTooShort { needed, deadline: timing.deadline };
        findings.push(kind.found().at_route(&config.name));
    }
    findings
}

/// Returns the tenants with a key that are not among those served.
pub(super) fn unreached(side: &Side<'_>, served: &BTreeSet<TenantId>) -> Vec<Finding> {
    let alone = side.facts.tenants.iter().filter(|tenant| tenant.has_keys && !served.contains(&tenant.id));
    alone
        .map(|tenant| Finding {
            tenant: Some(tenant.id.clone()),
            ..FindingKind::TenantReachesNothing.found()
        })
        .collect()
}
