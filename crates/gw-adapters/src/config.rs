//! What a provider is configured with, and what can be wrong with it.

use std::time::Duration;

use gw_types::{ProviderName, Secret};

/// Says which wire habits a provider has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI itself: `{base}/chat/completions`, `authorization: Bearer`.
    OpenAi,
    /// Azure OpenAI: `api-key` header.
    AzureOpenAi {
        /// `v1` for `{base}/openai/v1/chat/completions`; anything else, such as `2024-10-21`, goes into the query of
        /// `{base}/openai/deployments/{model}/chat/completions`.
        api_version: String,
    },
    /// Any server that speaks OpenAI chat: as [`ProviderKind::OpenAi`], with the older `max_tokens` and without a key
    /// where none is configured.
    OpenAiCompatible,
}

/// Describes one provider account or server. `Debug` shows neither key nor header values.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The provider's name in the configuration.
    pub name: ProviderName,
    /// Its wire habits.
    pub kind: ProviderKind,
    /// Where it is: `http` or `https`, without user, query or fragment; a path is kept. Empty: the kind's own, which
    /// only [`ProviderKind::OpenAi`] has.
    pub base_url: String,
    /// The key, sent in the kind's own header.
    pub api_key: Option<Secret>,
    /// Headers sent with every call; they win over gw's own where the names are equal.
    pub headers: Vec<(String, Secret)>,
    /// Limits and ways of its connections.
    pub transport: TransportConfig,
}

/// Limits and ways of the connections to one provider.
///
/// A limit of zero is passed at once; there is no value that means "none".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportConfig {
    /// The longest that name look-up, TCP, proxy tunnel and TLS together may take; default 5 s.
    pub connect_timeout: Duration,
    /// The longest that writing a request may take; default 30 s.
    pub write_timeout: Duration,
    /// The longest from the written request to the response head; default 600 s, since a plain answer's head comes
    /// only when the model is done.
    pub head_timeout: Duration,
    /// The longest pause between two pieces of a body; default 120 s. Keep-alives count as pieces here: progress is
    /// the pipeline's matter.
    pub read_idle_timeout: Duration,
    /// The longest wait for one of [`TransportConfig::max_connections`]; default 1 s.
    pub pool_wait_timeout: Duration,
    /// Calls in flight at once, and so (over HTTP/1.1) open connections, idle ones included; default 1,024, at least 1.
    pub max_connections: u32,
    /// Whether HTTP/2 is used: offered by ALPN over TLS, taken for granted without TLS; default `false`, since over
    /// HTTP/1.1 a lost packet stalls one answer only and the cap is exact.
    pub http2: bool,
    /// PEM certificates that are trusted beside the system's.
    pub ca_file: Option<Vec<u8>>,
    /// The proxies to go through.
    pub proxy: ProxyConfig,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(600),
            read_idle_timeout: Duration::from_secs(120),
            pool_wait_timeout: Duration::from_secs(1),
            max_connections: 1_024,
            http2: false,
            ca_file: None,
            proxy: ProxyConfig::default(),
        }
    }
}

/// Names the outbound proxies, in the words of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`; empty text means none.
///
/// `Debug` shows only which are set: a proxy's URL may carry a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// The proxy for `http` providers: `http://[user:password@]host:port`, or `https`.
    pub http: String,
    /// The proxy for `https` providers, asked for a tunnel with `CONNECT`.
    pub https: String,
    /// Hosts, domains and networks that are reached without a proxy, separated by commas; `*` for all.
    pub no_proxy: String,
}

impl std::fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyConfig")
            .field("http", &!self.http.is_empty())
            .field("https", &!self.https.is_empty())
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// Says why a provider cannot be set up. No message holds a key, a header value or a proxy's password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProvider {
    /// The kind has no base URL of its own and none is configured.
    #[error("`base_url` is missing; it must be given for this kind of provider")]
    MissingBaseUrl,
    /// The base URL cannot be used.
    #[error("`base_url` {0}")]
    BaseUrl(&'static str),
    /// The kind needs a key, or a header that takes its place.
    #[error("`api_key` is missing; it must be given for this kind of provider")]
    MissingKey,
    /// The key has characters that no header can carry.
    #[error("`api_key` has characters that no HTTP header can carry; visible ASCII is expected")]
    Key,
    /// A static header's name is no header name, or one that belongs to the transport.
    #[error("header `{0}` cannot be set; a name that does not steer the connection is expected")]
    HeaderName(String),
    /// A static header's value has characters that no header can carry.
    #[error("the value of header `{0}` has characters that no HTTP header can carry")]
    HeaderValue(String),
    /// The API version is empty.
    #[error("`api_version` is empty; `v1` or a date such as `2024-10-21` is expected")]
    ApiVersion,
    /// No connection is allowed.
    #[error("`max_connections` is 0; at least 1 is expected")]
    NoConnections,
    /// The extra certificates cannot be read.
    #[error("`ca_file` holds no certificate that can be read; PEM is expected")]
    CaFile,
    /// A proxy cannot be used.
    #[error("the `{0}` proxy cannot be used; `http://host:port` or `https://host:port` is expected")]
    Proxy(&'static str),
    /// The TLS library refused its own defaults.
    #[error("TLS cannot be set up")]
    Tls,
}
