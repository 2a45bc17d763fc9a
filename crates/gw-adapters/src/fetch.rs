//! Plain fetches over the same transport, for parts that have no HTTP client of their own.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use gw_types::{ErrorKind, FetchRequest, FetchResponse, GatewayError, HttpFetch, ProviderName};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header, uri::PathAndQuery};
use parking_lot::Mutex;

use crate::{
    InvalidProvider, TransportConfig,
    location::Location,
    transport::{BodyFault, Upstream},
};

/// Origins whose connections are kept; a fetch from a further one opens its own.
const ORIGINS_MAX: usize = 32;

/// Fetches over HTTP: no redirect, no repeat, TLS verified, connections kept per origin.
#[derive(Debug)]
pub struct FetchClient {
    name: ProviderName,
    config: TransportConfig,
    origins: Mutex<BTreeMap<String, Arc<Upstream>>>,
}

impl FetchClient {
    /// Returns a client. The name stands in errors about its own limits.
    ///
    /// # Errors
    /// [`InvalidProvider`], if limits, proxies or certificates cannot be used.
    pub fn new(name: ProviderName, config: TransportConfig) -> Result<Self, InvalidProvider> {
        // Checked here, so that a fault is a fault of the start and not of the first fetch. Without certificates of its own
        // TLS has none, and the system's roots, which cost milliseconds to read, wait for the first fetch that needs them.
        let checked =
            if config.ca_file.is_some() { "https://checked.invalid/" } else { "http://checked.invalid/" };
        Upstream::new(name.clone(), http::Uri::from_static(checked), &config)?;
        Ok(Self { name, config, origins: Mutex::new(BTreeMap::new()) })
    }

    /// Checks a URL that something will be fetched from.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence that begins with its name.
    pub fn check_url(url: &str) -> Result<(), &'static str> {
        Location::parse(url)?;
        Ok(())
    }

    fn upstream(&self, location: &Location) -> Result<Arc<Upstream>, GatewayError> {
        let key = location.origin.to_string();
        if let Some(upstream) = self.origins.lock().get(&key) {
            return Ok(Arc::clone(upstream));
        }
        let upstream = Upstream::new(self.name.clone(), location.origin.clone(), &self.config)
            .map_err(|_| unusable("a fetch cannot be set up"))?;
        let upstream = Arc::new(upstream);
        let mut origins = self.origins.lock();
        if origins.len() < ORIGINS_MAX {
            return Ok(Arc::clone(origins.entry(key).or_insert(upstream)));
        }
        Ok(upstream)
    }

    async fn fetch_unbounded(&self, request: FetchRequest) -> Result<FetchResponse, GatewayError> {
        let FetchRequest { method, url, headers, body, body_bytes_max, .. } = request;
        let location = Location::parse(&url).map_err(|_| unusable("a fetch's URL cannot be used"))?;
        let path = path_of(&url)?;
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| unusable("a fetch's method cannot be used"))?;
        let upstream = self.upstream(&location)?;
        let target = upstream.target(method, &path, header_map(&headers)?);
        let mut response = upstream.send(&target, &[], body).await?;
        let body = response.body.collect(body_bytes_max).await.map_err(BodyFault::of_answer)?;
        Ok(FetchResponse { status: response.status.as_u16(), body })
    }
}

#[async_trait]
impl HttpFetch for FetchClient {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, GatewayError> {
        let timeout = request.timeout;
        match tokio::time::timeout(timeout, self.fetch_unbounded(request)).await {
            Ok(fetched) => fetched,
            Err(_) => {
                Err(GatewayError::new(ErrorKind::ProviderTimeout, "a fetch was not done in the time allowed")
                    .ambiguous())
            }
        }
    }
}

fn header_map(headers: &[(&'static str, gw_types::Secret)]) -> Result<HeaderMap, GatewayError> {
    let mut map = HeaderMap::with_capacity(headers.len() + 2);
    map.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    map.insert(header::USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| unusable("a fetch's header cannot be used"))?;
        let mut value =
            HeaderValue::from_str(value.expose()).map_err(|_| unusable("a fetch's header cannot be used"))?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// The path as it stands in the URL: a slash at its end may mean something here.
fn path_of(url: &str) -> Result<PathAndQuery, GatewayError> {
    let uri: http::Uri = url.parse().map_err(|_| unusable("a fetch's URL cannot be used"))?;
    Ok(uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")))
}

fn unusable(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::Internal, message)
}
