//! What the author of a policy writes: routes, and the groups of regions that a request may demand.

use std::collections::{BTreeMap, BTreeSet};

use gw_types::{
    CapabilitySet, Classification, DeploymentName, ModelName, Region, Residency, RouteName, TaskClass,
    TenantId, TokenCount,
};
use serde::{Deserialize, Serialize};

use crate::{ModelPattern, TenantGroup};

/// Holds everything that a [`crate::Router`] is made of, as written and not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// The routes, in any order.
    pub routes: Vec<RouteConfig>,
    /// The groups of regions that a request may demand, by name.
    pub residency: BTreeMap<Residency, BTreeSet<Region>>,
    /// The groups of tenants that a route may match, by name. A group without members is one that matches nobody.
    pub tenant_groups: BTreeMap<TenantGroup, BTreeSet<TenantId>>,
    /// The families of models, by deployment. A deployment that is not listed is of a family of its own model's exact
    /// name: two that run one model under two names must say so here.
    pub families: BTreeMap<DeploymentName, ModelName>,
    /// The deployments with a budget of their own: whatever goes there is held against it, so what has no price there is
    /// out.
    pub budgeted: BTreeSet<DeploymentName>,
    /// Classes of requests that are refused, whatever routes would do. [`crate::analysis`] then does not miss a chain for
    /// them.
    pub refused: Vec<RouteMatch>,
}

/// Describes one route: which requests it is for, and which deployments it offers them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The route's name, unique.
    pub name: RouteName,
    /// When the route is tried: lower first, ties by name (in byte order). Default 0; negative is before the default.
    #[serde(default)]
    pub priority: i32,
    /// The requests that the route is for. Default: all.
    #[serde(default, rename = "match")]
    pub matches: RouteMatch,
    /// The deployments, in the order of preference; at least one, none twice.
    pub deployments: Vec<DeploymentName>,
    /// How the admissible deployments are ordered. Default: as written.
    #[serde(default)]
    pub strategy: Strategy,
    /// The weights of deployments under [`Strategy::Weighted`], and under no other; absent: 1. A deployment of weight 0
    /// is a fallback only.
    #[serde(default)]
    pub weights: BTreeMap<DeploymentName, u32>,
    /// What happens where the route matches and no deployment of it can be had. Default: the next route is asked.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// Whether a request that failed at one deployment may go to the next. Default: yes.
    #[serde(default = "yes")]
    pub allow_fallback: bool,
    /// Whether the next one may be of another family of models ([`RoutingConfig::families`]). Default: no.
    ///
    /// Under [`Strategy::Ordered`] the family is that of the first deployment written, so that neither an outage nor a
    /// fact lets another model answer; under the others every deployment may be chosen, and then its family stays.
    #[serde(default)]
    pub allow_other_models: bool,
}

impl RouteConfig {
    /// Returns a route of priority 0 for every request, with the deployments in the given order.
    pub fn new(name: RouteName, deployments: Vec<DeploymentName>) -> Self {
        Self {
            name,
            priority: 0,
            matches: RouteMatch::default(),
            deployments,
            strategy: Strategy::default(),
            weights: BTreeMap::new(),
            on_unavailable: OnUnavailable::default(),
            allow_fallback: true,
            allow_other_models: false,
        }
    }
}

const fn yes() -> bool {
    true
}

/// Says which requests a route is for.
///
/// Every condition must hold, and one that is left out holds for every request. A list is a set of alternatives, but for
/// `needs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouteMatch {
    /// The models asked for, exact or by prefix.
    pub models: Vec<ModelPattern>,
    /// The task classes. A request without a task class meets an empty list only.
    pub task_classes: Vec<TaskClass>,
    /// The classifications, each exactly and not "up to".
    pub classifications: Vec<Classification>,
    /// The highest classification.
    pub classification_at_most: Option<Classification>,
    /// The tenants. Together with `tenant_groups` one set: a tenant is in it by its name or by its group.
    pub tenants: Vec<TenantId>,
    /// The groups of tenants.
    pub tenant_groups: Vec<TenantGroup>,
    /// The groups of regions, one of which the request must demand.
    pub residency: Vec<Residency>,
    /// What the request must need, all of it.
    pub needs: CapabilitySet,
    /// The fewest input tokens, by the estimate.
    pub input_tokens_at_least: Option<TokenCount>,
    /// The most input tokens, by the estimate.
    pub input_tokens_at_most: Option<TokenCount>,
    /// Whether a stream is asked for.
    pub streaming: Option<bool>,
    /// The request's metadata: for each key one of the values. Compared exactly, upper and lower case differ.
    pub metadata: BTreeMap<String, Vec<String>>,
    /// How many of a hundred keys, 0 to 100, whichever they are: always the same ones for one route's name, others for
    /// another's. The key is [`crate::RouteQuery::share_key`]; a request without one is in no share below 100.
    pub share_percent: Option<u8>,
}

