//! The one way to providers: connections, limits, and what a failure of either means.
//!
//! An [`Upstream`] is one origin with its own pool. Each phase has its own limit: waiting for a free connection,
//! connecting, writing the request, waiting for the response head, waiting between two pieces of the body.
//!
//! Nothing here follows a redirect and nothing repeats a call that the provider may have seen. One thing is done
//! again: a request handed to a kept connection that turned out closed before a byte was written, or whose provider says
//! that it was not processed, goes to another connection. To the pipeline, which owns all retries, it is still the first
//! call.
//!
//! A peer may vanish without a word. Then every connection kept from before is dead, and each would cost a call its whole
//! time; so a call that hears nothing on a kept connection takes those with it that have been idle for as long.

mod body;
mod dial;
mod fault;
mod h1;
mod h2;
mod io;
mod outgoing;
mod pool;
mod silence;
mod sweep;
mod timer;
mod tls;

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use bytes::Bytes;
use gw_types::{GatewayError, ProviderName};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::PathAndQuery,
};
use hyper::body::Incoming;

pub(crate) use self::{body::UpstreamBody, fault::BodyFault, tls::client_config};
use self::{
    dial::Dialer,
    fault::SendFault,
    outgoing::{Outgoing, Taken as TakenMark},
    pool::{Pool, PoolParts, Slot, Taken},
    silence::Listening,
};
use crate::{InvalidProvider, TransportConfig};

/// Shows how a provider's connections stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportSnapshot {
    /// Calls that hold a connection or are about to open one.
    pub connections_in_use: u32,
    /// Open HTTP/1.1 connections that wait for a call.
    pub connections_idle: u32,
    /// Calls allowed at once.
    pub connections_max: u32,
}

/// One origin: scheme, host and port.
#[derive(Debug)]
pub(crate) struct Upstream {
    pool: Arc<Pool>,
    origin: Uri,
    write_timeout: Duration,
    head_timeout: Duration,
    read_idle_timeout: Duration,
}

/// A request's unchanging part, worked out once: line and headers, as each version of HTTP wants them.
#[derive(Debug)]
pub(crate) struct Target {
    method: Method,
    http1: Form,
    http2: Form,
}

#[derive(Debug)]
struct Form {
    uri: Uri,
    headers: HeaderMap,
}

/// An answer's head, and the body to come.
#[derive(Debug)]
pub(crate) struct UpstreamResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: UpstreamBody,
}

impl Target {
    /// Returns the method.
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the whole address.
    pub(crate) fn address(&self) -> &Uri {
        &self.http2.uri
    }
}

impl Upstream {
    /// Returns the origin with no connection open yet.
    ///
    /// # Errors
    /// What is wrong with limits, proxies or certificates.
    pub(crate) fn new(
        name: ProviderName,
        origin: Uri,
        config: &TransportConfig,
    ) -> Result<Self, InvalidProvider> {
        if config.max_connections == 0 {
            return Err(InvalidProvider::NoConnections);
        }
        let dialer = Dialer::new(origin.clone(), config)?;
        let pool = Pool::new(PoolParts {
            name,
            secure: origin.scheme() == Some(&http::uri::Scheme::HTTPS),
            // A forward proxy takes absolute-form requests, which only HTTP/1.1 has.
            http2: config.http2 && dialer.forward().is_none(),
            dialer,
            connect_timeout: config.connect_timeout,
            pool_wait_timeout: config.pool_wait_timeout,
            max: config.max_connections,
        });
        Ok(Self {
            pool,
            origin,
            write_timeout: config.write_timeout,
            head_timeout: config.head_timeout,
            read_idle_timeout: config.read_idle_timeout,
        })
    }

