//! The analysis against running requests: whatever it says is tried, and whatever requests do it must have said.

#![expect(clippy::unwrap_used, reason = "a test's own names are valid")]

use std::{collections::BTreeSet, sync::Arc};

use gw_routing::{
    RouteConfig, RouteMatch, Router,
    analysis::{
        Finding, FindingKind, OutReason, Outcome, PolicyFacts, Report, Row, TenantFacts, Witness, analyse,
        diff, served_table,
    },
};
use gw_types::{Capability, Classification, DeploymentName, ModelName, Residency, RouteName};
use proptest::{collection::vec, prelude::*, sample::subsequence};

use crate::{
    oracle::{decide, is_for, matches},
    world::{MODELS, Request, World, matching, requests, worlds},
};

const ROWS_MAX: usize = 1_000_000;
/// Policies tried by each property.
const CASES: u32 = 64;

/// A policy with tenants of three kinds, one of which has a key with a budget, and with models that have budgets.
fn policies() -> impl Strategy<Value = (World, PolicyFacts)> {
    (worlds(), vec(matching(), 0..2), subsequence(&MODELS[..], 0..=2)).prop_map(
        |(mut world, refused, models)| {
            for deployment in &mut world.deployments {
                deployment.capabilities = deployment.capabilities.with(Capability::Chat);
            }
            // Few routes have few classes, and meet as often.
            world.config.routes.truncate(4);
            world.config.refused = refused;
            for refused in &mut world.config.refused {
                refused.share_percent = None;
            }
            let tenant = |name: &str, default, residency: Option<&str>, budgeted| TenantFacts {
                residency: residency.map(|group| group.parse().unwrap()),
                budgeted,
                ..TenantFacts::new(name.parse().unwrap(), default)
            };
            let with_key = TenantFacts {
                budgeted_keys: ["k".parse().unwrap()].into(),
                ..tenant("a", Classification::Public, None, false)
            };
            let facts = PolicyFacts {
                routing: world.config.clone(),
                deployments: world.deployments.iter().cloned().map(Arc::new).collect(),
                tenants: vec![
                    with_key,
                    tenant("b", Classification::Internal, Some("onshore"), true),
                    tenant("c", Classification::Confidential, None, true),
                ],
                budgeted_models: models.into_iter().map(|model| model.parse().unwrap()).collect(),
                ..PolicyFacts::default()
            };
            (world, facts)
        },
    )
}

/// Makes a request one that its tenant can send.
fn sent(mut request: Request, facts: &PolicyFacts) -> Request {
    let tenant = facts.tenants.iter().find(|one| one.id == request.tenant).unwrap();
    let nowhere: Residency = "nowhere".parse().unwrap();
    let further = request.residency.into_iter().find(|group| *group != nowhere);
    request.residency = tenant.residency.iter().cloned().chain(further).collect();
    request.classification = request.classification.max(tenant.default_classification);
    request.needs = request.needs.with(Capability::Chat);
    request.stream = request.needs.contains(Capability::Streaming);
    request.images = request.needs.contains(Capability::Vision);
    request.audio = false;
    // What a request says of a budget stands for the key that it comes with.
    let has_key = request.budgeted && !tenant.budgeted_keys.is_empty();
    let is_budgeted = |model: &ModelName| model.as_str() == request.model;
    request.budgeted = tenant.budgeted || has_key || facts.budgeted_models.iter().any(is_budgeted);
    request.input = request.input.min(request.estimate);
    request
}

/// What the router does with a request, in names.
fn run(
    router: &Router,
    world: &World,
    query: &gw_routing::RouteQuery<'_>,
) -> Option<(RouteName, Vec<DeploymentName>)> {
    let named = world.named(router, &router.candidates(query));
    named.route.map(|route| (route, named.chain))
}

fn check_row(world: &World, router: &Router, row: &Row) {
    row.class.example.ask(|query| {
        let found = run(router, world, query);
        match &row.outcome {
            Outcome::Served { route, chain } => {
                assert_eq!(found, Some((route.clone(), chain.clone())), "{}", row.class);
            }
            outcome => {
                assert_eq!(found, None, "{}", row.class);
                let refused = |one: &RouteMatch| matches("refused", one, &world.config, query);
                if let Outcome::Refused(place) = outcome {
                    assert_eq!(world.config.refused.iter().position(refused), Some(*place), "{}", row.class);
                    return;
                }
                assert!(*outcome == Outcome::UnknownModel || !world.config.refused.iter().any(refused));
                let taken = world.config.routes.iter().any(|route| takes(world, route, query));
                assert_eq!(taken, *outcome == Outcome::Unserved, "{}", row.class);
            }
        }
        for (deployment, reason) in &row.out {
            if let OutReason::Excluded(reason) = reason
                && *reason != gw_routing::ExclusionReason::OtherModel
            {
                let deployment = world.deployments.iter().find(|one| one.name == *deployment).unwrap();
                let reasons = crate::oracle::reasons(deployment, query, &world.config.residency);
                assert_eq!(reasons.first(), Some(reason));
            }
        }
    });
}

