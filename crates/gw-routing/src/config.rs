//! What the author of a policy writes: routes, and the groups of regions that a request may demand.

use std::collections::{BTreeMap, BTreeSet};

use gw_types::{Classification, DeploymentName, Region, Residency, RouteName, TaskClass, TenantId};
use serde::{Deserialize, Serialize};

use crate::ModelPattern;

/// Holds everything that a [`crate::Router`] is made of, as written and not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// The routes, in any order.
    pub routes: Vec<RouteConfig>,
    /// The groups of regions that a request may demand, by name.
    pub residency: BTreeMap<Residency, BTreeSet<Region>>,
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
}

impl RouteConfig {
    /// Returns a route of priority 0 for every request, with the deployments in the given order.
    pub fn new(name: RouteName, deployments: Vec<DeploymentName>) -> Self {
        Self { name, priority: 0, matches: RouteMatch::default(), deployments, strategy: Strategy::default() }
    }
}

/// Says which requests a route is for.
///
/// Every list is a set of alternatives, and all four lists must hold; an empty list holds for every request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouteMatch {
    /// The models asked for, exact or by prefix.
    pub models: Vec<ModelPattern>,
    /// The task classes. A request without a task class meets an empty list only.
    pub task_classes: Vec<TaskClass>,
    /// The classifications, each exactly and not "up to".
    pub classifications: Vec<Classification>,
    /// The tenants.
    pub tenants: Vec<TenantId>,
}

/// Says how a route orders the deployments that may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// As written: the first is the primary, the rest are its fallbacks.
    #[default]
    Ordered,
}

#[cfg(test)]
mod tests {
    use super::{RouteConfig, RouteMatch, RoutingConfig, Strategy};

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
        let expected = RouteConfig {
            name: "any".parse().unwrap(),
            priority: 0,
            matches: RouteMatch::default(),
            deployments: vec!["eu".parse().unwrap()],
            strategy: Strategy::Ordered,
        };
        assert_eq!(config.routes, [expected]);
        assert!(config.residency.is_empty());
    }

    #[test]
    fn what_is_written_reads_back() {
        let json = r#"{"routes":[{"name":"r","priority":-1,"match":{"models":["m","gpt-*"],"task_classes":["t"],"classifications":["restricted"],"tenants":["a"]},"deployments":["eu"],"strategy":"ordered"}],"residency":{"onshore":["uk-south"]}}"#;
        assert_eq!(serde_json::to_string(&read(json).unwrap()).unwrap(), json);
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
