//! Findings, one policy a case, in the words that a user reads.

use std::{sync::Arc, time::Duration};

use gw_types::{
    Capability, CapabilitySet, Classification, Deployment, DeploymentTiming, Price, Pricing, TokenCount,
};

use super::{OutReason, PolicyFacts, Report, TenantFacts, analyse, diff, served_table};
use crate::{OnUnavailable, RouteConfig, RouteMatch, RoutingConfig};

fn deployment(name: &str, change: impl FnOnce(&mut Deployment)) -> Arc<Deployment> {
    let mut deployment = Deployment {
        name: name.parse().unwrap(),
        provider: "p".parse().unwrap(),
        model: "gpt".parse().unwrap(),
        model_version: None,
        region: "uk".parse().unwrap(),
        classification_ceiling: Classification::Restricted,
        capabilities: CapabilitySet::from_iter([Capability::Chat, Capability::Streaming]),
        context_window: None,
        max_output_tokens: None,
        pricing: Pricing::PerToken(Box::new(Price::new(1, 1))),
        timing: DeploymentTiming::default(),
        max_attempts: std::num::NonZeroU32::MIN,
        max_concurrency: None,
    };
    change(&mut deployment);
    Arc::new(deployment)
}

fn route(name: &str, priority: i32, models: &[&str], deployments: &[&str]) -> RouteConfig {
    RouteConfig {
        priority,
        matches: RouteMatch {
            models: models.iter().map(|model| model.parse().unwrap()).collect(),
            ..RouteMatch::default()
        },
        ..RouteConfig::new(
            name.parse().unwrap(),
            deployments.iter().map(|deployment| deployment.parse().unwrap()).collect(),
        )
    }
}

/// A policy over `uk`, `us` (offshore) and `low` (up to `internal`), for one tenant.
fn policy(routes: Vec<RouteConfig>) -> PolicyFacts {
    let group = |name: &str, regions: &[&str]| {
        (name.parse().unwrap(), regions.iter().map(|region| region.parse().unwrap()).collect())
    };
    PolicyFacts {
        routing: RoutingConfig {
            routes,
            residency: [group("onshore", &["uk"])].into(),
            ..RoutingConfig::default()
        },
        deployments: vec![
            deployment("uk", |_| {}),
            deployment("us", |one| one.region = "us".parse().unwrap()),
            deployment("low", |one| one.classification_ceiling = Classification::Internal),
        ],
        tenants: vec![TenantFacts::new("t".parse().unwrap(), Classification::Internal)],
        ..PolicyFacts::default()
    }
}

fn report(facts: &PolicyFacts) -> Report {
    analyse(facts).unwrap()
}

/// Checks the errors, each with its witness, and the warnings but for those that say that a deployment is not named.
fn check(facts: &PolicyFacts, errors: &[&str], warnings: &[&str]) {
    let report = report(facts);
    let lines = |findings: &[super::Finding]| -> Vec<String> {
        let told = findings.iter().map(|finding| match &finding.witness {
            Some(witness) => format!("{finding} [{witness}]"),
            None => finding.to_string(),
        });
        told.filter(|line| !line.starts_with("no route names")).collect()
    };
    assert_eq!(lines(&report.errors), errors);
    assert_eq!(lines(&report.warnings), warnings);
}

#[test]
fn a_sound_policy_has_no_finding() {
    check(&policy(vec![route("all", 0, &["m"], &["uk"])]), &[], &[]);
}

#[test]
fn a_deployment_that_no_request_of_its_route_may_use_is_an_error() {
    let mut restricted = route("r", 0, &["m"], &["uk", "low"]);
    restricted.matches.classifications = vec![Classification::Restricted];
    let facts = policy(vec![restricted, route("s", 1, &["m"], &["low", "uk"])]);
    check(
        &facts,
        &[
            "no request that route `r` takes may use `low`: `classification_ceiling` [model `m`, tenant `t`, restricted]",
        ],
        &[
            "`low` may answer only some of the requests that route `s` serves: `classification_ceiling` [model `m`, tenant `t`, confidential]",
        ],
    );
    assert_eq!(
        report(&facts).errors[0].fix(),
        "take `low` out of route `r`, or change its `classification_ceiling`"
    );
}

#[test]
fn a_floor_that_no_deployment_meets_is_an_error_for_route_and_tenant() {
    let mut facts = policy(vec![route("r", 0, &["m"], &["us"])]);
    facts.tenants[0].residency = Some("onshore".parse().unwrap());
    check(
        &facts,
        &[
            "no request that route `r` takes may use `us`: `residency` [model `m`, tenant `t`, internal, residency `onshore`]",
            "route `r` takes requests of tenant `t` that no deployment may answer: `us` residency [model `m`, tenant `t`, internal, residency `onshore`]",
        ],
        &[
            "no deployment of route `r` may answer any request that it takes [model `m`, tenant `t`, internal, residency `onshore`]",
            "no request reaches `us`",
            "no key of tenant `t` can reach any deployment",
        ],
    );
}

