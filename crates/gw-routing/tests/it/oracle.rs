//! The rules as the design states them, with no thought of speed.

#![expect(clippy::unwrap_used, reason = "a test's own names are valid")]

use std::collections::{BTreeMap, BTreeSet};

use gw_routing::{ExclusionReason as Why, ModelPattern, RouteConfig, RouteQuery, RoutingConfig};
use gw_types::{Deployment, DeploymentName, Pricing, Region, Residency, RouteName, TokenCount};

/// A decision in names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) route: Option<RouteName>,
    pub(crate) chain: Vec<DeploymentName>,
    pub(crate) exclusions: Vec<(RouteName, DeploymentName, Why)>,
    pub(crate) model_known: bool,
}

/// Decides by asking every route and every deployment.
pub(crate) fn decide(config: &RoutingConfig, deployments: &[Deployment], query: &RouteQuery<'_>) -> Verdict {
    let mut routes: Vec<&RouteConfig> = config.routes.iter().collect();
    routes.sort_by_key(|route| (route.priority, route.name.as_str()));
    let model_known = routes.iter().any(|route| knows(route, query));
    let mut exclusions = Vec::new();
    for route in routes {
        if !matches(route, query) {
            continue;
        }
        let mut chain = Vec::new();
        for name in &route.deployments {
            let deployment = deployments.iter().find(|one| one.name == *name).unwrap();
            match reasons(deployment, query, &config.residency).first() {
                None => chain.push(name.clone()),
                Some(reason) => exclusions.push((route.name.clone(), name.clone(), *reason)),
            }
        }
        if !chain.is_empty() {
            return Verdict { route: Some(route.name.clone()), chain, exclusions, model_known };
        }
    }
    Verdict { route: None, chain: Vec::new(), exclusions, model_known }
}

/// Returns every fact against the deployment.
pub(crate) fn reasons(
    deployment: &Deployment,
    query: &RouteQuery<'_>,
    groups: &BTreeMap<Residency, BTreeSet<Region>>,
) -> Vec<Why> {
    let wide = |tokens: TokenCount| u128::from(tokens.get());
    let inside = |group| groups.get(group).is_some_and(|regions| regions.contains(&deployment.region));
    let output = wide(query.output_tokens.unwrap_or(TokenCount::ZERO));
    let total = wide(query.input_tokens_at_least) + output;
    let is_unpriced = deployment.pricing == Pricing::Unpriced;
    let lacks_price = match &deployment.pricing {
        Pricing::PerToken(price) => {
            query.audio && (price.audio_input.is_none() || price.audio_output.is_none())
                || query.images && price.image_input.is_none()
        }
        Pricing::Free | Pricing::Unpriced => false,
    };
    [
        (Why::Residency, !query.residency.iter().all(inside)),
        (Why::ClassificationCeiling, deployment.classification_ceiling < query.classification),
        (Why::Capability, query.needs.iter().any(|need| !deployment.capabilities.contains(need))),
        (Why::ContextWindow, deployment.context_window.is_some_and(|window| total > wide(window))),
        (Why::MaxOutput, deployment.max_output_tokens.is_some_and(|longest| output > wide(longest))),
        (Why::Unpriced, query.budgeted && is_unpriced),
        (Why::MissingPrice, query.budgeted && lacks_price),
    ]
    .into_iter()
    .filter_map(|(reason, holds)| holds.then_some(reason))
    .collect()
}

fn knows(route: &RouteConfig, query: &RouteQuery<'_>) -> bool {
    let named = |pattern: &ModelPattern| match pattern.as_str().strip_suffix('*') {
        Some(beginning) => query.model.starts_with(beginning),
        None => query.model == pattern.as_str(),
    };
    let models = &route.matches.models;
    let tenants = &route.matches.tenants;
    (models.is_empty() || models.iter().any(named)) && (tenants.is_empty() || tenants.contains(query.tenant))
}

fn matches(route: &RouteConfig, query: &RouteQuery<'_>) -> bool {
    let (classes, tasks) = (&route.matches.classifications, &route.matches.task_classes);
    knows(route, query)
        && (classes.is_empty() || classes.contains(&query.classification))
        && (tasks.is_empty() || query.task_class.is_some_and(|class| tasks.contains(class)))
}
