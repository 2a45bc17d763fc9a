//! How long a decision among 100 deployments and 200 routes takes, and what it allocates.

#![expect(clippy::unwrap_used, reason = "a bench's own names are valid")]

use std::{num::NonZeroU32, sync::Arc};

use divan::{AllocProfiler, Bencher, black_box, counter::ItemsCount};
use gw_routing::{
    AllAvailable, Live, RouteConfig, RouteMatch, RouteQuery, Router, RoutingConfig, Strategy, StrategyState,
};
use gw_types::{
    Capability, CapabilitySet, Classification, Deployment, DeploymentName, DeploymentTiming, Money, MonoTime,
    Price, Pricing, Residency, SeededRandom, TenantId, TokenCount,
};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const DEPLOYMENTS: usize = 100;
const ROUTES: usize = 200;

fn main() {
    divan::main();
}

fn deployment(n: usize) -> Arc<Deployment> {
    Arc::new(Deployment {
        name: format!("deployment-{n:03}").parse().unwrap(),
        provider: "azure-uk".parse().unwrap(),
        model: "gpt-4.1".parse().unwrap(),
        model_version: None,
        region: if n.is_multiple_of(2) { "uk-south" } else { "us-east" }.parse().unwrap(),
        classification_ceiling: Classification::Confidential,
        capabilities: CapabilitySet::from_iter([Capability::Chat, Capability::Streaming]),
        context_window: Some(TokenCount::new(128_000)),
        max_output_tokens: Some(TokenCount::new(16_384)),
        pricing: Pricing::PerToken(Box::new(Price::new(2_000_000, 8_000_000))),
        timing: DeploymentTiming::default(),
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    })
}

fn router(route: impl Fn(usize) -> RouteConfig) -> Router {
    let deployments: Vec<_> = (0..DEPLOYMENTS).map(deployment).collect();
    let onshore = ("onshore".parse().unwrap(), ["uk-south".parse().unwrap()].into());
    let config = RoutingConfig {
        routes: (0..ROUTES).map(route).collect(),
        residency: [onshore].into(),
        ..RoutingConfig::default()
    };
    Router::new(config, &deployments).unwrap()
}

fn route(n: usize, matches: RouteMatch, deployments: Vec<DeploymentName>) -> RouteConfig {
    RouteConfig { matches, ..RouteConfig::new(format!("route-{n:03}").parse().unwrap(), deployments) }
}

fn four(n: usize) -> Vec<DeploymentName> {
    (0..4).map(|k| format!("deployment-{:03}", (4 * n + k) % DEPLOYMENTS).parse().unwrap()).collect()
}

fn models(pattern: &str) -> RouteMatch {
    RouteMatch { models: vec![pattern.parse().unwrap()], ..RouteMatch::default() }
}

fn run(bencher: Bencher<'_, '_>, router: &Router, model: &str, groups: &[Residency], expected: usize) {
    let tenant = TenantId::new("tenant-199").unwrap();
    let query = RouteQuery {
        residency: groups,
        needs: CapabilitySet::EMPTY.with(Capability::Chat),
        input_tokens_at_least: TokenCount::new(1_000),
        output_tokens: Some(TokenCount::new(1_000)),
        budgeted: true,
        ..RouteQuery::new(model, &tenant, Classification::Internal)
    };
    assert_eq!(router.candidates(&query).chain.len(), expected);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| router.candidates(black_box(&query)));
}

/// Each route lists a model of its own; the last one is asked for.
#[divan::bench]
fn by_exact_name(bencher: Bencher<'_, '_>) {
    let router = router(|n| route(n, models(&format!("model-{n:03}")), four(n)));
    run(bencher, &router, "model-199", &[], 4);
}

/// Every route has a wildcard; only the last one fits.
#[divan::bench]
fn by_wildcard(bencher: Bencher<'_, '_>) {
    let router = router(|n| route(n, models(&format!("model-{n:03}*")), four(n)));
    run(bencher, &router, "model-199-large", &[], 4);
}

/// Every route knows the model, each for a tenant of its own; the last one's tenant asks.
#[divan::bench]
fn by_tenant(bencher: Bencher<'_, '_>) {
    let router = router(|n| {
        let tenants = vec![format!("tenant-{n:03}").parse().unwrap()];
        route(n, RouteMatch { tenants, ..models("model") }, four(n))
    });
    run(bencher, &router, "model", &[], 4);
}

/// Every route knows the model and the tenant, each for a task class of its own; the last one's is asked for.
#[divan::bench]
fn by_task_class(bencher: Bencher<'_, '_>) {
    let router = router(|n| {
        let task_classes =
            if n + 1 == ROUTES { Vec::new() } else { vec![format!("task-{n}").parse().unwrap()] };
        route(n, RouteMatch { task_classes, ..models("model") }, four(n))
    });
    run(bencher, &router, "model", &[], 4);
}

/// Every route knows the model, each for a value of metadata of its own; the last one's is asked for.
#[divan::bench]
fn by_metadata(bencher: Bencher<'_, '_>) {
    let router = router(|n| {
        let metadata = [("team".to_owned(), vec![format!("team-{n:03}")])].into();
        route(n, RouteMatch { metadata, ..models("model") }, four(n))
    });
    let tenant = TenantId::new("tenant").unwrap();
    let metadata = [("team", "team-199")];
    let query =
        RouteQuery { metadata: &metadata, ..RouteQuery::new("model", &tenant, Classification::Internal) };
    assert_eq!(router.candidates(&query).chain.len(), 4);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| router.candidates(black_box(&query)));
}

/// Each strategy over four deployments that are all available.
#[divan::bench(args = Strategy::ALL.map(Strategy::as_str))]
fn by_strategy(bencher: Bencher<'_, '_>, name: &str) {
    let strategy = Strategy::ALL.into_iter().find(|one| one.as_str() == name).unwrap();
    let router = router(|n| RouteConfig { strategy, ..route(n, models(&format!("model-{n:03}")), four(n)) });
    let (strategies, random) = (StrategyState::default().bind(&router), SeededRandom::new(1));
    let live = Live {
        now: MonoTime::ZERO,
        availability: &AllAvailable,
        in_flight: &|place| place as u64,
        worst_case: &|place| Money::from_micros(place as u64),
        random: &random,
        strategies: &strategies,
    };
    let tenant = TenantId::new("tenant").unwrap();
    let query =
        RouteQuery { affinity: Some(7), ..RouteQuery::new("model-199", &tenant, Classification::Public) };
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| router.select(black_box(&query), &live));
}

/// Each route offers every deployment, half of which the facts remove: the chain and the exclusions are allocated.
#[divan::bench]
fn half_excluded(bencher: Bencher<'_, '_>) {
    let all: Vec<DeploymentName> = (0..DEPLOYMENTS).map(|n| deployment(n).name.clone()).collect();
    let router = router(|n| route(n, models(&format!("model-{n:03}")), all.clone()));
    run(bencher, &router, "model-199", &["onshore".parse().unwrap()], DEPLOYMENTS / 2);
}

/// No route knows the model.
#[divan::bench]
fn unknown_model(bencher: Bencher<'_, '_>) {
    let router = router(|n| route(n, models(&format!("model-{n:03}")), four(n)));
    run(bencher, &router, "model-200", &[], 0);
}
