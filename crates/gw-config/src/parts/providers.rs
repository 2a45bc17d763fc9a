//! Providers, and an adapter for each deployment.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gw_adapters::{
    InvalidProvider, Provider, ProviderConfig, ProviderCredentials, ProviderKind, ProxyConfig, Script,
    ScriptedAdapter, TransportConfig, TransportSnapshot,
};
use gw_exec::{Target, TargetCredential};
use gw_types::{Adapter, Clock, CredentialName, Deployment, DeploymentName, ProviderName, Secret};
use serde_json::Value;

use super::{
    facts,
    pass_through::{ANY_MODEL, PassThrough},
};
use crate::{
    config::{Config, Proxies},
    file::{
        AccountEntry, CredentialsEntry, DeploymentEntry, HeaderValue, HttpEntry, ProviderEntry,
        ProviderKindEntry, ScriptEntry, TransportEntry,
    },
    reader::Faults,
    source::{Located, Span},
};

/// What was built.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) providers: BTreeMap<ProviderName, Accounts>,
    adapters: BTreeMap<DeploymentName, Adapters>,
    /// Stands in for what could not be built, so that the rest is checked too. Never serves.
    placeholder: Arc<dyn Adapter>,
}

/// A provider with each of its credentials, over the same connections.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    /// With the first credential, or the only one.
    first: Arc<Provider>,
    /// With each, by its name, if there are several.
    named: Vec<(CredentialName, Arc<Provider>)>,
}

/// What calls one deployment.
#[derive(Debug)]
struct Adapters {
    first: Arc<dyn Adapter>,
    named: Vec<TargetCredential>,
}

impl Built {
    /// Returns the deployment with what calls it.
    pub(super) fn target(&self, deployment: Deployment) -> Target {
        match self.adapters.get(&deployment.name) {
            Some(Adapters { first, named }) => Target {
                deployment: Arc::new(deployment),
                adapter: Arc::clone(first),
                credentials: named.as_slice().into(),
            },
            None => Target::new(Arc::new(deployment), Arc::clone(&self.placeholder)),
        }
    }
}

impl Accounts {
    pub(crate) fn snapshot(&self) -> TransportSnapshot {
        self.first.snapshot()
    }

    /// Builds the provider with each credential. Faults are reported; `None`: it cannot be used at all.
    fn new(
        name: &ProviderName,
        entry: &HttpEntry,
        (proxies, clock, at): (&Proxies, &Arc<dyn Clock>, Span),
        faults: &Faults,
    ) -> Option<Self> {
        let Some(one) = entry.accounts.first() else {
            let settings = provider_config(name, entry, None, proxies);
            let first = Provider::new(settings, Arc::clone(clock));
            let first = first.map_err(|invalid| report(&invalid, name, at, entry, faults)).ok()?;
            return Some(Self { first: Arc::new(first), named: Vec::new() });
        };
        let first = Provider::new(provider_config(name, entry, Some(&one.value), proxies), Arc::clone(clock));
        let first = Arc::new(first.map_err(|invalid| report(&invalid, name, one.span, entry, faults)).ok()?);
        let mut named = vec![(one.value.name.clone(), Arc::clone(&first))];
        for account in &entry.accounts[1..] {
            match first.with_account(provider_config(name, entry, Some(&account.value), proxies)) {
                Ok(provider) => named.push((account.value.name.clone(), Arc::new(provider))),
                Err(invalid) => report(&invalid, name, account.span, entry, faults),
            }
        }
        Some(Self { first, named })
    }

    /// Makes what calls a deployment with each credential.
    fn adapters(&self, deployment: &Deployment, any_model: bool) -> Result<Adapters, InvalidProvider> {
        let adapter = |provider: &Provider| {
            let adapter = provider.adapter(deployment)?;
            Ok(if any_model { Arc::new(PassThrough(adapter)) as Arc<dyn Adapter> } else { adapter })
        };
        let named = self
            .named
            .iter()
            .map(|(name, provider)| Ok(TargetCredential { name: name.clone(), adapter: adapter(provider)? }));
        let named = named.collect::<Result<Vec<_>, InvalidProvider>>()?;
        let first = match named.first() {
            Some(one) => Arc::clone(&one.adapter),
            None => adapter(&self.first)?,
        };
        Ok(Adapters { first, named })
    }

