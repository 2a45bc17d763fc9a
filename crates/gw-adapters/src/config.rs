//! What a provider is configured with, and what can be wrong with it.

use std::{path::PathBuf, time::Duration};

use gw_dialects::vendors::Preset;
use gw_types::{ProviderName, Secret};

/// Says which wire habits a provider has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI itself: `{base}/chat/completions` and its like, `authorization: Bearer`.
    OpenAi,
    /// Azure OpenAI: `api-key` header.
    AzureOpenAi {
        /// `v1` for `{base}/openai/v1/chat/completions`; anything else, such as `2024-10-21`, goes into the query of
        /// `{base}/openai/deployments/{model}/chat/completions`.
        api_version: String,
    },
    /// Any server that speaks OpenAI chat: as [`ProviderKind::OpenAi`], with the older `max_tokens` and without a key
    /// where none is configured.
    OpenAiCompatible {
        /// The differences of a known server, its base URL among them.
        preset: Option<&'static Preset>,
    },
    /// Anthropic's messages: `x-api-key` header, and `anthropic-version: 2023-06-01` where neither the configuration nor the
    /// caller sends another.
    Anthropic,
    /// The Gemini API: `x-goog-api-key` header.
    Gemini,
    /// Ollama's own chat, at `{base}/api/chat`; embeddings and legacy completions at its compatible endpoints. Without a key
    /// where none is configured.
    Ollama,
    /// Vertex AI, for Google's models and Anthropic's: the token of a service account.
    Vertex {
        /// The Google Cloud project; empty: the service account's own.
        project: String,
        /// The location, such as `europe-west4`, `eu` or `global`; also says where the kind's own base URL is.
        location: String,
    },
    /// Amazon Bedrock's Converse: a signature (AWS Signature Version 4), or a Bedrock API key as `authorization: Bearer`.
    Bedrock {
        /// The region, such as `eu-central-1`; also says where the kind's own base URL is.
        region: String,
    },
}

/// Describes one provider account or server. `Debug` shows neither key nor header values.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The provider's name in the configuration.
    pub name: ProviderName,
    /// Its wire habits.
    pub kind: ProviderKind,
    /// Where it is: `http` or `https`, without user, query or fragment; a path is kept. Empty: the kind's own, which
    /// [`ProviderKind::AzureOpenAi`] and an [`ProviderKind::OpenAiCompatible`] without preset do not have.
    pub base_url: String,
    /// The key, sent in the kind's own header.
    pub api_key: Option<Secret>,
    /// What takes a key's place at [`ProviderKind::Vertex`] and [`ProviderKind::Bedrock`]; refused at any other kind.
    pub credentials: Option<ProviderCredentials>,
    /// Headers sent with every call; they win over gw's own where the names are equal.
    pub headers: Vec<(String, Secret)>,
    /// Limits and ways of its connections, and of those to where its credentials come from.
    pub transport: TransportConfig,
}

/// Credentials that are more than a key. `Debug` shows none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderCredentials {
    /// A Google service account: the text of its JSON key file. A token is fetched from the `token_uri` in it, and fetched
    /// anew five minutes before it ends.
    ServiceAccount(Secret),
    /// Keys of an AWS account or role.
    AwsKeys {
        /// The access key's id.
        access_key_id: Secret,
        /// The key itself.
        secret_access_key: Secret,
        /// The token that belongs to keys of a session.
        session_token: Option<Secret>,
    },
    /// An AWS role for a token of the platform that gw runs on, as Kubernetes projects it into a file.
    AwsWebIdentity {
        /// The role's name: `arn:aws:iam::...:role/...`.
        role: String,
        /// How the session is called in the account's logs; empty: `gw`.
        session: String,
        /// The file with the platform's token; read anew for each session, which lasts an hour.
        token_file: PathBuf,
        /// The address of the security token service; empty: the region's own.
        endpoint: String,
    },
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
    /// The kind needs credentials, and none of its sort are configured.
    #[error("credentials are missing; they must be given for this kind of provider")]
    MissingCredentials,
    /// The credentials cannot be used.
    #[error("`credentials` {0}")]
    Credentials(&'static str),
    /// The project is missing or is no name of one.
    #[error("`project` is no name of a Google Cloud project")]
    Project,
    /// The location is missing or is no name of one.
    #[error("`location` is no name of a location; `europe-west4` or `global` is expected")]
    Location,
    /// The region is missing or is no name of one.
    #[error("`region` is no name of a region; `eu-central-1` is expected")]
    Region,
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
