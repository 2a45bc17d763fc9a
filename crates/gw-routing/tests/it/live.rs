//! Decisions of a moment: every strategy, health and load at random, against rules stated without thought of speed.

#![expect(clippy::unwrap_used, reason = "a test's own names are valid")]

use std::collections::BTreeMap;

use gw_routing::{
    Availability, ExclusionReason, Live, OnUnavailable, RouteConfig, RoutingConfig, Selection, Standing,
    Strategy as Order, StrategyState,
};
use gw_types::{DeploymentName, Money, MonoTime, SeededRandom};
use proptest::{collection::vec, option, prelude::*};

use crate::{
    oracle::{Verdict, decide},
    world::{Request, World, requests, worlds},
};

/// Health, load and cost of up to six deployments.
#[derive(Clone, Debug)]
struct Moment {
    down: Vec<Option<u64>>,
    in_flight: Vec<u64>,
    costs: Vec<u64>,
}

impl Availability for Moment {
    fn state(&self, deployment: usize) -> Standing {
        self.down[deployment].map_or(Standing::Available, |at| Standing::Until(MonoTime::from_nanos(at)))
    }
}

fn moments() -> impl Strategy<Value = Moment> {
    (vec(option::of(0_u64..4), 6), vec(0_u64..4, 6), vec(0_u64..4, 6))
        .prop_map(|(down, in_flight, costs)| Moment { down, in_flight, costs })
}

/// Decides over the requests in turn, with fresh memory and a fresh source of chance.
fn run(world: &World, asked: &[Request], moment: &Moment) -> Vec<Selection> {
    let (router, random) = (world.router(), SeededRandom::new(7));
    let strategies = StrategyState::default().bind(&router);
    let live = Live {
        now: MonoTime::ZERO,
        availability: moment,
        in_flight: &|place| moment.in_flight[place],
        worst_case: &|place| Money::from_micros(moment.costs[place]),
        random: &random,
        strategies: &strategies,
    };
    asked.iter().map(|request| router.select(&request.query(), &live)).collect()
}

/// The routes that the decision meets, with what each has to offer whatever the moment.
fn offers(world: &World, request: &Request) -> Vec<(RouteConfig, Vec<DeploymentName>)> {
    let mut config = world.config.clone();
    let mut offers = Vec::new();
    loop {
        let Verdict { route, chain, .. } = decide(&config, &world.deployments, &request.query());
        let Some(name) = route else { return offers };
        let at = config.routes.iter().position(|one| one.name == name).unwrap();
        let route = config.routes.remove(at);
        let fails = route.on_unavailable == OnUnavailable::Fail;
        offers.push((route, chain));
        if fails {
            return offers;
        }
    }
}

fn place(name: &DeploymentName) -> usize {
    name.as_str()[1..].parse().unwrap()
}

fn check(world: &World, request: &Request, moment: &Moment, selection: &Selection) {
    let offers = offers(world, request);
    let up = |name: &DeploymentName| moment.down[place(name)].is_none();
    let Some((route, chain)) = offers.iter().find(|(_, chain)| chain.iter().any(up)) else {
        let all = offers.iter().flat_map(|(route, chain)| chain.iter().map(move |one| (route, place(one))));
        let first_back = all.min_by_key(|(_, place)| moment.down[*place]);
        assert_eq!(selection.chain.first().copied(), first_back.map(|(_, place)| place));
        assert_eq!(selection.last_resort, first_back.is_some());
        assert!(selection.chain.len() < 2);
        return;
    };
    assert!(!selection.last_resort);
    let available: Vec<usize> = chain.iter().filter(|name| up(name)).map(place).collect();
    assert!(selection.chain.iter().all(|one| available.contains(one)), "{selection:?} {available:?}");
    assert_eq!(
        selection.chain.iter().collect::<std::collections::BTreeSet<_>>().len(),
        selection.chain.len()
    );
    let mut expected = available.clone();
    match route.strategy {
        Order::Cheapest => expected.sort_by_key(|place| moment.costs[*place]),
        Order::LeastBusy => expected.sort_by_key(|place| moment.in_flight[*place]),
        Order::Ordered | Order::Weighted | Order::Fastest | Order::Sticky => {}
    }
    let decided_by_oracle = matches!(route.strategy, Order::Ordered | Order::Cheapest | Order::LeastBusy);
    if decided_by_oracle {
        limit(&world.config, world, route, &mut expected);
        assert_eq!(selection.chain.as_slice(), expected, "{:?}", route.strategy);
    } else {
        // The choice is free; what follows it is not.
        let first = selection.chain[0];
        expected.retain(|one| *one != first);
        expected.insert(0, first);
        limit(&world.config, world, route, &mut expected);
        expected.sort_unstable();
        let mut found = selection.chain.to_vec();
        found.sort_unstable();
        assert_eq!(found, expected, "{:?}", route.strategy);
    }
    let named_out = |one: &&usize| {
        selection
            .exclusions
            .iter()
            .any(|out| out.deployment == **one && out.reason == ExclusionReason::Unavailable)
    };
    let down: Vec<usize> = chain.iter().filter(|name| !up(name)).map(place).collect();
    assert!(down.iter().all(|one| named_out(&one)));
}

/// Applies what the route says of fallbacks.
fn limit(config: &RoutingConfig, world: &World, route: &RouteConfig, chain: &mut Vec<usize>) {
    assert!(config.families.is_empty());
    if !route.allow_fallback {
        chain.truncate(1);
    }
    if !route.allow_other_models {
        let family = |place: usize| world.deployments[place].model.clone();
        let home = family(chain[0]);
        chain.retain(|one| family(*one) == home);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn i03_a_moment_only_removes_and_orders(
        world in worlds(),
        asked in vec(requests(), 1..8),
        moment in moments(),
    ) {
        for (request, selection) in asked.iter().zip(run(&world, &asked, &moment)) {
            check(&world, request, &moment, &selection);
        }
    }

    #[test]
    fn i13_equal_inputs_give_equal_decisions(
        world in worlds(),
        asked in vec(requests(), 1..8),
        moment in moments(),
    ) {
        prop_assert_eq!(run(&world, &asked, &moment), run(&world, &asked, &moment));
    }

    #[test]
    fn an_explanation_is_the_decision(world in worlds(), request in requests(), moment in moments()) {
        let (router, random) = (world.router(), SeededRandom::new(7));
        let strategies = StrategyState::default().bind(&router);
        let live = Live {
            now: MonoTime::ZERO,
            availability: &moment,
            in_flight: &|place| moment.in_flight[place],
            worst_case: &|place| Money::from_micros(moment.costs[place]),
            random: &random,
            strategies: &strategies,
        };
        let explained = router.explain(&request.query(), Some(&live));
        let again = run(&world, std::slice::from_ref(&request), &moment).remove(0);
        prop_assert_eq!(&explained.selection, &again);
        let told: BTreeMap<usize, usize> = explained
            .steps
            .iter()
            .flat_map(|step| step.outcome.deployments())
            .filter_map(|step| match step.verdict {
                gw_routing::DeploymentVerdict::InChain(at) => Some((at, place(&step.deployment))),
                _ => None,
            })
            .collect();
        prop_assert_eq!(told.into_values().collect::<Vec<_>>(), again.chain.to_vec());
    }
}
