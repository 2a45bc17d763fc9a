//! The shape of `gw.toml`: a closed schema, read whole, every fault at once.

mod caching;
mod cluster;
mod deployment;
mod issuer;
mod key;
mod known;
mod ledger;
mod limits;
mod matching;
mod price;
mod provider;
mod residency;
mod route;
mod scopes;
mod semantic;
mod server;
mod server_tls;
mod telemetry;
mod tenant;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use gw_types::{
    Classification, DeploymentName, InvalidName, IssuerName, ModelName, ProviderName, Region, Residency,
    TenantId,
};
use serde::Serialize;
use toml::de::{DeTable, DeValue};

pub(crate) use self::{
    caching::CachingEntry,
    cluster::ClusterEntry,
    deployment::{DeploymentEntry, VocabularyEntry},
    issuer::{IssuerEntry, JwksEntry},
    key::{KeyEntry, KeySource, KeyUse, read as read_key},
    ledger::{Durability, LedgerEntry, Store},
    limits::{BudgetEntry, ScopeEntry},
    matching::MatchEntry,
    provider::{
        AccountEntry, CredentialsEntry, HeaderValue, HttpEntry, ProviderEntry, ProviderKindEntry,
        ScriptEntry, TransportEntry,
    },
    route::{CacheEntry, RouteEntry, TemperatureEntry},
    scopes::{OrganisationEntry, WholeEntry},
    semantic::{DecisionEntry, EmbedderEntry, SemanticEntry},
    server::ServerEntry,
    telemetry::TelemetryEntry,
    tenant::{QueueEntry, TenantEntry},
};
use crate::{
    reader::{Faults, Node, Section, quotable},
    secret::Outside,
    source::{Located, Span},
};

/// The one version of the schema.
const VERSION: i64 = 1;

/// Classifications by name, least sensitive first.
const CLASSIFICATIONS: [(&str, Classification); 4] = [
    (Classification::Public.as_str(), Classification::Public),
    (Classification::Internal.as_str(), Classification::Internal),
    (Classification::Confidential.as_str(), Classification::Confidential),
    (Classification::Restricted.as_str(), Classification::Restricted),
];

/// A configuration as the file says it, defaults filled in. Serializes without secrets.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct File {
    pub(crate) version: i64,
    pub(crate) server: ServerEntry,
    pub(crate) residency: BTreeMap<Residency, Located<BTreeSet<Region>>>,
    pub(crate) providers: BTreeMap<ProviderName, Located<ProviderEntry>>,
    pub(crate) deployments: BTreeMap<DeploymentName, Located<DeploymentEntry>>,
    pub(crate) routes: Vec<Located<RouteEntry>>,
    pub(crate) refused: Vec<Located<MatchEntry>>,
    pub(crate) tenants: BTreeMap<TenantId, Located<TenantEntry>>,
    pub(crate) organisations: BTreeMap<TenantId, Located<OrganisationEntry>>,
    pub(crate) issuers: BTreeMap<IssuerName, Located<IssuerEntry>>,
    pub(crate) models: BTreeMap<ModelName, Located<ScopeEntry>>,
    pub(crate) limits: WholeEntry,
    pub(crate) ledger: LedgerEntry,
    pub(crate) cache: CachingEntry,
    /// Absent: the process is alone.
    pub(crate) cluster: Option<ClusterEntry>,
    /// Absent: nobody is told of requests.
    pub(crate) telemetry: Option<TelemetryEntry>,
}

/// Says who may call without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Nobody: a file without any key is a fault.
    WithKey,
    /// Nobody, with or without: this process alone uses what the file says, so a file without any key is none the worse.
    Nobody,
    /// Everybody who reaches the loopback address: the configuration without a file.
    Anyone,
}

impl Callers {
    /// Returns whether callers come in from outside: only then are there listeners, which need keys and certificates.
    pub(crate) const fn come_in(self) -> bool {
        match self {
            Self::WithKey | Self::Anyone => true,
            Self::Nobody => false,
        }
    }
}

/// The names that the file defines, whether or not what they name is faultless: a fault in one place is not reported
/// again wherever its name is used.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) providers: BTreeSet<String>,
    pub(crate) deployments: BTreeSet<String>,
    pub(crate) tenants: BTreeSet<String>,
    pub(crate) organisations: BTreeSet<String>,
    pub(crate) residency: BTreeSet<String>,
    /// What each provider says its kind is, or its vendor.
    pub(crate) provider_kinds: BTreeMap<String, String>,
    /// The groups that some tenant says it is in.
    pub(crate) tenant_groups: BTreeSet<String>,
}

impl Names {
    fn of(root: &DeTable<'_>) -> Self {
        let keys = |section: &str| match root.get(section).map(toml::Spanned::get_ref) {
            Some(DeValue::Table(table)) => table.keys().map(|key| key.get_ref().to_string()).collect(),
            Some(
                DeValue::String(_)
                | DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_),
            )
            | None => BTreeSet::new(),
        };
        Self {
            providers: keys("providers"),
            deployments: keys("deployments"),
            tenants: keys("tenants"),
            organisations: keys("organisations"),
            residency: keys("residency"),
            provider_kinds: kinds_of_providers(root),
            tenant_groups: groups_of_tenants(root),
        }
    }
}