#[test]
fn a_class_that_a_route_names_and_nobody_serves_is_an_error_unless_declared() {
    let mut named = route("r", 0, &["m"], &["low"]);
    named.matches.classifications = vec![Classification::Internal, Classification::Restricted];
    named.matches.streaming = Some(false);
    let mut facts = policy(vec![named]);
    let unserved = "route `r` takes requests of tenant `t` that no deployment may answer: `low` classification_ceiling [model `m`, tenant `t`, restricted]";
    let none = "no route takes some requests for models of route `r` (1 class)";
    let confidential = format!("{none} [model `m`, tenant `t`, confidential]");
    let streams = format!("{none} [model `m`, tenant `t`, internal, needs `streaming`]");
    check(&facts, &[unserved], &[&confidential, &streams]);
    facts.routing.refused = vec![RouteMatch {
        classifications: vec![Classification::Confidential, Classification::Restricted],
        ..RouteMatch::default()
    }];
    check(&facts, &[], &[&streams]);
}

#[test]
fn a_demand_beyond_the_least_that_nobody_meets_is_a_warning() {
    let facts = policy(vec![route("r", 0, &["m"], &["low", "us"])]);
    check(
        &facts,
        &[],
        &[
            "`low` may answer only some of the requests that route `r` serves: `classification_ceiling` [model `m`, tenant `t`, confidential]",
            "`us` may answer only some of the requests that route `r` serves: `residency` [model `m`, tenant `t`, internal, residency `onshore`]",
            "no deployment may answer some requests of route `r` for their classification and residency (1 class) [model `m`, tenant `t`, confidential, residency `onshore`]",
        ],
    );
}

#[test]
fn a_shadowed_route_is_shown_by_a_request_that_reaches_the_earlier_one() {
    let facts = policy(vec![
        route("all", 0, &["*"], &["uk"]),
        RouteConfig { on_unavailable: OnUnavailable::Fail, ..route("late", 1, &["gpt-*"], &["us"]) },
    ]);
    check(
        &facts,
        &[],
        &[
            "route `late` never wins; before it stand `all` [model `gpt-a`, tenant `t`, internal]",
            "no request reaches `us`",
        ],
    );
}

#[test]
fn equal_priorities_that_overlap_are_told() {
    check(
        &policy(vec![route("a", 0, &["gpt-4"], &["uk"]), route("b", 0, &["*"], &["uk"])]),
        &[],
        &[
            "routes `a` and `b` of equal priority take one request; the name decides [model `gpt-4`, tenant `t`, internal]",
        ],
    );
}

#[test]
fn a_route_for_nobody_is_told() {
    let mut nobody = route("r", 0, &["m"], &["uk"]);
    nobody.matches.tenants = vec!["x".parse().unwrap()];
    let below = RouteMatch {
        classification_at_most: Some(Classification::Public),
        ..route("b", 0, &["m"], &[]).matches
    };
    let below = RouteConfig { matches: below, ..route("below", 0, &[], &["uk"]) };
    check(
        &policy(vec![nobody, below, route("z", 9, &["m"], &["uk"])]),
        &[],
        &["no request meets the conditions of route `below`", "no request meets the conditions of route `r`"],
    );
}

#[test]
fn a_fallback_to_another_model_is_an_error_until_it_is_allowed() {
    let mut facts = policy(vec![route("r", 0, &["m"], &["uk", "claude"])]);
    facts.deployments.push(deployment("claude", |one| one.model = "claude".parse().unwrap()));
    check(
        &facts,
        &[
            "no request that route `r` takes may use `claude`: `other_model` [model `m`, tenant `t`, internal]",
        ],
        &["no request reaches `claude`"],
    );
    assert!(report(&facts).errors[0].fix().starts_with("write `allow_other_models = true` in route `r`"));
    facts.routing.routes[0].allow_other_models = true;
    check(&facts, &[], &[]);
    facts.routing.routes[0].allow_fallback = false;
    check(
        &facts,
        &[
            "no request reaches `claude` in route `r`, which allows no fallback [model `m`, tenant `t`, internal]",
        ],
        &["no request reaches `claude`"],
    );
}

#[test]
fn capabilities_divide_only_where_deployments_differ() {
    let mut facts = policy(vec![route("r", 0, &["m"], &["uk", "plus"])]);
    let plus = |one: &mut Deployment| {
        one.capabilities = one.capabilities.with(Capability::Tools);
        one.context_window = Some(TokenCount::new(100));
    };
    facts.deployments.push(deployment("plus", plus));
    check(
        &facts,
        &[],
        &[
            "`uk` may answer only some of the requests that route `r` serves: `capability` [model `m`, tenant `t`, internal, needs `tools`]",
            "`plus` may answer only some of the requests that route `r` serves: `context_window` [model `m`, tenant `t`, internal, 101 input tokens]",
            "no deployment may answer some requests of route `r` for their needs and size (1 class) [model `m`, tenant `t`, internal, needs `tools`, 101 input tokens]",
        ],
    );
}

