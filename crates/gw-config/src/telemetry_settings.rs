//! What the server is told of `[telemetry]`.

use std::{collections::HashMap, time::Duration};

use gw_types::{DeploymentName, Secret};

use crate::{
    Config, Reloader,
    file::{DeploymentEntry, ProviderEntry, ProviderKindEntry},
    source::Located,
};

/// What the GenAI conventions call the provider of each deployment.
pub type ProvidersByConvention = HashMap<DeploymentName, String>;

/// Whom to tell of requests and figures, and what of them.
#[derive(Clone, Debug)]
pub struct TelemetrySettings {
    /// The collector's address, without the paths of signals.
    pub endpoint: String,
    /// What `authorization` is sent.
    pub authorization: Option<Secret>,
    /// What the service is called.
    pub service_name: String,
    /// Whether spans are told.
    pub traces: bool,
    /// Whether figures are told.
    pub metrics: bool,
    /// How often the collector is told.
    pub interval: Duration,
    /// The providers, as the configuration at the start has them.
    pub providers: ProvidersByConvention,
}

impl Config {
    /// Returns whom to tell of requests; `None`: nobody.
    pub fn telemetry(&self) -> Option<TelemetrySettings> {
        let entry = self.file.telemetry.as_ref()?;
        Some(TelemetrySettings {
            endpoint: entry.endpoint.value.trim_end_matches('/').to_owned(),
            authorization: entry.authorization.as_ref().and_then(|found| found.value.value.clone()),
            service_name: entry.service_name.clone(),
            traces: entry.traces,
            metrics: entry.metrics,
            interval: entry.interval,
            providers: self.providers_by_convention(),
        })
    }

    fn providers_by_convention(&self) -> ProvidersByConvention {
        let provider = |(name, deployment): (&DeploymentName, &Located<DeploymentEntry>)| {
            let provider = &deployment.value.provider.value;
            let entry = self.file.providers.get(provider).map(|entry| &entry.value);
            (name.clone(), entry.and_then(by_convention).map_or_else(|| provider.to_string(), str::to_owned))
        };
        self.file.deployments.iter().map(provider).collect()
    }
}

impl Reloader {
    /// Returns the providers of the configuration in force.
    pub fn providers_by_convention(&self) -> ProvidersByConvention {
        self.in_force().config.providers_by_convention()
    }
}

/// What the conventions call a provider, where they have a name for its kind or its vendor.
///
/// Source: OpenTelemetry semantic conventions, `gen_ai.provider.name`.
fn by_convention(provider: &ProviderEntry) -> Option<&'static str> {
    let ProviderEntry::Http(http) = provider else { return None };
    if let Some(vendor) = http.vendor {
        return Some(match vendor.name {
            "mistral" => "mistral_ai",
            "xai" => "x_ai",
            other => other,
        });
    }
    match http.kind {
        ProviderKindEntry::Openai => Some("openai"),
        ProviderKindEntry::AzureOpenai => Some("azure.ai.openai"),
        ProviderKindEntry::Anthropic => Some("anthropic"),
        ProviderKindEntry::Gemini => Some("gcp.gemini"),
        ProviderKindEntry::Ollama => Some("ollama"),
        ProviderKindEntry::Vertex => Some("gcp.vertex_ai"),
        ProviderKindEntry::Bedrock => Some("aws.bedrock"),
        ProviderKindEntry::OpenaiCompatible => None,
    }
}
