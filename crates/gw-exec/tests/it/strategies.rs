//! Step 4 with a strategy: who is the primary, and that the record says how chance decided.

use gw_routing::{RouteConfig, Strategy};

use crate::support::{MockProvider, Plan, answer, deployment, provider, request};

fn anything() -> MockProvider {
    let mut provider = MockProvider::new();
    provider.expect_prepare().returning(|request, _, _| Ok(crate::support::prepared(request)));
    provider.expect_call().returning(|_| Ok(answer()));
    provider
}

/// Asks so often and returns the primaries by name.
async fn primaries(plan: Plan, requests: usize) -> Vec<String> {
    let house = plan.build();
    for _ in 0..requests {
        house.ask(request()).await.unwrap();
    }
    house.records().iter().map(|record| record.primary.as_ref().unwrap().to_string()).collect()
}

fn two(shape: fn(&mut RouteConfig)) -> Plan {
    let mut plan = Plan::new(vec![(deployment("a"), anything()), (deployment("b"), anything())]);
    plan.shape = shape;
    plan
}

#[tokio::test(start_paused = true)]
async fn weighted_shares_follow_the_weights() {
    let plan = two(|route| {
        route.strategy = Strategy::Weighted;
        route.weights = [("a".parse().unwrap(), 3), ("b".parse().unwrap(), 1)].into_iter().collect();
    });
    let primaries = primaries(plan, 8).await;
    assert_eq!(primaries.iter().filter(|name| *name == "a").count(), 6);
}

#[tokio::test(start_paused = true)]
async fn cheapest_goes_by_what_the_request_can_cost() {
    let mut cheap = deployment("b");
    cheap.pricing = gw_types::Pricing::PerToken(Box::new(gw_types::Price::new(1, 1)));
    let mut plan =
        Plan::new(vec![(deployment("a"), crate::support::never()), (cheap, provider(1, || Ok(answer())))]);
    plan.shape = |route| route.strategy = Strategy::Cheapest;
    assert_eq!(primaries(plan, 1).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn sticky_keeps_a_conversation_at_one_deployment() {
    let primaries = primaries(two(|route| route.strategy = Strategy::Sticky), 6).await;
    assert!(primaries.iter().all(|name| *name == primaries[0]));
}

#[tokio::test(start_paused = true)]
async fn fastest_draws_are_in_the_record() {
    // Of two the choice needs no chance; of three it compares two that chance names.
    let mut plan = two(|route| route.strategy = Strategy::Fastest);
    plan.targets.push((deployment("c"), anything()));
    let house = plan.build();
    house.ask(request()).await.unwrap();
    assert!(!house.only_record().decision.draws.is_empty());
}
