//! A gateway over mocked adapters, in virtual time, with the records it leaves.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use gw_cache::{CacheConfig, ExactCache, SemanticCache, SemanticConfig};
use gw_exec::{Gateway, Policy, PolicyConfig, RoutePolicy, StateConfig, Target, TenantPolicy};
use gw_limits::{Limits, LimitsConfig, ScopesConfig, TenantLimitsConfig};
use gw_routing::{RouteConfig, RoutingConfig};
use gw_types::{
    AccountingRecord, Adapter, Answer, AnswerFacts, AttemptPlan, BodySpan, CapabilitySet, Classification,
    Clock, CompleteAnswer, Deployment, DeploymentTiming, FinishReason, FrameFacts, GatewayError, KeyIdentity,
    Ledger, Loss, MonoTime, NormalizedRequest, Operation, Prepared, Price, Pricing, Receipt, RecordQuery,
    RequestContext, RequestFacts, RequestId, RequestedOutput, SeededRandom, SequentialIds, Sleep, SpendRow,
    StoredRecord, StreamAnswer, StreamItem, Temperature, TextClasses, TokenCount, Usage, UtcTime,
};
use mockall::mock;
use parking_lot::Mutex;

mock! {
    pub(crate) Provider {}

    #[async_trait]
    impl Adapter for Provider {
        fn prepare(
            &self,
            request: &NormalizedRequest,
            deployment: &Deployment,
            plan: &AttemptPlan,
        ) -> Result<Prepared, GatewayError>;
        async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError>;
    }
}

impl std::fmt::Debug for MockProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MockProvider")
    }
}

/// Tokio's paused clock behind the seam: time jumps to the next timer when nothing else can run.
#[derive(Debug)]
pub(crate) struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> MonoTime {
        MonoTime::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap())
    }

    fn utc(&self) -> UtcTime {
        UtcTime::from_micros(1_893_456_000_000_000).saturating_add(self.0.elapsed())
    }

    fn sleep_until(&self, at: MonoTime) -> Sleep {
        Box::pin(tokio::time::sleep_until(self.0 + Duration::from_nanos(at.nanos())))
    }
}

