//! Routes and groups of regions.

use std::collections::{BTreeMap, BTreeSet};

use blake2::{Blake2b128, Digest as _};
use gw_cache::{
    BuiltInEmbedder, CachePolicy, SemanticDecision, SemanticPolicy, TemperaturePolicy,
    verify::{EntryVerifierConfig, VerifierConfig},
};
use gw_exec::{RouteEmbedder, RoutePolicy};
use gw_routing::{ModelPattern, RouteConfig, RouteMatch, RoutingConfig, RoutingError, TenantGroup};
use gw_types::{BoundedText, Capability, DeploymentName, RouteName, TenantId, TokenCount};

use crate::{
    config::Config,
    file::{
        CacheEntry, DecisionEntry, EmbedderEntry, MatchEntry, RouteEntry, SemanticEntry, TemperatureEntry,
    },
    keys, nearest,
    reader::{Faults, quotable},
    source::{Located, Span},
};

pub(super) fn config(config: &Config, faults: &Faults) -> RoutingConfig {
    let file = &config.file;
    let family = |(name, entry): (&DeploymentName, &Located<crate::file::DeploymentEntry>)| {
        Some((name.clone(), entry.value.family.clone()?))
    };
    let refused = |(place, entry): (usize, &Located<MatchEntry>)| {
        conditions(&format!("refused[{place}].models"), &entry.value, faults)
    };
    RoutingConfig {
        routes: file.routes.iter().map(|route| route_config(&route.value, config, faults)).collect(),
        residency: file
            .residency
            .iter()
            .map(|(group, regions)| (group.clone(), regions.value.clone()))
            .collect(),
        tenant_groups: tenant_groups(config),
        families: file.deployments.iter().filter_map(family).collect(),
        budgeted: file
            .deployments
            .iter()
            .filter(|(_, entry)| !entry.value.limits.budgets.is_empty())
            .map(|(name, _)| name.clone())
            .collect(),
        refused: file.refused.iter().enumerate().map(refused).collect(),
    }
}

fn tenant_groups(config: &Config) -> BTreeMap<TenantGroup, BTreeSet<TenantId>> {
    let mut groups: BTreeMap<TenantGroup, BTreeSet<TenantId>> = BTreeMap::new();
    for (tenant, entry) in &config.file.tenants {
        for group in &entry.value.groups {
            groups.entry(group.clone()).or_default().insert(tenant.clone());
        }
    }
    groups
}

fn route_config(route: &RouteEntry, config: &Config, faults: &Faults) -> RouteConfig {
    // Two names say nothing about whether two models are of one family: only a chain whose deployments all say theirs
    // can be held to it.
    let family =
        |name: &Located<DeploymentName>| config.file.deployments.get(&name.value)?.value.family.as_ref();
    let is_judged = route.deployments.iter().all(|name| family(name).is_some());
    let deployments = route.deployments.iter().map(|deployment| deployment.value.clone()).collect();
    RouteConfig {
        priority: route.priority,
        matches: conditions(&format!("routes[{}].match.models", route.index), &route.matches, faults),
        strategy: route.strategy,
        weights: route.weights.as_ref().map(|weights| weights.value.clone()).unwrap_or_default(),
        on_unavailable: route.on_unavailable,
        allow_fallback: route.allow_fallback,
        allow_other_models: route.allow_other_models || !is_judged,
        ..RouteConfig::new(route.name.clone(), deployments)
    }
}

/// Returns the conditions; `path` is that of the models.
fn conditions(path: &str, entry: &MatchEntry, faults: &Faults) -> RouteMatch {
    let models = entry.models.iter().enumerate();
    RouteMatch {
        models: models
            .filter_map(|(item, model)| pattern(&format!("{path}[{item}]"), model, faults))
            .collect(),
        task_classes: entry.task_classes.clone(),
        classifications: entry.classifications.clone(),
        classification_at_most: entry.classification_at_most,
        tenants: values(&entry.tenants),
        tenant_groups: values(&entry.tenant_groups),
        residency: values(&entry.residency),
        needs: entry.needs,
        input_tokens_at_least: entry.input_tokens_at_least,
        input_tokens_at_most: entry.input_tokens_at_most,
        streaming: entry.streaming,
        metadata: entry.metadata.clone(),
        share_percent: entry.share_percent,
    }
}

fn values<T: Clone>(located: &[Located<T>]) -> Vec<T> {
    located.iter().map(|one| one.value.clone()).collect()
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
        check_embedder(&route.value, config, faults);
    }
    let policy = |route: &RouteEntry| RoutePolicy {
        cache: route.cache.as_ref().map(cache),
        judge: semantic(route).and_then(|entry| entry.judge.clone()),
        embedder: semantic(route).map(embedder).unwrap_or_default(),
        digest: digest(route, config),
        default_max_output_tokens: route.default_max_output_tokens.map(|tokens| tokens.value),
        strict_translation: route.strict_translation,
        max_attempts: route.max_attempts,
        hedge: route.hedge,
    };
    config.file.routes.iter().map(|route| (route.value.name.clone(), policy(&route.value))).collect()
}

