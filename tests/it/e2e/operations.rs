//! What operators are given (`docs/operations`), against the running program: every metric that a dashboard or an alert
//! asks for is there, with the labels it is asked by.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use gw_testkit::{FakeProvider, FaultScript, ok, status};
use serde_json::Value;

use crate::support::{Gw, Toml, chat, series};

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

/// Returns the metrics that a text names, each with the labels that stand in braces behind it.
fn asked(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("gw_") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|character| character.is_ascii_alphanumeric() || character == '_') {
            continue;
        }
        let end = text[at..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, rest) = text[at..].split_at(end.unwrap_or(text.len() - at));
        let labels = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
        let labels = labels.split(',').filter_map(|one| one.split(['=', '!']).next());
        let labels = labels.map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned);
        found.push((name.to_owned(), labels.collect()));
    }
    found
}

/// Returns each series' name with every label that it has.
fn shown(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in series(page) {
        let (name, labels) = one.split_once('{').unwrap_or((&one, ""));
        let labels = labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        shown.entry(name.to_owned()).or_default().extend(labels);
    }
    shown
}

/// Returns the page of a gateway that has seen a bit of everything.
async fn lived_in() -> String {
    let script = FaultScript::of(ok("hello")).for_model("busy-model", status(503));
    let provider = FakeProvider::start(script).await.unwrap();
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", "max_concurrency = 4\nin_flight_tokens = 100_000")
        .upstream("busy", &provider)
        .route_with("m", &["up"], "cache = { exact = true }")
        .route("n", &["busy", "up"])
        .tenant("a", "max_concurrency = 4\nbudget = { limit_micros = 1_000_000, window = \"day\" }");
    let gw = Gw::start(&toml).await;
    for model in ["m", "m", "n"] {
        assert_eq!(gw.chat("a", &chat(model, "hello")).send().await.status, 200);
    }
    assert_eq!(gw.chat("nobody", &chat("m", "hello")).send().await.status, 401);
    assert_eq!(gw.reload().await.status, 200);
    gw.metrics().await
}

#[tokio::test]
async fn dashboard_and_alerts_ask_for_metrics_that_are_there() {
    let page = lived_in().await;
    let shown = shown(&page);
    let dashboard: Value = serde_json::from_str(&document("operations/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut expressions: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(expressions.len() > 20, "the dashboard was read");
    let alerts = document("operations/alerts.yaml");
    assert!(alerts.matches("- alert: ").count() > 10, "the alerts were read");
    expressions.push(alerts);
    for expression in &expressions {
        for (name, labels) in asked(expression) {
            let has = shown.get(&name).unwrap_or_else(|| panic!("no metric `{name}`: {expression}\n{page}"));
            for label in labels {
                assert!(has.contains(&label), "`{name}` has no label `{label}`: {expression}");
            }
        }
    }
}

#[tokio::test]
async fn every_metric_is_described() {
    let page = lived_in().await;
    let described: BTreeSet<String> =
        asked(&document("operations.md")).into_iter().map(|(name, _)| name).collect();
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let missing: Vec<_> = names.filter(|name| !described.contains(*name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