    /// Returns whether both are the same, connections included.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.first, &other.first)
    }
}

/// How long the slow behaviour takes to answer.
const SLOW: Duration = Duration::from_secs(2);

/// Builds every provider and every adapter. No connection is opened.
///
/// What was built from `before` is taken over where it would be built again just the same: so a reload leaves
/// connections open.
pub(super) fn build(
    config: &Config,
    before: Option<(&Config, &Built)>,
    clock: &Arc<dyn Clock>,
    faults: &Faults,
) -> Built {
    let placeholder: Arc<dyn Adapter> = Arc::new(ScriptedAdapter::new(Script::echo(), Arc::clone(clock)));
    let mut built = Built { providers: BTreeMap::new(), adapters: BTreeMap::new(), placeholder };
    let mut scripts = BTreeMap::new();
    for (name, entry) in &config.file.providers {
        if let Some(kept) = kept(config, before, name) {
            built.providers.insert(name.clone(), kept);
            continue;
        }
        match &entry.value {
            ProviderEntry::Http(http) => {
                let accounts = Accounts::new(name, http, (&config.proxies, clock, entry.span), faults);
                if let Some(accounts) = accounts {
                    built.providers.insert(name.clone(), accounts);
                }
            }
            ProviderEntry::Scripted(entry) => {
                scripts.insert(name, script(name, &entry.value, faults));
            }
        }
    }
    for (name, entry) in &config.file.deployments {
        let provider = &entry.value.provider.value;
        let any_model = entry.value.model.as_str() == ANY_MODEL;
        let adapters = if let Some(provider) = built.providers.get(provider) {
            match provider.adapters(&facts(name, &entry.value), any_model) {
                Ok(adapters) => adapters,
                Err(invalid) => {
                    let path = format!("deployments.{name}.model");
                    super::report_said(faults, entry.span, &path, &invalid.to_string());
                    continue;
                }
            }
        } else if let Some(Some(script)) = scripts.get(provider) {
            let adapter: Arc<dyn Adapter> = Arc::new(ScriptedAdapter::new(script.clone(), Arc::clone(clock)));
            let first = if any_model { Arc::new(PassThrough(adapter)) } else { adapter };
            Adapters { first, named: Vec::new() }
        } else {
            continue;
        };
        if any_model {
            refuse_any_model(config, name, &entry.value, entry.span, faults);
        }
        built.adapters.insert(name.clone(), adapters);
    }
    built
}

/// Returns the provider as it was built before, if nothing about it has changed: neither what the file says, nor the
/// secrets and files that it names, nor the proxies.
fn kept(config: &Config, before: Option<(&Config, &Built)>, name: &ProviderName) -> Option<Accounts> {
    let (old, built) = before?;
    let entry = |config: &Config| serde_json::to_value(config.file.providers.get(name)?).ok();
    let entry = entry(old).filter(|was| entry(config).as_ref() == Some(was))?;
    let mut same = config.proxies == old.proxies && config.folder == old.folder;
    each_text(&entry, &mut |text| same &= config.outside.same(&old.outside, text, &config.folder));
    built.providers.get(name).filter(|_| same).cloned()
}