/// Returns the digest of a route, of the deployments that it names and of their providers: all that decides what an
/// answer of it can be. The rest of the file may change without any answer being forgotten.
fn digest(route: &RouteEntry, config: &Config) -> BoundedText {
    let embedder = semantic(route).and_then(|entry| match &entry.embedder {
        EmbedderEntry::Deployment(name) => Some(name),
        EmbedderEntry::BuiltIn(_) => None,
    });
    let deployments: Vec<_> = route
        .deployments
        .iter()
        // Its vectors compare with no other model's.
        .chain(embedder)
        .filter_map(|name| config.file.deployments.get_key_value(&name.value))
        .map(|(name, entry)| (name, entry, config.file.providers.get(&entry.value.provider.value)))
        .collect();
    // As for the whole configuration: maps with text keys, numbers and text, which JSON can hold.
    let text = serde_json::to_vec(&(route, deployments)).unwrap_or_default();
    BoundedText::new(&keys::hex(&Blake2b128::digest(text)))
}

fn cache(entry: &CacheEntry) -> CachePolicy {
    let semantic = entry.semantic.as_ref();
    CachePolicy {
        exact: entry.exact,
        ttl: entry.ttl,
        temperature: match entry.temperature {
            TemperatureEntry::Any => TemperaturePolicy::Any,
            TemperatureEntry::Zero => TemperaturePolicy::Zero,
        },
        cache_ceiling: entry.cache_ceiling,
        semantic: semantic.map(|entry| SemanticPolicy { threshold_milli: entry.threshold_milli }),
        decision: semantic.map(decision).unwrap_or_default(),
        pure_tools: entry.pure_tools,
        epoch: entry.epoch,
    }
}

fn semantic(route: &RouteEntry) -> Option<&SemanticEntry> {
    route.cache.as_ref()?.semantic.as_ref()
}

fn embedder(entry: &SemanticEntry) -> RouteEmbedder {
    match &entry.embedder {
        EmbedderEntry::BuiltIn(BuiltInEmbedder::Hashing) => RouteEmbedder::Own,
        EmbedderEntry::BuiltIn(other @ BuiltInEmbedder::Words) => RouteEmbedder::Local(other.embedder()),
        EmbedderEntry::Deployment(name) => RouteEmbedder::Deployment(name.value.clone()),
    }
}

/// Refuses a deployment that makes no vectors where one is asked for them.
fn check_embedder(route: &RouteEntry, config: &Config, faults: &Faults) {
    let Some(EmbedderEntry::Deployment(name)) = semantic(route).map(|entry| &entry.embedder) else { return };
    let Some(entry) = config.file.deployments.get(&name.value) else { return };
    if !entry.value.capabilities.contains(Capability::Embeddings) {
        let path = format!("routes[{}].cache.semantic.embedder.deployment", route.index);
        let message = format!("deployment `{}` in `{path}` makes no vectors", name.value);
        faults.add(
            name.span,
            &path,
            message,
            "name one with the capability `embeddings`, or write `\"hashing\"`",
        );
    }
}

fn decision(entry: &SemanticEntry) -> SemanticDecision {
    match entry.decision {
        DecisionEntry::Threshold => SemanticDecision::Fixed,
        DecisionEntry::WrongPerHitMilli(wrong_milli_max) => SemanticDecision::PerHit(VerifierConfig {
            wrong_milli_max,
            confidence_milli: entry.confidence_milli,
            ..VerifierConfig::default()
        }),
        DecisionEntry::WrongPerRequestMilli(wrong_milli_max) => {
            SemanticDecision::PerEntry(EntryVerifierConfig {
                wrong_milli_max,
                ..EntryVerifierConfig::default()
            })
        }
    }
}

/// Refuses a bound that every deployment of the route must refuse in turn.
fn check_bound(route: &RouteEntry, config: &Config, faults: &Faults) {
    let Some(bound) = route.default_max_output_tokens else { return };
    let most = |name: &Located<DeploymentName>| {
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

/// Returns the place of a setting of a route: the setting itself where its place is known, else the route.
fn place_of_setting(config: &Config, route: &RouteName, setting: &str) -> (Span, String) {
    let Some(route) = config.file.routes.iter().find(|entry| entry.value.name == *route) else {
        return (Span::default(), "routes".to_owned());
    };
    let weights = route.value.weights.as_ref().filter(|_| setting == "weights");
    (weights.map_or(route.span, |weights| weights.span), format!("routes[{}].{setting}", route.value.index))
}

pub(crate) fn report(error: &RoutingError, config: &Config, faults: &Faults) {
    let route_span = |name: &RouteName| {
        let route = config.file.routes.iter().find(|route| route.value.name == *name);
        route.map_or(Span::default(), |route| route.span)
    };
    let (span, path) = match error {
        RoutingError::UnknownDeployment { route, .. }
        | RoutingError::RepeatedDeployment { route, .. }
        | RoutingError::UnknownRouteResidency { route, .. }
        | RoutingError::UnknownTenantGroup { route, .. }
        | RoutingError::UnknownWeight { route, .. }
        | RoutingError::NoDeployments { route }
        | RoutingError::DuplicateRoute { route } => (route_span(route), "routes".to_owned()),
        RoutingError::Setting { route, setting, .. } => place_of_setting(config, route, setting),
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