/// Says how a route orders the deployments that may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// As written: the first is the primary, the rest are its fallbacks.
    #[default]
    Ordered,
    /// In turn by weight, spread evenly: smooth weighted round robin (nginx).
    Weighted,
    /// The least worst-case cost first.
    Cheapest,
    /// The better of two drawn at random, by the time to the first token (peak EWMA, power of two choices).
    Fastest,
    /// The fewest calls in flight first.
    LeastBusy,
    /// The same one for the same beginning of a prompt, so that its provider finds it in its cache: a hash ring with
    /// bounded load. Requests without such a key go to the least busy.
    Sticky,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 6] =
        [Self::Ordered, Self::Weighted, Self::Cheapest, Self::Fastest, Self::LeastBusy, Self::Sticky];

    /// Returns the name, as the configuration holds it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Weighted => "weighted",
            Self::Cheapest => "cheapest",
            Self::Fastest => "fastest",
            Self::LeastBusy => "least-busy",
            Self::Sticky => "sticky",
        }
    }
}

/// Says what happens where a route matches and no deployment of it can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnavailable {
    /// The next route is asked, as if this one had not matched.
    #[default]
    FallThrough,
    /// The request is refused, whatever the routes behind would do.
    Fail,
}

#[cfg(test)]
mod tests {
    use super::{RouteConfig, RoutingConfig, Strategy};

    fn read(json: &str) -> Result<RoutingConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn refuses(json: &str, expected: &str) {
        let error = read(json).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_left_out_takes_its_default() {
        let config = read(r#"{"routes": [{"name": "any", "deployments": ["eu"]}]}"#).unwrap();
        let expected = RouteConfig::new("any".parse().unwrap(), vec!["eu".parse().unwrap()]);
        assert_eq!(config.routes, [expected]);
        assert_eq!(config, RoutingConfig { routes: config.routes.clone(), ..RoutingConfig::default() });
    }

    #[test]
    fn what_is_written_reads_back() {
        let json = r#"{"routes": [{"name": "r", "priority": -1, "match": {"models": ["m", "gpt-*"], "task_classes": ["t"],
            "classifications": ["restricted"], "classification_at_most": "internal", "tenants": ["a"],
            "tenant_groups": ["g"], "residency": ["eu"], "needs": ["tools"], "input_tokens_at_least": 1,
            "input_tokens_at_most": 9, "streaming": true, "metadata": {"k": ["v"]}, "share_percent": 5},
            "deployments": ["eu"], "strategy": "weighted", "weights": {"eu": 3}, "on_unavailable": "fail",
            "allow_fallback": false, "allow_other_models": true}],
            "residency": {"onshore": ["uk-south"]}, "tenant_groups": {"g": ["a"]}, "families": {"eu": "gpt"},
            "refused": [{"streaming": true}]}"#;
        let config = read(json).unwrap();
        assert_eq!(config.routes[0].strategy, Strategy::Weighted);
        assert_eq!(config.routes[0].matches.metadata["k"], ["v"]);
        assert_eq!(read(&serde_json::to_string(&config).unwrap()).unwrap(), config);
    }

    #[test]
    fn strategies_have_their_names() {
        for strategy in Strategy::ALL {
            assert_eq!(serde_json::to_string(&strategy).unwrap(), format!("\"{}\"", strategy.as_str()));
        }
    }

    #[test]
    fn i02_misspelt_names_do_not_read() {
        let route =
            |fields: &str| format!(r#"{{"routes": [{{"name": "r", "deployments": ["eu"]{fields}}}]}}"#);
        refuses(&route(r#", "match": {"classifications": ["resticted"]}"#), "unknown variant `resticted`");
        refuses(&route(r#", "match": {"model": ["m"]}"#), "unknown field `model`");
        refuses(&route(r#", "match": {"models": ["g*t"]}"#), "only as its last character");
        refuses(&route(r#", "strategy": "orderd""#), "unknown variant `orderd`");
        refuses(&route(r#", "prioritty": 1"#), "unknown field `prioritty`");
        refuses(&route(r#", "priority": "1""#), "invalid type");
    }
}
