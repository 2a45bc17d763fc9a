//! Checks every name of a policy, and reports every fault at once.

mod conditions;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gw_types::{Deployment, DeploymentName, Region, RouteName};

use crate::{RouteConfig, RouteMatch, Router, RoutingConfig, RoutingError};

/// The deployments by name, with their places.
pub(crate) type Places<'a> = BTreeMap<&'a DeploymentName, usize>;

/// Returns the places of the deployments if the policy has no fault.
///
/// The faults come in a fixed order: deployments as given, routes as given with what they name as written, groups by
/// name. Bounds are checked first, and where one is passed nothing else is, so that the work stays bounded too. Costs
/// O(n log n) in the number of names.
///
/// # Errors
/// Every fault, at least one.
pub(crate) fn validate<'a>(
    config: &RoutingConfig,
    deployments: &'a [Arc<Deployment>],
) -> Result<Places<'a>, Vec<RoutingError>> {
    let mut faults = beyond_bounds(config, deployments);
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut places = Places::new();
    let mut reported = BTreeSet::new();
    for (place, deployment) in deployments.iter().enumerate() {
        let name = &deployment.name;
        if places.insert(name, place).is_some() && reported.insert(name) {
            faults.push(RoutingError::DuplicateDeployment { deployment: name.clone() });
        }
    }
    faults.extend(faults_of_routes(&config.routes, &places));
    faults.extend(conditions::faults(config));
    faults.extend(faults_of_residency(config, deployments));
    if faults.is_empty() { Ok(places) } else { Err(faults) }
}

fn beyond_bounds(config: &RoutingConfig, deployments: &[Arc<Deployment>]) -> Vec<RoutingError> {
    let mut faults = Vec::new();
    let mut check = |what, route: Option<&RouteName>, count, max| {
        if count > max {
            faults.push(RoutingError::TooMany { what, route: route.cloned(), count, max });
        }
    };
    check("deployments", None, deployments.len(), Router::DEPLOYMENTS_MAX);
    check("routes", None, config.routes.len(), Router::ROUTES_MAX);
    check("residency groups", None, config.residency.len(), Router::RESIDENCY_GROUPS_MAX);
    // The first routes only: a message for each of a million routes helps nobody.
    for route in config.routes.iter().take(Router::ROUTES_MAX) {
        let named = [("deployments", route.deployments.len()), ("weights", route.weights.len())];
        for (what, count) in named.into_iter().chain(lengths(&route.matches)) {
            check(what, Some(&route.name), count, Router::NAMES_PER_ROUTE_MAX);
        }
    }
    check("refused classes", None, config.refused.len(), Router::REFUSED_MAX);
    for refused in config.refused.iter().take(Router::REFUSED_MAX) {
        for (what, count) in lengths(refused) {
            check(what, None, count, Router::NAMES_PER_ROUTE_MAX);
        }
    }
    faults
}

/// Returns how many of each kind a match names.
fn lengths(matches: &RouteMatch) -> impl Iterator<Item = (&'static str, usize)> {
    [
        ("models", matches.models.len()),
        ("task classes", matches.task_classes.len()),
        ("classifications", matches.classifications.len()),
        ("tenants", matches.tenants.len()),
        ("tenant groups", matches.tenant_groups.len()),
        ("residency groups", matches.residency.len()),
        ("metadata keys", matches.metadata.len()),
        ("metadata values", matches.metadata.values().map(Vec::len).sum()),
    ]
    .into_iter()
}

fn faults_of_routes(routes: &[RouteConfig], places: &Places<'_>) -> Vec<RoutingError> {
    // Shared: a policy with many faults does not hold as many copies of the list.
    let known: Arc<[DeploymentName]> = places.keys().map(|name| (*name).clone()).collect();
    let mut faults = Vec::new();
    let (mut names, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for route in routes {
        if !names.insert(&route.name) && reported.insert(&route.name) {
            faults.push(RoutingError::DuplicateRoute { route: route.name.clone() });
        }
        if route.deployments.is_empty() {
            faults.push(RoutingError::NoDeployments { route: route.name.clone() });
        }
        faults.extend(faults_of_chain(route, places, &known));
    }
    faults
}

fn faults_of_chain(
    route: &RouteConfig,
    places: &Places<'_>,
    known: &Arc<[DeploymentName]>,
) -> Vec<RoutingError> {
    let mut faults = Vec::new();
    let (mut named, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for deployment in &route.deployments {
        let (route, is_new) = (route.name.clone(), named.insert(deployment));
        if is_new && !places.contains_key(deployment) {
            let (deployment, known) = (deployment.clone(), Arc::clone(known));
            faults.push(RoutingError::UnknownDeployment { route, deployment, known });
        } else if !is_new && reported.insert(deployment) {
            faults.push(RoutingError::RepeatedDeployment { route, deployment: deployment.clone() });
        }
    }
    faults
}

/// A group may list regions that are not in use yet, but not only such: that demand could never be met.
fn faults_of_residency(config: &RoutingConfig, deployments: &[Arc<Deployment>]) -> Vec<RoutingError> {
    let in_use: BTreeSet<&Region> = deployments.iter().map(|deployment| &deployment.region).collect();
    let known: Arc<[Region]> = in_use.iter().map(|region| (*region).clone()).collect();
    let fault = |(group, regions): (&_, &BTreeSet<Region>)| {
        let group = Clone::clone(group);
        if regions.is_empty() {
            Some(RoutingError::EmptyResidency { group })
        } else if regions.iter().any(|region| in_use.contains(region)) {
            None
        } else {
            let (regions, known) = (regions.iter().cloned().collect(), Arc::clone(&known));
            Some(RoutingError::UnservedResidency { group, regions, known })
        }
    };
    config.residency.iter().filter_map(fault).collect()
}
