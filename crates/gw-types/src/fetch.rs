//! The seam for plain HTTP fetches by parts that have no HTTP client of their own.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{GatewayError, Secret};

/// A fetch: method, absolute URL, body. The URL comes from the configuration, never from a request.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The absolute URL.
    pub url: String,
    /// Extra headers; values print as redacted.
    pub headers: Vec<(&'static str, Secret)>,
    /// The body; empty for `GET`.
    pub body: Bytes,
    /// The longest the whole fetch may take.
    pub timeout: Duration,
    /// The largest body accepted, in bytes.
    pub body_bytes_max: usize,
}

/// What a fetch brought back.
#[derive(Clone, Debug)]
pub struct FetchResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// Fetches over HTTP.
///
/// # Contract
/// Follows no redirect, retries nothing, verifies TLS. Dropping the future closes the connection.
#[async_trait]
pub trait HttpFetch: Send + Sync + std::fmt::Debug {
    /// Fetches once.
    ///
    /// # Errors
    /// `Transport`, `ProviderTimeout` or `MalformedResponse` (body above its bound).
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, GatewayError>;
}
