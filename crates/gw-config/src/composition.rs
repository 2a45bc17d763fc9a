//! The composition root: a configuration becomes a running gateway.

pub(crate) mod spend;

use std::{net::IpAddr, path::Path, sync::Arc};

use arc_swap::ArcSwap;
use gw_adapters::{FetchClient, TransportSnapshot};
use gw_cache::{BuiltInEmbedder, ExactCache, SemanticCache};
use gw_dialects::{
    anthropic::MessagesCodec, completions::CompletionsCodec, openai::ChatCodec, responses::ResponsesCodec,
};
use gw_exec::{Gateway, StateConfig, SystemClock, SystemIds, SystemRandom};
use gw_stores::{LedgerStore, MemoryLedger, SqlConfig, SqlLedger};
use gw_types::{
    BoundedText, Clock, Deployment, DialectCodec, HttpFetch, IdSource, KeyIdentity, KeyStore, Ledger,
    Operation, ProviderName, Random, Secret, TenantId, UtcTime,
};

use crate::{
    Environment, NoEntropy, Reloader, ServerSettings,
    config::Config,
    diagnostics::Diagnostics,
    file::{Callers, Durability, TransportEntry},
    judge::Judge,
    keys::{IssuerTable, LiveKeys},
    parts::{self, Built, Parts},
    vectors::Vectors,
};

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
    /// Who signs tokens that callers may present in the place of a key.
    pub issuers: Issuers,
    /// Addresses, bounds and times of the HTTP server.
    pub server: ServerSettings,
    /// Where the records go.
    pub ledger: Arc<dyn Ledger>,
    /// Digest of the configuration, as in records and in `x-gw-config`.
    pub digest: BoundedText,
    /// Plain fetches, for parts without an HTTP client of their own.
    pub fetch: Arc<dyn HttpFetch>,
    /// What was found that does not refuse the start.
    pub warnings: Diagnostics,
    live: Arc<Live>,
}

/// What a reload replaces beside the policy and the limits of the gateway.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) keys: LiveKeys,
    pub(crate) issuers: ArcSwap<IssuerTable>,
    pub(crate) in_force: ArcSwap<InForce>,
}

/// The configuration in force, and what was built of it that the next one may take over.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) config: Config,
    pub(crate) built: Built,
}

impl KeyStore for Live {
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity> {
        self.keys.identify(presented)
    }

    fn identify_at(&self, presented: &Secret, from: IpAddr, now: UtcTime) -> Option<KeyIdentity> {
        self.keys.identify_at(presented, from, now)
    }

    fn anonymous(&self) -> Option<KeyIdentity> {
        self.keys.anonymous()
    }
}

/// Who signs tokens, by the configuration in force.
#[derive(Clone, Debug)]
pub struct Issuers(Arc<Live>);

impl Issuers {
    /// Returns the issuers of the moment.
    pub fn in_force(&self) -> Arc<IssuerTable> {
        self.0.issuers.load_full()
    }
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
    /// Builds the gateway: opens the ledger and restores what was spent in the current window of every budget. Opens no
    /// socket: that is for the caller to do, once this has succeeded.
    ///
    /// `observe` gets the ledger and returns the one to use, which may look at every record that passes.
    ///
    /// # Errors
    /// Every error that the parts and the analysis of the routes find, or the one that the ledger cannot be opened or read.
    pub async fn build(
        config: &Config,
        seams: Seams,
        observe: impl FnOnce(Arc<dyn Ledger>) -> Arc<dyn Ledger>,
    ) -> Result<Self, Diagnostics> {
        let mut parts = Parts::of(config, None, &seams.clock)?;
        parts.warnings()?;
        let fetch = fetch(config)?;
        let ledger = open_ledger(config)?;
        // The keys of the ledger are known once it is open, and change limits and more.
        let with_stored = config.clone().with_stored_keys()?;
        let config = &with_stored;
        if config.stored.changes.is_some() {
            parts = Parts::of(config, None, &seams.clock)?;
        }
        let warnings = parts.warnings()?;
        spend::restore(config, &parts.limits, &*ledger, seams.clock.utc(), &[]).await?;
        let ledger = observe(ledger);
        let codecs: Vec<(Operation, Arc<dyn DialectCodec>)> = vec![
            (Operation::Chat, Arc::new(ChatCodec)),
            (Operation::Completions, Arc::new(CompletionsCodec)),
            (Operation::Messages, Arc::new(MessagesCodec)),
            (Operation::Responses, Arc::new(ResponsesCodec)),
        ];
        let caching = config.file.cache;
        let digest = parts.policy.digest().clone();
        let state = StateConfig {
            limits: parts.limits,
            exact: ExactCache::new(caching.exact()),
            semantic: SemanticCache::new(caching.semantic(), BuiltInEmbedder::Hashing.embedder()),
            shared_limits: parts::shared(config)?,
            ledger: Arc::clone(&ledger),
            clock: seams.clock,
            random: seams.random,
            ids: seams.ids,
            codecs,
            judge: Some(Arc::new(Judge)),
            embedding: Some(Arc::new(Vectors)),
            // A batch tells no collector.
            spans: config.callers.come_in() && config.file.telemetry.as_ref().is_some_and(|to| to.traces),
        };
        let in_force = ArcSwap::from_pointee(InForce { config: config.clone(), built: parts.built });
        let live = Arc::new(Live {
            keys: LiveKeys::new(parts.keys),
            issuers: ArcSwap::from_pointee(parts.issuers),
            in_force,
        });
        let key_store: Arc<dyn KeyStore> = Arc::<Live>::clone(&live);
        let gateway = Gateway::new(state, parts.policy);
        restore_keys(config, &gateway, &*ledger).await?;
        Ok(Self {
            gateway: Arc::new(gateway),
            key_store,
            issuers: Issuers(Arc::clone(&live)),
            server: ServerSettings::of(config),
            ledger,
            digest,
            fetch,
            warnings,
            live,
        })
    }