/// Returns every text that stands in the `groups` of a tenant.
fn groups_of_tenants(root: &DeTable<'_>) -> BTreeSet<String> {
    let tenants = root.get("tenants").and_then(|tenants| tenants.get_ref().as_table());
    let tenants = tenants.into_iter().flat_map(|tenants| tenants.values());
    let groups =
        tenants.filter_map(|tenant| tenant.get_ref().as_table()?.get("groups")?.get_ref().as_array());
    let texts = groups.flat_map(|groups| groups.iter().filter_map(|group| group.get_ref().as_str()));
    texts.map(str::to_owned).collect()
}

/// Returns the `kind` of every provider that has one; the `vendor` where it says one.
fn kinds_of_providers(root: &DeTable<'_>) -> BTreeMap<String, String> {
    let providers = root.get("providers").and_then(|providers| providers.get_ref().as_table());
    let kind = |(name, provider): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
        let provider = provider.get_ref().as_table()?;
        let text = |key: &str| provider.get(key)?.get_ref().as_str();
        // A vendor's models stand in the catalogue under its own name.
        let kind = text("vendor").or_else(|| text("kind"))?;
        Some((name.get_ref().to_string(), kind.to_owned()))
    };
    providers.into_iter().flat_map(|providers| providers.iter().filter_map(kind)).collect()
}

/// Reads the whole file. Where a fault was collected, what it is about is missing or a default.
pub(crate) fn read(root: &DeTable<'_>, faults: &Faults, outside: Outside<'_>, callers: Callers) -> File {
    let names = Names::of(root);
    let mut section = Section::root(root, faults);
    let version = version(&mut section);
    let server_section = section.optional("server").and_then(|node| node.section());
    let server = server::read(server_section, faults, outside);
    let residency = named(section.optional("residency"), |node, _| residency::read(&node));
    let providers = named(section.required("providers", "{ ... }"), |node, _| provider::read(&node, outside));
    let deployments =
        named(section.required("deployments", "{ ... }"), |node, at| deployment::read(&node, at, &names));
    let routes = route::read_all(&mut section, &names);
    let refused = matching::read_refused(&mut section, &names);
    let tenants = tenants(&mut section, callers, |node, at| tenant::read(&node, at, &names, outside));
    let organisations = scopes::organisations(&mut section, &names);
    let issuers = named(section.optional("issuers"), |node, _| issuer::read(&node, outside));
    let models = scopes::models(&mut section);
    let limits = scopes::whole(&mut section);
    let ledger = ledger::read(section.optional("ledger"), outside);
    let cache = caching::read(section.optional("cache"));
    let cluster = cluster::read(section.optional("cluster"), outside);
    let telemetry = telemetry::read(section.optional("telemetry"), outside);
    section.finish();
    if callers == Callers::WithKey && !ledger.keys {
        any_key(&tenants, faults);
    }
    File {
        version,
        server,
        residency,
        providers,
        deployments,
        routes,
        refused,
        tenants,
        organisations,
        issuers,
        models,
        limits,
        ledger,
        cache,
        cluster,
        telemetry,
    }
}

fn version(section: &mut Section<'_>) -> i64 {
    if let Some(node) = section.required("version", "1")
        && let Some(version) = node.whole(i64::MIN..=i64::MAX)
        && version != VERSION
    {
        node.fault(format!("version `{version}` of the schema is not known"), format!("write `{VERSION}`"));
    }
    VERSION
}

/// Reads a table whose keys are names.
fn named<N, T>(node: Option<Node<'_>>, read: impl Fn(Node<'_>, Span) -> Option<T>) -> BTreeMap<N, Located<T>>
where
    N: Ord + std::str::FromStr<Err = InvalidName>,
{
    let Some(section) = node.and_then(|node| node.section()) else { return BTreeMap::new() };
    let mut entries = BTreeMap::new();
    for (key, node) in section.entries() {
        let name = key.value.parse::<N>();
        if let Err(invalid) = &name {
            let message = format!("`{}` is no name", quotable(key.value));
            section.faults().add(key.span, node.path(), message, invalid.to_string());
        }
        let value = read(node, key.span);
        if let (Ok(name), Some(value)) = (name, value) {
            entries.insert(name, Located::new(value, key.span));
        }
    }
    entries
}

fn tenants(
    section: &mut Section<'_>,
    callers: Callers,
    read: impl Fn(Node<'_>, Span) -> Option<TenantEntry>,
) -> BTreeMap<TenantId, Located<TenantEntry>> {
    let node = match callers {
        Callers::WithKey | Callers::Nobody => section.required("tenants", "{ ... }"),
        Callers::Anyone => section.optional("tenants"),
    };
    named(node, read)
}

/// Refuses a file in which nobody has a key: it would answer nobody.
fn any_key(tenants: &BTreeMap<TenantId, Located<TenantEntry>>, faults: &Faults) {
    let keyless = |tenant: &Located<TenantEntry>| tenant.value.keys.is_empty();
    let first = tenants.iter().next();
    if let Some((id, tenant)) = first.filter(|_| faults.is_empty() && tenants.values().all(keyless)) {
        faults.add_absent(
            tenant.span,
            &format!("tenants.{id}.keys"),
            "no tenant has a key, so nobody could call".to_owned(),
            "write `keys = [{ name = \"NAME\", secret = { env = \"NAME\" } }]`, or take a line from `gw keys create`",
        );
    }
}