/// Visits every text of a value. The names of variables and files are among them.
fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| each_text(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Azure names a deployment of its own in the path, and which format Vertex speaks depends on the model: both are fixed
/// when the adapter is made.
fn refuse_any_model(
    config: &Config,
    name: &DeploymentName,
    entry: &DeploymentEntry,
    at: Span,
    faults: &Faults,
) {
    let provider = config.file.providers.get(&entry.provider.value).map(|provider| &provider.value);
    if let Some(ProviderEntry::Http(http)) = provider
        && let Some((kind, remedy)) = match http.kind {
            ProviderKindEntry::AzureOpenai => {
                Some(("azure-openai", "write the name of the deployment at Azure"))
            }
            ProviderKindEntry::Vertex => Some(("vertex", "write the model's name")),
            ProviderKindEntry::Openai
            | ProviderKindEntry::OpenaiCompatible
            | ProviderKindEntry::Anthropic
            | ProviderKindEntry::Gemini
            | ProviderKindEntry::Ollama
            | ProviderKindEntry::Bedrock => None,
        }
    {
        let path = format!("deployments.{name}.model");
        let message = format!("`{path}` is `{ANY_MODEL}`, which `{kind}` cannot pass on");
        faults.add(at, &path, message, remedy);
    }
}

fn script(name: &ProviderName, entry: &ScriptEntry, faults: &Faults) -> Option<Script> {
    let steps = match entry {
        ScriptEntry::Echo => return Some(Script::echo()),
        ScriptEntry::Slow => return Some(Script::slow(SLOW)),
        ScriptEntry::Steps(steps) => steps,
    };
    // One by one, so that every faulty step is found and has a place.
    for (at, step) in steps.iter().enumerate() {
        if let Err(invalid) = Script::parse(std::slice::from_ref(&step.value)) {
            let said = invalid.to_string().replacen("step 1 of the script", "the step", 1);
            super::report_said(faults, step.span, &format!("providers.{name}.script[{at}]"), &said);
        }
    }
    let lines: Vec<String> = steps.iter().map(|step| step.value.clone()).collect();
    Script::parse(&lines).ok()
}

/// Returns the settings of a provider with one of several credentials, or with its only one.
fn provider_config(
    name: &ProviderName,
    entry: &HttpEntry,
    account: Option<&AccountEntry>,
    proxies: &Proxies,
) -> ProviderConfig {
    let (key, own) = account
        .map_or((&entry.api_key, &entry.credentials), |account| (&account.api_key, &account.credentials));
    ProviderConfig {
        name: name.clone(),
        kind: kind(entry),
        base_url: entry.base_url.value.clone(),
        api_key: key.as_ref().map(|key| key.value.value.clone()),
        credentials: own.as_ref().map(|entry| credentials(&entry.value)),
        headers: entry.headers.iter().filter_map(|(name, value)| header(name, &value.value)).collect(),
        transport: transport(
            &entry.transport,
            entry.ca_file.as_ref().map(|file| file.value.pem.clone()),
            proxies,
        ),
    }
}

fn kind(entry: &HttpEntry) -> ProviderKind {
    let text =
        |value: &Option<Located<String>>| value.as_ref().map(|text| text.value.clone()).unwrap_or_default();
    match entry.kind {
        ProviderKindEntry::Openai => ProviderKind::OpenAi,
        ProviderKindEntry::AzureOpenai => ProviderKind::AzureOpenAi { api_version: text(&entry.api_version) },
        ProviderKindEntry::OpenaiCompatible => ProviderKind::OpenAiCompatible { preset: entry.vendor },
        ProviderKindEntry::Anthropic => ProviderKind::Anthropic,
        ProviderKindEntry::Gemini => ProviderKind::Gemini,
        ProviderKindEntry::Ollama => ProviderKind::Ollama,
        ProviderKindEntry::Vertex => {
            ProviderKind::Vertex { project: text(&entry.project), location: text(&entry.location) }
        }
        ProviderKindEntry::Bedrock => ProviderKind::Bedrock { region: text(&entry.region) },
    }
}

fn credentials(entry: &CredentialsEntry) -> ProviderCredentials {
    match entry {
        CredentialsEntry::ServiceAccount(found) => ProviderCredentials::ServiceAccount(found.value.clone()),
        CredentialsEntry::AwsKeys { access_key_id, secret_access_key, session_token } => {
            ProviderCredentials::AwsKeys {
                access_key_id: access_key_id.value.clone(),
                secret_access_key: secret_access_key.value.clone(),
                session_token: session_token.as_ref().map(|found| found.value.clone()),
            }
        }
        CredentialsEntry::AwsWebIdentity { role, role_session, web_identity_token_file } => {
            ProviderCredentials::AwsWebIdentity {
                role: role.clone(),
                session: role_session.clone(),
                token_file: web_identity_token_file.clone(),
                endpoint: String::new(),
            }
        }
    }
}

fn header(name: &str, value: &HeaderValue) -> Option<(String, Secret)> {
    let value = match value {
        // Text that was read is neither empty nor blank, so it is always a value.
        HeaderValue::Text(text) => Secret::new(text)?,
        HeaderValue::Secret(found) => found.value.clone(),
    };
    Some((name.to_owned(), value))
}

/// Fills what the file leaves out with the transport's own defaults.
pub(crate) fn transport(
    entry: &TransportEntry,
    ca_file: Option<Vec<u8>>,
    proxies: &Proxies,
) -> TransportConfig {
    let default = TransportConfig::default();
    let text = |secret: &Option<Secret>| {
        secret.as_ref().map(|secret| secret.expose().to_owned()).unwrap_or_default()
    };
    TransportConfig {
        connect_timeout: entry.connect_timeout.unwrap_or(default.connect_timeout),
        write_timeout: entry.write_timeout.unwrap_or(default.write_timeout),
        head_timeout: entry.head_timeout.unwrap_or(default.head_timeout),
        read_idle_timeout: entry.read_idle_timeout.unwrap_or(default.read_idle_timeout),
        pool_wait_timeout: entry.pool_wait_timeout.unwrap_or(default.pool_wait_timeout),
        max_connections: entry.max_connections.unwrap_or(default.max_connections),
        http2: entry.http2.unwrap_or(default.http2),
        ca_file,
        proxy: ProxyConfig {
            http: text(&proxies.http),
            https: text(&proxies.https),
            no_proxy: text(&proxies.except),
        },
    }
}

/// Brings what a provider says about itself back to the setting that caused it.
fn report(invalid: &InvalidProvider, name: &ProviderName, at: Span, entry: &HttpEntry, faults: &Faults) {
    let header = |header: &str| entry.headers.get(header).map_or(at, |value| value.span);
    let path = |key: &str| format!("providers.{name}.{key}");
    let (span, path) = match invalid {
        InvalidProvider::MissingBaseUrl | InvalidProvider::BaseUrl(_) => {
            (entry.base_url.span, path("base_url"))
        }
        InvalidProvider::MissingKey => {
            let message = format!("missing `api_key` in `providers.{name}`");
            faults.add(at, &path("api_key"), message, "write `api_key = { env = \"NAME\" }`");
            return;
        }
        InvalidProvider::Key => (span_of(entry.api_key.as_ref(), at), path("api_key")),
        InvalidProvider::HeaderName(of) | InvalidProvider::HeaderValue(of) => {
            (header(of), path(&format!("headers.{of}")))
        }
        InvalidProvider::ApiVersion => (span_of(entry.api_version.as_ref(), at), path("api_version")),
        InvalidProvider::MissingCredentials | InvalidProvider::Credentials(_) => {
            (span_of(entry.credentials.as_ref(), at), path("credentials"))
        }
        InvalidProvider::Project => (span_of(entry.project.as_ref(), at), path("project")),
        InvalidProvider::Location => (span_of(entry.location.as_ref(), at), path("location")),
        InvalidProvider::Region => (span_of(entry.region.as_ref(), at), path("region")),
        InvalidProvider::NoConnections => (at, path("max_connections")),
        InvalidProvider::CaFile => (span_of(entry.ca_file.as_ref(), at), path("ca_file")),
        InvalidProvider::Proxy(_) | InvalidProvider::Tls => (at, format!("providers.{name}")),
    };
    super::report_said(faults, span, &path, &invalid.to_string());
}

fn span_of<T>(located: Option<&Located<T>>, otherwise: Span) -> Span {
    located.map_or(otherwise, |located| located.span)
}
