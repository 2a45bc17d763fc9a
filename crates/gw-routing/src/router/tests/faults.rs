//! Faults of a policy, in the words that an author reads.

use std::sync::Arc;

use gw_types::{Deployment, TokenCount};

use super::{config, deployment, names, route, router};
use crate::{RouteConfig, Router, RoutingConfig, RoutingError, Strategy};

fn faults(config: RoutingConfig, deployments: &[Deployment]) -> Vec<String> {
    let deployments: Vec<_> = deployments.iter().cloned().map(Arc::new).collect();
    Router::new(config, &deployments).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn i02_conditions_without_a_meaning_are_refused() {
    let check = |change: fn(&mut RouteConfig), expected: &str| {
        let mut subject = route("r", 0, &[], &["a", "b"]);
        change(&mut subject);
        let found = faults(config(vec![subject]), &[deployment("a"), deployment("b")]);
        assert_eq!(found, [expected]);
    };
    check(
        |r| r.matches.residency = names(&["ue"]),
        "unknown residency group `ue` in route `r`; known: `eu`, `onshore`",
    );
    check(
        |r| r.matches.tenant_groups = names(&["gold"]),
        "unknown tenant group `gold` in route `r`; known: none",
    );
    check(
        |r| {
            r.matches.input_tokens_at_least = Some(TokenCount::new(2));
            r.matches.input_tokens_at_most = Some(TokenCount::new(1));
        },
        "`input_tokens_at_most` of route `r` is below `input_tokens_at_least`; no request is of such a size",
    );
    check(
        |r| r.matches.share_percent = Some(101),
        "`share_percent` of route `r` is above 100; write 0 to 100",
    );
    check(
        |r| r.matches.metadata = [("k".to_owned(), Vec::new())].into(),
        "`metadata` of route `r` has a key without values; name at least one",
    );
    check(
        |r| r.weights = [("a".parse().unwrap(), 2)].into(),
        "`weights` of route `r` has no effect; write `strategy = \"weighted\"` or leave the weights out",
    );
    check(
        |r| {
            r.strategy = Strategy::Weighted;
            r.weights = [("c".parse().unwrap(), 2)].into();
        },
        "route `r` weighs `c`, which is not among its deployments: `a`, `b`",
    );
    check(
        |r| {
            r.strategy = Strategy::Weighted;
            r.weights = [("a".parse().unwrap(), 0), ("b".parse().unwrap(), 0)].into();
        },
        "`weights` of route `r` leaves no deployment a turn; one must be above 0",
    );
}

#[test]
fn i02_every_fault_is_reported_at_once() {
    let routes = vec![
        route("twice", 0, &[], &["eu", "eu", "eu"]),
        route("empty", 0, &[], &[]),
        route("twice", 1, &[], &["ptu-2", "eu", "ptu-2"]),
    ];
    let mut config = config(routes);
    config.residency.insert("none".parse().unwrap(), [].into());
    config.residency.insert("offshore".parse().unwrap(), ["us-esat".parse().unwrap()].into());
    let expected = [
        "more than one deployment is named `eu`; names must differ",
        "deployment `eu` stands more than once in route `twice`; name it once",
        "route `empty` has no deployments; name at least one",
        "more than one route is named `twice`; names must differ",
        "unknown deployment `ptu-2` in route `twice`; known: `eu`, `ptu`",
        "deployment `ptu-2` stands more than once in route `twice`; name it once",
        "residency group `none` has no regions; name at least one",
        "no deployment runs in residency group `offshore` (`us-esat`); regions of deployments: `uk-south`",
    ];
    let deployments = [deployment("ptu"), deployment("eu"), deployment("eu"), deployment("eu")];
    assert_eq!(faults(config, &deployments), expected);
}

#[test]
fn i02_unknown_residency_group_is_refused_with_the_known_ones() {
    let router = router(Vec::new(), &[deployment("a")]);
    assert_eq!(router.check_residency(&"eu".parse().unwrap()), Ok(()));
    let error = router.check_residency(&"ue".parse().unwrap()).unwrap_err();
    assert!(matches!(&error, RoutingError::UnknownResidency { known, .. } if known.len() == 2));
    assert_eq!(error.to_string(), "unknown residency group `ue`; known: `eu`, `onshore`");
}

#[test]
fn bounds_are_refused_one_beyond() {
    let many = |count: usize| -> Vec<String> { (0..count).map(|n| format!("n{n}")).collect() };
    let long = |count| {
        let mut long = route("long", 0, &[], &["a"]);
        long.matches.tenants = many(count).iter().map(|name| name.parse().unwrap()).collect();
        RoutingConfig { routes: vec![long], ..RoutingConfig::default() }
    };
    let deployments = [Arc::new(deployment("a"))];
    assert!(Router::new(long(Router::NAMES_PER_ROUTE_MAX), &deployments).is_ok());
    let too_long = faults(long(Router::NAMES_PER_ROUTE_MAX + 1), &[deployment("a")]);
    assert_eq!(too_long, ["too many tenants in route `long`: 1025; at most 1024"]);

    let groups = many(Router::RESIDENCY_GROUPS_MAX + 1);
    let group = |name: &String| (name.parse().unwrap(), ["uk-south".parse().unwrap()].into());
    let config = RoutingConfig { residency: groups.iter().map(group).collect(), ..RoutingConfig::default() };
    assert_eq!(faults(config, &[deployment("a")]), ["too many residency groups: 65; at most 64"]);
}
