//! Decisions, one line a case.

mod faults;

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use gw_types::{
    Capability, CapabilitySet, Classification, Deployment, DeploymentName, DeploymentTiming, ModelName,
    Price, Pricing, Residency, TaskClass, TenantId, TokenCount,
};

use super::Router;
use crate::{
    DeploymentStep, DeploymentVerdict, ExclusionReason as Why, Mismatch, OnUnavailable, RouteConfig,
    RouteMatch, RouteOutcome, RouteQuery, RoutingConfig,
};

fn names<T: std::str::FromStr<Err: std::fmt::Debug>>(texts: &[&str]) -> Vec<T> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn deployment(name: &str) -> Deployment {
    Deployment {
        name: name.parse().unwrap(),
        provider: "p".parse().unwrap(),
        model: "m".parse().unwrap(),
        model_version: None,
        region: "uk-south".parse().unwrap(),
        classification_ceiling: Classification::Restricted,
        capabilities: CapabilitySet::EMPTY,
        context_window: None,
        max_output_tokens: None,
        pricing: Pricing::Free,
        timing: DeploymentTiming::default(),
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    }
}

fn route(name: &str, priority: i32, models: &[&str], deployments: &[&str]) -> RouteConfig {
    RouteConfig {
        priority,
        matches: RouteMatch { models: names(models), ..RouteMatch::default() },
        ..RouteConfig::new(name.parse().unwrap(), names(deployments))
    }
}

fn config(routes: Vec<RouteConfig>) -> RoutingConfig {
    let group = |name: &str, regions: &[&str]| (name.parse().unwrap(), names(regions).into_iter().collect());
    RoutingConfig {
        routes,
        residency: [group("onshore", &["uk-south", "uk-west"]), group("eu", &["uk-south", "west-europe"])]
            .into(),
        ..RoutingConfig::default()
    }
}

fn router(routes: Vec<RouteConfig>, deployments: &[Deployment]) -> Router {
    let deployments: Vec<_> = deployments.iter().cloned().map(Arc::new).collect();
    Router::new(config(routes), &deployments).unwrap()
}

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

/// Checks gate two: whether the facts of one deployment stand against a query.
fn check_facts(change: impl Fn(&mut Deployment), ask: impl Fn(&mut RouteQuery<'_>), expected: Option<Why>) {
    let (mut subject, other, tenant) = (deployment("subject"), deployment("other"), tenant("a"));
    change(&mut subject);
    let router = router(vec![route("r", 0, &[], &["subject"])], &[subject, other]);
    let mut query = RouteQuery::new("m", &tenant, Classification::Internal);
    ask(&mut query);
    let selection = router.candidates(&query);
    assert_eq!(selection.exclusions.first().map(|exclusion| exclusion.reason), expected);
    assert_eq!(selection.chain.as_slice(), if expected.is_none() { &[0][..] } else { &[] });
    assert!(selection.model_known);
}

/// Checks which route wins, and the chain, by name.
fn check_route(router: &Router, query: &RouteQuery<'_>, expected: Option<(&str, &[usize])>) {
    let selection = router.candidates(query);
    let won = selection.route.map(|place| router.route(place).unwrap().name.as_str());
    assert_eq!(won.map(|name| (name, selection.chain.as_slice())), expected, "{query:?}");
}

// === gate two ===

#[test]
fn deployment_classification_ceiling_is_a_second_gate() {
    let ceiling = |d: &mut Deployment| d.classification_ceiling = Classification::Confidential;
    check_facts(ceiling, |q| q.classification = Classification::Confidential, None);
    check_facts(ceiling, |q| q.classification = Classification::Restricted, Some(Why::ClassificationCeiling));
}

#[test]
fn every_demanded_group_must_hold_the_region() {
    let (west, both): (_, Vec<Residency>) = ("uk-west", names(&["onshore", "eu"]));
    let onshore: Vec<Residency> = names(&["onshore"]);
    let unknown: Vec<Residency> = names(&["onshore", "onshroe"]);
    let check = |region: &str, groups: &[Residency], expected| {
        let tenant = tenant("a");
        let mut subject = deployment("subject");
        subject.region = region.parse().unwrap();
        let router = router(vec![route("r", 0, &[], &["subject"])], &[subject, deployment("other")]);
        let query = RouteQuery { residency: groups, ..RouteQuery::new("m", &tenant, Classification::Public) };
        let reason = router.candidates(&query).exclusions.first().map(|exclusion| exclusion.reason);
        assert_eq!(reason, expected, "{region} {groups:?}");
    };
    check("us", &[], None);
    check("us", &onshore, Some(Why::Residency));
    check(west, &onshore, None);
    check(west, &both, Some(Why::Residency));
    check("uk-south", &both, None);
    check("uk-south", &unknown, Some(Why::Residency));
}

#[test]
fn capabilities_cover_the_needs() {
    let can = |d: &mut Deployment| d.capabilities = CapabilitySet::EMPTY.with(Capability::Tools);
    check_facts(can, |q| q.needs = CapabilitySet::EMPTY.with(Capability::Tools), None);
    check_facts(can, |q| q.needs = CapabilitySet::EMPTY.with(Capability::Vision), Some(Why::Capability));
}

#[test]
fn input_and_output_fit_the_window() {
    let window = |d: &mut Deployment| d.context_window = Some(TokenCount::new(100));
    let ask = |input, output: Option<u64>| {
        move |q: &mut RouteQuery<'_>| {
            q.input_tokens_at_least = TokenCount::new(input);
            q.output_tokens = output.map(TokenCount::new);
        }
    };
    check_facts(window, ask(60, Some(40)), None);
    check_facts(window, ask(60, Some(41)), Some(Why::ContextWindow));
    check_facts(window, ask(100, None), None);
    check_facts(window, ask(101, None), Some(Why::ContextWindow));
    check_facts(window, ask(u64::MAX, Some(u64::MAX)), Some(Why::ContextWindow));
    check_facts(|_| {}, ask(u64::MAX, Some(u64::MAX)), None);
}

