//! Configured scopes: sound ones pass, each fault is named.

use std::time::Duration;

use gw_types::{DeploymentName, KeyName, ModelName, Money, MonoTime, TenantId, UtcTime};

use super::{
    BudgetEstimate, OrganisationConfig, QuotaConfig, QuotaWindow, ScopeLimitsConfig, ScopesConfig,
    TenantScopeConfig,
};
use crate::{Limits, LimitsConfig, SubjectIds, TenantLimitsConfig, Window, Worth, Zone};

fn id(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn none() -> ScopeLimitsConfig {
    ScopeLimitsConfig::default()
}

fn below(parent: &str) -> TenantScopeConfig {
    TenantScopeConfig { parent: Some(id(parent)), budgets: vec![] }
}

fn organisation(name: &str, parent: Option<&str>) -> (TenantId, OrganisationConfig) {
    (id(name), OrganisationConfig { parent: parent.map(id), limits: none() })
}

fn rolling(micros: u64, limit: u64) -> QuotaConfig {
    let window = QuotaWindow::Rolling { length: Duration::from_micros(micros) };
    QuotaConfig { limit: Money::from_micros(limit), window, estimate: BudgetEstimate::Bound }
}

#[track_caller]
fn check(scopes: &ScopesConfig, expected: &[&str]) {
    let config = LimitsConfig {
        tenants: vec![(id("a"), TenantLimitsConfig::default())],
        deployments: vec![(DeploymentName::new("d").unwrap(), None)],
        pool_capacity: 1,
    };
    let faults = Limits::with_scopes(config, scopes, MonoTime::ZERO).err().unwrap_or_default();
    assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn sound_scopes_pass() {
    check(&ScopesConfig::default(), &[]);
    let organisations = ["b", "c", "d"].iter().zip(["c", "d", "e"]);
    let mut organisations: Vec<_> =
        organisations.map(|(name, parent)| organisation(name, Some(parent))).collect();
    organisations.push(organisation("e", None));
    check(&ScopesConfig { tenants: vec![(id("a"), below("b"))], organisations, ..Default::default() }, &[]);
}

#[test]
fn limits_of_nothing_are_refused() {
    let zero = ScopeLimitsConfig {
        requests_per_minute: Some(0),
        tokens_per_minute: Some(0),
        max_concurrency: Some(0),
        budgets: vec![rolling(15, 0)],
    };
    check(
        &ScopesConfig { global: zero, ..Default::default() },
        &[
            "`requests_per_minute` of `global` must not be 0; leave it out for no limit",
            "`tokens_per_minute` of `global` must not be 0; leave it out for no limit",
            "`max_concurrency` of `global` must not be 0; leave it out for no limit",
            "`budget` of `global` must not be 0; leave it out for no limit",
            "the rolling window of a budget of `global` must be at least 16 microseconds long",
        ],
    );
    let many = ScopeLimitsConfig { budgets: vec![rolling(16, 1); 5], ..none() };
    let models = vec![(ModelName::new("m").unwrap(), many)];
    let tenants = vec![(id("a"), TenantScopeConfig { parent: None, budgets: vec![rolling(16, 1); 5] })];
    check(
        &ScopesConfig { models, tenants, ..Default::default() },
        &[
            "`tenant:a` has 5 budgets; at most 4 are possible",
            "`model:m` has 5 budgets; at most 4 are possible",
        ],
    );
}

#[test]
fn names_must_be_known_and_stand_once() {
    let key = (id("x"), KeyName::new("k").unwrap(), none());
    let misplaced = ScopeLimitsConfig { max_concurrency: Some(1), ..none() };
    let scopes = ScopesConfig {
        keys: vec![key.clone(), key],
        tenants: vec![(id("a"), below("b"))],
        organisations: vec![organisation("c", Some("b"))],
        deployments: vec![
            (DeploymentName::new("d").unwrap(), misplaced),
            (DeploymentName::new("e").unwrap(), none()),
        ],
        ..Default::default()
    };
    check(
        &scopes,
        &[
            "`key:x/k` needs `tenant:x`, which is not configured",
            "`key:x/k` needs `tenant:x`, which is not configured",
            "`key:x/k` is configured twice",
            "`tenant:a` needs `organisation:b`, which is not configured",
            "`organisation:c` needs `organisation:b`, which is not configured",
            "`max_concurrency` of `deployment:d` stands with the deployment itself",
            "`deployment:e` needs `deployment:e`, which is not configured",
        ],
    );
}

#[test]
fn organisations_end_somewhere_and_soon() {
    let circle = ["b", "c", "d"].iter().zip(["c", "d", "c"]);
    let organisations = circle.map(|(name, parent)| organisation(name, Some(parent))).collect();
    check(
        &ScopesConfig { tenants: vec![(id("a"), below("b"))], organisations, ..Default::default() },
        &[
            "`organisation:c` is its own parent, directly or through others",
            "`organisation:d` is its own parent, directly or through others",
        ],
    );
    let line = ["b", "c", "d", "e"].iter().zip(["c", "d", "e", "f"]);
    let mut organisations: Vec<_> = line.map(|(name, parent)| organisation(name, Some(parent))).collect();
    organisations.push(organisation("f", None));
    check(
        &ScopesConfig { tenants: vec![(id("a"), below("b"))], organisations, ..Default::default() },
        &["`tenant:a` has more than 4 organisations above it"],
    );
}

#[test]
fn a_scope_reads_as_a_configuration_file_spells_it() {
    let text = r#"{"requests_per_minute": 6, "budgets": [
        {"limit_micros": 5, "window": {"calendar": {"window": "month", "zone": "Europe/Berlin"}}},
        {"limit_micros": 1, "window": {"rolling": {"length_s": 60}}}]}"#;
    let window = QuotaWindow::Calendar { window: Window::Month, zone: Zone::new("Europe/Berlin").unwrap() };
    let month = QuotaConfig { limit: Money::from_micros(5), window, estimate: BudgetEstimate::Bound };
    let budgets = vec![month, rolling(60_000_000, 1)];
    let expected = ScopeLimitsConfig { requests_per_minute: Some(6), budgets, ..none() };
    assert_eq!(serde_json::from_str::<ScopeLimitsConfig>(text).unwrap(), expected);
    let unknown = text.replace("Berlin", "Berlln");
    let error = serde_json::from_str::<ScopeLimitsConfig>(&unknown).unwrap_err().to_string();
    assert!(
        error.starts_with("unknown time zone `Europe/Berlln`; write a name of the IANA database"),
        "{error}"
    );
}

