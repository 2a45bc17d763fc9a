//! The books after everything that can go wrong has gone wrong at random: seeded, in virtual time.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, future::join_all};
use gw_exec::{DeploymentPolicy, QueuePolicy, StreamBody, Target};
use gw_limits::{
    BudgetEstimate, OrganisationConfig, QuotaConfig, QuotaWindow, Rate, ScopeLimitsConfig, ScopesConfig,
    Subject, TenantLimitsConfig, TenantScopeConfig, Window, Zone,
};
use gw_types::{
    AccountingRecord, Adapter, Answer, AnswerFacts, AttemptPlan, CompleteAnswer, Deployment, ErrorKind as K,
    GatewayError, Money, NormalizedRequest, Prepared, Random, SeededRandom, StreamAnswer, TenantId,
    TokenCount, Usage,
};

use crate::support::{
    House, Plan, caller, content, deployment, other, prepared, request, stop, terminal, used,
};

const LIMIT: u64 = 30_000;

/// A provider that fails, hangs, overruns its bound, reports nonsense and breaks off, by chance.
#[derive(Debug)]
struct Wild(Arc<SeededRandom>);

impl Wild {
    fn usage(&self, most: u64) -> Option<Usage> {
        let output = TokenCount::new(self.0.below(most));
        let usage = Usage { input: TokenCount::new(10 + self.0.below(20)), output, ..Usage::default() };
        match self.0.below(10) {
            0 => None,
            1 => Some(Usage { input: TokenCount::new(u64::MAX), ..usage }),
            _ => Some(usage),
        }
    }

    fn stream(&self) -> Answer {
        let mut items: Vec<_> = (0..self.0.below(200)).map(|_| Ok(content("word"))).collect();
        match self.0.below(4) {
            0 => items.push(Err(GatewayError::new(K::Transport, "scripted"))),
            1 => {}
            _ => items.extend([Ok(stop()), Ok(used(self.usage(100).unwrap_or_default())), Ok(terminal())]),
        }
        let items = futures_util::stream::iter(items).then(|item| async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            item
        });
        Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: None })
    }
}

#[async_trait]
impl Adapter for Wild {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _: &Deployment,
        _: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        match self.0.below(30) {
            0 => Err(GatewayError::new(K::TranslationLoss, "scripted")),
            _ => Ok(prepared(request)),
        }
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        tokio::time::sleep(Duration::from_millis(self.0.below(50))).await;
        match self.0.below(12) {
            0 => return Err(GatewayError::new(K::ProviderUnavailable, "scripted")),
            1 => return Err(GatewayError::new(K::Transport, "scripted").ambiguous()),
            2 => std::future::pending().await,
            _ => {}
        }
        if prepared.stream {
            return Ok(self.stream());
        }
        let facts = AnswerFacts { usage: self.usage(200), content_bytes: 40, ..AnswerFacts::default() };
        Ok(Answer::Complete(CompleteAnswer { raw: Bytes::new(), facts, upstream_request_id: None }))
    }
}

fn budget(micros: u64, estimate: BudgetEstimate) -> QuotaConfig {
    let window = QuotaWindow::Calendar { window: Window::Day, zone: Zone::UTC };
    QuotaConfig { limit: Money::from_micros(micros), window, estimate }
}

fn house(random: &Arc<SeededRandom>) -> House {
    let firm: TenantId = "firm".parse().unwrap();
    let mut plan = Plan::new(Vec::new());
    let below = |budgets| TenantScopeConfig { parent: Some(firm.clone()), budgets };
    plan.scopes = ScopesConfig {
        tenants: vec![
            (caller().tenant, below(vec![budget(LIMIT, BudgetEstimate::Calibrated)])),
            (other().tenant, below(vec![budget(LIMIT, BudgetEstimate::Bound)])),
        ],
        organisations: vec![(
            firm,
            OrganisationConfig {
                parent: None,
                limits: ScopeLimitsConfig {
                    tokens_per_minute: Some(1_000_000),
                    budgets: vec![budget(2 * LIMIT, BudgetEstimate::Bound)],
                    ..ScopeLimitsConfig::default()
                },
            },
        )],
        deployments: vec![(
            "up1".parse().unwrap(),
            ScopeLimitsConfig {
                requests_per_minute: Some(2_000),
                budgets: vec![budget(LIMIT, BudgetEstimate::Calibrated)],
                ..ScopeLimitsConfig::default()
            },
        )],
        ..ScopesConfig::default()
    };
    let limits = TenantLimitsConfig { max_concurrency: Some(6), ..TenantLimitsConfig::default() };
    (plan.limits, plan.other, plan.pool_capacity) = (limits.clone(), limits, 8);
    plan.tenant.queue = QueuePolicy { max_queue: 8, ..QueuePolicy::default() };
    plan.other_policy.queue = plan.tenant.queue;
    let pace = Rate::milli_per_second(std::num::NonZeroU64::new(500_000).unwrap());
    plan.deployments = vec![
        ("up1".parse().unwrap(), DeploymentPolicy { requests_per_second: Some(pace), ..Default::default() }),
        (
            "up2".parse().unwrap(),
            DeploymentPolicy { in_flight_tokens: Some(TokenCount::new(400)), ..Default::default() },
        ),
    ];
    let target = |name: &str| {
        let mut up = deployment(name);
        up.max_attempts = NonZeroU32::new(2).unwrap();
        up.max_concurrency = NonZeroU32::new(5);
        up.timing.attempt_timeout = Duration::from_millis(300);
        up.timing.expected_latency = Duration::from_millis(20);
        up.timing.min_attempt = Duration::from_millis(5);
        Target::new(Arc::new(up), Arc::new(Wild(Arc::clone(random))))
    };
    plan.build_with(vec![target("up1"), target("up2")])
}

