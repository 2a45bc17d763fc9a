//! Orders of strategies, through the router.

use std::{cell::Cell, sync::Arc, time::Duration};

use gw_types::{
    CapabilitySet, Classification, Deployment, DeploymentTiming, Money, MonoTime, Pricing, SeededRandom,
    TenantId,
};

use super::StrategyState;
use crate::{
    AllAvailable, Availability, ExclusionReason, Live, OnUnavailable, RouteConfig, RouteQuery, Router,
    RoutingConfig, Selection, Standing, Strategy,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn deployment(name: &str) -> Arc<Deployment> {
    Arc::new(Deployment {
        name: name.parse().unwrap(),
        provider: "p".parse().unwrap(),
        // `d` runs another model than the rest.
        model: if name == "d" { "claude" } else { "gpt" }.parse().unwrap(),
        model_version: None,
        region: "uk".parse().unwrap(),
        classification_ceiling: Classification::Restricted,
        capabilities: CapabilitySet::EMPTY,
        context_window: None,
        max_output_tokens: None,
        pricing: Pricing::Free,
        timing: DeploymentTiming::default(),
        max_attempts: std::num::NonZeroU32::MIN,
        max_concurrency: None,
    })
}

fn route(strategy: Strategy, deployments: &[&str]) -> RouteConfig {
    RouteConfig {
        strategy,
        allow_other_models: true,
        ..RouteConfig::new(
            "r".parse().unwrap(),
            deployments.iter().map(|name| name.parse().unwrap()).collect(),
        )
    }
}

/// What a test lets a decision see.
struct Moment {
    down: Vec<(usize, u64)>,
    in_flight: [u64; 4],
    costs: [u64; 4],
    affinity: Option<u64>,
    random: SeededRandom,
}

impl Default for Moment {
    fn default() -> Self {
        Self {
            down: Vec::new(),
            in_flight: [0; 4],
            costs: [0; 4],
            affinity: None,
            random: SeededRandom::new(1),
        }
    }
}

struct Down<'a>(&'a [(usize, u64)]);

impl Availability for Down<'_> {
    fn state(&self, deployment: usize) -> Standing {
        match self.0.iter().find(|(down, _)| *down == deployment) {
            Some((_, until)) => Standing::Until(MonoTime::from_nanos(*until)),
            None => AllAvailable.state(deployment),
        }
    }
}

struct Bench {
    router: Router,
    bound: super::BoundStrategies,
}

impl Bench {
    fn new(routes: Vec<RouteConfig>) -> Self {
        Self::with_state(routes, &StrategyState::default())
    }

    fn with_state(routes: Vec<RouteConfig>, state: &StrategyState) -> Self {
        let config = RoutingConfig { routes, ..RoutingConfig::default() };
        let router = Router::new(config, &NAMES.map(deployment)).unwrap();
        let bound = state.bind(&router);
        Self { router, bound }
    }

    fn select(&self, moment: &Moment) -> Selection {
        let tenant = TenantId::new("t").unwrap();
        let query =
            RouteQuery { affinity: moment.affinity, ..RouteQuery::new("m", &tenant, Classification::Public) };
        let live = Live {
            now: MonoTime::ZERO,
            availability: &Down(&moment.down),
            in_flight: &|place| moment.in_flight[place],
            worst_case: &|place| Money::from_micros(moment.costs[place]),
            random: &moment.random,
            strategies: &self.bound,
        };
        let selection = self.router.select(&query, &live);
        assert_eq!(selection.route.is_none(), selection.chain.is_empty());
        selection
    }

    fn check(&self, moment: &Moment, expected: &[usize]) {
        assert_eq!(self.select(moment).chain.as_slice(), expected);
    }
}

#[test]
fn ordered_stays_as_written_and_cheapest_and_least_busy_sort() {
    let moment = Moment { costs: [3, 1, 3, 2], in_flight: [5, 5, 0, 9], ..Moment::default() };
    let check =
        |strategy, expected: &[usize]| Bench::new(vec![route(strategy, &NAMES)]).check(&moment, expected);
    check(Strategy::Ordered, &[0, 1, 2, 3]);
    check(Strategy::Cheapest, &[1, 3, 0, 2]);
    check(Strategy::LeastBusy, &[2, 0, 1, 3]);
    // Without a key for the ring.
    check(Strategy::Sticky, &[2, 0, 1, 3]);
}