#[test]
fn each_cap_reserves_the_amount_that_it_asks_for() {
    let window = || QuotaWindow::Calendar { window: Window::Day, zone: Zone::UTC };
    let calibrated =
        QuotaConfig { limit: Money::from_micros(20), window: window(), estimate: BudgetEstimate::Calibrated };
    let bound =
        QuotaConfig { limit: Money::from_micros(25), estimate: BudgetEstimate::Bound, ..calibrated.clone() };
    let scopes = ScopesConfig {
        tenants: vec![(id("a"), TenantScopeConfig { parent: None, budgets: vec![calibrated, bound] })],
        ..ScopesConfig::default()
    };
    let tenants = vec![(id("a"), TenantLimitsConfig::default())];
    let config = LimitsConfig { tenants, deployments: vec![], pool_capacity: 1 };
    let limits = Limits::with_scopes(config, &scopes, MonoTime::ZERO).unwrap();
    let subject = limits.subject(&SubjectIds { key: None, tenant: "a", model: None }).unwrap();
    let utc = UtcTime::from_micros(0);
    let held = || -> Vec<_> {
        subject.snapshot(MonoTime::ZERO, utc)[0]
            .budgets
            .iter()
            .map(|cap| cap.reserved.micros_rounded_up())
            .collect()
    };
    let worth = |bound, calibrated| Worth {
        bound: Money::from_micros(bound),
        calibrated: Money::from_micros(calibrated),
    };
    let mut first = subject.reserve(worth(12, 8), utc).unwrap();
    assert_eq!((first.amount(), held()), (Money::from_micros(8), vec![8, 12]));
    // The bound of a second one does not fit into the second cap; then the first takes nothing either.
    assert!(subject.reserve(worth(14, 8), utc).is_err());
    first.raise_to(worth(13, 7), utc).unwrap();
    assert_eq!(held(), [8, 13]);
    let second = subject.reserve(worth(12, 12), utc).unwrap();
    second.release();
    first.dispatched();
    drop(first);
    assert_eq!(held(), [0, 0]);
    let spent: Vec<_> =
        subject.snapshot(MonoTime::ZERO, utc)[0].budgets.iter().map(|cap| cap.spent).collect();
    assert_eq!(spent, [Money::from_micros(8), Money::from_micros(13)]);
}
