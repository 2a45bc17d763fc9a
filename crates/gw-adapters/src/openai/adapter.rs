//! One deployment's adapter: body by byte-range edits, one call, answer read as it came.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gw_dialects::openai::{ChatEdits, ErrorHead, classify, read_answer, rewrite_chat};
use gw_types::{
    Adapter, Answer, AttemptPlan, BoundedText, Clock, CompleteAnswer, Deployment, ErrorKind, GatewayError,
    Loss, NormalizedRequest, Operation, OutputField, Prepared, Secret, StreamAnswer,
};
use http::{HeaderName, HeaderValue};

use super::{
    answer::{dress, is_encoded, is_event_stream, malformed, request_id, text},
    stream::ChatStream,
};
use crate::transport::{BodyFault, Target, Upstream, UpstreamResponse};

/// The largest plain answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What is read of an error body, in bytes; the rest says nothing more.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// The longest wait for an error body: the status alone is nearly as good.
const ERROR_TIME: Duration = Duration::from_secs(2);

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Calls one deployment that speaks OpenAI chat.
#[derive(Debug)]
pub(crate) struct ChatAdapter(ChatAdapterParts);

/// What an adapter is made of.
#[derive(Debug)]
pub(crate) struct ChatAdapterParts {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) target: Target,
    pub(crate) output_field: OutputField,
    /// What gw itself sends and a provider may echo.
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ChatAdapter {
    pub(crate) fn new(parts: ChatAdapterParts) -> Self {
        Self(parts)
    }
}

#[async_trait]
impl Adapter for ChatAdapter {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        prepare_chat(request, deployment, plan, self.0.output_field)
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        let extra = prepared
            .traceparent
            .as_ref()
            .and_then(|trace| Some((TRACEPARENT, HeaderValue::from_str(trace.as_str()).ok()?)));
        let response = self.0.upstream.send(&self.0.target, extra, prepared.body).await?;
        let id = request_id(&response.headers);
        let read = if !response.status.is_success() {
            Err(self.refused(response).await)
        } else if is_encoded(&response.headers) {
            Err(malformed("the provider's answer is encoded, although none was asked for"))
        } else if !prepared.stream {
            plain(response, id.clone()).await
        } else if is_event_stream(&response.headers) {
            let secrets = Arc::clone(&self.0.secrets);
            let items = ChatStream::new(response.body, prepared.relay_usage, id.clone(), secrets);
            Ok(Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: id.clone() }))
        } else {
            Err(no_stream(response).await)
        };
        read.map_err(|error| dress(error, id.as_ref(), &self.0.secrets))
    }
}

impl ChatAdapter {
    /// Reads the beginning of an error answer and says what it means.
    async fn refused(&self, response: UpstreamResponse) -> GatewayError {
        let UpstreamResponse { status, headers, body } = response;
        if !status.is_client_error() && !status.is_server_error() {
            // Following it would send the key to a place that the configuration does not name.
            return malformed("the provider answered with a redirect or another status that is no answer")
                .with_status(status.as_u16());
        }
        let said = if is_encoded(&headers) {
            bytes::Bytes::new()
        } else {
            body.beginning(ERROR_BYTES_MAX, ERROR_TIME).await
        };
        let header = |name: &str| text(&headers, name);
        classify(&ErrorHead { status: status.as_u16(), header: &header, utc: self.0.clock.utc() }, &said)
    }
}

/// Builds a chat call: the caller's body with the deployment's model.
pub(crate) fn prepare_chat(
    request: &NormalizedRequest,
    deployment: &Deployment,
    plan: &AttemptPlan,
    output_field: OutputField,
) -> Result<Prepared, GatewayError> {
    match request.operation {
        Operation::Chat => {}
        Operation::Responses
        | Operation::Messages
        | Operation::Completions
        | Operation::Embeddings
        | Operation::CountTokens => {
            return Err(GatewayError::new(
                ErrorKind::InvalidRequest,
                "this operation is not available at this provider",
            )
            .with_subject(request.operation.as_str()));
        }
    }
    let edits = ChatEdits {
        model: deployment.model.as_str(),
        output_bound: plan.output_bound,
        output_field,
        // Usage is always wanted: what a stream cost is known from nothing else.
        ask_usage: true,
    };
    Ok(Prepared {
        body: rewrite_chat(request, &edits),
        stream: request.facts.stream,
        relay_usage: request.facts.include_usage,
        loss: Loss::default(),
        traceparent: request.context.traceparent.clone(),
        operation: request.operation,
    })
}

async fn plain(mut response: UpstreamResponse, id: Option<BoundedText>) -> Result<Answer, GatewayError> {
    let raw = response.body.collect(ANSWER_BYTES_MAX).await.map_err(BodyFault::of_answer)?;
    let facts = read_answer(&raw)?;
    Ok(Answer::Complete(CompleteAnswer { raw, facts, upstream_request_id: id }))
}

/// Says why a stream was answered with something else: mostly an error in a 200.
async fn no_stream(response: UpstreamResponse) -> GatewayError {
    let raw = response.body.beginning(ERROR_BYTES_MAX, ERROR_TIME).await;
    match read_answer(&raw) {
        Ok(_) => malformed("the provider answered a stream request without a stream"),
        Err(error) => error,
    }
}