fn takes(world: &World, route: &RouteConfig, query: &gw_routing::RouteQuery<'_>) -> bool {
    matches(route.name.as_str(), &route.matches, &world.config, query)
}

fn route<'a>(world: &'a World, name: &RouteName) -> &'a RouteConfig {
    world.config.routes.iter().find(|route| route.name == *name).unwrap()
}

/// Tries what the finding's own request shows.
fn check_witness(world: &World, router: &Router, finding: &Finding, witness: &Witness) {
    let name = finding.route.as_ref().unwrap();
    witness.ask(|query| {
        let found = run(router, world, query);
        let takes_it = |name: &RouteName| takes(world, route(world, name), query);
        match &finding.kind {
            FindingKind::Shadowed(by) => {
                assert!(takes_it(name));
                let winner = decide(&world.config, &world.deployments, query).route;
                // An earlier route wins, or refuses and lets no other be asked.
                assert!(winner.as_ref().is_none_or(|winner| by.contains(winner) && winner != name));
                assert!(by.iter().any(takes_it));
            }
            FindingKind::Unserved(_) | FindingKind::UnservedDemand { .. } => {
                assert!(found.is_none() && takes_it(name));
            }
            FindingKind::NoRoute(_) => {
                assert!(
                    found.is_none() && !world.config.routes.iter().any(|route| takes(world, route, query))
                );
            }
            FindingKind::Overlap(with) => assert!(takes_it(name) && takes_it(with)),
            FindingKind::DeadDeployment(_)
            | FindingKind::PartlyUsable(_)
            | FindingKind::Unsatisfiable
            | FindingKind::PriceMissing => assert!(takes_it(name)),
            kind => assert_eq!(*kind, FindingKind::LatencyMissing, "has no witness"),
        }
        if let FindingKind::PartlyUsable(reasons) = &finding.kind {
            let mut alone = world.clone();
            alone.config.routes.retain(|route| route.name == *name);
            let verdict = decide(&alone.config, &alone.deployments, query);
            let deployment = finding.deployment.as_ref().unwrap();
            assert!(verdict.route.is_some() && !verdict.chain.contains(deployment));
            assert!(
                verdict.exclusions.iter().any(|(_, one, reason)| one == deployment && reasons == &[*reason])
            );
        }
    });
}

/// Tries what the report says against a request that it has not seen.
fn check_request(world: &World, report: &Report, request: &Request) {
    let query = request.query();
    let verdict = decide(&world.config, &world.deployments, &query);
    for finding in report.errors.iter().chain(&report.warnings) {
        let is = |name: &Option<RouteName>| finding.route.is_some() && *name == finding.route;
        match &finding.kind {
            FindingKind::DeadDeployment(_) => {
                let mut alone = world.clone();
                alone.config.routes.retain(|route| is(&Some(route.name.clone())));
                let verdict = decide(&alone.config, &alone.deployments, &query);
                assert!(!verdict.chain.contains(finding.deployment.as_ref().unwrap()), "{finding}");
            }
            FindingKind::UnreachableDeployment(_) => {
                assert!(!verdict.chain.contains(finding.deployment.as_ref().unwrap()), "{finding}");
            }
            FindingKind::Shadowed(_) | FindingKind::Unsatisfiable => {
                assert!(!is(&verdict.route), "{finding}");
            }
            FindingKind::RefusesNothing(place) => {
                let refused = &world.config.refused[*place];
                assert!(!verdict.model_known || !matches("refused", refused, &world.config, &query));
            }
            FindingKind::TenantReachesNothing => {
                assert!(
                    finding.tenant.as_ref() != Some(&request.tenant) || verdict.route.is_none(),
                    "{finding}"
                );
            }
            _ => {}
        }
    }
}

/// What may be said of a decision: who serves, or that nobody does.
type Said = Option<(RouteName, Vec<DeploymentName>)>;

