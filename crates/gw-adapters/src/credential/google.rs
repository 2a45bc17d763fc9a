//! Access tokens of Google Cloud for a service account: the JWT bearer grant of RFC 7523.

use std::sync::Arc;

use bytes::Bytes;
use gw_types::{Clock, ErrorKind, GatewayError, Secret};
use http::{HeaderMap, HeaderValue, Method, header, uri::PathAndQuery};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::{Deserialize, Serialize};

use super::{
    lease::{Fetched, Lease},
    sensitive,
};
use crate::{
    InvalidProvider, TransportConfig,
    location::Location,
    transport::{BodyFault, Target, Upstream},
};

/// The claim's life; Google takes at most an hour.
const CLAIM_SECONDS: i64 = 3_600;

/// What the token opens; which of it the account may really use is decided at Google.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The largest token answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A service account's key file, as Google writes it.
#[derive(Deserialize)]
pub(crate) struct ServiceAccount {
    #[serde(rename = "type")]
    kind: String,
    /// The project that the account belongs to.
    pub(crate) project_id: Option<String>,
    private_key_id: Option<String>,
    private_key: String,
    client_email: String,
    token_uri: String,
}

impl ServiceAccount {
    /// Reads a key file.
    ///
    /// # Errors
    /// [`InvalidProvider::Credentials`], which holds nothing of the file.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidProvider> {
        let account: Self = serde_json::from_str(text).map_err(|_| {
            InvalidProvider::Credentials("is no key file of a Google service account; its JSON is expected")
        })?;
        if account.kind != "service_account" {
            return Err(InvalidProvider::Credentials(
                "is of another kind; a key file with `\"type\": \"service_account\"` is expected",
            ));
        }
        Ok(account)
    }
}

impl std::fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceAccount([redacted])")
    }
}

/// Gives the access token of a service account.
pub(crate) struct GoogleTokens {
    lease: Lease<HeaderValue>,
    upstream: Upstream,
    target: Target,
    email: String,
    audience: String,
    header: Header,
    key: EncodingKey,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize)]
struct Claim<'a> {
    iss: &'a str,
    scope: &'static str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default = "hour")]
    expires_in: u64,
}

const fn hour() -> u64 {
    3_600
}

impl GoogleTokens {
    /// Returns the tokens of the account, with connections of their own to the place that gives them.
    ///
    /// # Errors
    /// [`InvalidProvider::Credentials`], if key or address of the key file cannot be used.
    pub(crate) fn new(
        account: ServiceAccount,
        name: gw_types::ProviderName,
        transport: &TransportConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InvalidProvider> {
        let key = EncodingKey::from_rsa_pem(account.private_key.as_bytes()).map_err(|_| {
            InvalidProvider::Credentials("has a `private_key` that is no RSA key; PEM is expected")
        })?;
        let unusable = |_| InvalidProvider::Credentials("has a `token_uri` that cannot be used");
        let location = Location::parse(&account.token_uri).map_err(unusable)?;
        let path = PathAndQuery::try_from(if location.path.is_empty() { "/" } else { &location.path })
            .map_err(|_| unusable(""))?;
        let upstream = Upstream::new(name, location.origin, transport)?;
        let mut headers = HeaderMap::with_capacity(4);
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
        Ok(Self {
            lease: Lease::new(Arc::clone(&clock)),
            target: upstream.target(Method::POST, &path, headers),
            upstream,
            email: account.client_email,
            audience: account.token_uri,
            header: Header { kid: account.private_key_id, ..Header::new(Algorithm::RS256) },
            key,
            clock,
        })
    }

    /// Returns the value of the `authorization` header.
    ///
    /// # Errors
    /// `ProviderAuth` where Google refuses the account, else why no token could be had.
    pub(crate) async fn authorization(&self) -> Result<HeaderValue, GatewayError> {
        self.lease.get(|| self.fetch()).await
    }

    /// Drops a token that was fetched a while ago.
    pub(crate) fn forget(&self) {
        self.lease.forget();
    }

    async fn fetch(&self) -> Result<Fetched<HeaderValue>, GatewayError> {
        let issued = self.clock.utc().seconds();
        let claim = Claim {
            iss: &self.email,
            scope: SCOPE,
            aud: &self.audience,
            iat: issued,
            exp: issued + CLAIM_SECONDS,
        };
        let assertion = jsonwebtoken::encode(&self.header, &claim, &self.key).map_err(|_| {
            GatewayError::new(ErrorKind::ProviderAuth, "the service account's key cannot sign")
        })?;
        let body =
            format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
        let mut response = self.upstream.send(&self.target, &[], Bytes::from(body)).await?;
        let answer = response.body.collect(ANSWER_BYTES_MAX).await.map_err(BodyFault::of_answer)?;
        if !response.status.is_success() {
            return Err(super::lease_refused(response.status));
        }
        let granted: Granted = serde_json::from_slice(&answer).map_err(|_| no_token())?;
        let secret = Secret::new(&granted.access_token).ok_or_else(no_token)?;
        let value = sensitive(&format!("Bearer {}", secret.expose())).ok_or_else(no_token)?;
        Ok(Fetched { value, lifetime: std::time::Duration::from_secs(granted.expires_in) })
    }
}

fn no_token() -> GatewayError {
    GatewayError::new(ErrorKind::MalformedResponse, "the answer to a token request holds no token")
}

impl std::fmt::Debug for GoogleTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoogleTokens").field("lease", &self.lease).finish_non_exhaustive()
    }
}
