//! A configured provider: one origin, its credential, and an adapter for each of its deployments.

use std::sync::Arc;

use gw_types::{Adapter, Clock, Deployment, Secret};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header, uri::PathAndQuery};

use crate::{
    InvalidProvider, ProviderConfig, ProviderKind, TransportSnapshot,
    location::Location,
    openai::{ChatAdapter, ChatAdapterParts, chat_path, output_field},
    transport::Upstream,
};

/// One provider account or server, with its own connections.
///
/// Destination and credential are fixed here, from the configuration; nothing in a request changes either.
#[derive(Debug)]
pub struct Provider {
    kind: ProviderKind,
    upstream: Arc<Upstream>,
    base_path: String,
    headers: HeaderMap,
    secrets: Arc<[Secret]>,
    clock: Arc<dyn Clock>,
}

impl Provider {
    /// Returns the provider. No connection is opened before the first call.
    ///
    /// Costs some milliseconds for the first `https` provider of the process, which reads the system's certificates.
    ///
    /// # Errors
    /// [`InvalidProvider`] says which setting cannot be used.
    pub fn new(config: ProviderConfig, clock: Arc<dyn Clock>) -> Result<Self, InvalidProvider> {
        let ProviderConfig { name, kind, base_url, api_key, headers, transport } = config;
        let location = locate(&kind, &base_url)?;
        let headers = fixed_headers(&kind, api_key.as_ref(), &headers)?;
        let secrets = api_key.into_iter().chain(headers.secrets).collect();
        let upstream = Arc::new(Upstream::new(name, location.origin, &transport)?);
        Ok(Self { kind, upstream, base_path: location.path, headers: headers.map, secrets, clock })
    }

    /// Returns the adapter of one of the provider's deployments. Line and headers of its calls are worked out here.
    ///
    /// # Errors
    /// [`InvalidProvider::BaseUrl`] if base URL and model make no path.
    pub fn adapter(&self, deployment: &Deployment) -> Result<Arc<dyn Adapter>, InvalidProvider> {
        let path = chat_path(&self.kind, &self.base_path, deployment.model.as_str());
        let path = PathAndQuery::try_from(path)
            .map_err(|_| InvalidProvider::BaseUrl("makes no path together with the model's name"))?;
        Ok(Arc::new(ChatAdapter::new(ChatAdapterParts {
            target: self.upstream.target(Method::POST, &path, self.headers.clone()),
            upstream: Arc::clone(&self.upstream),
            output_field: output_field(&self.kind),
            secrets: Arc::clone(&self.secrets),
            clock: Arc::clone(&self.clock),
        })))
    }

    /// Returns how the provider's connections stand.
    pub fn snapshot(&self) -> TransportSnapshot {
        self.upstream.snapshot()
    }
}

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

fn locate(kind: &ProviderKind, base_url: &str) -> Result<Location, InvalidProvider> {
    let url = match (base_url, kind) {
        ("", ProviderKind::OpenAi) => OPENAI_BASE_URL,
        ("", ProviderKind::AzureOpenAi { .. } | ProviderKind::OpenAiCompatible) => {
            return Err(InvalidProvider::MissingBaseUrl);
        }
        (url, _) => url,
    };
    if let ProviderKind::AzureOpenAi { api_version } = kind
        && api_version.trim().is_empty()
    {
        return Err(InvalidProvider::ApiVersion);
    }
    let location = Location::parse(url).map_err(InvalidProvider::BaseUrl)?;
    match location.query {
        Some(_) => Err(InvalidProvider::BaseUrl("has a query (`?`), which a base cannot have")),
        None => Ok(location),
    }
}

struct FixedHeaders {
    map: HeaderMap,
    secrets: Vec<Secret>,
}

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

