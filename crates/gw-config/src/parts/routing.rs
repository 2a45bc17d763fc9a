//! Routes and groups of regions.

use gw_cache::{CachePolicy, SemanticPolicy, TemperaturePolicy};
use gw_exec::RoutePolicy;
use gw_routing::{ModelPattern, RouteConfig, RouteMatch, RoutingConfig, RoutingError, Strategy};
use gw_types::{RouteName, TokenCount};

use crate::{
    config::Config,
    file::{CacheEntry, RouteEntry, TemperatureEntry},
    nearest,
    reader::{Faults, quotable},
    source::{Located, Span},
};

pub(super) fn config(config: &Config, faults: &Faults) -> RoutingConfig {
    RoutingConfig {
        routes: config.file.routes.iter().map(|route| route_config(&route.value, faults)).collect(),
        residency: config
            .file
            .residency
            .iter()
            .map(|(group, regions)| (group.clone(), regions.value.clone()))
            .collect(),
    }
}

fn route_config(route: &RouteEntry, faults: &Faults) -> RouteConfig {
    let matches = &route.matches;
    let models = matches.models.iter().enumerate();
    let path = |item: usize| format!("routes[{}].match.models[{item}]", route.index);
    RouteConfig {
        name: route.name.clone(),
        priority: route.priority,
        matches: RouteMatch {
            models: models.filter_map(|(item, model)| pattern(&path(item), model, faults)).collect(),
            task_classes: matches.task_classes.clone(),
            classifications: matches.classifications.clone(),
            tenants: matches.tenants.iter().map(|tenant| tenant.value.clone()).collect(),
        },
        deployments: route.deployments.iter().map(|deployment| deployment.value.clone()).collect(),
        strategy: Strategy::Ordered,
    }
}

fn pattern(path: &str, model: &Located<String>, faults: &Faults) -> Option<ModelPattern> {
    match ModelPattern::new(&model.value) {
        Ok(pattern) => Some(pattern),
        Err(invalid) => {
            let message = format!("`{}` is no model name or pattern", quotable(&model.value));
            faults.add(model.span, path, message, invalid.to_string());
            None
        }
    }
}

/// Returns what each route decides beside its chain.
pub(super) fn policies(config: &Config, faults: &Faults) -> Vec<(RouteName, RoutePolicy)> {
    for route in &config.file.routes {
        check_bound(&route.value, config, faults);
    }
    let policy = |route: &RouteEntry| RoutePolicy {
        cache: route.cache.as_ref().map(cache),
        default_max_output_tokens: route.default_max_output_tokens.map(|tokens| tokens.value),
        max_attempts: route.max_attempts,
    };
    config.file.routes.iter().map(|route| (route.value.name.clone(), policy(&route.value))).collect()
}

fn cache(entry: &CacheEntry) -> CachePolicy {
    CachePolicy {
        exact: entry.exact,
        ttl: entry.ttl,
        temperature: match entry.temperature {
            TemperatureEntry::Any => TemperaturePolicy::Any,
            TemperatureEntry::Zero => TemperaturePolicy::Zero,
        },
        cache_ceiling: entry.cache_ceiling,
        semantic: entry.semantic_threshold_milli.map(|threshold_milli| SemanticPolicy { threshold_milli }),
    }
}

/// Refuses a bound that every deployment of the route must refuse in turn.
fn check_bound(route: &RouteEntry, config: &Config, faults: &Faults) {
    let Some(bound) = route.default_max_output_tokens else { return };
    let most = |name: &Located<gw_types::DeploymentName>| {
        let deployment = config.file.deployments.get(&name.value)?;
        Some(deployment.value.max_output_tokens.map_or(u64::MAX, TokenCount::get))
    };
    let most = route.deployments.iter().filter_map(most).max().unwrap_or(u64::MAX);
    if bound.value.get() > most {
        let path = format!("routes[{}].default_max_output_tokens", route.index);
        let message = format!("`{path}` is above what any of its deployments may answer: `{}`", bound.value);
        faults.add(bound.span, &path, message, format!("write at most {most}"));
    }
}

pub(super) fn report(error: &RoutingError, config: &Config, faults: &Faults) {
    let route_span = |name: &RouteName| {
        let route = config.file.routes.iter().find(|route| route.value.name == *name);
        route.map_or(Span::default(), |route| route.span)
    };
    let (span, path) = match error {
        RoutingError::UnknownDeployment { route, .. }
        | RoutingError::RepeatedDeployment { route, .. }
        | RoutingError::NoDeployments { route }
        | RoutingError::DuplicateRoute { route } => (route_span(route), "routes".to_owned()),
        RoutingError::DuplicateDeployment { deployment } => {
            let span = config.file.deployments.get(deployment).map_or(Span::default(), |entry| entry.span);
            (span, format!("deployments.{deployment}"))
        }
        RoutingError::EmptyResidency { group }
        | RoutingError::UnservedResidency { group, .. }
        | RoutingError::UnknownResidency { group, .. } => {
            let span = config.file.residency.get(group).map_or(Span::default(), |regions| regions.span);
            (span, format!("residency.{group}"))
        }
        RoutingError::TooMany { route, .. } => {
            (route.as_ref().map_or(Span::default(), route_span), "routes".to_owned())
        }
    };
    if let RoutingError::UnservedResidency { group, regions, known } = error {
        let known = known.iter().map(|region| region.as_str());
        let near = regions.iter().find_map(|region| nearest::nearest(region.as_str(), known.clone()));
        let expected =
            near.map_or_else(|| nearest::remedy("", known), |near| format!("did you mean `{near}`?"));
        faults.add(span, &path, format!("no deployment runs in a region of `{group}`"), expected);
    } else {
        super::report_said(faults, span, &path, &error.to_string());
    }
}
