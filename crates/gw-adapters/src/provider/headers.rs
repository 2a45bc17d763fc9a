//! The headers that every call to a provider carries.

use gw_types::Secret;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    InvalidProvider, ProviderKind,
    credential::{Credential, sensitive},
};

/// Names that steer the connection or the framing. Whoever could set them could cut requests in two.
const RESERVED: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHORIZATION,
    header::EXPECT,
];

const API_KEY: HeaderName = HeaderName::from_static("api-key");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The version of Anthropic's API that all its features are built on.
const ANTHROPIC_VERSION_DEFAULT: &str = "2023-06-01";

/// Returns the headers: gw's own, the key in the kind's own place, those of the configuration.
///
/// # Errors
/// What of the configuration no header can carry.
pub(super) fn fixed(
    kind: &ProviderKind,
    key: Option<&Secret>,
    configured: &[(String, Secret)],
) -> Result<HeaderMap, InvalidProvider> {
    let mut map = HeaderMap::with_capacity(8 + configured.len());
    map.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    map.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    // Bytes go through untouched and facts are read from them, so they must come as they are.
    map.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    map.insert(header::USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
    if *kind == ProviderKind::Anthropic {
        map.insert(ANTHROPIC_VERSION, HeaderValue::from_static(ANTHROPIC_VERSION_DEFAULT));
    }
    if let Some(key) = key {
        let (name, value) = match kind {
            ProviderKind::OpenAi
            | ProviderKind::OpenAiCompatible { .. }
            | ProviderKind::Ollama
            | ProviderKind::Vertex { .. }
            | ProviderKind::Bedrock { .. } => {
                (header::AUTHORIZATION, sensitive(&format!("Bearer {}", key.expose())))
            }
            ProviderKind::AzureOpenAi { .. } => (API_KEY, sensitive(key.expose())),
            ProviderKind::Anthropic => (X_API_KEY, sensitive(key.expose())),
            ProviderKind::Gemini => (X_GOOG_API_KEY, sensitive(key.expose())),
        };
        map.insert(name, value.ok_or(InvalidProvider::Key)?);
    }
    for (name, value) in configured {
        let name_ = HeaderName::try_from(name.as_str())
            .ok()
            .filter(|name| !RESERVED.contains(name))
            .ok_or_else(|| InvalidProvider::HeaderName(name.clone()))?;
        let value = sensitive(value.expose()).ok_or_else(|| InvalidProvider::HeaderValue(name.clone()))?;
        map.insert(name_, value);
    }
    Ok(map)
}

/// Checks that calls carry a credential where the kind needs one.
///
/// # Errors
/// [`InvalidProvider::MissingKey`], [`InvalidProvider::MissingCredentials`].
pub(super) fn check(
    kind: &ProviderKind,
    headers: &HeaderMap,
    credential: &Credential,
) -> Result<(), InvalidProvider> {
    let places = [header::AUTHORIZATION, API_KEY, X_API_KEY, X_GOOG_API_KEY];
    if places.iter().any(|name| headers.contains_key(name)) {
        return Ok(());
    }
    match (kind, credential) {
        (ProviderKind::Ollama, _) => Ok(()),
        (ProviderKind::OpenAiCompatible { preset }, _) if preset.is_none_or(|preset| !preset.needs_key) => {
            Ok(())
        }
        (
            ProviderKind::OpenAi
            | ProviderKind::OpenAiCompatible { .. }
            | ProviderKind::AzureOpenAi { .. }
            | ProviderKind::Anthropic
            | ProviderKind::Gemini,
            _,
        ) => Err(InvalidProvider::MissingKey),
        (ProviderKind::Vertex { .. } | ProviderKind::Bedrock { .. }, Credential::Fixed) => {
            Err(InvalidProvider::MissingCredentials)
        }
        (
            ProviderKind::Vertex { .. } | ProviderKind::Bedrock { .. },
            Credential::Google(_) | Credential::Aws(_),
        ) => Ok(()),
    }
}