/// Keeps the records in memory and counts the places that are taken.
#[derive(Debug, Default)]
pub(crate) struct Records {
    records: Mutex<Vec<AccountingRecord>>,
    places: AtomicUsize,
    /// Whether nothing is stored for now of what is taken.
    is_stalled: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Ledger for Records {
    fn take_place(&self) -> bool {
        self.places.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn give_place_back(&self) {
        self.places.fetch_sub(1, Ordering::Relaxed);
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        self.give_place_back();
        self.records.lock().push(*record);
        if self.is_stalled.load(Ordering::Relaxed) {
            return Receipt::Pending(Box::pin(std::future::pending()));
        }
        Receipt::Queued
    }

    async fn records(&self, _query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        Ok(Vec::new())
    }

    async fn record(&self, _id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        Ok(None)
    }

    async fn spend_since(&self, _since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        Ok(Vec::new())
    }

    async fn flush(&self) {}
}

/// A gateway and what can be seen of it from outside.
pub(crate) struct House {
    pub(crate) gateway: Arc<Gateway>,
    ledger: Arc<Records>,
}

/// What a house is built from; every field has a plain default.
pub(crate) struct Plan {
    pub(crate) targets: Vec<(Deployment, MockProvider)>,
    pub(crate) limits: TenantLimitsConfig,
    pub(crate) route: RoutePolicy,
    pub(crate) tenant: TenantPolicy,
    pub(crate) deadline: Duration,
    pub(crate) deployments: Vec<(gw_types::DeploymentName, gw_exec::DeploymentPolicy)>,
    pub(crate) scopes: ScopesConfig,
    pub(crate) pool_capacity: u32,
    /// What replicas limit together.
    pub(crate) shared: Option<gw_exec::SharedConfig>,
    /// A second tenant, as [`other`] names it.
    pub(crate) other: TenantLimitsConfig,
    pub(crate) other_policy: TenantPolicy,
    /// Changes the only route before it is used.
    pub(crate) shape: fn(&mut RouteConfig),
}

impl Plan {
    pub(crate) fn new(targets: Vec<(Deployment, MockProvider)>) -> Self {
        Self {
            targets,
            limits: TenantLimitsConfig::default(),
            route: RoutePolicy::default(),
            tenant: TenantPolicy::new(Classification::Internal),
            deadline: Duration::from_secs(3),
            deployments: Vec::new(),
            scopes: ScopesConfig::default(),
            pool_capacity: 100,
            shared: None,
            other: TenantLimitsConfig::default(),
            other_policy: TenantPolicy::new(Classification::Internal),
            shape: |_| {},
        }
    }

    pub(crate) fn build(mut self) -> House {
        let targets = std::mem::take(&mut self.targets)
            .into_iter()
            .map(|(deployment, provider)| Target::new(Arc::new(deployment), Arc::new(provider)))
            .collect();
        self.build_with(targets)
    }

    /// Builds over other adapters than the mocked ones.
    pub(crate) fn build_with(self, targets: Vec<Target>) -> House {
        let clock: Arc<dyn Clock> = Arc::new(PausedClock(tokio::time::Instant::now()));
        let names: Vec<_> = targets.iter().map(|target| target.deployment.name.clone()).collect();
        let limits = Limits::with_scopes(
            LimitsConfig {
                tenants: vec![(caller().tenant, self.limits), (other().tenant, self.other)],
                deployments: targets
                    .iter()
                    .map(|target| (target.deployment.name.clone(), target.deployment.max_concurrency))
                    .collect(),
                pool_capacity: self.pool_capacity,
            },
            &self.scopes,
            clock.now(),
        )
        .unwrap();
        let ledger = Arc::new(Records::default());
        let state = StateConfig {
            limits,
            exact: ExactCache::new(CacheConfig::default()),
            semantic: SemanticCache::new(
                SemanticConfig::default(),
                Arc::new(gw_cache::HashingEmbedder::default()),
            ),
            shared_limits: self.shared.clone(),
            ledger: Arc::<Records>::clone(&ledger),
            clock,
            random: Arc::new(SeededRandom::new(1)),
            ids: Arc::new(SequentialIds::default()),
            codecs: Vec::new(),
            judge: None,
            embedding: None,
            spans: false,
        };
        let mut route = RouteConfig::new("main".parse().unwrap(), names);
        (self.shape)(&mut route);
        let policy = Policy::new(PolicyConfig {
            digest: gw_types::BoundedText::new("d1"),
            routing: RoutingConfig { routes: vec![route], ..RoutingConfig::default() },
            targets,
            deployments: self.deployments,
            routes: vec![("main".parse().unwrap(), self.route)],
            tenants: vec![(caller().tenant, self.tenant), (other().tenant, self.other_policy)],
            default_deadline: self.deadline,
            max_deadline: Duration::from_secs(600),
        })
        .unwrap();
        House { gateway: Arc::new(Gateway::new(state, policy)), ledger }
    }
}

/// A policy with nothing but these targets, for a reload.
pub(crate) fn policy(targets: Vec<Target>) -> Policy {
    let names = targets.iter().map(|target| target.deployment.name.clone()).collect();
    Policy::new(PolicyConfig {
        digest: gw_types::BoundedText::new("d2"),
        routing: RoutingConfig {
            routes: vec![RouteConfig::new("main".parse().unwrap(), names)],
            ..RoutingConfig::default()
        },
        targets,
        deployments: Vec::new(),
        routes: Vec::new(),
        tenants: vec![(caller().tenant, TenantPolicy::new(Classification::Internal))],
        default_deadline: Duration::from_secs(3),
        max_deadline: Duration::from_secs(600),
    })
    .unwrap()
}

impl House {
    /// Asks for a whole answer.
    pub(crate) async fn ask(
        &self,
        request: NormalizedRequest,
    ) -> Result<gw_exec::Reply<gw_exec::Body>, gw_exec::Failure> {
        self.ask_as(&caller(), request).await
    }

    /// Asks for a whole answer, as somebody.
    pub(crate) async fn ask_as(
        &self,
        identity: &KeyIdentity,
        request: NormalizedRequest,
    ) -> Result<gw_exec::Reply<gw_exec::Body>, gw_exec::Failure> {
        let admitted = self.gateway.admit(identity).unwrap();
        self.gateway.complete(admitted, request).await
    }

    /// Asks for a stream.
    pub(crate) async fn ask_stream(
        &self,
        request: NormalizedRequest,
    ) -> Result<gw_exec::Reply<gw_exec::StreamBody>, gw_exec::Failure> {
        let admitted = self.gateway.admit(&caller()).unwrap();
        self.gateway.stream(admitted, request).await
    }

    /// From now on the ledger takes records and never says that they are stored.
    pub(crate) fn stall(&self) {
        self.ledger.is_stalled.store(true, Ordering::Relaxed);
    }

    /// Returns the records so far; every place in the ledger has been used or given back.
    pub(crate) fn records(&self) -> Vec<AccountingRecord> {
        assert_eq!(self.ledger.places.load(Ordering::Relaxed), 0);
        self.ledger.records.lock().clone()
    }

    /// Returns the only record, checking that the tenant holds nothing any more.
    pub(crate) fn only_record(&self) -> AccountingRecord {
        let mut records = self.records();
        assert_eq!(records.len(), 1);
        self.holds_nothing();
        records.remove(0)
    }

    pub(crate) fn holds_nothing(&self) {
        for tenant in [caller().tenant, other().tenant] {
            for scope in self.gateway.scope_snapshots(&tenant) {
                assert_eq!(scope.concurrency.in_use, 0, "{}", scope.scope);
                assert!(scope.budgets.iter().all(|budget| budget.reserved.is_zero()), "{}", scope.scope);
            }
        }
        let snapshot = self.gateway.snapshot();
        assert_eq!((snapshot.pool.shared_in_use, snapshot.pool.waiting), (0, 0));
        for deployment in snapshot.deployments {
            assert_eq!((deployment.in_use, deployment.tokens_in_flight.unwrap_or_default().get()), (0, 0));
        }
    }

    /// Returns what the caller has spent in its first budget.
    pub(crate) fn spent(&self) -> gw_types::Money {
        self.gateway.tenant_snapshot(&caller().tenant).unwrap().budget.unwrap().spent
    }
}

pub(crate) fn caller() -> KeyIdentity {
    KeyIdentity { tenant: "wholesale".parse().unwrap(), key: "dev".parse().unwrap() }
}

pub(crate) fn other() -> KeyIdentity {
    KeyIdentity { tenant: "retail".parse().unwrap(), key: "dev".parse().unwrap() }
}

/// A deployment that costs 1 micro-USD an input token and 2 an output token.
pub(crate) fn deployment(name: &str) -> Deployment {
    Deployment {
        name: name.parse().unwrap(),
        provider: "mock".parse().unwrap(),
        model: "model-a".parse().unwrap(),
        model_version: None,
        region: "uk-south".parse().unwrap(),
        classification_ceiling: Classification::Restricted,
        capabilities: gw_types::Capability::ALL.into_iter().collect::<CapabilitySet>(),
        context_window: None,
        max_output_tokens: None,
        pricing: Pricing::PerToken(Box::new(Price::new(1_000_000, 2_000_000))),
        timing: DeploymentTiming {
            expected_latency: Duration::from_millis(900),
            min_attempt: Duration::from_millis(100),
            attempt_timeout: Duration::from_secs(20),
            stream_idle: Duration::from_secs(10),
        },
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    }
}

/// A chat request of 40 bytes of text that names an output bound of 100 tokens.
pub(crate) fn request() -> NormalizedRequest {
    NormalizedRequest {
        operation: Operation::Chat,
        body: Bytes::from_static(br#"{"model":"reasoner","messages":[]}"#),
        facts: RequestFacts {
            model: "reasoner".into(),
            model_span: BodySpan { start: 9, end: 19 },
            object_start: 1,
            stream: false,
            include_usage: false,
            stream_options: None,
            output: Some(RequestedOutput {
                tokens: TokenCount::new(100),
                span: BodySpan { start: 0, end: 0 },
                field: gw_types::OutputField::MaxTokens,
            }),
            choices: 1,
            text_bytes: 40,
            text_classes: TextClasses::default(),
            messages: 1,
            tool_bytes: 0,
            images: 0,
            audio: false,
            needs: CapabilitySet::EMPTY,
            temperature: Temperature::Zero,
            user: None,
        },
        context: RequestContext::default(),
    }
}

pub(crate) fn streaming() -> NormalizedRequest {
    let mut request = request();
    request.facts.stream = true;
    request
}

pub(crate) fn side_effecting() -> NormalizedRequest {
    let mut request = request();
    request.context.side_effecting = true;
    request
}

/// What a provider that answers is seen to use: 41 tokens in, 13 out.
pub(crate) fn usage() -> Usage {
    Usage { input: TokenCount::new(41), output: TokenCount::new(13), ..Usage::default() }
}

pub(crate) fn answer() -> Answer {
    Answer::Complete(CompleteAnswer {
        raw: Bytes::from_static(b"{\"answer\":1}"),
        facts: AnswerFacts {
            usage: Some(usage()),
            finish: Some(FinishReason::Stop),
            content_bytes: 4,
            ..AnswerFacts::default()
        },
        upstream_request_id: Some(gw_types::BoundedText::new("up-1")),
    })
}

/// A provider that is never called.
pub(crate) fn never() -> MockProvider {
    let mut provider = MockProvider::new();
    provider.expect_prepare().never();
    provider.expect_call().never();
    provider
}

/// A provider that is called exactly so often and does the same each time.
pub(crate) fn provider(
    calls: usize,
    does: impl Fn() -> Result<Answer, GatewayError> + Send + 'static,
) -> MockProvider {
    let mut provider = MockProvider::new();
    provider.expect_prepare().times(calls).returning(|request, _, _| Ok(prepared(request)));
    provider.expect_call().times(calls).returning(move |_| does());
    provider
}

pub(crate) fn prepared(request: &NormalizedRequest) -> Prepared {
    Prepared {
        body: request.body.clone(),
        stream: request.facts.stream,
        relay_usage: false,
        loss: Loss::default(),
        traceparent: None,
        tracestate: None,
        operation: request.operation,
        model: gw_types::ModelName::new("m").unwrap(),
        requested_model: Arc::clone(&request.facts.model),
        id: None,
        passed: Vec::new(),
        timeout: None,
        vectors_to_base64: false,
    }
}

pub(crate) fn fails(calls: usize, error: GatewayError) -> MockProvider {
    provider(calls, move || Err(error.clone()))
}

pub(crate) fn answers() -> MockProvider {
    provider(1, || Ok(answer()))
}

/// An adapter that never answers; counts how many of its calls were dropped.
#[derive(Debug, Default)]
pub(crate) struct Hanging {
    pub(crate) started: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
}

pub(crate) struct DropCount<'a>(pub(crate) &'a AtomicUsize);

impl Drop for DropCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Adapter for Hanging {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, _prepared: Prepared) -> Result<Answer, GatewayError> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let _count = DropCount(&self.dropped);
        std::future::pending().await
    }
}

