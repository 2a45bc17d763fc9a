//! Providers of the gw model gateway, over one HTTP transport.
//!
//! A [`Provider`] is one configured account or server with its own connections; it makes an
//! [`Adapter`](gw_types::Adapter) for each of its deployments. [`ScriptedAdapter`] plays a script instead, and
//! [`FetchClient`] fetches for parts that have no HTTP client of their own. Which JSON goes out and what comes back
//! means is the dialects' matter; whether to call again is the pipeline's: a call here is one call.
//!
//! ```
//! use std::sync::Arc;
//! use gw_adapters::{Provider, ProviderConfig, ProviderKind, TransportConfig};
//! use gw_types::{ManualClock, ProviderName, Secret};
//!
//! let config = ProviderConfig {
//!     name: ProviderName::new("local").unwrap(),
//!     kind: ProviderKind::OpenAiCompatible { preset: None },
//!     base_url: "http://127.0.0.1:8000/v1".to_owned(),
//!     api_key: Secret::new("hunter22"),
//!     credentials: None,
//!     headers: Vec::new(),
//!     transport: TransportConfig { max_connections: 64, ..TransportConfig::default() },
//! };
//! let provider = Provider::new(config, Arc::new(ManualClock::default())).unwrap();
//! assert_eq!(provider.snapshot().connections_in_use, 0);
//! ```

#![forbid(unsafe_code)]

mod client_tls;
mod config;
mod credential;
mod fetch;
mod http;
mod location;
mod provider;
mod scripted;
mod server_tls;
mod transport;

pub use self::{
    client_tls::{ClientTls, ClientTlsStream},
    config::{
        InvalidProvider, ProviderConfig, ProviderCredentials, ProviderKind, ProxyConfig, TransportConfig,
    },
    fetch::FetchClient,
    provider::Provider,
    scripted::{InvalidScript, Script, ScriptedAdapter},
    server_tls::{InvalidServerTls, ServerTls, TlsStream},
    transport::TransportSnapshot,
};

/// How gw names itself to everyone it calls.
const USER_AGENT: &str = concat!("gw/", env!("CARGO_PKG_VERSION"));
