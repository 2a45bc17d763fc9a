//! The composition root: a configuration becomes a running gateway.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use gw_adapters::{FetchClient, Provider, TransportSnapshot};
use gw_cache::{CacheConfig, ExactCache, HashingEmbedder, SemanticCache, SemanticConfig};
use gw_dialects::openai::ChatCodec;
use gw_exec::{Gateway, StateConfig, SystemClock, SystemIds, SystemRandom};
use gw_limits::Limits;
use gw_stores::{MemoryLedger, SqliteConfig, SqliteLedger};
use gw_types::{
    BoundedText, Clock, Deployment, DialectCodec, HttpFetch, IdSource, KeyStore, Ledger, Money, Operation,
    ProviderName, Random, TenantId,
};

use crate::{
    NoEntropy, ServerSettings,
    config::Config,
    diagnostics::Diagnostics,
    file::{Callers, Store, TransportEntry},
    parts::{self, Parts},
};

/// Records kept in memory where the store is `none`.
const MEMORY_RECORDS: usize = 10_000;

/// Time, chance and identifiers: given, so that two gateways built alike behave alike.
#[derive(Clone, Debug)]
pub struct Seams {
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of chance.
    pub random: Arc<dyn Random>,
    /// The source of identifiers.
    pub ids: Arc<dyn IdSource>,
}

impl Seams {
    /// Returns the operating system's.
    ///
    /// # Errors
    /// [`NoEntropy`], if the operating system has none.
    pub fn system() -> Result<Self, NoEntropy> {
        Ok(Self {
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(SystemRandom::new().map_err(|_| NoEntropy)?),
            ids: Arc::new(SystemIds::new().map_err(|_| NoEntropy)?),
        })
    }
}

/// Everything that a configuration makes, ready to serve.
#[derive(Debug)]
pub struct Composition {
    /// The pipeline.
    pub gateway: Arc<Gateway>,
    /// Who a presented key belongs to.
    pub key_store: Arc<dyn KeyStore>,
    /// Addresses, bounds and times of the HTTP server.
    pub server: ServerSettings,
    /// Where the records go.
    pub ledger: Arc<dyn Ledger>,
    /// Digest of the configuration, as in records and in `x-gw-config`.
    pub digest: BoundedText,
    /// Plain fetches, for parts without an HTTP client of their own.
    pub fetch: Arc<dyn HttpFetch>,
    /// What the analysis of the routes found; errors of it refuse `gw check` and not yet the start.
    pub findings: Diagnostics,
    providers: BTreeMap<ProviderName, Arc<Provider>>,
}

/// A deployment and how busy it is.
#[derive(Clone, Debug)]
pub struct DeploymentStatus {
    /// The facts.
    pub deployment: Arc<Deployment>,
    /// Calls in flight.
    pub in_use: u32,
    /// How the connections of its provider stand; `None` for a scripted one, which has none.
    pub transport: Option<TransportSnapshot>,
}

impl Composition {
    /// Builds the gateway: opens the ledger and restores what tenants have spent in the current windows. Opens no
    /// socket: that is for the caller to do, once this has succeeded.
    ///
    /// `observe` gets the ledger and returns the one to use, which may look at every record that passes.
    ///
    /// # Errors
    /// Every fault that the parts and the analysis of the routes find, or the one that the ledger cannot be opened or read.
    pub async fn build(
        config: &Config,
        seams: Seams,
        observe: impl FnOnce(Arc<dyn Ledger>) -> Arc<dyn Ledger>,
    ) -> Result<Self, Diagnostics> {
        let parts = Parts::of(config, &seams.clock)?;
        let fetch = fetch(config)?;
        let ledger = open_ledger(config)?;
        restore_spend(config, &parts.limits, &*ledger, &*seams.clock).await?;
        let ledger = observe(ledger);
        let codec: Arc<dyn DialectCodec> = Arc::new(ChatCodec);
        let embedder = HashingEmbedder::new(HashingEmbedder::DEFAULT_DIMENSIONS);
        let digest = parts.policy.digest().clone();
        let state = StateConfig {
            limits: parts.limits,
            exact: ExactCache::new(CacheConfig::default()),
            semantic: SemanticCache::new(SemanticConfig::default(), Arc::new(embedder)),
            ledger: Arc::clone(&ledger),
            clock: seams.clock,
            random: seams.random,
            ids: seams.ids,
            codecs: vec![(Operation::Chat, codec)],
        };
        Ok(Self {
            gateway: Arc::new(Gateway::new(state, parts.policy)),
            key_store: Arc::new(parts.keys),
            server: ServerSettings::of(config),
            ledger,
            digest,
            fetch,
            findings: Diagnostics::new(parts.findings),
            providers: parts.providers,
        })
    }

