//! A gateway of one configuration, over the scripted providers.

use std::{
    num::{NonZeroU32, NonZeroU64},
    sync::Arc,
    time::Duration,
};

use gw_cache::{CacheConfig, CachePolicy, ExactCache, HashingEmbedder, SemanticCache, SemanticConfig};
use gw_dialects::openai::ChatCodec;
use gw_exec::{
    DeploymentPolicy, Gateway, Policy, PolicyConfig, QueuePolicy, RoutePolicy, StateConfig, Target,
    TargetCredential, TenantPolicy,
};
use gw_limits::{BudgetConfig, Limits, LimitsConfig, Rate, Scope, TenantLimitsConfig, Window};
use gw_routing::{RouteConfig, RoutingConfig};
use gw_types::{
    BoundedText, Capability, CapabilitySet, Classification, Clock, Deployment, DeploymentName,
    DeploymentTiming, Money, Operation, Price, Pricing, SeededRandom, SequentialIds, TenantId, TokenCount,
};

use super::{ledger::Records, provider::Provider, script::World, stage::Stage};

/// The only model name.
pub(crate) const MODEL: &str = "m";

pub(crate) fn tenant_name(index: usize) -> TenantId {
    TenantId::new(&format!("t{index}")).unwrap()
}

pub(crate) fn deployment_name(index: usize) -> DeploymentName {
    DeploymentName::new(&format!("d{index}")).unwrap()
}

/// Builds state and policy, and brings back what was spent.
pub(crate) fn open(stage: &Arc<Stage>, world: usize, ledger: &Arc<Records>, life: u64) -> Gateway {
    let clock: Arc<dyn Clock> = Arc::new(stage.clock.clone());
    let config = &stage.script.worlds[world];
    let limits = Limits::new(limits(config), clock.now()).unwrap();
    restore(&limits, ledger, &*clock);
    let state = StateConfig {
        limits,
        exact: ExactCache::new(CacheConfig::default()),
        semantic: SemanticCache::new(SemanticConfig::default(), Arc::new(HashingEmbedder::default())),
        shared_limits: None,
        judge: None,
        embedding: None,
        spans: false,
        ledger: Arc::<Records>::clone(ledger),
        clock,
        random: Arc::new(SeededRandom::new(stage.script.seed ^ life)),
        ids: Arc::new(Ids { life, within: SequentialIds::default() }),
        codecs: vec![(Operation::Chat, Arc::new(ChatCodec))],
    };
    let gateway = Gateway::new(state, policy(stage, world));
    gateway.restore_keys(ledger.keys_since(gateway.keys_known_since()));
    gateway
}

/// Ids that no other life of the gateway gives.
#[derive(Debug)]
struct Ids {
    life: u64,
    within: SequentialIds,
}

impl gw_types::IdSource for Ids {
    fn next_id(&self) -> u128 {
        (u128::from(self.life) << 64) | self.within.next_id()
    }
}

/// Brings back what was spent in the current windows, as the composition root does.
fn restore(limits: &Limits, ledger: &Records, clock: &dyn Clock) {
    let utc = clock.utc();
    for period in limits.budgets(utc) {
        let Scope::Tenant(tenant) = &period.scope else { continue };
        let spent = ledger.look(|records| {
            let own = records.iter().filter(|record| record.tenant == *tenant);
            own.filter(|record| record.started >= period.start).map(cost).sum()
        });
        limits.restore_spend(&period.scope, period.place, spent, utc);
    }
}

/// Returns all that a record says was spent.
pub(crate) fn cost(record: &gw_types::AccountingRecord) -> Money {
    record.side_costs.iter().fold(record.cost, |sum, side| sum.saturating_add(side.cost))
}

/// Puts another configuration in force.
pub(crate) fn reload(gateway: &Gateway, stage: &Arc<Stage>, world: usize) {
    let config = limits(&stage.script.worlds[world]);
    gateway.limits().reconfigure(config, stage.clock.now()).unwrap();
    gateway.reload(policy(stage, world));
}