#[test]
fn time_and_prices_that_are_missing_are_told() {
    let mut facts = policy(vec![route("r", 0, &["m"], &["uk", "slow"])]);
    facts.tenants[0].budgeted = true;
    let slow = |one: &mut Deployment| {
        one.pricing = Pricing::Unpriced;
        one.timing.min_attempt = Duration::from_secs(90);
    };
    facts.deployments.push(deployment("slow", slow));
    facts.timing.latency_undeclared.insert("slow".parse().unwrap());
    facts.timing.deadline = Duration::from_millis(2_009);
    let shown = "[model `m`, tenant `t`, internal]";
    check(
        &facts,
        &[&format!("no request that route `r` takes may use `slow`: `unpriced` {shown}")],
        &[
            &format!(
                "route `r` offers `slow` without a price to requests of tenant `t` under a budget {shown}"
            ),
            "no request reaches `slow`",
            "the shortest attempt at `slow` is longer than the longest",
            "the expected latency of `slow`, a fallback in route `r`, is not stated",
            "the attempts of route `r` need 2010 ms, and the deadline is 2009 ms",
        ],
    );
}

#[test]
fn a_declared_refusal_is_one_and_one_of_nothing_is_told() {
    let mut facts = policy(vec![route("r", 0, &["m"], &["uk"])]);
    let residency = vec!["onshore".parse().unwrap()];
    let models = vec!["n".parse().unwrap()];
    facts.routing.refused = vec![
        RouteMatch { residency, ..RouteMatch::default() },
        RouteMatch { models, ..RouteMatch::default() },
    ];
    check(&facts, &[], &["declaration 2 refuses no request that a route knows"]);
    let table = served_table(&facts, 10).unwrap();
    let outcomes: Vec<String> = table.rows.iter().map(|row| row.outcome.to_string()).collect();
    assert_eq!(outcomes, ["r: uk", "refused: declared so (1)"]);
    assert_eq!(table.rows[1].out, [("uk".parse().unwrap(), OutReason::Refused)]);
}

#[test]
fn a_policy_that_tells_too_many_classes_apart_is_refused() {
    let canary = |n: usize| {
        let mut canary = route(&format!("r{n:02}"), 0, &["m"], &["uk"]);
        canary.matches.share_percent = Some(50);
        canary
    };
    let facts = policy((0..40).map(canary).collect());
    let expected = "the policy tells more than 1000000 classes of requests apart; those of route `r00` and the routes that \
                    share its requests pass that number";
    check(&facts, &[expected], &[]);
    assert!(served_table(&facts, 10).unwrap().rows.is_empty());
}

#[test]
fn the_table_says_who_serves_and_why_others_do_not() {
    let mut canary = route("canary", 0, &["gpt-*"], &["us", "low"]);
    canary.matches.share_percent = Some(5);
    let facts = policy(vec![canary, route("all", 1, &["gpt-*", "m"], &["low", "uk"])]);
    let table = served_table(&facts, 100).unwrap();
    let lines: Vec<String> = table
        .rows
        .iter()
        .map(|row| {
            let out: Vec<String> =
                row.out.iter().map(|(deployment, reason)| format!("{deployment} {reason}")).collect();
            format!("{} => {}; out: {}", row.class, row.outcome, out.join(", "))
        })
        .collect();
    let expected = [
        "m | t | internal, residency - onshore => all: low uk; out: ",
        "m | t | confidential restricted, residency - onshore => all: uk; out: low classification_ceiling",
    ];
    assert_eq!(lines[..2], expected);
    let last = "gpt-* | t | confidential restricted, residency onshore, in the share of canary => all: uk; out: us residency, low classification_ceiling";
    assert_eq!((lines.len(), lines[9].as_str()), (10, last));
}

#[test]
fn a_difference_names_the_classes_that_go_elsewhere() {
    let old = policy(vec![route("r", 0, &["m"], &["us", "uk"])]);
    let mut new = policy(vec![route("r", 0, &["m"], &["us"])]);
    let found = diff(&old, &new).unwrap();
    let told: Vec<String> = found
        .changes
        .iter()
        .map(|change| format!("{} -> {} [{}]", change.old, change.new, change.witness))
        .collect();
    assert_eq!(
        told,
        [
            "r: us uk -> r: us [model `m`, tenant `t`, internal]",
            "r: uk -> refused: no deployment may answer [model `m`, tenant `t`, internal, residency `onshore`]",
        ]
    );
    new.tenants.clear();
    assert_eq!(diff(&old, &new).unwrap().changes[0].new.to_string(), "refused: unknown tenant");
}
