//! Invariants over random policies and requests.

use std::collections::BTreeSet;

use gw_routing::{Router, RoutingError};
use gw_types::{DeploymentName, ModelName, TenantId};
use proptest::{collection::vec, prelude::*};

use crate::{
    oracle::{decide, is_for, reasons},
    world::{requests, worlds},
};

/// Policies tried by each property; each meets several requests.
const CASES: u32 = 500;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn i03_router_equals_the_oracle(world in worlds(), asked in vec(requests(), 1..12)) {
        let router = world.router();
        for request in &asked {
            let query = request.query();
            let decided = world.named(&router, &router.candidates(&query));
            // The router stops at the route that wins, before which some route must have known the name.
            prop_assert_eq!(decided, decide(&world.config, &world.deployments, &query));
        }
    }

    #[test]
    fn i03_no_candidate_is_inadmissible(world in worlds(), asked in vec(requests(), 1..12)) {
        let router = world.router();
        for request in &asked {
            let query = request.query();
            let selection = router.candidates(&query);
            prop_assert_eq!(selection.route.is_none(), selection.chain.is_empty());
            for place in &selection.chain {
                let facts = reasons(&world.deployments[*place], &query, &world.config.residency);
                prop_assert!(facts.is_empty(), "{:?}", facts);
            }
        }
    }

    #[test]
    fn i03_the_order_of_writing_changes_nothing(world in worlds(), request in requests(), turn in 0_usize..8) {
        let mut turned = world.clone();
        let count = turned.config.routes.len().max(1);
        turned.config.routes.rotate_left(turn % count);
        turned.deployments.reverse();
        let (router, other) = (world.router(), turned.router());
        let query = request.query();
        prop_assert_eq!(
            world.named(&router, &router.candidates(&query)),
            turned.named(&other, &other.candidates(&query))
        );
    }

    #[test]
    fn i02_every_planted_name_is_found(
        world in worlds(),
        plants in vec((0_usize..8, "[x-z]{1,3}"), 1..6),
    ) {
        let mut planted = BTreeSet::new();
        let mut broken = world.clone();
        let count = broken.config.routes.len();
        prop_assume!(count > 0);
        for (at, name) in plants {
            let route = &mut broken.config.routes[at % count];
            let name: DeploymentName = name.parse().unwrap();
            if planted.insert((route.name.clone(), name.clone())) {
                route.deployments.push(name);
            }
        }
        let faults = Router::new(broken.config.clone(), &broken.arcs()).unwrap_err();
        let found: Vec<_> = faults
            .iter()
            .filter_map(|fault| match fault {
                RoutingError::UnknownDeployment { route, deployment, known } => {
                    assert_eq!(known.len(), world.deployments.len());
                    Some((route.clone(), deployment.clone()))
                }
                _ => None,
            })
            .collect();
        prop_assert_eq!(faults.len(), found.len());
        prop_assert_eq!(found.len(), planted.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), planted);
    }

    #[test]
    fn listed_models_are_known(world in worlds(), tenant in "[a-d]") {
        let (router, tenant) = (world.router(), TenantId::new(&tenant).unwrap());
        let listed = router.models(&tenant);
        prop_assert!(listed.is_sorted_by(|a, b| a < b));
        let known = |model: &ModelName| router.knows_model(model.as_str(), &tenant);
        prop_assert!(listed.iter().all(known));
        let offered: BTreeSet<&str> = world
            .config
            .routes
            .iter()
            .filter(|route| is_for(&route.matches, &world.config, &tenant))
            .flat_map(|route| &route.matches.models)
            .map(|pattern| pattern.as_str())
            .filter(|text| !text.ends_with('*'))
            .collect();
        prop_assert_eq!(listed.iter().map(ModelName::as_str).collect::<Vec<_>>(), Vec::from_iter(offered));
    }
}