#[test]
fn a_named_output_is_not_longer_than_the_longest_answer() {
    let longest = |d: &mut Deployment| d.max_output_tokens = Some(TokenCount::new(40));
    check_facts(longest, |q| q.output_tokens = Some(TokenCount::new(40)), None);
    check_facts(longest, |q| q.output_tokens = Some(TokenCount::new(41)), Some(Why::MaxOutput));
    check_facts(longest, |q| q.output_tokens = None, None);
}

#[test]
fn a_budget_wants_prices() {
    let unpriced = |d: &mut Deployment| d.pricing = Pricing::Unpriced;
    let text_only = |d: &mut Deployment| d.pricing = Pricing::PerToken(Box::new(Price::new(1, 1)));
    let all = |d: &mut Deployment| {
        let media = Some(1);
        let price = Price { audio_input: media, audio_output: media, ..Price::new(1, 1) };
        d.pricing = Pricing::PerToken(Box::new(Price { image_input: media, ..price }));
    };
    let ask = |budgeted, audio, images| {
        move |q: &mut RouteQuery<'_>| (q.budgeted, q.audio, q.images) = (budgeted, audio, images)
    };
    check_facts(unpriced, ask(false, true, true), None);
    check_facts(unpriced, ask(true, false, false), Some(Why::Unpriced));
    check_facts(text_only, ask(true, false, false), None);
    check_facts(text_only, ask(true, true, false), Some(Why::MissingPrice));
    check_facts(text_only, ask(true, false, true), Some(Why::MissingPrice));
    check_facts(text_only, ask(false, true, true), None);
    check_facts(all, ask(true, true, true), None);
    check_facts(|_| {}, ask(true, true, true), None);
}

#[test]
fn a_budget_of_a_deployment_wants_its_price_whoever_asks() {
    let mut unpriced = deployment("d");
    unpriced.pricing = Pricing::Unpriced;
    let facts = |budgeted| RoutingConfig {
        budgeted: if budgeted { names(&["d"]).into_iter().collect() } else { BTreeSet::new() },
        ..config(vec![route("r", 0, &["m"], &["d"])])
    };
    for (budgeted, expected) in [(false, None), (true, Some(Why::Unpriced))] {
        let router = Router::new(facts(budgeted), &[Arc::new(unpriced.clone())]).unwrap();
        let selection = router.candidates(&RouteQuery::new("m", &tenant("t"), Classification::Public));
        assert_eq!(selection.exclusions.first().map(|exclusion| exclusion.reason), expected);
        assert_eq!(selection.chain.is_empty(), budgeted);
    }
}

