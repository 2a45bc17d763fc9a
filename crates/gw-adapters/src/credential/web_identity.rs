//! AWS keys for a token of the platform that gw runs on: `AssumeRoleWithWebIdentity` of the security token service.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use gw_types::{Clock, ErrorKind, GatewayError, ProviderName, Secret, UtcTime};
use http::{HeaderMap, HeaderValue, Method, header, uri::PathAndQuery};
use percent_encoding::utf8_percent_encode;

use super::{
    AwsKeys,
    lease::{Fetched, Lease},
};
use crate::{
    InvalidProvider, TransportConfig,
    location::{DATA, Location},
    transport::{BodyFault, Target, Upstream},
};

/// The largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The largest token, in bytes; the service takes at most 20,000 characters.
const TOKEN_BYTES_MAX: usize = 20_000;

/// Gives the keys of a role.
#[derive(Debug)]
pub(crate) struct WebIdentity {
    lease: Lease<AwsKeys>,
    upstream: Upstream,
    target: Target,
    parts: WebIdentityParts,
    clock: Arc<dyn Clock>,
}

/// Which role is taken, and with what.
#[derive(Clone, Debug)]
pub(crate) struct WebIdentityParts {
    /// The role's name: `arn:aws:iam::...:role/...`.
    pub(crate) role: String,
    /// How the session is called in the account's logs.
    pub(crate) session: String,
    /// Where the platform's token is; read anew each time, because the platform replaces it.
    pub(crate) token_file: PathBuf,
    /// Where the service is.
    pub(crate) endpoint: String,
}

impl WebIdentity {
    /// Returns the keys of the role, with connections of their own to the service.
    ///
    /// # Errors
    /// [`InvalidProvider::Credentials`], if the service's address cannot be used.
    pub(crate) fn new(
        parts: WebIdentityParts,
        name: ProviderName,
        transport: &TransportConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InvalidProvider> {
        let location = Location::parse(&parts.endpoint).map_err(|_| {
            InvalidProvider::Credentials("has an address of the security token service that cannot be used")
        })?;
        let upstream = Upstream::new(name, location.origin, transport)?;
        let mut headers = HeaderMap::with_capacity(3);
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
        let target = upstream.target(Method::POST, &PathAndQuery::from_static("/"), headers);
        Ok(Self { lease: Lease::new(Arc::clone(&clock)), upstream, target, parts, clock })
    }

    /// Returns keys that hold.
    ///
    /// # Errors
    /// `ProviderAuth` where the token cannot be read or the service refuses it, else why no keys could be had.
    pub(crate) async fn keys(&self) -> Result<AwsKeys, GatewayError> {
        self.lease.get(|| self.fetch()).await
    }

    /// Drops keys that were fetched a while ago.
    pub(crate) fn forget(&self) {
        self.lease.forget();
    }

    async fn fetch(&self) -> Result<Fetched<AwsKeys>, GatewayError> {
        let token = read_token(self.parts.token_file.clone()).await?;
        let encode = |text: &str| utf8_percent_encode(text, DATA).to_string();
        let body = format!(
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={}",
            encode(&self.parts.role),
            encode(&self.parts.session),
            encode(token.expose()),
        );
        let mut response = self.upstream.send(&self.target, &[], Bytes::from(body)).await?;
        let answer = response.body.collect(ANSWER_BYTES_MAX).await.map_err(BodyFault::of_answer)?;
        if !response.status.is_success() {
            return Err(super::lease_refused(response.status));
        }
        let answer = std::str::from_utf8(&answer).unwrap_or_default();
        read_keys(answer, self.clock.utc()).ok_or_else(|| {
            GatewayError::new(
                ErrorKind::MalformedResponse,
                "the security token service's answer holds no keys",
            )
        })
    }
}

/// Reads the platform's token beside the runtime's own threads, as a file may hang.
async fn read_token(path: PathBuf) -> Result<Secret, GatewayError> {
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
    read.ok()
        .and_then(Result::ok)
        .filter(|text| text.len() <= TOKEN_BYTES_MAX)
        .and_then(|text| Secret::new(&text))
        .ok_or_else(|| {
            GatewayError::new(ErrorKind::ProviderAuth, "the web identity token file cannot be read")
        })
}

/// Reads the service's XML. Each element stands in it once, and no value needs escapes: base64, names, a date.
fn read_keys(answer: &str, now: UtcTime) -> Option<Fetched<AwsKeys>> {
    let element = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim())
    };
    let until: jiff::Timestamp = element("Expiration")?.parse().ok()?;
    let left = until.as_microsecond().saturating_sub(now.micros());
    let value = AwsKeys {
        access_key_id: Secret::new(element("AccessKeyId")?)?,
        secret_access_key: Secret::new(element("SecretAccessKey")?)?,
        session_token: Some(Secret::new(element("SessionToken")?)?),
    };
    Some(Fetched { value, lifetime: Duration::from_micros(u64::try_from(left).unwrap_or(0)) })
}

#[cfg(test)]
mod tests {
    use gw_types::UtcTime;

    use super::read_keys;

    #[test]
    fn keys_are_read_from_the_services_xml() {
        let answer = "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
            <AssumeRoleWithWebIdentityResult><Credentials><SessionToken>t/+=</SessionToken>\
            <SecretAccessKey>s/+</SecretAccessKey><Expiration>1970-01-01T01:00:10Z</Expiration>\
            <AccessKeyId>ASIA1</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>\
            </AssumeRoleWithWebIdentityResponse>";
        let keys = read_keys(answer, UtcTime::from_micros(10_000_000)).unwrap();
        assert_eq!(keys.lifetime.as_secs(), 3_600);
        assert_eq!(keys.value.session_token.unwrap().expose(), "t/+=");
        let found = (keys.value.access_key_id, keys.value.secret_access_key);
        assert_eq!((found.0.expose(), found.1.expose()), ("ASIA1", "s/+"));
        assert_eq!(read_keys(answer, UtcTime::from_micros(i64::MAX)).unwrap().lifetime.as_secs(), 0);
        for cut in ["SessionToken", "SecretAccessKey", "Expiration", "AccessKeyId"] {
            assert!(read_keys(&answer.replace(cut, "X"), UtcTime::default()).is_none());
        }
    }
}
