//! `[[routes]]`: which deployments may answer what, in which order.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use gw_routing::{OnUnavailable, Router, Strategy};
use gw_types::{Classification, DeploymentName, RouteName, TokenCount};
use serde::Serialize;

use super::{
    CLASSIFICATIONS, Names,
    matching::{self, MatchEntry},
    semantic::{self, SemanticEntry},
    written,
};
use crate::{
    nearest,
    reader::{Node, Section, quotable},
    source::{Located, Span},
};

/// `[[routes]]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RouteEntry {
    /// Its place in the file, from 0.
    #[serde(skip)]
    pub(crate) index: usize,
    pub(crate) name: RouteName,
    pub(crate) priority: i32,
    #[serde(rename = "match")]
    pub(crate) matches: MatchEntry,
    pub(crate) deployments: Vec<Located<DeploymentName>>,
    pub(crate) strategy: Strategy,
    pub(crate) weights: Option<Located<BTreeMap<DeploymentName, u32>>>,
    pub(crate) on_unavailable: OnUnavailable,
    pub(crate) allow_fallback: bool,
    pub(crate) allow_other_models: bool,
    pub(crate) cache: Option<CacheEntry>,
    pub(crate) default_max_output_tokens: Option<Located<TokenCount>>,
    pub(crate) strict_translation: bool,
    pub(crate) max_attempts: NonZeroU32,
    pub(crate) hedge: bool,
}

/// `cache`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CacheEntry {
    pub(crate) exact: bool,
    #[serde(rename = "ttl_ms", serialize_with = "written::millis")]
    pub(crate) ttl: Duration,
    pub(crate) temperature: TemperatureEntry,
    pub(crate) cache_ceiling: Classification,
    pub(crate) pure_tools: bool,
    pub(crate) epoch: u64,
    pub(crate) semantic: Option<SemanticEntry>,
}

/// Which requests may be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TemperatureEntry {
    Any,
    Zero,
}

/// The priority of a route that names none; lower comes first.
const PRIORITY: i32 = 0;

/// Calls for one request over all deployments, where the route does not say.
const ATTEMPTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

/// The most calls for one request.
const ATTEMPTS_MAX: u32 = 20;

/// How long an answer is remembered, where the route does not say.
const TTL_S: u64 = 300;

/// The longest that an answer is remembered: a year.
const TTL_S_MAX: i64 = 31_536_000;

/// What `on_unavailable` may say.
const ON_UNAVAILABLE: [(&str, OnUnavailable); 2] =
    [("fail", OnUnavailable::Fail), ("fall-through", OnUnavailable::FallThrough)];

/// What `cache.tools` may say; the value is whether they are pure.
const TOOLS: [(&str, bool); 2] = [("impure", false), ("pure", true)];

/// What `translation` may say; the value is whether a loss is refused.
const TRANSLATIONS: [(&str, bool); 2] = [("report", false), ("strict", true)];

/// Reads every route.
pub(super) fn read_all(root: &mut Section<'_>, names: &Names) -> Vec<Located<RouteEntry>> {
    let remedy = "[{ name = \"NAME\", deployments = [\"NAME\"] }]";
    let nodes = root.required("routes", remedy).and_then(|node| node.filled_list()).unwrap_or_default();
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    let mut routes = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let Some(route) = read(node, index, names, &mut seen) else { continue };
        routes.push(Located::new(route, node.span()));
    }
    routes
}

fn read(
    node: &Node<'_>,
    index: usize,
    names: &Names,
    seen: &mut BTreeMap<String, Span>,
) -> Option<RouteEntry> {
    let mut section = node.section()?;
    let name = section.required("name", "\"NAME\"").and_then(|node| unique(&node, seen));
    let priority = section
        .optional("priority")
        .and_then(|node| node.whole(i64::from(i32::MIN)..=i64::from(i32::MAX)))
        .and_then(|priority| i32::try_from(priority).ok());
    let matches = section.optional("match").and_then(|node| matching::read(&node, names)).unwrap_or_default();
    let deployments = section
        .required("deployments", "[\"NAME\"]")
        .and_then(|node| deployments(&node, names))
        .unwrap_or_default();
    let words = Strategy::ALL.map(|strategy| (strategy.as_str(), strategy));
    let strategy = section.optional("strategy").and_then(|node| node.choice("strategy", &words));
    let weights = section.optional("weights").and_then(|node| weights(&node, &deployments));
    let on_unavailable =
        section.optional("on_unavailable").and_then(|node| node.choice("outcome", &ON_UNAVAILABLE));
    let allow_fallback = section.optional("allow_fallback").and_then(|node| node.flag());
    let allow_other_models = section.optional("allow_other_models").and_then(|node| node.flag());
    let cache = section.optional("cache").and_then(|node| cache(&node, names));
    let strict = section.optional("translation").and_then(|node| node.choice("translation", &TRANSLATIONS));
    let bound = section.optional("default_max_output_tokens").and_then(|node| {
        let tokens = u64::try_from(node.whole(1..=1_000_000_000)?).ok()?;
        Some(Located::new(TokenCount::new(tokens), node.span()))
    });
    let max_attempts = section.positive("max_attempts", ATTEMPTS_MAX).unwrap_or(ATTEMPTS);
    let hedge = section.optional("hedge").and_then(|node| hedge(&node, deployments.len(), max_attempts));
    section.finish();
    Some(RouteEntry {
        index,
        name: name?,
        priority: priority.unwrap_or(PRIORITY),
        matches,
        deployments,
        strategy: strategy.unwrap_or_default(),
        weights,
        on_unavailable: on_unavailable.unwrap_or_default(),
        allow_fallback: allow_fallback.unwrap_or(true),
        allow_other_models: allow_other_models.unwrap_or(false),
        cache,
        default_max_output_tokens: bound,
        strict_translation: strict.unwrap_or_default(),
        max_attempts,
        hedge: hedge.unwrap_or_default(),
    })
}

