//! I2 and I3: what a configuration may name, and where a request may go.

use gw_config::FixedEnvironment;
use gw_types::ErrorKind;

use crate::support::{Ask, House, Toml};

/// Returns what is wrong with the text.
fn faults(text: &str) -> String {
    let environment =
        FixedEnvironment::new().with_var("UPSTREAM_KEY", "k").with_var("KEY_A", "key-of-tenant-a");
    match gw_config::check(text, "gw.toml", &environment) {
        Ok(_) => String::new(),
        Err(faults) => faults.to_string(),
    }
}

fn house() -> Toml {
    Toml::new()
        .part("[residency]\nonshore = [\"uk-south\"]")
        .scripted_with("ptu", &["ok"], "region = \"uk-south\"")
        .route_with(
            "m",
            &["ptu"],
            "match = { models = [\"m\"], classifications = [\"restricted\"], tenants = [\"a\"] }",
        )
        .tenant("a", "residency = \"onshore\"\ndefault_classification = \"internal\"")
}

#[test]
fn i02_a_misspelt_name_fails_at_construction_with_its_place() {
    let good = house().text();
    assert_eq!(faults(&good), "");
    for (right, wrong, offender) in [
        ("deployments = [\"ptu\"]", "deployments = [\"ptuu\"]", "ptuu"),
        ("classifications = [\"restricted\"]", "classifications = [\"resticted\"]", "resticted"),
        ("tenants = [\"a\"]", "tenants = [\"b\"]", "`b`"),
        ("default_classification = \"internal\"", "default_classification = \"intrenal\"", "intrenal"),
        ("residency = \"onshore\"", "residency = \"onshor\"", "onshor"),
        ("onshore = [\"uk-south\"]", "onshore = [\"uk-suoth\"]", "onshore"),
        ("\"json_schema\"", "\"json_shema\"", "json_shema"),
        ("classification_ceiling = \"restricted\"", "classification_ceiling = \"secret\"", "secret"),
        ("provider = \"ptu\"", "provider = \"azure\"", "azure"),
    ] {
        assert!(good.contains(right), "{right}");
        let said = faults(&good.replace(right, wrong));
        assert!(said.contains(offender), "{wrong}: {said:?}");
        assert!(said.starts_with("gw.toml:"), "no place: {said}");
    }
}

#[test]
fn i02_every_fault_is_said_at_once() {
    let text = house()
        .text()
        .replace("deployments = [\"ptu\"]", "deployments = [\"ptuu\"]")
        .replace("classifications = [\"restricted\"]", "classifications = [\"resticted\"]")
        .replace("\"json_schema\"", "\"json_shema\"");
    let said = faults(&text);
    for offender in ["ptuu", "resticted", "json_shema"] {
        assert!(said.contains(offender), "{said}");
    }
}

fn two_rules() -> Toml {
    Toml::new()
        .part(
            "[residency]\nonshore = [\"uk-south\"]\neu = [\"uk-south\", \"west-europe\"]\nmoon = [\"luna\"]",
        )
        .scripted_with("us", &["ok"], "region = \"us-east\"")
        .scripted_with("uk", &["ok"], "region = \"uk-south\"\nclassification_ceiling = \"internal\"")
        .scripted_with("luna", &["ok"], "region = \"luna\"\ncapabilities = [\"chat\"]")
        .route_with("specific", &["us"], "priority = 1\nmatch = { models = [\"m\"] }\n")
        .route_with("general", &["uk", "luna"], "priority = 2\nmatch = { models = [\"m\"] }\n")
        .tenant("a", "")
}

#[tokio::test(start_paused = true)]
async fn i03_a_rule_that_cannot_be_satisfied_falls_through() {
    let house = House::new(&two_rules()).await;
    let ask = Ask::of("a", "m", "hello");
    let anywhere = house.ask(&ask).await.unwrap();
    assert_eq!(anywhere.head.route.unwrap().as_str(), "specific");
    let onshore = house
        .ask(&ask.context(|context| context.residency = Some("onshore".parse().unwrap())))
        .await
        .unwrap();
    assert_eq!(onshore.head.route.unwrap().as_str(), "general");
    assert_eq!(onshore.head.deployment.unwrap().as_str(), "uk");
    let exclusions = house.last_record().await.decision.exclusions;
    let of_us = exclusions.iter().find(|exclusion| exclusion.deployment.as_str() == "us").unwrap();
    assert_eq!((of_us.route.as_str(), of_us.reason.as_str()), ("specific", "residency"));
}

#[tokio::test(start_paused = true)]
async fn i03_no_deployment_is_better_than_an_inadmissible_one() {
    let house = House::new(&two_rules()).await;
    let ask = Ask::of("a", "m", "hello");
    let restricted = |context: &mut gw_types::RequestContext| {
        context.residency = Some("onshore".parse().unwrap());
        context.classification = Some(gw_types::Classification::Restricted);
    };
    let moon = |context: &mut gw_types::RequestContext| context.residency = Some("moon".parse().unwrap());
    for refused in [
        ask.clone().context(restricted),
        ask.context(moon).with("tools", serde_json::json!([{"type": "function"}])),
    ] {
        let failure = house.ask(&refused).await.unwrap_err();
        assert_eq!(failure.error.kind(), ErrorKind::NoRouteAvailable);
        let record = house.last_record().await;
        assert_eq!((record.attempts.len(), record.serving), (0, None));
        assert_eq!(record.decision.exclusions.len(), 3);
    }
}
