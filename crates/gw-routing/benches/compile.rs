//! How long it takes to make a router of 200 routes over 100 deployments, and to analyse it for 50 tenants.

#![expect(clippy::unwrap_used, reason = "a bench's own names are valid")]

use std::{num::NonZeroU32, sync::Arc};

use divan::Bencher;
use gw_routing::{
    RouteConfig, RouteMatch, Router, RoutingConfig, TenantGroup,
    analysis::{PolicyFacts, TenantFacts, analyse, diff, served_table},
};
use gw_types::{
    Capability, CapabilitySet, Classification, Deployment, DeploymentTiming, Price, Pricing, TokenCount,
};

const DEPLOYMENTS: usize = 100;
const ROUTES: usize = 200;
const TENANTS: usize = 50;
const REGIONS: [&str; 4] = ["uk-south", "uk-west", "west-europe", "us-east"];

fn main() {
    divan::main();
}

fn deployment(n: usize) -> Arc<Deployment> {
    let chat = CapabilitySet::from_iter([Capability::Chat, Capability::Streaming]);
    let further = [Capability::Tools, Capability::JsonSchema, Capability::Vision];
    Arc::new(Deployment {
        name: format!("deployment-{n:03}").parse().unwrap(),
        provider: "azure-uk".parse().unwrap(),
        model: "gpt-4.1".parse().unwrap(),
        model_version: None,
        region: REGIONS[n % 4].parse().unwrap(),
        classification_ceiling: Classification::ALL[1 + n % 3],
        capabilities: further.into_iter().take(n % 4).fold(chat, CapabilitySet::with),
        context_window: Some(TokenCount::new([32_000, 128_000, 200_000][n % 3])),
        max_output_tokens: Some(TokenCount::new([8_192, 16_384][n % 2])),
        pricing: if n.is_multiple_of(10) {
            Pricing::Free
        } else {
            Pricing::PerToken(Box::new(Price::new(2_000_000, 8_000_000)))
        },
        timing: DeploymentTiming::default(),
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    })
}

/// Forty models with five routes each: one for a group of tenants, one for a task class, one for restricted data, one
/// for long prompts, and one for the rest.
fn route(n: usize) -> RouteConfig {
    let (model, kind) = (n / 5, n % 5);
    let mut matches =
        RouteMatch { models: vec![format!("model-{model:02}").parse().unwrap()], ..RouteMatch::default() };
    match kind {
        0 => matches.tenant_groups = vec![group(model % 5)],
        1 => matches.task_classes = vec!["reasoning".parse().unwrap()],
        2 => matches.classifications = vec![Classification::Restricted],
        3 => matches.input_tokens_at_least = Some(TokenCount::new(100_000)),
        _ => {
            matches.models = vec![format!("model-{model:02}*").parse().unwrap()];
        }
    }
    let chain = (0..4).map(|k| format!("deployment-{:03}", (7 * n + k) % DEPLOYMENTS).parse().unwrap());
    RouteConfig {
        priority: i32::try_from(kind).unwrap(),
        matches,
        ..RouteConfig::new(format!("route-{n:03}").parse().unwrap(), chain.collect())
    }
}

fn group(n: usize) -> TenantGroup {
    format!("group-{n}").parse().unwrap()
}

fn tenant(n: usize) -> TenantFacts {
    TenantFacts {
        residency: n.is_multiple_of(3).then(|| "onshore".parse().unwrap()),
        budgeted: n.is_multiple_of(2),
        budgeted_keys: Default::default(),
        ..TenantFacts::new(format!("tenant-{n:02}").parse().unwrap(), Classification::ALL[n % 2])
    }
}

fn policy() -> PolicyFacts {
    let regions = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let members =
        |n: usize| (group(n), (0..TENANTS).filter(|tenant| tenant % 5 == n).map(|n| tenant(n).id).collect());
    PolicyFacts {
        routing: RoutingConfig {
            routes: (0..ROUTES).map(route).collect(),
            residency: [
                ("onshore".parse().unwrap(), regions(&REGIONS[..2])),
                ("eu".parse().unwrap(), regions(&REGIONS[..3])),
            ]
            .into(),
            tenant_groups: (0..5).map(members).collect(),
            ..RoutingConfig::default()
        },
        deployments: (0..DEPLOYMENTS).map(deployment).collect(),
        tenants: (0..TENANTS).map(tenant).collect(),
        ..PolicyFacts::default()
    }
}

#[divan::bench]
fn compile(bencher: Bencher<'_, '_>) {
    let policy = policy();
    bencher.bench_local(|| Router::new(policy.routing.clone(), &policy.deployments).unwrap());
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn analysis(bencher: Bencher<'_, '_>) {
    let policy = policy();
    let classes = analyse(&policy).unwrap().classes;
    assert!((100_000..1_000_000).contains(&classes), "{classes}");
    bencher.bench_local(|| analyse(&policy).unwrap());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn table_of_a_thousand_rows(bencher: Bencher<'_, '_>) {
    let policy = policy();
    bencher.bench_local(|| served_table(&policy, 1_000).unwrap());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn difference_of_one_route(bencher: Bencher<'_, '_>) {
    let (old, mut new) = (policy(), policy());
    new.routing.routes.remove(7);
    bencher.bench_local(|| diff(&old, &new).unwrap());
}
