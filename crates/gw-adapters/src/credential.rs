//! What a call shows a provider: fixed headers, a token that is fetched, or a signature.

mod aws;
mod google;
mod lease;
mod web_identity;

use std::sync::Arc;

use bytes::Bytes;
use gw_types::{ErrorKind, GatewayError, Secret};
use http::{HeaderName, HeaderValue, StatusCode, header};
use smallvec::SmallVec;

pub(crate) use self::{
    aws::{AwsKeys, AwsSigner, KeySource},
    google::{GoogleTokens, ServiceAccount},
    web_identity::{WebIdentity, WebIdentityParts},
};
use crate::transport::Target;

/// Headers of one call.
pub(crate) type CallHeaders = SmallVec<[(HeaderName, HeaderValue); 4]>;

/// What a call shows a provider.
#[derive(Debug)]
pub(crate) enum Credential {
    /// Headers that stand in every target; or nothing.
    Fixed,
    /// A token that Google gives for a signed claim.
    Google(Box<GoogleTokens>),
    /// A signature over the call (AWS Signature Version 4).
    Aws(Box<AwsSigner>),
}

impl Credential {
    /// Adds the headers of a call. Cheap unless a token must be fetched first; cancelling it then leaves nothing behind.
    ///
    /// # Errors
    /// `ProviderAuth`, `ProviderUnavailable`, `ProviderTimeout` or `Transport`, if no token can be had. Never ambiguous: the
    /// call itself has not been made.
    pub(crate) async fn add(
        &self,
        target: &Target,
        body: &Bytes,
        headers: &mut CallHeaders,
    ) -> Result<(), GatewayError> {
        match self {
            Self::Fixed => Ok(()),
            // Boxed, so that the calls of every other provider do not carry room for a fetch.
            Self::Google(tokens) => {
                headers.push((header::AUTHORIZATION, Box::pin(tokens.authorization()).await?));
                Ok(())
            }
            Self::Aws(signer) => Box::pin(signer.sign(target, body, headers)).await,
        }
    }

    /// Says that the provider did not accept the credential: a token that was kept for a while is fetched anew for the next
    /// call.
    pub(crate) fn refused(&self) {
        match self {
            Self::Fixed => {}
            Self::Google(tokens) => tokens.forget(),
            Self::Aws(signer) => signer.forget(),
        }
    }

    /// Returns what a provider may echo of a call: the configured secrets, and those of the call's own headers.
    pub(crate) fn secrets(&self, configured: &Arc<[Secret]>, headers: &CallHeaders) -> Arc<[Secret]> {
        match self {
            Self::Fixed => Arc::clone(configured),
            Self::Google(_) | Self::Aws(_) => {
                let own =
                    headers.iter().filter(|(_, value)| value.is_sensitive()).filter_map(|(_, value)| {
                        let text = value.to_str().ok()?;
                        Secret::new(text.strip_prefix("Bearer ").unwrap_or(text))
                    });
                configured.iter().cloned().chain(own).collect()
            }
        }
    }
}

/// Returns a header value that is never printed, or `None` for anything but visible ASCII and blanks. Other bytes would
/// pass on the wire, but in a credential they are a slip of copy and paste.
pub(crate) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok().filter(|_| text.is_ascii())?;
    value.set_sensitive(true);
    Some(value)
}

/// Says what it means that a request for a token or for keys was refused.
fn lease_refused(status: StatusCode) -> GatewayError {
    let error = match status.as_u16() {
        429 => GatewayError::new(ErrorKind::ProviderRateLimited, "credentials are not given so often"),
        500.. => GatewayError::new(
            ErrorKind::ProviderUnavailable,
            "no credential could be had: the service failed",
        ),
        _ => GatewayError::new(ErrorKind::ProviderAuth, "no credential could be had: it was refused"),
    };
    error.with_status(status.as_u16())
}