#[test]
fn weighted_gives_each_its_weight_evenly_spread() {
    let mut weighted = route(Strategy::Weighted, &["a", "b", "c"]);
    weighted.weights = [("a".parse().unwrap(), 5)].into();
    let bench = Bench::new(vec![weighted]);
    let turns: Vec<usize> = (0..7).map(|_| bench.select(&Moment::default()).chain[0]).collect();
    assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0], "the sequence of nginx's own example");
}

#[test]
fn weight_zero_is_a_fallback_only_and_a_reload_keeps_the_turns() {
    let weights = |a, b| {
        let mut route = route(Strategy::Weighted, &["a", "b"]);
        route.weights = [("a".parse().unwrap(), a), ("b".parse().unwrap(), b)].into();
        vec![route]
    };
    let never = Bench::new(weights(1, 0));
    assert!((0..9).all(|_| never.select(&Moment::default()).chain.as_slice() == [0, 1]));
    let only = Moment { down: vec![(0, 9)], ..Moment::default() };
    never.check(&only, &[1]);
    let state = StrategyState::default();
    let first = |bench: &Bench| bench.select(&Moment::default()).chain[0];
    assert_eq!(first(&Bench::with_state(weights(1, 1), &state)), 0);
    assert_eq!(first(&Bench::with_state(weights(1, 1), &state)), 1, "it is the other one's turn");
}

#[test]
fn fastest_draws_two_and_takes_the_better_by_estimate_and_load() {
    let bench = Bench::new(vec![route(Strategy::Fastest, &["a", "b"])]);
    bench.bound.observe(0, Duration::from_millis(900), MonoTime::ZERO);
    bench.bound.observe(1, Duration::from_millis(200), MonoTime::ZERO);
    bench.check(&Moment::default(), &[1, 0]);
    bench.check(&Moment { in_flight: [0, 4, 0, 0], ..Moment::default() }, &[0, 1]);
    assert!(bench.select(&Moment::default()).draws.is_empty(), "two need no draw");

    let bench = Bench::new(vec![route(Strategy::Fastest, &NAMES)]);
    bench.bound.observe(2, Duration::from_millis(5), MonoTime::ZERO);
    let moment = Moment::default();
    let mut first = [0_u32; 4];
    for _ in 0..400 {
        let selection = bench.select(&moment);
        assert_eq!(selection.draws.len(), 2);
        let mut sorted = selection.chain.clone();
        sorted.sort_unstable();
        assert_eq!(sorted.as_slice(), [0, 1, 2, 3]);
        first[selection.chain[0]] += 1;
    }
    // The fastest wins whenever it is drawn: half of the time.
    assert!((150..=250).contains(&first[2]), "{first:?}");
}

