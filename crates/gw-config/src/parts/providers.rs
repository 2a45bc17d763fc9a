//! Providers, and an adapter for each deployment.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gw_adapters::{
    InvalidProvider, Provider, ProviderConfig, ProviderKind, ProxyConfig, Script, ScriptedAdapter,
    TransportConfig,
};
use gw_types::{Adapter, Clock, DeploymentName, ProviderName, Secret};

use super::{
    facts,
    pass_through::{ANY_MODEL, PassThrough},
};
use crate::{
    config::{Config, Proxies},
    file::{
        DeploymentEntry, HeaderValue, HttpEntry, ProviderEntry, ProviderKindEntry, ScriptEntry,
        TransportEntry,
    },
    reader::Faults,
    source::{Located, Span},
};

/// What was built.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) providers: BTreeMap<ProviderName, Arc<Provider>>,
    adapters: BTreeMap<DeploymentName, Arc<dyn Adapter>>,
    /// Stands in for what could not be built, so that the rest is checked too. Never serves.
    placeholder: Arc<dyn Adapter>,
}

impl Built {
    pub(super) fn adapter(&self, deployment: &DeploymentName) -> Arc<dyn Adapter> {
        Arc::clone(self.adapters.get(deployment).unwrap_or(&self.placeholder))
    }
}

/// How long the slow behaviour takes to answer.
const SLOW: Duration = Duration::from_secs(2);

/// Builds every provider and every adapter. No connection is opened.
pub(super) fn build(config: &Config, clock: &Arc<dyn Clock>, faults: &Faults) -> Built {
    let placeholder: Arc<dyn Adapter> = Arc::new(ScriptedAdapter::new(Script::echo(), Arc::clone(clock)));
    let mut built = Built { providers: BTreeMap::new(), adapters: BTreeMap::new(), placeholder };
    let mut scripts = BTreeMap::new();
    for (name, entry) in &config.file.providers {
        match &entry.value {
            ProviderEntry::Http(http) => {
                let settings = provider_config(name, http, &config.proxies);
                match Provider::new(settings, Arc::clone(clock)) {
                    Ok(provider) => {
                        built.providers.insert(name.clone(), Arc::new(provider));
                    }
                    Err(invalid) => report(&invalid, name, entry.span, http, faults),
                }
            }
            ProviderEntry::Scripted(entry) => {
                scripts.insert(name, script(name, &entry.value, faults));
            }
        }
    }
    for (name, entry) in &config.file.deployments {
        let provider = &entry.value.provider.value;
        let adapter: Arc<dyn Adapter> = if let Some(provider) = built.providers.get(provider) {
            match provider.adapter(&facts(name, &entry.value)) {
                Ok(adapter) => adapter,
                Err(invalid) => {
                    let path = format!("deployments.{name}.model");
                    super::report_said(faults, entry.span, &path, &invalid.to_string());
                    continue;
                }
            }
        } else if let Some(Some(script)) = scripts.get(provider) {
            Arc::new(ScriptedAdapter::new(script.clone(), Arc::clone(clock)))
        } else {
            continue;
        };
        let adapter = if entry.value.model.as_str() == ANY_MODEL {
            refuse_azure(config, name, &entry.value, entry.span, faults);
            Arc::new(PassThrough(adapter))
        } else {
            adapter
        };
        built.adapters.insert(name.clone(), adapter);
    }
    built
}

/// Azure names a deployment of its own in the path, which is fixed when the adapter is made.
fn refuse_azure(config: &Config, name: &DeploymentName, entry: &DeploymentEntry, at: Span, faults: &Faults) {
    let provider = config.file.providers.get(&entry.provider.value).map(|provider| &provider.value);
    if let Some(ProviderEntry::Http(http)) = provider
        && http.kind == ProviderKindEntry::AzureOpenai
    {
        let path = format!("deployments.{name}.model");
        let message = format!("`{path}` is `{ANY_MODEL}`, which `azure-openai` cannot pass on");
        faults.add(at, &path, message, "write the name of the deployment at Azure");
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

fn provider_config(name: &ProviderName, entry: &HttpEntry, proxies: &Proxies) -> ProviderConfig {
    ProviderConfig {
        name: name.clone(),
        kind: match entry.kind {
            ProviderKindEntry::Openai => ProviderKind::OpenAi,
            ProviderKindEntry::AzureOpenai => ProviderKind::AzureOpenAi {
                api_version: entry
                    .api_version
                    .as_ref()
                    .map(|version| version.value.clone())
                    .unwrap_or_default(),
            },
            ProviderKindEntry::OpenaiCompatible => ProviderKind::OpenAiCompatible,
        },
        base_url: entry.base_url.value.clone(),
        api_key: entry.api_key.as_ref().map(|key| key.value.value.clone()),
        headers: entry.headers.iter().filter_map(|(name, value)| header(name, &value.value)).collect(),
        transport: transport(
            &entry.transport,
            entry.ca_file.as_ref().map(|file| file.value.pem.clone()),
            proxies,
        ),
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
        InvalidProvider::NoConnections => (at, path("max_connections")),
        InvalidProvider::CaFile => (span_of(entry.ca_file.as_ref(), at), path("ca_file")),
        InvalidProvider::Proxy(_) | InvalidProvider::Tls => (at, format!("providers.{name}")),
    };
    super::report_said(faults, span, &path, &invalid.to_string());
}

fn span_of<T>(located: Option<&Located<T>>, otherwise: Span) -> Span {
    located.map_or(otherwise, |located| located.span)
}
