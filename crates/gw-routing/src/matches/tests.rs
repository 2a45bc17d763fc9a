//! Conditions of a route, one line a case.

use std::collections::BTreeMap;

use gw_types::{Capability, CapabilitySet, Classification, Residency, TaskClass, TenantId, TokenCount};

use super::{Matcher, TenantNumbers};
use crate::{Mismatch, RouteMatch, RouteQuery, RoutingConfig, residency::ResidencyGroups};

fn config() -> RoutingConfig {
    let group = |name: &str| (name.parse().unwrap(), ["uk".parse().unwrap()].into());
    RoutingConfig {
        residency: [group("eu"), group("onshore")].into(),
        tenant_groups: [("gold".parse().unwrap(), ["g".parse().unwrap(), "h".parse().unwrap()].into())]
            .into(),
        ..RoutingConfig::default()
    }
}

fn ask(matches: &RouteMatch, tenant: &str, change: impl FnOnce(&mut RouteQuery<'_>)) -> Option<Mismatch> {
    let (config, tenant) = (config(), TenantId::new(tenant).unwrap());
    let (groups, mut numbers) = (ResidencyGroups::new(&config.residency), TenantNumbers::default());
    let matcher = Matcher::new("r", matches, &config, &groups, &mut numbers);
    let mut query = RouteQuery::new("m", &tenant, Classification::Public);
    change(&mut query);
    if !matcher.is_for(numbers.get(&tenant)) {
        return Some(Mismatch::Tenant);
    }
    matcher.mismatch(&query, groups.set(query.residency))
}

fn check(matches: &RouteMatch, asked: (&str, Option<&str>, Classification), expected: Option<Mismatch>) {
    let task_class = asked.1.map(|name| TaskClass::new(name).unwrap());
    let task_class: Option<&'static TaskClass> = task_class.map(|class| &*Box::leak(Box::new(class)));
    let found = ask(matches, asked.0, |query| {
        query.task_class = task_class;
        query.classification = asked.2;
    });
    assert_eq!(found, expected, "{matches:?} {asked:?}");
}

#[test]
fn what_is_left_out_takes_everything() {
    for classification in Classification::ALL {
        check(&RouteMatch::default(), ("a", None, classification), None);
        check(&RouteMatch::default(), ("b", Some("reasoning"), classification), None);
    }
}

#[test]
fn every_list_must_hold() {
    use Classification::{Internal, Public, Restricted};
    let matches = RouteMatch {
        task_classes: vec!["reasoning".parse().unwrap(), "chat".parse().unwrap()],
        classifications: vec![Restricted, Public],
        tenants: vec!["b".parse().unwrap(), "a".parse().unwrap()],
        ..RouteMatch::default()
    };
    check(&matches, ("a", Some("chat"), Restricted), None);
    check(&matches, ("b", Some("reasoning"), Public), None);
    check(&matches, ("c", Some("chat"), Restricted), Some(Mismatch::Tenant));
    check(&matches, ("a", Some("batch"), Restricted), Some(Mismatch::TaskClass));
    check(&matches, ("a", None, Restricted), Some(Mismatch::TaskClass));
    check(&matches, ("a", Some("chat"), Internal), Some(Mismatch::Classification));
}

#[test]
fn a_highest_classification_joins_the_list() {
    use Classification::{Confidential, Internal, Public};
    let up_to = RouteMatch { classification_at_most: Some(Internal), ..RouteMatch::default() };
    check(&up_to, ("a", None, Internal), None);
    check(&up_to, ("a", None, Confidential), Some(Mismatch::Classification));
    let both = RouteMatch { classifications: vec![Internal, Confidential], ..up_to };
    check(&both, ("a", None, Internal), None);
    check(&both, ("a", None, Public), Some(Mismatch::Classification));
    check(&both, ("a", None, Confidential), Some(Mismatch::Classification));
}

#[test]
fn tenants_and_groups_are_one_set_and_an_empty_group_is_nobody() {
    let gold = RouteMatch { tenant_groups: vec!["gold".parse().unwrap()], ..RouteMatch::default() };
    let more = RouteMatch { tenants: vec!["a".parse().unwrap()], ..gold.clone() };
    let nobody = RouteMatch { tenant_groups: vec!["none".parse().unwrap()], ..RouteMatch::default() };
    for (matches, tenant, expected) in [
        (&gold, "g", None),
        (&gold, "h", None),
        (&gold, "a", Some(Mismatch::Tenant)),
        (&more, "a", None),
        (&more, "g", None),
        (&more, "b", Some(Mismatch::Tenant)),
        (&nobody, "g", Some(Mismatch::Tenant)),
    ] {
        assert_eq!(ask(matches, tenant, |_| {}), expected, "{matches:?} {tenant}");
    }
}

#[test]
fn one_of_the_groups_of_regions_must_be_demanded() {
    let matches = RouteMatch { residency: vec!["eu".parse().unwrap()], ..RouteMatch::default() };
    let demands: [(&[&str], Option<Mismatch>); 4] = [
        (&[], Some(Mismatch::Residency)),
        (&["onshore"], Some(Mismatch::Residency)),
        (&["onshore", "eu"], None),
        (&["eu", "nowhere"], Some(Mismatch::Residency)),
    ];
    for (demanded, expected) in demands {
        let groups: Vec<Residency> = demanded.iter().map(|name| name.parse().unwrap()).collect();
        let groups: &'static [Residency] = groups.leak();
        assert_eq!(ask(&matches, "a", |query| query.residency = groups), expected, "{demanded:?}");
    }
}

#[test]
fn all_named_needs_must_be_needed() {
    let named = CapabilitySet::from_iter([Capability::Tools, Capability::Vision]);
    let matches = RouteMatch { needs: named, ..RouteMatch::default() };
    assert_eq!(ask(&matches, "a", |query| query.needs = named.with(Capability::Chat)), None);
    let tools = CapabilitySet::EMPTY.with(Capability::Tools);
    assert_eq!(ask(&matches, "a", |query| query.needs = tools), Some(Mismatch::Needs));
}

#[test]
fn sizes_include_their_bounds_and_the_larger_figure_counts() {
    let tokens = |count| Some(TokenCount::new(count));
    let matches = RouteMatch {
        input_tokens_at_least: tokens(10),
        input_tokens_at_most: tokens(20),
        ..RouteMatch::default()
    };
    for (estimate, at_least, expected) in [
        (9, 0, Some(Mismatch::InputTokens)),
        (10, 0, None),
        (20, 0, None),
        (21, 0, Some(Mismatch::InputTokens)),
        (0, 15, None),
        (15, 21, Some(Mismatch::InputTokens)),
    ] {
        let found = ask(&matches, "a", |query| {
            query.input_tokens_estimate = TokenCount::new(estimate);
            query.input_tokens_at_least = TokenCount::new(at_least);
        });
        assert_eq!(found, expected, "{estimate} {at_least}");
    }
}

#[test]
fn streaming_is_asked_for_or_not_or_either() {
    for (wanted, stream, takes) in [
        (None, true, true),
        (None, false, true),
        (Some(true), true, true),
        (Some(true), false, false),
        (Some(false), true, false),
    ] {
        let matches = RouteMatch { streaming: wanted, ..RouteMatch::default() };
        let expected = (!takes).then_some(Mismatch::Streaming);
        assert_eq!(ask(&matches, "a", |query| query.stream = stream), expected, "{wanted:?} {stream}");
    }
}

#[test]
fn every_key_of_the_metadata_must_have_one_of_its_values() {
    let value = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let matches = RouteMatch {
        metadata: BTreeMap::from([
            ("team".to_owned(), value(&["search", "ads"])),
            ("env".to_owned(), value(&["prod"])),
        ]),
        ..RouteMatch::default()
    };
    let cases: [(&'static [(&str, &str)], bool); 7] = [
        (&[("env", "prod"), ("team", "ads")], true),
        (&[("team", "search"), ("other", "x"), ("env", "prod")], true),
        (&[("team", "search"), ("team", "x"), ("env", "prod")], true),
        (&[("team", "x"), ("team", "search"), ("env", "prod")], false),
        (&[("team", "search")], false),
        (&[("team", "Search"), ("env", "prod")], false),
        (&[], false),
    ];
    for (metadata, takes) in cases {
        let expected = (!takes).then_some(Mismatch::Metadata);
        assert_eq!(ask(&matches, "a", |query| query.metadata = metadata), expected, "{metadata:?}");
    }
}