#[test]
fn sticky_keeps_to_its_key_until_it_is_over_its_share() {
    let bench = Bench::new(vec![route(Strategy::Sticky, &NAMES)]);
    let key = |affinity| Moment { affinity: Some(affinity), ..Moment::default() };
    let home = bench.select(&key(42)).chain[0];
    assert!((0..50).all(|_| bench.select(&key(42)).chain[0] == home));
    let next = bench.select(&key(42)).chain[1];
    let mut busy = key(42);
    busy.in_flight[home] = 4;
    let chain = bench.select(&busy).chain;
    assert_eq!((chain[0], chain[1]), (next, home), "the next of the ring takes over");
    let mut down = key(42);
    down.down = vec![(home, 1)];
    assert_eq!(bench.select(&down).chain[0], next);
    let homes: std::collections::BTreeSet<usize> =
        (0..64_u64).map(|n| bench.select(&key(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).chain[0]).collect();
    assert_eq!(homes.len(), 4);
}

#[test]
fn a_strategy_asks_only_for_what_it_needs() {
    let asked = Cell::new(0);
    let bench = Bench::new(vec![route(Strategy::Ordered, &NAMES)]);
    let tenant = TenantId::new("t").unwrap();
    let random = SeededRandom::new(1);
    let live = Live {
        now: MonoTime::ZERO,
        availability: &AllAvailable,
        in_flight: &|_| {
            asked.set(asked.get() + 1);
            0
        },
        worst_case: &|_| {
            asked.set(asked.get() + 1);
            Money::ZERO
        },
        random: &random,
        strategies: &bench.bound,
    };
    let query = RouteQuery::new("m", &tenant, Classification::Public);
    assert_eq!(bench.router.select(&query, &live).chain.len(), 4);
    assert_eq!(asked.get(), 0);
}

// === availability ===

#[test]
fn what_is_not_available_is_out_and_says_so() {
    let bench = Bench::new(vec![route(Strategy::Ordered, &["a", "b"])]);
    let selection = bench.select(&Moment { down: vec![(0, 5)], ..Moment::default() });
    assert_eq!(selection.chain.as_slice(), [1]);
    assert_eq!(selection.exclusions[0].reason, ExclusionReason::Unavailable);
    assert!(!selection.last_resort);
}

#[test]
fn if_all_are_out_the_one_that_recovers_first_is_the_last_resort() {
    let bench = Bench::new(vec![route(Strategy::Cheapest, &["a", "b", "c"])]);
    let selection = bench.select(&Moment { down: vec![(0, 7), (1, 5), (2, 5)], ..Moment::default() });
    assert_eq!((selection.chain.as_slice(), selection.last_resort), (&[1][..], true));
    assert_eq!(selection.exclusions.len(), 3);
}

#[test]
fn a_route_without_anyone_available_falls_through_unless_it_fails() {
    let routes = |on_unavailable| {
        let first = RouteConfig { on_unavailable, priority: -1, ..route(Strategy::Ordered, &["a"]) };
        let second = RouteConfig { name: "s".parse().unwrap(), ..route(Strategy::Ordered, &["b"]) };
        Bench::new(vec![first, second])
    };
    let down = |places: &[(usize, u64)]| Moment { down: places.to_vec(), ..Moment::default() };
    let through = routes(OnUnavailable::FallThrough);
    through.check(&down(&[(0, 1)]), &[1]);
    assert_eq!(through.select(&down(&[(0, 1)])).route, Some(1));
    // Nobody anywhere: the one that recovers first, of all routes.
    let selection = through.select(&down(&[(0, 9), (1, 8)]));
    assert_eq!(
        (selection.route, selection.chain.as_slice(), selection.last_resort),
        (Some(1), &[1][..], true)
    );
    let fails = routes(OnUnavailable::Fail).select(&down(&[(0, 9)]));
    assert_eq!((fails.route, fails.chain.as_slice(), fails.last_resort), (Some(0), &[0][..], true));
}

// === limits of fallback ===

#[test]
fn another_model_is_no_fallback_unless_the_route_says_so() {
    let strict = |strategy, names: &[&str]| {
        Bench::new(vec![RouteConfig { allow_other_models: false, ..route(strategy, names) }])
    };
    strict(Strategy::Ordered, &["a", "d", "b"]).check(&Moment::default(), &[0, 1]);
    // Neither does an outage let the other model answer.
    let down = Moment { down: vec![(0, 5)], ..Moment::default() };
    let selection = strict(Strategy::Ordered, &["a", "d"]).select(&down);
    assert_eq!((selection.chain.as_slice(), selection.last_resort), (&[0][..], true));
    // Where every deployment may be chosen, the chosen one's family stays.
    let cheap = Moment { costs: [2, 3, 1, 1], ..Moment::default() };
    strict(Strategy::Cheapest, &["a", "d", "b"]).check(&cheap, &[3]);
    strict(Strategy::Cheapest, &["a", "b", "d"])
        .check(&Moment { costs: [1, 3, 0, 2], ..Moment::default() }, &[0, 1]);
    Bench::new(vec![route(Strategy::Cheapest, &["a", "d"])]).check(&cheap, &[3, 0]);
}

#[test]
fn families_are_what_the_policy_says() {
    let config = RoutingConfig {
        routes: vec![RouteConfig { allow_other_models: false, ..route(Strategy::Ordered, &["a", "b", "d"]) }],
        families: [
            ("a".parse().unwrap(), "one".parse().unwrap()),
            ("d".parse().unwrap(), "one".parse().unwrap()),
        ]
        .into(),
        ..RoutingConfig::default()
    };
    let router = Router::new(config, &NAMES.map(deployment)).unwrap();
    let tenant = TenantId::new("t").unwrap();
    let selection = router.candidates(&RouteQuery::new("m", &tenant, Classification::Public));
    assert_eq!(selection.chain.as_slice(), [0, 3]);
    assert_eq!(selection.exclusions[0].reason, ExclusionReason::OtherModel);
}

#[test]
fn without_fallback_the_chain_is_one_and_health_does_not_change_it() {
    let alone = |strategy| {
        Bench::new(vec![RouteConfig { allow_fallback: false, ..route(strategy, &["a", "b", "c"]) }])
    };
    let down = Moment { down: vec![(0, 5)], ..Moment::default() };
    alone(Strategy::Ordered).check(&Moment::default(), &[0]);
    let selection = alone(Strategy::Ordered).select(&down);
    assert_eq!((selection.chain.as_slice(), selection.last_resort), (&[0][..], true));
    // To choose among peers is no fallback.
    alone(Strategy::LeastBusy).check(&down, &[1]);
}