fn said(rows: &[Row], request: &Request) -> BTreeSet<Said> {
    let of_tenant = rows.iter().filter(|row| {
        row.class.tenants.contains(&request.tenant) && (request.budgeted || row.class.keys.is_empty())
    });
    of_tenant
        .map(|row| match &row.outcome {
            Outcome::Served { route, chain } => Some((route.clone(), chain.clone())),
            _ => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn i20_every_row_of_the_table_is_what_the_router_does((world, facts) in policies()) {
        let (router, table) = (world.router(), served_table(&facts, ROWS_MAX).unwrap());
        prop_assert_eq!(table.rows.len() as u128, table.classes);
        for row in &table.rows {
            check_row(&world, &router, row);
        }
    }

    #[test]
    fn i20_whatever_is_served_stands_in_the_table(
        (world, facts) in policies(),
        asked in vec(requests(), 40),
    ) {
        let (router, table) = (world.router(), served_table(&facts, ROWS_MAX).unwrap());
        for request in asked {
            let request = sent(request, &facts);
            let found = run(&router, &world, &request.query());
            // What no deployment could do for anybody has no row of its own.
            if found.is_some() {
                prop_assert!(said(&table.rows, &request).contains(&found), "{:?}", request);
            }
        }
    }

    #[test]
    fn every_verdict_holds_for_requests_that_run(
        (world, facts) in policies(),
        asked in vec(requests(), 40),
    ) {
        let (router, report) = (world.router(), analyse(&facts).unwrap());
        for finding in report.errors.iter().chain(&report.warnings) {
            prop_assert!(!finding.to_string().contains("`?`") && !finding.fix().contains("`?`"));
            if let Some(witness) = &finding.witness {
                check_witness(&world, &router, finding, witness);
            }
        }
        for request in asked {
            check_request(&world, &report, &sent(request, &facts));
        }
    }

    #[test]
    fn what_is_reached_is_not_called_dead_and_what_is_not_is((_, facts) in policies()) {
        let (report, table) = (analyse(&facts).unwrap(), served_table(&facts, ROWS_MAX).unwrap());
        let chains = table.rows.iter().filter_map(|row| match &row.outcome {
            Outcome::Served { route, chain } => Some((route, chain)),
            _ => None,
        });
        let reached: BTreeSet<&DeploymentName> = chains.clone().flat_map(|(_, chain)| chain).collect();
        let winners: BTreeSet<&RouteName> = chains.map(|(route, _)| route).collect();
        let told = |wanted: fn(&FindingKind) -> bool| {
            report.errors.iter().chain(&report.warnings).filter(move |finding| wanted(&finding.kind))
        };
        let unreached: BTreeSet<&DeploymentName> = told(|kind| matches!(kind, FindingKind::UnreachableDeployment(_)))
            .filter_map(|finding| finding.deployment.as_ref())
            .collect();
        let all: BTreeSet<&DeploymentName> = facts.deployments.iter().map(|one| &one.name).collect();
        prop_assert_eq!(&all - &reached, unreached);
        let losers: BTreeSet<&RouteName> = told(|kind| {
            matches!(kind, FindingKind::Shadowed(_) | FindingKind::Unsatisfiable)
        })
        .filter_map(|finding| finding.route.as_ref())
        .collect();
        let routes: BTreeSet<&RouteName> = facts.routing.routes.iter().map(|route| &route.name).collect();
        prop_assert_eq!(&routes - &winners, losers);
    }

    #[test]
    fn a_difference_is_what_two_routers_show(
        (old, facts) in policies(),
        change in 0_usize..8,
        asked in vec(requests(), 40),
    ) {
        // The same policy with one route less.
        let mut new = old.clone();
        prop_assume!(!new.config.routes.is_empty());
        new.config.routes.remove(change % old.config.routes.len());
        let after = PolicyFacts { routing: new.config.clone(), ..facts.clone() };
        let found = diff(&facts, &after).unwrap();
        let (before, later) = (old.router(), new.router());
        let said = |outcome: &Outcome| match outcome {
            Outcome::Served { route, chain } => Some((route.clone(), chain.clone())),
            _ => None,
        };
        let told: BTreeSet<(Said, Said)> =
            found.changes.iter().map(|change| (said(&change.old), said(&change.new))).collect();
        for change in &found.changes {
            change.witness.ask(|query| {
                assert_eq!(run(&before, &old, query), said(&change.old), "{}", change.witness);
                assert_eq!(run(&later, &new, query), said(&change.new), "{}", change.witness);
            });
        }
        for request in asked {
            let request = sent(request, &facts);
            let shown = (run(&before, &old, &request.query()), run(&later, &new, &request.query()));
            prop_assert!(shown.0 == shown.1 || told.contains(&shown), "{:?}", shown);
        }
        prop_assert!(diff(&facts, &facts).unwrap().changes.is_empty());
    }

    #[test]
    fn i13_an_analysis_is_the_same_each_time((_, facts) in policies()) {
        prop_assert_eq!(analyse(&facts).unwrap(), analyse(&facts).unwrap());
        prop_assert_eq!(served_table(&facts, 50).unwrap(), served_table(&facts, 50).unwrap());
    }

    #[test]
    fn tenants_that_reach_something_are_served((_, facts) in policies()) {
        let report = analyse(&facts).unwrap();
        let table = served_table(&facts, ROWS_MAX).unwrap();
        for tenant in &facts.tenants {
            let is_served = table.rows.iter().any(|row| {
                row.class.tenants.contains(&tenant.id) && matches!(row.outcome, Outcome::Served { .. })
            });
            let is_told = report.warnings.iter().any(|finding| {
                finding.kind == FindingKind::TenantReachesNothing && finding.tenant.as_ref() == Some(&tenant.id)
            });
            prop_assert_ne!(is_served, is_told);
            let has_route = facts.routing.routes.iter().any(|route| is_for(&route.matches, &facts.routing, &tenant.id));
            prop_assert!(has_route || is_told);
        }
    }
}