#[test]
fn the_first_fact_against_is_the_reason() {
    let bad = |d: &mut Deployment| {
        d.classification_ceiling = Classification::Public;
        d.context_window = Some(TokenCount::ZERO);
        d.pricing = Pricing::Unpriced;
    };
    let ask = |q: &mut RouteQuery<'_>| {
        (q.budgeted, q.input_tokens_at_least) = (true, TokenCount::new(1));
    };
    check_facts(bad, ask, Some(Why::ClassificationCeiling));
    assert!(Why::ALL.is_sorted());
}

// === order of routes ===

#[test]
fn routes_are_tried_by_priority_then_name() {
    let routes = vec![
        route("z", 1, &["m"], &["a"]),
        route("b", 0, &["m"], &["b"]),
        route("a", 0, &["x"], &["a"]),
        route("n", -5, &["x"], &["b", "a"]),
    ];
    let router = router(routes, &[deployment("a"), deployment("b")]);
    let order: Vec<&str> = router.routes().map(|route| route.name.as_str()).collect();
    assert_eq!(order, ["n", "a", "b", "z"]);
    let tenant = tenant("t");
    let query = |model| RouteQuery::new(model, &tenant, Classification::Public);
    check_route(&router, &query("m"), Some(("b", &[1])));
    check_route(&router, &query("x"), Some(("n", &[1, 0])));
    check_route(&router, &query("y"), None);
}

#[test]
fn i03_unsatisfiable_rule_falls_through() {
    let offshore = Deployment { region: "us".parse().unwrap(), ..deployment("offshore") };
    let routes = vec![route("special", 0, &["m"], &["offshore"]), route("general", 1, &["*"], &["uk"])];
    let router = router(routes, &[offshore, deployment("uk")]);
    let (tenant, onshore): (_, Vec<Residency>) = (tenant("t"), names(&["onshore"]));
    let open = RouteQuery::new("m", &tenant, Classification::Public);
    let demanding = RouteQuery { residency: &onshore, ..open };
    check_route(&router, &open, Some(("special", &[0])));
    check_route(&router, &demanding, Some(("general", &[1])));
    let exclusions = router.candidates(&demanding).exclusions;
    assert_eq!(exclusions.len(), 1);
    assert_eq!((exclusions[0].route, exclusions[0].deployment, exclusions[0].reason), (0, 0, Why::Residency));
}

#[test]
fn i03_empty_chain_rather_than_an_inadmissible_deployment() {
    let low = Deployment { classification_ceiling: Classification::Public, ..deployment("low") };
    let router = router(vec![route("r", 0, &["m"], &["low"])], &[low, deployment("unused")]);
    let tenant = tenant("t");
    let selection = router.candidates(&RouteQuery::new("m", &tenant, Classification::Restricted));
    assert!(selection.chain.is_empty() && selection.route.is_none() && selection.model_known);
}

#[test]
fn a_name_is_known_to_the_tenants_of_its_routes_only() {
    let mut special = route("special", 0, &["m", "gpt-*", "b"], &["a"]);
    special.matches.tenants = names(&["wholesale"]);
    special.matches.task_classes = names(&["reasoning"]);
    let router = router(vec![special, route("all", 1, &["b", "a"], &["a"])], &[deployment("a")]);
    let check = |model, name, task_class: Option<&TaskClass>, known, served| {
        let tenant = tenant(name);
        let query = RouteQuery { task_class, ..RouteQuery::new(model, &tenant, Classification::Public) };
        let selection = router.candidates(&query);
        assert_eq!((selection.model_known, selection.route.is_some()), (known, served), "{model} {name}");
        assert_eq!(router.knows_model(model, &tenant), known);
    };
    let reasoning = TaskClass::new("reasoning").unwrap();
    check("m", "wholesale", Some(&reasoning), true, true);
    check("gpt-9", "wholesale", Some(&reasoning), true, true);
    check("m", "wholesale", None, true, false);
    check("m", "retail", Some(&reasoning), false, false);
    check("a", "retail", None, true, true);
    check("c", "wholesale", None, false, false);
    let models = |name| router.models(&tenant(name)).iter().map(ModelName::to_string).collect::<Vec<_>>();
    assert_eq!(models("wholesale"), ["a", "b", "m"]);
    assert_eq!(models("retail"), ["a", "b"]);
}