    /// Returns every tenant, sorted; [`Gateway::tenant_snapshot`] says how far its limits are used.
    pub fn tenants(&self) -> Vec<TenantId> {
        self.gateway.policy().tenants()
    }

    /// Returns every deployment and how busy it is, in the order of the names.
    pub fn deployments(&self) -> Vec<DeploymentStatus> {
        let status = |target: &gw_exec::Target| DeploymentStatus {
            deployment: Arc::clone(&target.deployment),
            in_use: self.gateway.deployment_in_use(&target.deployment.name),
            transport: self.providers.get(&target.deployment.provider).map(|provider| provider.snapshot()),
        };
        self.gateway.policy().targets().iter().map(status).collect()
    }
}

/// Returns a client for plain fetches, which goes through the same proxies as the providers.
fn fetch(config: &Config) -> Result<Arc<dyn HttpFetch>, Diagnostics> {
    let transport = parts::transport(&TransportEntry::default(), None, &config.proxies);
    let refuse = |message: String| {
        let expected = "correct the proxy variables of the environment";
        config.diagnose(vec![parts::fault(crate::source::Span::default(), "", message, expected)])
    };
    let name = ProviderName::new("fetch").map_err(|invalid| refuse(invalid.to_string()))?;
    match FetchClient::new(name, transport) {
        Ok(client) => Ok(Arc::new(client)),
        Err(invalid) => Err(refuse(invalid.to_string())),
    }
}

fn open_ledger(config: &Config) -> Result<Arc<dyn Ledger>, Diagnostics> {
    let store = &config.file.ledger.store;
    let refuse = |message: String, expected: &str| {
        config.diagnose(vec![parts::fault(store.span, "ledger.store", message, expected)])
    };
    let path = match &store.value {
        Store::None => return Ok(MemoryLedger::new(MEMORY_RECORDS)),
        Store::Sqlite(path) => config.folder.join(path),
    };
    if config.callers == Callers::Anyone
        && let Some(folder) = path.parent()
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        let message = format!("the folder `{}` cannot be made: {}", folder.display(), error.kind());
        return Err(refuse(message, "set `XDG_STATE_HOME` to a folder that can be written"));
    }
    match SqliteLedger::open(&path, sqlite(config)) {
        Ok(ledger) => Ok(ledger),
        Err(error) => {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            Err(refuse(format!("{error}{cause}"), &advice(&path)))
        }
    }
}

fn advice(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    format!("the folder `{}` must exist and be writable, and one process may use the file", folder.display())
}

/// A request holds its place until its record is stored, so the queue must be longer than what may be in flight.
fn sqlite(config: &Config) -> SqliteConfig {
    let default = SqliteConfig::default();
    let wanted = usize::try_from(config.file.server.max_concurrency).unwrap_or(usize::MAX).saturating_mul(2);
    SqliteConfig { queue: default.queue.max(wanted).min(QUEUE_MAX), ..default }
}

/// The longest queue that the store takes.
const QUEUE_MAX: usize = 1 << 20;

/// Brings back what tenants have spent in the current window of their budget.
async fn restore_spend(
    config: &Config,
    limits: &Limits,
    ledger: &dyn Ledger,
    clock: &dyn Clock,
) -> Result<(), Diagnostics> {
    let utc = clock.utc();
    let mut windows: BTreeMap<_, Vec<&TenantId>> = BTreeMap::new();
    for (id, tenant) in &config.file.tenants {
        if let Some(budget) = tenant.value.budget {
            windows.entry(parts::window(budget.window)).or_default().push(id);
        }
    }
    for (window, tenants) in windows {
        let rows = ledger.spend_since(window.start_of(utc)).await.map_err(|error| {
            let message = format!("what was spent cannot be read from the ledger: {error}");
            let span = config.file.ledger.store.span;
            config.diagnose(vec![parts::fault(
                span,
                "ledger.store",
                message,
                "start again once it can be read",
            )])
        })?;
        for id in tenants {
            let spent: Money = rows.iter().filter(|row| row.tenant == *id).map(|row| row.spent).sum();
            if let Some(tenant) = limits.tenant(id) {
                tenant.restore_spend(spent, utc);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
