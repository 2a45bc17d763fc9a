//! What the pipeline costs a stream on its way through, in bytes of wire a second: with nothing to count, and where a budget
//! and a token limit bound the answer.
//!
//! The provider's events are there, read and with their facts; what reading them costs is measured in `gw-dialects`. 4,096
//! events as a current OpenAI model sends them, one event an item, which is what a network delivers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use divan::{Bencher, counter::BytesCount};
use futures_util::StreamExt;
use gw_cache::{CacheConfig, ExactCache, HashingEmbedder, SemanticCache, SemanticConfig};
use gw_exec::{
    Gateway, Policy, PolicyConfig, StateConfig, StreamBody, SystemClock, Target, TenantPolicy, Window,
};
use gw_limits::{BudgetConfig, Limits, LimitsConfig, ScopesConfig, TenantLimitsConfig};
use gw_routing::{RouteConfig, RoutingConfig};
use gw_types::{
    AccountingRecord, Adapter, Answer, AttemptPlan, BodySpan, BoundedText, Capability, CapabilitySet,
    Classification, Clock, Deployment, DeploymentTiming, FinishReason, FrameFacts, GatewayError, KeyIdentity,
    Ledger, Money, NormalizedRequest, Operation, OutputField, Prepared, Price, Pricing, Receipt, RecordQuery,
    RequestContext, RequestFacts, RequestId, RequestedOutput, SeededRandom, SequentialIds, SpendRow,
    StoredRecord, StreamAnswer, StreamItem, Temperature, TextClasses, TokenCount, UtcTime,
};

fn main() {
    divan::main();
}

const EVENTS: usize = 4_096;

/// Answers at once with all items.
#[derive(Debug)]
struct Provider(Vec<StreamItem>);

#[async_trait]
impl Adapter for Provider {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(Prepared::new(request, deployment, request.body.clone()))
    }

    async fn call(&self, _prepared: Prepared) -> Result<Answer, GatewayError> {
        let items = futures_util::stream::iter(self.0.clone().into_iter().map(Ok));
        Ok(Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: None }))
    }
}

/// Keeps nothing.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl Ledger for Nowhere {
    fn take_place(&self) -> bool {
        true
    }

    fn give_place_back(&self) {}

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        drop(record);
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

fn items() -> Vec<StreamItem> {
    let head = r#"{"id":"chatcmpl-0123456789abcdefghijklmnopq","object":"chat.completion.chunk","created":1770853433,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_0123456789","#;
    let event = |token: usize| {
        let choice = format!(
            r#""choices":[{{"index":0,"delta":{{"content":" token{token}"}},"logprobs":null,"finish_reason":null}}]"#
        );
        let raw = Bytes::from(format!("data: {head}{choice},\"obfuscation\":\"RURdR9\"}}\n\n"));
        StreamItem { raw, facts: FrameFacts { content_bytes: 8, content_frames: 1, ..FrameFacts::default() } }
    };
    let end = FrameFacts { finish: Some(FinishReason::Stop), terminal: true, ..FrameFacts::default() };
    (0..EVENTS).map(event).chain([StreamItem { raw: Bytes::new(), facts: end }]).collect()
}

fn caller() -> KeyIdentity {
    KeyIdentity { tenant: "t".parse().expect("a name"), key: "k".parse().expect("a name") }
}

fn deployment() -> Deployment {
    Deployment {
        name: "d".parse().expect("a name"),
        provider: "p".parse().expect("a name"),
        model: "m".parse().expect("a name"),
        model_version: None,
        region: "r".parse().expect("a name"),
        classification_ceiling: Classification::Restricted,
        capabilities: Capability::ALL.into_iter().collect::<CapabilitySet>(),
        context_window: None,
        max_output_tokens: None,
        pricing: Pricing::PerToken(Box::new(Price::new(1_000_000, 2_000_000))),
        timing: DeploymentTiming {
            expected_latency: Duration::from_millis(900),
            min_attempt: Duration::from_millis(100),
            attempt_timeout: Duration::from_secs(20),
            stream_idle: Duration::from_secs(10),
        },
        max_attempts: std::num::NonZeroU32::MIN,
        max_concurrency: None,
    }
}