fn fixed_headers(
    kind: &ProviderKind,
    key: Option<&Secret>,
    configured: &[(String, Secret)],
) -> Result<FixedHeaders, InvalidProvider> {
    let mut map = HeaderMap::with_capacity(8 + configured.len());
    map.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    map.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    // Bytes go through untouched and facts are read from them, so they must come as they are.
    map.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    map.insert(header::USER_AGENT, HeaderValue::from_static(concat!("gw/", env!("CARGO_PKG_VERSION"))));
    if let Some(key) = key {
        let (name, value) = match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => {
                (header::AUTHORIZATION, sensitive(&format!("Bearer {}", key.expose())))
            }
            ProviderKind::AzureOpenAi { .. } => (API_KEY, sensitive(key.expose())),
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
    let authorized = map.contains_key(header::AUTHORIZATION) || map.contains_key(API_KEY);
    match kind {
        ProviderKind::OpenAi | ProviderKind::AzureOpenAi { .. } if !authorized => {
            return Err(InvalidProvider::MissingKey);
        }
        ProviderKind::OpenAi | ProviderKind::AzureOpenAi { .. } | ProviderKind::OpenAiCompatible => {}
    }
    Ok(FixedHeaders { map, secrets: configured.iter().map(|(_, secret)| secret.clone()).collect() })
}

const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// Returns the header value, or `None` for anything but visible ASCII and blanks. Other bytes would pass on the wire, but
/// in a credential they are a slip of copy and paste.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok().filter(|_| text.is_ascii())?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gw_types::{ManualClock, ProviderName, Secret};

    use super::Provider;
    use crate::{InvalidProvider, ProviderConfig, ProviderKind, TransportConfig};

    fn config(kind: ProviderKind) -> ProviderConfig {
        ProviderConfig {
            name: ProviderName::new("p").unwrap(),
            kind,
            base_url: "http://a.example/v1".to_owned(),
            api_key: Secret::new("key-1"),
            headers: Vec::new(),
            transport: TransportConfig::default(),
        }
    }

    fn check(config: ProviderConfig, expected: impl Into<Option<InvalidProvider>>) {
        assert_eq!(Provider::new(config, Arc::new(ManualClock::default())).err(), expected.into());
    }

    fn azure() -> ProviderKind {
        ProviderKind::AzureOpenAi { api_version: "2024-10-21".to_owned() }
    }

    fn header(name: &str, value: &str) -> Vec<(String, Secret)> {
        vec![(name.to_owned(), Secret::new(value).unwrap())]
    }

    #[test]
    fn only_openai_has_a_base_of_its_own() {
        for (kind, expected) in [
            (ProviderKind::OpenAi, None),
            (ProviderKind::OpenAiCompatible, Some(InvalidProvider::MissingBaseUrl)),
            (azure(), Some(InvalidProvider::MissingBaseUrl)),
        ] {
            check(ProviderConfig { base_url: String::new(), ..config(kind) }, expected);
        }
        let query = ProviderConfig { base_url: "http://a/?x".to_owned(), ..config(azure()) };
        check(query, Some(InvalidProvider::BaseUrl("has a query (`?`), which a base cannot have")));
    }

    #[test]
    fn a_key_is_needed_unless_a_header_or_the_kind_stands_in() {
        let keyless = |kind| ProviderConfig { api_key: None, ..config(kind) };
        check(keyless(ProviderKind::OpenAi), Some(InvalidProvider::MissingKey));
        check(keyless(azure()), Some(InvalidProvider::MissingKey));
        check(keyless(ProviderKind::OpenAiCompatible), None);
        check(ProviderConfig { headers: header("Authorization", "Bearer t"), ..keyless(azure()) }, None);
        let odd = ProviderConfig { api_key: Secret::new("k\u{20ac}y"), ..config(azure()) };
        check(odd, Some(InvalidProvider::Key));
    }

    #[test]
    fn headers_cannot_steer_the_connection() {
        for name in ["Host", "content-length", "Transfer-Encoding", "connection", "a b", ""] {
            check(
                ProviderConfig { headers: header(name, "x"), ..config(azure()) },
                Some(InvalidProvider::HeaderName(name.to_owned())),
            );
        }
    }

    #[test]
    fn limits_and_versions_are_checked() {
        let transport = TransportConfig { max_connections: 0, ..TransportConfig::default() };
        check(ProviderConfig { transport, ..config(azure()) }, Some(InvalidProvider::NoConnections));
        let kind = ProviderKind::AzureOpenAi { api_version: " ".to_owned() };
        check(config(kind), Some(InvalidProvider::ApiVersion));
    }

    #[test]
    fn i18_debug_shows_no_secret() {
        let config = ProviderConfig {
            api_key: Secret::new("canary-key"),
            headers: header("x-extra", "canary-header"),
            ..config(ProviderKind::OpenAi)
        };
        let shown = format!("{config:?}");
        let provider = Provider::new(config, Arc::new(ManualClock::default())).unwrap();
        assert!(!format!("{shown}{provider:?}").contains("canary"));
    }
}