    /// Returns every tenant, sorted; [`Gateway::tenant_snapshot`] says how far its limits are used.
    pub fn tenants(&self) -> Vec<TenantId> {
        self.gateway.policy().tenants()
    }

    /// Returns what puts changed configurations in force; `None` where there is no file that could change.
    ///
    /// `environment` is what the changed file is read with.
    pub fn reloader(&self, environment: Arc<dyn Environment>) -> Option<Reloader> {
        let in_force = self.live.in_force.load();
        let from_file = in_force.config.callers == Callers::WithKey;
        from_file.then(|| {
            Reloader::new(
                environment,
                Arc::clone(&self.gateway),
                Arc::clone(&self.live),
                self.server.clone(),
                Arc::clone(&self.ledger),
            )
        })
    }

    /// Returns every deployment and how busy it is, in the order of the names.
    pub fn deployments(&self) -> Vec<DeploymentStatus> {
        let in_force = self.live.in_force.load();
        let providers = &in_force.built.providers;
        let status = |target: &gw_exec::Target| DeploymentStatus {
            deployment: Arc::clone(&target.deployment),
            in_use: self.gateway.deployment_in_use(&target.deployment.name),
            transport: providers.get(&target.deployment.provider).map(|provider| provider.snapshot()),
        };
        self.gateway.policy().targets().iter().map(status).collect()
    }
}

/// Brings back which idempotency keys were used in the last 24 hours.
async fn restore_keys(config: &Config, gateway: &Gateway, ledger: &dyn Ledger) -> Result<(), Diagnostics> {
    let notes = ledger.key_notes_since(gateway.keys_known_since()).await.map_err(|error| {
        let message = format!("the idempotency keys cannot be read from the ledger: {error}");
        let expected = "try again once it can be read";
        config.diagnose(vec![parts::fault(config.file.ledger.store.span, "ledger.store", message, expected)])
    })?;
    gateway.restore_keys(notes);
    Ok(())
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
    let located = config.ledger_store().map_err(|(message, expected)| refuse(message, expected))?;
    let Some(located) = located else { return Ok(MemoryLedger::new(config.memory_records)) };
    if config.callers == Callers::Anyone
        && let LedgerStore::Sqlite(path) = &located
        && let Some(folder) = path.parent()
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        let message = format!("the folder `{}` cannot be made: {}", folder.display(), error.kind());
        return Err(refuse(message, "set `XDG_STATE_HOME` to a folder that can be written"));
    }
    let opened = match config.checkpoint_key() {
        Some(key) => SqlLedger::open_signed(&located, sql(config), key),
        None => SqlLedger::open(&located, sql(config)),
    };
    match opened {
        Ok(ledger) => Ok(ledger),
        Err(error) => {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            Err(refuse(format!("{error}{cause}"), &advice(&located)))
        }
    }
}

fn advice(store: &LedgerStore) -> String {
    match store {
        LedgerStore::Sqlite(path) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).display();
            format!("the folder `{folder}` must exist and be writable, and one process may use the file")
        }
        #[cfg(feature = "postgres")]
        LedgerStore::Postgres { .. } => {
            "the server must answer, and the user may create the schemas `gw` and \
            `gw_node` in the database or own them"
                .to_owned()
        }
    }
}

/// A request holds its place until its record is stored, so the queue must be longer than what may be in flight.
fn sql(config: &Config) -> SqlConfig {
    let default = SqlConfig::default();
    let in_flight = usize::try_from(parts::pool_capacity(config)).unwrap_or(usize::MAX);
    let wanted = in_flight.saturating_mul(2).saturating_add(waiting(config));
    let durability = match config.file.ledger.durability {
        Durability::Process => gw_stores::Durability::Process,
        Durability::Power => gw_stores::Durability::Power,
        Durability::None => gw_stores::Durability::None,
    };
    SqlConfig { queue: default.queue.max(wanted).min(QUEUE_MAX), durability, ..default }
}

/// Returns how many requests may wait for a slot: they hold a place in the ledger's queue as well.
fn waiting(config: &Config) -> usize {
    let waiting: u64 =
        config.file.tenants.values().map(|tenant| u64::from(tenant.value.queue.max_queue)).sum();
    usize::try_from(waiting).unwrap_or(usize::MAX).min(WAITING_MAX)
}

/// Requests that wait in the whole pool, at most.
const WAITING_MAX: usize = 10_000;

/// The longest queue that the store takes.
const QUEUE_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