fn gateway(limits: TenantLimitsConfig, items: Vec<StreamItem>) -> Gateway {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let config = LimitsConfig {
        tenants: vec![(caller().tenant, limits)],
        deployments: vec![(deployment().name, None)],
        pool_capacity: 64,
    };
    let state = StateConfig {
        limits: Limits::with_scopes(config, &ScopesConfig::default(), clock.now()).expect("sound limits"),
        exact: ExactCache::new(CacheConfig::default()),
        semantic: SemanticCache::new(SemanticConfig::default(), Arc::new(HashingEmbedder::default())),
        shared_limits: None,
        ledger: Arc::new(Nowhere),
        clock,
        random: Arc::new(SeededRandom::new(1)),
        ids: Arc::new(SequentialIds::default()),
        codecs: Vec::new(),
        judge: None,
        embedding: None,
        spans: false,
    };
    let names = vec![deployment().name];
    let route = RouteConfig::new("main".parse().expect("a name"), names);
    let policy = Policy::new(PolicyConfig {
        digest: BoundedText::new("d1"),
        routing: RoutingConfig { routes: vec![route], ..RoutingConfig::default() },
        targets: vec![Target::new(Arc::new(deployment()), Arc::new(Provider(items)))],
        deployments: Vec::new(),
        routes: Vec::new(),
        tenants: vec![(caller().tenant, TenantPolicy::new(Classification::Internal))],
        default_deadline: Duration::from_secs(60),
        max_deadline: Duration::from_secs(600),
    })
    .expect("a sound policy");
    Gateway::new(state, policy)
}

fn request() -> NormalizedRequest {
    let output = RequestedOutput {
        tokens: TokenCount::new(100_000),
        span: BodySpan { start: 0, end: 0 },
        field: OutputField::MaxTokens,
    };
    NormalizedRequest {
        operation: Operation::Chat,
        body: Bytes::from_static(br#"{"model":"reasoner","messages":[]}"#),
        facts: RequestFacts {
            model: "reasoner".into(),
            model_span: BodySpan { start: 9, end: 19 },
            object_start: 1,
            stream: true,
            include_usage: false,
            stream_options: None,
            output: Some(output),
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

fn relay(bencher: Bencher<'_, '_>, limits: TenantLimitsConfig) {
    let items = items();
    let bytes = items.iter().map(|item| item.raw.len()).sum::<usize>();
    let gateway = gateway(limits, items);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let open = || {
        let admitted = gateway.admit(&caller()).expect("the ledger has room");
        let reply = runtime.block_on(gateway.stream(admitted, request())).expect("an answer");
        let StreamBody::Relay(relay) = reply.body else { unreachable!("no cache holds an answer") };
        relay
    };
    bencher.counter(BytesCount::new(bytes)).with_inputs(open).bench_local_values(|mut relay| {
        let count = async {
            let mut count = 0;
            while let Some(item) = relay.next().await {
                divan::black_box(item);
                count += 1;
            }
            count
        };
        assert_eq!(runtime.block_on(count), EVENTS + 1);
    });
}

#[divan::bench]
fn relay_uncounted(bencher: Bencher<'_, '_>) {
    relay(bencher, TenantLimitsConfig::default());
}

#[divan::bench]
fn relay_with_budget_and_cap(bencher: Bencher<'_, '_>) {
    relay(
        bencher,
        TenantLimitsConfig {
            tokens_per_minute: Some(1_000_000_000_000),
            budget: Some(BudgetConfig { limit: Money::from_micros(1_000_000_000_000), window: Window::Day }),
            ..TenantLimitsConfig::default()
        },
    );
}
