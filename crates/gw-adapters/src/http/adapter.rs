//! One deployment's adapter: a body, one call, an answer read as it came or translated.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use gw_dialects::openai::ErrorHead;
use gw_types::{
    Adapter, Answer, AttemptPlan, BoundedText, Clock, CompleteAnswer, Deployment, ErrorKind, GatewayError,
    NormalizedRequest, Operation, PassedHeader, Prepared, Secret, StreamAnswer,
};
use http::{HeaderName, HeaderValue};

use super::{
    answer::{dress, is_encoded, malformed, request_id, served_model, text, without_secrets},
    service::{Service, Services},
    stream::HttpStream,
    way::{Habits, Received, Way},
};
use crate::{
    credential::{CallHeaders, Credential},
    transport::{BodyFault, Target, Upstream, UpstreamResponse},
};

/// The largest plain answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What is read of an error body, in bytes; the rest says nothing more.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// The longest wait for an error body: the status alone is nearly as good.
const ERROR_TIME: Duration = Duration::from_secs(2);

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// How long a call is waited for, in whole seconds, as Google's own clients say it.
const SERVER_TIMEOUT: HeaderName = HeaderName::from_static("x-server-timeout");

/// Calls one deployment over HTTP, whatever its provider speaks.
#[derive(Debug)]
pub(crate) struct HttpAdapter(HttpAdapterParts);

/// What an adapter is made of.
#[derive(Debug)]
pub(crate) struct HttpAdapterParts {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) services: Services,
    pub(crate) habits: Habits,
    pub(crate) credential: Arc<Credential>,
    /// What gw itself sends and a provider may echo.
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl HttpAdapter {
    pub(crate) fn new(parts: HttpAdapterParts) -> Self {
        Self(parts)
    }
}

#[async_trait]
impl Adapter for HttpAdapter {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        let service = self.service(request.operation)?;
        service.way.prepare(request, deployment, plan, &self.0.habits)
    }

    async fn call(&self, mut prepared: Prepared) -> Result<Answer, GatewayError> {
        let service = self.service(prepared.operation)?;
        let body = std::mem::take(&mut prepared.body);
        let endpoint = service.endpoint(&prepared);
        let own;
        // Only a deployment that passes on whatever model it is asked for has addresses that are not known beforehand.
        let target: &Target = match self.0.services.target(endpoint, &prepared.model) {
            Some(target) => target,
            None => {
                own = Box::new(self.0.services.target_for(&self.0.upstream, endpoint, &prepared.model)?);
                &own
            }
        };
        let mut headers = call_headers(&prepared, service);
        self.0.credential.add(target, &body, &mut headers).await?;
        let secrets = self.0.credential.secrets(&self.0.secrets, &headers);
        let response = self.0.upstream.send(target, &headers, body).await?;
        let id = request_id(&response.headers, &secrets);
        let read = self.read(service.way, response, &prepared, id.clone(), &secrets).await;
        read.map_err(|error| {
            if error.kind() == ErrorKind::ProviderAuth {
                self.0.credential.refused();
            }
            dress(error, id.as_ref(), &secrets)
        })
    }
}

impl HttpAdapter {
    fn service(&self, operation: Operation) -> Result<&Service, GatewayError> {
        self.0.services.get(operation).ok_or_else(|| not_available(operation))
    }

    async fn read(
        &self,
        way: Way,
        response: UpstreamResponse,
        prepared: &Prepared,
        id: Option<BoundedText>,
        secrets: &Arc<[Secret]>,
    ) -> Result<Answer, GatewayError> {
        if !response.status.is_success() {
            return Err(self.refused(way, response).await);
        }
        if is_encoded(&response.headers) {
            return Err(malformed("the provider's answer is encoded, although none was asked for"));
        }
        if !prepared.stream {
            return self.plain(way, response, prepared, (id, secrets)).await;
        }
        if !way.is_stream(&response.headers) {
            return Err(self.no_stream(way, response, prepared).await);
        }
        let decoder = way.decoder(&Received { prepared, id: id.as_ref(), now: self.0.clock.utc() })?;
        let items = HttpStream::new(response.body, decoder, id.clone(), Arc::clone(secrets));
        Ok(Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: id }))
    }

    async fn plain(
        &self,
        way: Way,
        mut response: UpstreamResponse,
        prepared: &Prepared,
        (id, secrets): (Option<BoundedText>, &[Secret]),
    ) -> Result<Answer, GatewayError> {
        let raw = response.body.collect(ANSWER_BYTES_MAX).await.map_err(BodyFault::of_answer)?;
        let received = Received { prepared, id: id.as_ref(), now: self.0.clock.utc() };
        let (raw, mut facts) = way.read(raw, &received)?;
        facts.served_model = served_model(facts.served_model, secrets);
        without_secrets(&mut facts.loss, secrets);
        Ok(Answer::Complete(CompleteAnswer { raw, facts, upstream_request_id: id }))
    }

    /// Says why a stream was answered with something else: mostly an error in a 200.
    async fn no_stream(&self, way: Way, response: UpstreamResponse, prepared: &Prepared) -> GatewayError {
        let raw = response.body.beginning(ERROR_BYTES_MAX, ERROR_TIME).await;
        match way.read(raw, &Received { prepared, id: None, now: self.0.clock.utc() }) {
            Ok(_) => malformed("the provider answered a stream request without a stream"),
            Err(error) => error,
        }
    }

    /// Reads the beginning of an error answer and says what it means.
    async fn refused(&self, way: Way, response: UpstreamResponse) -> GatewayError {
        let UpstreamResponse { status, headers, body } = response;
        if !status.is_client_error() && !status.is_server_error() {
            // Following it would send the key to a place that the configuration does not name.
            return malformed("the provider answered with a redirect or another status that is no answer")
                .with_status(status.as_u16());
        }
        let said = if is_encoded(&headers) {
            Bytes::new()
        } else {
            body.beginning(ERROR_BYTES_MAX, ERROR_TIME).await
        };
        let header = |name: &str| text(&headers, name);
        let head = ErrorHead { status: status.as_u16(), header: &header, utc: self.0.clock.utc() };
        way.classify(&head, &said)
    }
}

/// Returns the error for an operation that a provider cannot serve.
pub(crate) fn not_available(operation: Operation) -> GatewayError {
    GatewayError::new(ErrorKind::InvalidRequest, "this operation is not available at this provider")
        .with_subject(operation.as_str())
}

/// The headers that come with the request: its trace, the time left for it where the provider takes it, and where the format
/// is the same those of the caller's that stand in the closed list.
fn call_headers(prepared: &Prepared, service: &Service) -> CallHeaders {
    let mut headers = CallHeaders::new();
    if let Some(trace) = &prepared.traceparent
        && let Ok(value) = HeaderValue::from_str(trace.as_str())
    {
        headers.push((TRACEPARENT, value));
    }
    if let Some(state) = &prepared.tracestate
        && let Ok(value) = HeaderValue::from_str(state)
    {
        headers.push((TRACESTATE, value));
    }
    if let Some(timeout) = prepared.timeout {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        headers.push((SERVER_TIMEOUT, HeaderValue::from(seconds)));
    }
    for (header, value) in &prepared.passed {
        if service.way.dialect() == Some(header.dialect())
            && let Ok(value) = HeaderValue::from_str(value)
        {
            headers.push((header_name(*header), value));
        }
    }
    headers
}

const fn header_name(header: PassedHeader) -> HeaderName {
    HeaderName::from_static(header.as_str())
}