    /// Works out a request's unchanging part. `headers` must hold neither `host` nor anything about framing.
    pub(crate) fn target(&self, method: Method, path: &PathAndQuery, headers: HeaderMap) -> Target {
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = Some(path.clone());
        let absolute = Uri::from_parts(parts).unwrap_or_else(|_| self.origin.clone());
        let forward = self.pool.dialer().forward();
        let mut http1 = headers.clone();
        if let Some(host) = host(&self.origin) {
            http1.insert(header::HOST, host);
        }
        if let Some(authorization) = forward.flatten() {
            http1.insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let uri = if forward.is_some() { absolute.clone() } else { Uri::from(path.clone()) };
        Target { method, http1: Form { uri, headers: http1 }, http2: Form { uri: absolute, headers } }
    }

    /// Makes one call and returns the answer's head. `extra` headers are this call's own; they win over the target's where
    /// the names are equal. Dropping the future closes the connection, or resets the stream over HTTP/2.
    ///
    /// # Errors
    /// `Overloaded` (no free connection), `Transport` and `ProviderTimeout`, ambiguous once a byte was written.
    pub(crate) async fn send(
        &self,
        target: &Target,
        extra: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<UpstreamResponse, GatewayError> {
        let call = Call { target, extra, body };
        let mut slot = self.pool.slot().await?;
        // Each turn but the last has used up a connection that was kept, of which there are at most `max`.
        for _ in 0..=self.pool.max() {
            match self.attempt(&call, slot).await? {
                ControlFlow::Break(response) => return Ok(response),
                ControlFlow::Continue(unused) => slot = unused,
            }
        }
        Err(SendFault::NotSent.into_error())
    }

    /// Makes the call; goes on if a kept connection was closed before it took the request.
    async fn attempt(
        &self,
        call: &Call<'_>,
        slot: Slot,
    ) -> Result<ControlFlow<UpstreamResponse, Slot>, GatewayError> {
        let read_idle = self.read_idle_timeout;
        match self.pool.connection().await? {
            Taken::Own(mut connection) => {
                let request = call.request(&call.target.http1, Outgoing::new(call.body.clone()));
                let listening = Listening::on_own(&self.pool, connection.idle_since);
                let sent = connection.send(request, self.write_timeout, self.head_timeout).await;
                listening.end(sent.as_ref().err());
                let reused = connection.idle_since.is_some();
                finish(sent, reused, slot, |body, slot| UpstreamBody::own(body, connection, slot, read_idle))
            }
            Taken::Shared(place) => {
                let mark = Arc::new(TakenMark::default());
                let request = call.request(&call.target.http2, Outgoing::watched(call.body.clone(), &mark));
                let listening = Listening::on_shared(place.connection());
                let sent = place.send(request, &mark, self.write_timeout, self.head_timeout).await;
                listening.end(sent.as_ref().err());
                let reused = !place.is_first;
                finish(sent, reused, slot, |body, slot| UpstreamBody::shared(body, place, slot, read_idle))
            }
        }
    }

    /// Returns how the connections stand.
    pub(crate) fn snapshot(&self) -> TransportSnapshot {
        let idle = self.pool.state.lock().idle.len();
        TransportSnapshot {
            connections_in_use: self.pool.in_use(),
            connections_idle: u32::try_from(idle).unwrap_or(u32::MAX),
            connections_max: self.pool.max(),
        }
    }
}

/// One call: what is fixed and what is its own.
struct Call<'a> {
    target: &'a Target,
    extra: &'a [(HeaderName, HeaderValue)],
    body: Bytes,
}

impl Call<'_> {
    /// Clones are counts of references; nothing is parsed or copied.
    fn request(&self, form: &Form, body: Outgoing) -> Request<Outgoing> {
        let mut request = Request::new(body);
        *request.method_mut() = self.target.method.clone();
        *request.uri_mut() = form.uri.clone();
        *request.headers_mut() = form.headers.clone();
        for (name, value) in self.extra {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        request
    }
}

fn finish(
    sent: Result<Response<Incoming>, SendFault>,
    reused: bool,
    slot: Slot,
    body: impl FnOnce(Incoming, Slot) -> UpstreamBody,
) -> Result<ControlFlow<UpstreamResponse, Slot>, GatewayError> {
    match sent {
        Ok(response) => {
            let (head, incoming) = response.into_parts();
            let body = body(incoming, slot);
            Ok(ControlFlow::Break(UpstreamResponse { status: head.status, headers: head.headers, body }))
        }
        // A new connection that is closed at once says something about the provider; a kept one does not.
        Err(fault) if reused && fault.is_of_the_connection() => Ok(ControlFlow::Continue(slot)),
        Err(fault) => Err(fault.into_error()),
    }
}

/// Returns the `host` header: the port stands there only if it is not the scheme's own.
fn host(origin: &Uri) -> Option<HeaderValue> {
    let authority = origin.authority()?;
    let default = match origin.scheme_str() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        Some(_) | None => None,
    };
    let text = if authority.port_u16() == default { authority.host() } else { authority.as_str() };
    HeaderValue::from_str(text).ok()
}