/// One client: asks, reads some, and goes away when it likes.
async fn client(house: &House, random: &SeededRandom) {
    let identity = if random.below(2) == 0 { caller() } else { other() };
    let mut asked = request();
    asked.facts.stream = random.below(2) == 0;
    asked.context.side_effecting = random.below(8) == 0;
    asked.facts.output = asked.facts.output.filter(|_| random.below(4) > 0);
    let patience = Duration::from_millis(if random.below(3) == 0 { random.below(60) } else { 60_000 });
    let read = async {
        if !asked.facts.stream {
            return drop(house.ask_as(&identity, asked).await);
        }
        let admitted = house.gateway.admit(&identity).unwrap();
        let Ok(reply) = house.gateway.stream(admitted, asked).await else { return };
        let StreamBody::Relay(mut relay) = reply.body else { panic!("no cache here") };
        while relay.next().await.is_some() {}
    };
    // Whether it was heard to the end or went away does not matter here.
    let _heard = tokio::time::timeout(patience, read).await;
}

fn sums(records: &[AccountingRecord], of: impl Fn(&AccountingRecord) -> bool) -> (Money, Money) {
    let side = |record: &AccountingRecord| record.side_costs.iter().map(|side| side.cost).sum::<Money>();
    let records: Vec<_> = records.iter().filter(|record| of(record)).collect();
    let spent = records.iter().map(|record| record.cost.saturating_add(side(record))).sum();
    (spent, records.iter().map(|record| record.overrun).sum())
}

async fn run(seed: u64) -> Vec<AccountingRecord> {
    let random = Arc::new(SeededRandom::new(seed));
    let house = house(&random);
    for _ in 0..12 {
        join_all((0..20).map(|_| client(&house, &random))).await;
        let records = house.records();
        house.holds_nothing();
        for tenant in [caller().tenant, other().tenant] {
            let (spent, overrun) = sums(&records, |record| record.tenant == tenant);
            let scopes = house.gateway.scope_snapshots(&tenant);
            let own = &scopes.iter().find(|scope| scope.scope.is_tenant()).unwrap().budgets[0];
            assert_eq!(own.spent, spent, "seed {seed}, {tenant}");
            assert!(spent <= own.limit.saturating_add(overrun), "seed {seed}, {tenant}");
        }
        let (spent, overrun) = sums(&records, |_| true);
        let firm = house.gateway.scope_snapshots(&caller().tenant);
        let firm = firm.iter().find(|scope| scope.scope.to_string() == "organisation:firm").unwrap();
        assert_eq!(firm.budgets[0].spent, spent, "seed {seed}");
        assert!(spent <= firm.budgets[0].limit.saturating_add(overrun), "seed {seed}");
        let paid = |name: &str| {
            let side = records.iter().flat_map(|record| &record.side_costs);
            let side = side.filter(|side| side.deployment.as_str() == name).map(|side| side.cost);
            let last = records.iter().filter(|record| {
                record.attempts.last().is_some_and(|attempt| attempt.deployment.as_str() == name)
            });
            side.chain(last.map(|record| record.cost)).sum::<Money>()
        };
        let slots = house.gateway.limits().deployment(&"up1".parse().unwrap()).unwrap();
        let clock = house.gateway.clock();
        let up1 = Subject::of_deployment(&slots).snapshot(clock.now(), clock.utc());
        assert_eq!(up1[0].budgets[0].spent, paid("up1"), "seed {seed}");
    }
    house.records()
}

#[tokio::test(start_paused = true)]
async fn i15_every_pico_is_in_a_record_and_nothing_stays_reserved() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..8 {
        outcomes.extend(run(seed).await.iter().map(|record| record.outcome.as_str()));
    }
    // The runs have seen all there is.
    assert_eq!(
        outcomes.into_iter().collect::<Vec<_>>(),
        ["ambiguous", "cancelled", "capped", "failed", "ok", "refused"]
    );
}

#[tokio::test(start_paused = true)]
async fn i13_the_same_seed_leaves_the_same_records() {
    assert_eq!(run(1).await, run(1).await);
}