#[test]
fn the_happy_path_stays_on_the_stack() {
    let eight = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let router = router(vec![route("r", 0, &["m"], &eight)], &eight.map(deployment));
    let tenant = tenant("t");
    let selection = router.candidates(&RouteQuery::new("m", &tenant, Classification::Public));
    assert_eq!((selection.chain.len(), selection.chain.spilled()), (8, false));
    assert_eq!(selection.exclusions.capacity(), 0);
}

#[test]
fn exclusions_are_bounded_and_the_decision_is_not() {
    let count = Router::EXCLUSIONS_MAX + 10;
    let low =
        |n| Deployment { classification_ceiling: Classification::Public, ..deployment(&format!("d{n}")) };
    let mut deployments: Vec<Deployment> = (0..count).map(low).collect();
    deployments.push(deployment("last"));
    let all: Vec<DeploymentName> = deployments.iter().map(|one| one.name.clone()).collect();
    let router = router(vec![RouteConfig::new("r".parse().unwrap(), all)], &deployments);
    let tenant = tenant("t");
    let selection = router.candidates(&RouteQuery::new("m", &tenant, Classification::Internal));
    assert_eq!(selection.exclusions.len(), Router::EXCLUSIONS_MAX);
    assert_eq!(selection.chain.as_slice(), [count]);
}

// === fail closed by route ===

#[test]
fn a_route_may_refuse_rather_than_fall_through() {
    let low = Deployment { classification_ceiling: Classification::Public, ..deployment("low") };
    let routes = |on_unavailable| {
        vec![
            RouteConfig { on_unavailable, ..route("special", 0, &["m"], &["low"]) },
            route("general", 1, &["*"], &["uk"]),
        ]
    };
    let tenant = tenant("t");
    let query = RouteQuery::new("m", &tenant, Classification::Restricted);
    let deployments = [low, deployment("uk")];
    let open = router(routes(OnUnavailable::FallThrough), &deployments);
    check_route(&open, &query, Some(("general", &[1])));
    let closed = router(routes(OnUnavailable::Fail), &deployments);
    check_route(&closed, &query, None);
    assert_eq!(closed.candidates(&query).stopped_at, Some(0));
    // A route that does not match stops nobody.
    check_route(&closed, &RouteQuery { model: "x", ..query }, Some(("general", &[1])));
}

#[test]
fn an_explanation_says_what_became_of_each_route_and_deployment() {
    let low = Deployment { classification_ceiling: Classification::Public, ..deployment("low") };
    let mut streams = route("streams", 1, &["m"], &["uk"]);
    streams.matches.streaming = Some(true);
    let last = RouteConfig { allow_fallback: false, ..route("last", 3, &["*"], &["low", "uk", "more"]) };
    let routes = vec![
        route("other", 0, &["x"], &["uk"]),
        streams,
        route("special", 2, &["m"], &["low"]),
        last,
        route("never", 4, &["x"], &["uk"]),
    ];
    let router = router(routes, &[low, deployment("uk"), deployment("more")]);
    let tenant = tenant("t");
    let query = RouteQuery::new("m", &tenant, Classification::Internal);
    let explained = router.explain(&query, None);
    assert_eq!(explained.selection, router.candidates(&query));
    let out = |name: &str, verdict| DeploymentStep { deployment: name.parse().unwrap(), verdict };
    let ceiling = || out("low", DeploymentVerdict::Out(Why::ClassificationCeiling));
    let expected = [
        ("other", RouteOutcome::Mismatch(Mismatch::Model)),
        ("streams", RouteOutcome::Mismatch(Mismatch::Streaming)),
        ("special", RouteOutcome::FellThrough(vec![ceiling()])),
        (
            "last",
            RouteOutcome::Won(vec![
                ceiling(),
                out("uk", DeploymentVerdict::InChain(0)),
                out("more", DeploymentVerdict::HeldBack),
            ]),
        ),
        ("never", RouteOutcome::NotAsked),
    ];
    let found: Vec<_> =
        explained.steps.iter().map(|step| (step.route.as_str(), step.outcome.clone())).collect();
    assert_eq!(found, expected);
    let lines = [
        "route `other`: does not match: model",
        "route `streams`: does not match: streaming",
        "route `special`: matches, and nobody may answer; the next is asked",
        "  `low`: out: classification_ceiling",
        "route `last`: answers",
        "  `low`: out: classification_ceiling",
        "  `uk`: candidate 1",
        "  `more`: held back: the route allows no fallback",
        "route `never`: not asked",
    ];
    assert_eq!(explained.to_string().lines().collect::<Vec<_>>(), lines);
}
