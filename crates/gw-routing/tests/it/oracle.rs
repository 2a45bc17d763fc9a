//! The rules as the design states them, with no thought of speed.

#![expect(clippy::unwrap_used, reason = "a test's own names are valid")]

use std::collections::{BTreeMap, BTreeSet};

use gw_routing::{
    ExclusionReason as Why, ModelPattern, OnUnavailable, RouteConfig, RouteMatch, RouteQuery, RoutingConfig,
    Strategy,
};
use gw_types::{Deployment, DeploymentName, Pricing, Region, Residency, RouteName, TenantId, TokenCount};

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
    let model_known = routes.iter().any(|route| knows(&route.matches, config, query));
    let mut exclusions = Vec::new();
    let is_refused = |one: &RouteMatch| matches("refused", one, config, query);
    if model_known && config.refused.iter().any(is_refused) {
        return Verdict { route: None, chain: Vec::new(), exclusions, model_known };
    }
    for route in routes {
        if !matches(route.name.as_str(), &route.matches, config, query) {
            continue;
        }
        let mut chain = Vec::new();
        for name in &route.deployments {
            match against(config, route, deployments, name, query) {
                None => chain.push(name.clone()),
                Some(reason) => exclusions.push((route.name.clone(), name.clone(), reason)),
            }
        }
        if route.strategy == Strategy::Ordered && !route.allow_fallback {
            chain.truncate(1);
        }
        if !chain.is_empty() {
            return Verdict { route: Some(route.name.clone()), chain, exclusions, model_known };
        }
        if route.on_unavailable == OnUnavailable::Fail {
            break;
        }
    }
    Verdict { route: None, chain: Vec::new(), exclusions, model_known }
}

/// Returns what stands against a deployment of a route, whatever the moment.
fn against(
    config: &RoutingConfig,
    route: &RouteConfig,
    deployments: &[Deployment],
    name: &DeploymentName,
    query: &RouteQuery<'_>,
) -> Option<Why> {
    let find =
        |name: &DeploymentName| deployments.iter().find(|one: &&Deployment| one.name == *name).unwrap();
    let family = |name: &DeploymentName| config.families.get(name).unwrap_or(&find(name).model).clone();
    let is_other = route.strategy == Strategy::Ordered
        && !route.allow_other_models
        && family(name) != family(&route.deployments[0]);
    let fact = reasons(find(name), query, &config.residency).first().copied();
    fact.or(is_other.then_some(Why::OtherModel))
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

fn knows(matches: &RouteMatch, config: &RoutingConfig, query: &RouteQuery<'_>) -> bool {
    let named = |pattern: &ModelPattern| match pattern.as_str().strip_suffix('*') {
        Some(beginning) => query.model.starts_with(beginning),
        None => query.model == pattern.as_str(),
    };
    (matches.models.is_empty() || matches.models.iter().any(named)) && is_for(matches, config, query.tenant)
}

/// Returns whether the route is for the tenant, by its name or by a group.
pub(crate) fn is_for(matches: &RouteMatch, config: &RoutingConfig, tenant: &TenantId) -> bool {
    let in_group = |group| config.tenant_groups[group].contains(tenant);
    matches.tenants.is_empty() && matches.tenant_groups.is_empty()
        || matches.tenants.contains(tenant)
        || matches.tenant_groups.iter().any(in_group)
}

/// Returns whether the conditions of the route of that name take the request.
pub(crate) fn matches(
    name: &str,
    matches: &RouteMatch,
    config: &RoutingConfig,
    query: &RouteQuery<'_>,
) -> bool {
    let input = query.input_tokens_estimate.max(query.input_tokens_at_least);
    let all_exist = query.residency.iter().all(|group| config.residency.contains_key(group));
    let has = |key: &str, values: &[String]| {
        let value = query.metadata.iter().find(|(asked, _)| *asked == key);
        value.is_some_and(|(_, value)| values.iter().any(|one| one == value))
    };
    knows(matches, config, query)
        && (matches.classifications.is_empty() || matches.classifications.contains(&query.classification))
        && matches.classification_at_most.is_none_or(|most| query.classification <= most)
        && (matches.task_classes.is_empty()
            || query.task_class.is_some_and(|class| matches.task_classes.contains(class)))
        && (matches.residency.is_empty()
            || all_exist && query.residency.iter().any(|group| matches.residency.contains(group)))
        && matches.needs.iter().all(|need| query.needs.contains(need))
        && matches.input_tokens_at_least.is_none_or(|least| least <= input)
        && matches.input_tokens_at_most.is_none_or(|most| input <= most)
        && matches.streaming.is_none_or(|streaming| streaming == query.stream)
        && matches.metadata.iter().all(|(key, values)| has(key, values))
        && matches.share_percent.is_none_or(|percent| in_share(name, percent, query.share_key))
}

/// FNV-1a over the route's name and the key, each ended by 0xff, mixed as MurmurHash3 does, scaled to a hundred.
fn in_share(route: &str, percent: u8, key: Option<&str>) -> bool {
    let Some(key) = key.filter(|_| percent < 100) else { return percent >= 100 };
    let bytes = route.bytes().chain([0xff]).chain(key.bytes()).chain([0xff]);
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^= hash >> 33;
    (u128::from(hash) * 100) >> 64 < u128::from(percent)
}
