//! Configured limits: sound ones pass, each fault is named.

use gw_types::{DeploymentName, Money, TenantId};

use super::{BudgetConfig, InvalidLimits, LimitsConfig, TenantLimitsConfig, ValidLimits};
use crate::Window;

fn none() -> TenantLimitsConfig {
    TenantLimitsConfig::default()
}

fn share(reserved: u32) -> TenantLimitsConfig {
    TenantLimitsConfig { reserved_concurrency: reserved, ..none() }
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

#[track_caller]
fn check(tenants: &[(&str, TenantLimitsConfig)], pool_capacity: u32, expected: &[&str]) {
    let tenants = tenants.iter().map(|(name, limits)| (tenant(name), limits.clone())).collect();
    let config = LimitsConfig { tenants, deployments: vec![], pool_capacity };
    let faults = ValidLimits::try_from(config).err().unwrap_or_default();
    assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn sound_limits_pass() {
    check(&[("a", none())], 1, &[]);
    check(&[("a", share(2)), ("b", share(3))], 5, &[]);
    check(&[("a", TenantLimitsConfig { max_concurrency: Some(2), ..share(2) })], 2, &[]);
    check(&[], u32::MAX, &[]);
}

#[test]
fn a_limit_of_zero_is_refused() {
    let zero = |name: &str| format!("`{name}` of tenant `a` must not be 0; leave it out for no limit");
    let budget = Some(BudgetConfig { limit: Money::ZERO, window: Window::Day });
    let all = TenantLimitsConfig {
        requests_per_minute: Some(0),
        tokens_per_minute: Some(0),
        max_concurrency: Some(0),
        budget,
        ..none()
    };
    let expected = ["requests_per_minute", "tokens_per_minute", "max_concurrency", "budget"].map(zero);
    check(&[("a", all)], 1, &expected.each_ref().map(String::as_str));
    check(&[], 0, &["`pool_capacity` must not be 0"]);
}

#[test]
fn shares_that_cannot_be_had_are_refused() {
    check(
        &[("a", TenantLimitsConfig { max_concurrency: Some(2), ..share(3) })],
        9,
        &["`reserved_concurrency` of tenant `a` is 3, above its `max_concurrency` of 2"],
    );
    check(
        &[("a", share(u32::MAX)), ("b", share(1)), ("c", share(u32::MAX))],
        u32::MAX,
        &[
            "`reserved_concurrency` of all tenants adds up to 8589934591, above `pool_capacity` of 4294967295; \
           the largest share is 4294967295, of tenant `a`",
        ],
    );
    check(
        &[("a", share(4)), ("b", none())],
        4,
        &["tenant `b` has no `reserved_concurrency`, and the shares of others leave nothing of \
           `pool_capacity` to it"],
    );
}

#[test]
fn names_stand_once_and_every_fault_is_told() {
    check(
        &[("a", none()), ("a", TenantLimitsConfig { max_concurrency: Some(0), ..none() })],
        1,
        &[
            "`max_concurrency` of tenant `a` must not be 0; leave it out for no limit",
            "tenant `a` is configured twice",
        ],
    );
    let deployment = DeploymentName::new("d").unwrap();
    let deployments = vec![(deployment.clone(), None), (deployment.clone(), None)];
    let config = LimitsConfig { tenants: vec![], deployments, pool_capacity: 1 };
    let faults = ValidLimits::try_from(config).err();
    assert_eq!(faults, Some(vec![InvalidLimits::DuplicateDeployment { deployment }]));
}

#[test]
fn a_tenant_reads_as_the_configuration_file_spells_it() {
    let text = r#"{"requests_per_minute": 600, "budget": {"limit_micros": 50000000, "window": "day"}}"#;
    let budget = Some(BudgetConfig { limit: Money::from_micros(50_000_000), window: Window::Day });
    let expected = TenantLimitsConfig { requests_per_minute: Some(600), budget, ..none() };
    assert_eq!(serde_json::from_str::<TenantLimitsConfig>(text).unwrap(), expected);
    for refused in [r#"{"rpm": 1}"#, r#"{"budget": {"limit_micros": -1, "window": "day"}}"#] {
        assert!(serde_json::from_str::<TenantLimitsConfig>(refused).is_err());
    }
}