/// Reads whether a second deployment is asked where the first is slow; there must be one, and an attempt for it.
fn hedge(node: &Node<'_>, deployments: usize, max_attempts: NonZeroU32) -> Option<bool> {
    let hedge = node.flag()?;
    if hedge && deployments == 1 {
        let message = format!("`{}` has no second deployment to ask", node.path());
        node.fault(message, "name another one in `deployments`, or remove `hedge`");
    } else if hedge && max_attempts.get() == 1 {
        let message = format!("`{}` leaves no second attempt to make", node.path());
        node.fault(message, "write `max_attempts = 2` or more, or remove `hedge`");
    }
    Some(hedge)
}

fn unique(node: &Node<'_>, seen: &mut BTreeMap<String, Span>) -> Option<RouteName> {
    let name = node.name::<RouteName>()?;
    if seen.insert(name.value.to_string(), name.span).is_some() {
        node.fault(format!("route `{}` stands twice", name.value), "write another name");
        return None;
    }
    Some(name.value)
}

/// Reads the weights of deployments, which the route must offer.
fn weights(
    node: &Node<'_>,
    chain: &[Located<DeploymentName>],
) -> Option<Located<BTreeMap<DeploymentName, u32>>> {
    let section = node.section()?;
    let mut weights = BTreeMap::new();
    for (key, weight) in section.entries() {
        let known = chain.iter().map(|deployment| deployment.value.as_str());
        // A chain whose every name is faulty is no measure of what the weights name.
        let Some(deployment) = chain.iter().find(|deployment| deployment.value.as_str() == key.value) else {
            if !chain.is_empty() {
                let message = format!("`{}` is not among the deployments of the route", quotable(key.value));
                section.faults().add(key.span, weight.path(), message, nearest::remedy(key.value, known));
            }
            continue;
        };
        let weight = weight.whole(0..=i64::from(Router::WEIGHT_MAX)).map(u32::try_from);
        if let Some(Ok(weight)) = weight {
            weights.insert(deployment.value.clone(), weight);
        }
    }
    Some(Located::new(weights, node.key()))
}

fn deployments(node: &Node<'_>, names: &Names) -> Option<Vec<Located<DeploymentName>>> {
    let mut chain: Vec<Located<DeploymentName>> = Vec::new();
    for item in node.filled_list()? {
        let Some(name) = item.reference::<DeploymentName>("deployment", &names.deployments) else { continue };
        if chain.iter().any(|other| other.value == name.value) {
            item.fault(
                format!("deployment `{}` stands twice in `{}`", name.value, node.path()),
                "write it once",
            );
        }
        chain.push(name);
    }
    Some(chain)
}

fn cache(node: &Node<'_>, names: &Names) -> Option<CacheEntry> {
    const TEMPERATURES: [(&str, TemperatureEntry); 2] =
        [("any", TemperatureEntry::Any), ("zero", TemperatureEntry::Zero)];
    let mut section = node.section()?;
    let exact = section.optional("exact").and_then(|node| node.flag()).unwrap_or(true);
    let semantic = section.optional("semantic");
    let entry = semantic.as_ref().and_then(|node| semantic::read(node, names));
    let entry = CacheEntry {
        exact,
        ttl: Duration::from_secs(section.count("ttl_s", 1..=TTL_S_MAX).unwrap_or(TTL_S)),
        temperature: section
            .optional("temperature")
            .and_then(|node| node.choice("temperature", &TEMPERATURES))
            .unwrap_or(TemperatureEntry::Any),
        cache_ceiling: section
            .optional("cache_ceiling")
            .and_then(|node| node.choice("classification", &CLASSIFICATIONS))
            .unwrap_or(Classification::Restricted),
        pure_tools: section.optional("tools").and_then(|node| node.choice("tools", &TOOLS)).unwrap_or(false),
        epoch: section.count("epoch", 0..=i64::MAX).unwrap_or(0),
        semantic: entry,
    };
    section.finish();
    if !exact && semantic.is_none() {
        node.fault(format!("`{}` remembers nothing", node.path()), "write `exact = true`, or remove `cache`");
        return None;
    }
    Some(entry)
}
