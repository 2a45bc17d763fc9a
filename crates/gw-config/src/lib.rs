//! Configuration and composition of the gw model gateway.
//!
//! The text of `gw.toml` is read as a closed schema: every fault is found at once, each with its place, its text and
//! the remedy. What was read becomes a running gateway: providers, routes, limits, caches, ledger and keys, each of
//! which checks itself while it is made. Environment and files come in through [`Environment`]; no secret goes out.
//!
//! ```
//! use gw_config::{FixedEnvironment, check};
//! let text = r#"
//! version = 1
//! [providers.local]
//! kind = "openai-compatible"
//! base_url = "http://127.0.0.1:8000/v1"
//!
//! [deployments.small]
//! provider = "local"
//! model = "small"
//! price = "free"
//!
//! [[routes]]
//! name = "all"
//! deployments = ["smal"]
//!
//! [tenants.me]
//! keys = [{ name = "dev", secret = { env = "MY_KEY" } }]
//! "#;
//! let environment = FixedEnvironment::new().with_var("MY_KEY", "a key of mine");
//! let faults = check(text, "gw.toml", &environment).unwrap_err();
//! assert_eq!(
//!     faults.to_string(),
//!     "gw.toml:14:16: unknown deployment `smal` in `routes[0].deployments[0]`; did you mean `small`?",
//! );
//! assert!(check(&text.replace("smal\"]", "small\"]"), "gw.toml", &environment).is_ok());
//! ```

#![forbid(unsafe_code)]

mod built_in;
mod cache_tools;
mod catalogue;
mod check;
mod composition;
mod config;
mod diagnostics;
mod endpoint;
mod environment;
mod file;
mod generation;
mod judge;
mod keys;
mod ledger_store;
mod mask;
mod nearest;
mod outside;
mod parts;
mod reader;
mod record;
mod record_sums;
mod reload;
mod report;
/// JSON Schemas of what gw reads and writes.
pub mod schemas;
mod secret;
mod server_settings;
mod source;
mod stored_keys;
mod telemetry_settings;
/// Every environment variable that gw reads by itself.
pub mod variables;
mod vectors;

pub use gw_adapters::{ServerTls, TlsStream, TransportSnapshot};
pub use gw_cache::evaluate::Share;
pub use gw_stores::{
    BrokenReceipt, ChainFault, CheckpointSigner, Expected, ExportError, ExportFormat, GroupBy, LedgerFile,
    Period, RecordReceipt, ReportRow, Retained, RetainedNodes, StoreError, Sums, Verified,
};

pub use self::{
    built_in::BuiltIn,
    cache_tools::{EvaluatedCache, evaluate_cache},
    catalogue::{Catalogue, CatalogueFilter, ListedModel},
    check::{Checked, check},
    composition::{Composition, DeploymentStatus, Issuers, Seams},
    config::Config,
    diagnostics::{Diagnostic, Diagnostics, Severity},
    endpoint::{BatchLimits, Endpoint},
    environment::{Environment, FixedEnvironment, SystemEnvironment},
    generation::{GenerationForm, GenerationSpec, InvalidGeneration, ResultLines, Sampling, read_generation},
    keys::{Issuer, IssuerTable, Jwks, NewKey, NoEntropy, NotACaller, TokenAlgorithm},
    record::{LedgerSource, NewCheckpointKey},
    record_sums::{RecordGroup, RecordSums, record_sums},
    reload::{Compiled, Fingerprint, Reloaded, Reloader, Watch},
    report::{
        BodyFacts, Explained, PolicyChanges, Question, Replay, ReplaySummary, ReplayedRecord, ServedTable,
    },
    server_settings::{AdminKeys, AdminRole, ServerSettings, TlsInForce},
    stored_keys::{KeyDraft, ListedKey, StoredKeys},
    telemetry_settings::{ProvidersByConvention, TelemetrySettings},
};