/// A stream of items that are all there at once, then an end without a terminal event unless an item has one.
pub(crate) fn stream(items: Vec<Result<StreamItem, GatewayError>>) -> Answer {
    Answer::Stream(StreamAnswer {
        items: Box::pin(futures_util::stream::iter(items)),
        upstream_request_id: None,
    })
}

/// A stream that says these items and then nothing more, without ending.
pub(crate) fn stalling(items: Vec<StreamItem>) -> Answer {
    use futures_util::StreamExt;
    let items = futures_util::stream::iter(items.into_iter().map(Ok)).chain(futures_util::stream::pending());
    Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: None })
}

pub(crate) fn content(text: &'static str) -> StreamItem {
    StreamItem {
        raw: Bytes::from_static(text.as_bytes()),
        facts: FrameFacts {
            content_bytes: u32::try_from(text.len()).unwrap(),
            content_frames: 1,
            ..FrameFacts::default()
        },
    }
}

pub(crate) fn role() -> StreamItem {
    StreamItem { raw: Bytes::from_static(b"role;"), facts: FrameFacts::default() }
}

pub(crate) fn used(usage: Usage) -> StreamItem {
    StreamItem {
        raw: Bytes::new(),
        facts: FrameFacts { usage: Some(Box::new(usage)), ..FrameFacts::default() },
    }
}

pub(crate) fn stop() -> StreamItem {
    StreamItem {
        raw: Bytes::from_static(b"stop;"),
        facts: FrameFacts { finish: Some(FinishReason::Stop), ..FrameFacts::default() },
    }
}

pub(crate) fn terminal() -> StreamItem {
    StreamItem { raw: Bytes::new(), facts: FrameFacts { terminal: true, ..FrameFacts::default() } }
}
