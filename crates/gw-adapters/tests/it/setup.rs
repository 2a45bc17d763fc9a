//! Providers, deployments and requests for the tests.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use gw_adapters::{Provider, ProviderConfig, ProviderKind, TransportConfig};
use gw_dialects::{anthropic, completions, embeddings, openai::read_chat, responses};
use gw_types::{
    Adapter, Answer, AttemptPlan, CapabilitySet, Classification, CompleteAnswer, Deployment, DeploymentName,
    DeploymentTiming, GatewayError, ManualClock, ModelName, NormalizedRequest, Operation, Prepared, Pricing,
    ProviderName, Region, RequestContext, Secret, StreamAnswer, StreamItem, TokenCount,
};

pub(crate) const KEY: &str = "canary-key-1";

/// A plain answer as OpenAI writes it.
pub(crate) const ANSWER: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"gpt-served","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;

/// Limits that nothing in a test reaches, and 4 connections.
pub(crate) fn limits() -> TransportConfig {
    TransportConfig {
        pool_wait_timeout: Duration::from_secs(20),
        max_connections: 4,
        ..TransportConfig::default()
    }
}

pub(crate) fn config(base_url: &str) -> ProviderConfig {
    ProviderConfig {
        name: ProviderName::new("up1").unwrap(),
        kind: ProviderKind::OpenAi,
        base_url: base_url.to_owned(),
        api_key: Secret::new(KEY),
        credentials: None,
        headers: Vec::new(),
        transport: limits(),
    }
}

/// A provider with its adapter for the deployment `gpt-x`.
pub(crate) struct Setup {
    pub(crate) provider: Provider,
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) deployment: Deployment,
}

impl Setup {
    pub(crate) fn new(config: ProviderConfig) -> Self {
        Self::with_model(config, "gpt-x")
    }

    pub(crate) fn with_model(config: ProviderConfig, model: &str) -> Self {
        let provider = Provider::new(config, Arc::new(ManualClock::default())).unwrap();
        let deployment = deployment(model);
        let adapter = provider.adapter(&deployment).unwrap();
        Self { provider, adapter, deployment }
    }

    pub(crate) fn at(base_url: &str) -> Self {
        Self::new(config(base_url))
    }

    pub(crate) fn limited(base_url: &str, transport: TransportConfig) -> Self {
        Self::new(ProviderConfig { transport, ..config(base_url) })
    }

    pub(crate) fn prepare(&self, stream: bool) -> Prepared {
        self.adapter.prepare(&request(stream, "hello"), &self.deployment, &PLAN).unwrap()
    }

    pub(crate) async fn call(&self, stream: bool) -> Result<Answer, GatewayError> {
        self.adapter.call(self.prepare(stream)).await
    }

    pub(crate) async fn plain(&self) -> Result<CompleteAnswer, GatewayError> {
        match self.call(false).await? {
            Answer::Complete(answer) => Ok(answer),
            Answer::Stream(_) => panic!("a stream"),
        }
    }

    pub(crate) async fn stream(&self) -> Result<StreamAnswer, GatewayError> {
        match self.call(true).await? {
            Answer::Stream(answer) => Ok(answer),
            Answer::Complete(_) => panic!("no stream"),
        }
    }

    pub(crate) fn in_use(&self) -> u32 {
        self.provider.snapshot().connections_in_use
    }

    /// Waits until no call holds a connection: a body's end may still be read in the background.
    pub(crate) async fn wait_until_free(&self) {
        let free = async {
            while self.in_use() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(super::server::PATIENCE, free).await.unwrap();
    }
}

pub(crate) const PLAN: AttemptPlan =
    AttemptPlan { output_bound: None, timeout: Duration::from_secs(60), strict: false };

pub(crate) fn bounded(tokens: u64) -> AttemptPlan {
    AttemptPlan { output_bound: Some(TokenCount::new(tokens)), ..PLAN }
}

pub(crate) fn deployment(model: &str) -> Deployment {
    Deployment {
        name: DeploymentName::new("d1").unwrap(),
        provider: ProviderName::new("up1").unwrap(),
        model: ModelName::new(model).unwrap(),
        model_version: None,
        region: Region::new("here").unwrap(),
        classification_ceiling: Classification::Restricted,
        capabilities: CapabilitySet::default(),
        context_window: None,
        max_output_tokens: None,
        pricing: Pricing::Unpriced,
        timing: DeploymentTiming::default(),
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    }
}

pub(crate) fn request(stream: bool, text: &str) -> NormalizedRequest {
    let body = format!(
        r#"{{"model":"fast","stream":{stream},"stream_options":{{"include_usage":{stream}}},"messages":[{{"role":"user","content":"{text}"}}]}}"#
    );
    parsed(body)
}

pub(crate) fn parsed(body: String) -> NormalizedRequest {
    let body = Bytes::from(body);
    let facts = read_chat(&body).unwrap();
    NormalizedRequest { operation: Operation::Chat, body, facts, context: RequestContext::default() }
}

/// Reads a body as the operation's own format.
pub(crate) fn asked(operation: Operation, body: &str) -> NormalizedRequest {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let facts = match operation {
        Operation::Chat => read_chat(&body),
        Operation::Responses => responses::read_request(&body).map(|request| request.facts),
        Operation::Messages => anthropic::read_messages(&body),
        Operation::CountTokens => anthropic::read_count_tokens(&body),
        Operation::Completions => completions::read_request(&body),
        Operation::Embeddings => embeddings::read_request(&body),
    };
    NormalizedRequest { operation, body, facts: facts.unwrap(), context: RequestContext::default() }
}

/// Reads a stream to its end.
pub(crate) async fn items(answer: StreamAnswer) -> Vec<Result<StreamItem, GatewayError>> {
    answer.items.collect().await
}

/// Returns all bytes to relay, as text.
pub(crate) fn relayed(items: &[Result<StreamItem, GatewayError>]) -> String {
    let raw = items.iter().flatten().flat_map(|item| item.raw.to_vec()).collect();
    String::from_utf8(raw).unwrap()
}
