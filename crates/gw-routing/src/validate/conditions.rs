//! Faults of what routes match by, and of settings that would have no effect.

use std::{collections::BTreeMap, sync::Arc};

use gw_types::{Residency, RouteName};

use crate::{RouteConfig, RouteMatch, Router, RoutingConfig, RoutingError, Strategy, TenantGroup};

/// Stands in a message for the place of a match that belongs to no route.
const REFUSED: &str = "refused";

/// The names that conditions may use.
struct Known {
    residency: Arc<[Residency]>,
    groups: Arc<[TenantGroup]>,
}

/// Returns the faults of all routes as given, then those of the classes that are declared refused.
pub(super) fn faults(config: &RoutingConfig) -> Vec<RoutingError> {
    let known = Known {
        residency: config.residency.keys().cloned().collect(),
        groups: config.tenant_groups.keys().cloned().collect(),
    };
    let mut faults = Vec::new();
    for route in &config.routes {
        faults.extend(of_match(&route.name, &route.matches, &known));
        faults.extend(of_weights(route));
    }
    if let Ok(refused) = RouteName::new(REFUSED) {
        faults.extend(config.refused.iter().flat_map(|matches| of_match(&refused, matches, &known)));
        if config.refused.iter().any(|matches| matches.share_percent.is_some()) {
            let fault = "divides what is refused; leave it out";
            faults.push(RoutingError::Setting { route: refused, setting: "share_percent", fault });
        }
    }
    faults
}

fn of_match(route: &RouteName, matches: &RouteMatch, known: &Known) -> Vec<RoutingError> {
    let mut faults = Vec::new();
    for group in matches.residency.iter().filter(|group| known.residency.binary_search(group).is_err()) {
        let (route, group, known) = (route.clone(), group.clone(), Arc::clone(&known.residency));
        faults.push(RoutingError::UnknownRouteResidency { route, group, known });
    }
    for group in matches.tenant_groups.iter().filter(|group| known.groups.binary_search(group).is_err()) {
        let (route, group, known) = (route.clone(), group.clone(), Arc::clone(&known.groups));
        faults.push(RoutingError::UnknownTenantGroup { route, group, known });
    }
    let mut refuse = |setting, is_wrong, fault| {
        if is_wrong {
            faults.push(RoutingError::Setting { route: route.clone(), setting, fault });
        }
    };
    let sizes = (matches.input_tokens_at_least, matches.input_tokens_at_most);
    let is_empty = matches!(sizes, (Some(least), Some(most)) if least > most);
    refuse(
        "input_tokens_at_most",
        is_empty,
        "is below `input_tokens_at_least`; no request is of such a size",
    );
    let is_above = matches.share_percent.is_some_and(|percent| percent > 100);
    refuse("share_percent", is_above, "is above 100; write 0 to 100");
    let is_long = |text: &String| text.len() > Router::METADATA_BYTES_MAX;
    let too_long = matches.metadata.iter().any(|(key, values)| is_long(key) || values.iter().any(is_long));
    refuse("metadata", too_long, "has a key or a value of more than 128 bytes");
    let without_value = matches.metadata.values().any(Vec::is_empty);
    refuse("metadata", without_value, "has a key without values; name at least one");
    faults
}

fn of_weights(route: &RouteConfig) -> Vec<RoutingError> {
    let name = || route.name.clone();
    let mut faults: Vec<RoutingError> = route
        .weights
        .keys()
        .filter(|deployment| !route.deployments.contains(deployment))
        .map(|deployment| RoutingError::UnknownWeight {
            route: name(),
            deployment: deployment.clone(),
            known: route.deployments.as_slice().into(),
        })
        .collect();
    let mut refuse = |is_wrong, fault| {
        if is_wrong {
            faults.push(RoutingError::Setting { route: name(), setting: "weights", fault });
        }
    };
    let is_unused = !route.weights.is_empty() && route.strategy != Strategy::Weighted;
    refuse(is_unused, "has no effect; write `strategy = \"weighted\"` or leave the weights out");
    let heaviest = route.weights.values().copied().max().unwrap_or_default();
    refuse(heaviest > Router::WEIGHT_MAX, "has a weight above 1000000");
    let weights: BTreeMap<_, _> = route.weights.iter().filter(|(_, weight)| **weight == 0).collect();
    let all_zero = route.deployments.iter().all(|deployment| weights.contains_key(deployment));
    refuse(all_zero && !route.deployments.is_empty(), "leaves no deployment a turn; one must be above 0");
    faults
}