fn limits(world: &World) -> LimitsConfig {
    let tenant = |(index, tenant): (usize, &super::script::Tenant)| {
        let budget = tenant
            .budget
            .map(|micros| BudgetConfig { limit: Money::from_micros(micros), window: Window::Month });
        let limits = TenantLimitsConfig {
            requests_per_minute: tenant.requests,
            tokens_per_minute: tenant.tokens,
            max_concurrency: tenant.slots,
            reserved_concurrency: tenant.reserved_slots,
            budget,
        };
        (tenant_name(index), limits)
    };
    let deployments = world.deployments.iter().enumerate();
    LimitsConfig {
        tenants: world.tenants.iter().enumerate().map(tenant).collect(),
        deployments: deployments
            .map(|(index, deployment)| (deployment_name(index), deployment.slots.and_then(NonZeroU32::new)))
            .collect(),
        pool_capacity: world.pool,
    }
}

fn policy(stage: &Arc<Stage>, world: usize) -> Policy {
    let config = &stage.script.worlds[world];
    let route = || "main".parse().unwrap();
    let chain = config.chain.iter().map(|index| deployment_name(*index)).collect();
    let cache = CachePolicy { exact: true, ..CachePolicy::default() };
    let tenants = config.tenants.iter().enumerate().map(|(index, tenant)| {
        let queue = QueuePolicy { max_queue: tenant.queue, ..QueuePolicy::default() };
        (tenant_name(index), TenantPolicy { queue, ..TenantPolicy::new(Classification::Internal) })
    });
    Policy::new(PolicyConfig {
        digest: BoundedText::new("sim"),
        routing: RoutingConfig { routes: vec![RouteConfig::new(route(), chain)], ..RoutingConfig::default() },
        targets: (0..config.deployments.len()).map(|index| target(stage, world, index)).collect(),
        deployments: config
            .deployments
            .iter()
            .enumerate()
            .map(|(index, deployment)| {
                let policy = DeploymentPolicy {
                    requests_per_second: deployment.pace.and_then(pace),
                    in_flight_tokens: deployment.tokens_in_flight.map(TokenCount::new),
                    ..DeploymentPolicy::default()
                };
                (deployment_name(index), policy)
            })
            .collect(),
        routes: vec![(
            route(),
            RoutePolicy {
                cache: config.cache.then_some(cache),
                max_attempts: NonZeroU32::new(config.attempts).unwrap(),
                default_max_output_tokens: Some(TokenCount::new(100)),
                hedge: config.hedge,
                ..RoutePolicy::default()
            },
        )],
        tenants: tenants.collect(),
        default_deadline: Duration::from_millis(config.default_deadline_ms.into()),
        max_deadline: Duration::from_secs(600),
    })
    .unwrap()
}

fn pace(calls_a_second: u32) -> Option<Rate> {
    NonZeroU64::new(u64::from(calls_a_second) * 1_000).map(Rate::milli_per_second)
}

/// Returns the facts of a deployment: an input token costs 1 micro-USD, an output token 2.
fn target(stage: &Arc<Stage>, world: usize, index: usize) -> Target {
    let config = &stage.script.worlds[world].deployments[index];
    let millis = |millis: u32| Duration::from_millis(millis.into());
    let deployment = Deployment {
        name: deployment_name(index),
        provider: "p".parse().unwrap(),
        model: MODEL.parse().unwrap(),
        model_version: None,
        region: "here".parse().unwrap(),
        classification_ceiling: Classification::Restricted,
        capabilities: Capability::ALL.into_iter().collect::<CapabilitySet>(),
        context_window: Some(TokenCount::new(10_000 * (index as u64 + 1))),
        max_output_tokens: Some(TokenCount::new(200)),
        pricing: pricing(),
        timing: DeploymentTiming {
            expected_latency: millis(config.expected_ms),
            min_attempt: millis(config.min_ms),
            attempt_timeout: millis(config.timeout_ms),
            stream_idle: millis(config.idle_ms),
        },
        max_attempts: NonZeroU32::new(config.attempts).unwrap(),
        max_concurrency: config.slots.and_then(NonZeroU32::new),
    };
    let provider =
        |credential| Arc::new(Provider { stage: Arc::clone(stage), deployment: index, credential });
    let credentials = (0..config.credentials).map(|credential| TargetCredential {
        name: format!("k{credential}").parse().unwrap(),
        adapter: provider(credential),
    });
    let credentials = credentials.collect();
    Target { credentials, ..Target::new(Arc::new(deployment), provider(0)) }
}

pub(crate) fn pricing() -> Pricing {
    Pricing::PerToken(Box::new(Price::new(1_000_000, 2_000_000)))
}
