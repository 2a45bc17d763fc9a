//! `/admin/v1/deployments`: what may answer, how busy it is, and how well.

use gw_exec::{BreakerSnapshot, DeploymentSnapshot};
use gw_types::{
    Capability, Classification, CredentialName, Deployment, DeploymentName, GatewayError, ModelName, Pricing,
    ProviderName, Region, UtcTime,
};
use serde::Serialize;

use super::json;
use crate::{answer::Answer, app::App};

#[derive(Debug, Serialize)]
struct Deployments {
    deployments: Vec<Described>,
}

#[derive(Debug, Serialize)]
struct Described {
    name: DeploymentName,
    provider: ProviderName,
    model: ModelName,
    region: Region,
    classification_ceiling: Classification,
    capabilities: Vec<Capability>,
    concurrency: Concurrency,
    breaker: Breaker,
    /// Empty where the provider has one credential alone.
    credentials: Vec<Credential>,
    price: &'static str,
}

#[derive(Debug, Serialize)]
struct Concurrency {
    limit: Option<u32>,
    in_use: u32,
}

#[derive(Debug, Serialize)]
struct Credential {
    name: CredentialName,
    breaker: Breaker,
}

#[derive(Debug, Serialize)]
struct Breaker {
    state: &'static str,
    consecutive_failures: u32,
    open_until: Option<String>,
    cooldown_until: Option<String>,
}

pub(super) fn list(app: &App) -> Result<Answer, GatewayError> {
    let policy = app.gateway.policy();
    let busy = app.gateway.snapshot().deployments;
    // A reload between the two readings may have taken one away.
    let busy_of = |deployment: &Deployment| busy.iter().find(|one| one.name == deployment.name);
    let described = policy.targets().iter().filter_map(|target| {
        let deployment = &target.deployment;
        Some(describe(deployment, busy_of(deployment)?))
    });
    json(&Deployments { deployments: described.collect() })
}

fn describe(deployment: &Deployment, busy: &DeploymentSnapshot) -> Described {
    Described {
        name: deployment.name.clone(),
        provider: deployment.provider.clone(),
        model: deployment.model.clone(),
        region: deployment.region.clone(),
        classification_ceiling: deployment.classification_ceiling,
        capabilities: deployment.capabilities.iter().collect(),
        concurrency: Concurrency {
            limit: deployment.max_concurrency.map(std::num::NonZeroU32::get),
            in_use: busy.in_use,
        },
        breaker: breaker(&busy.breaker),
        credentials: busy
            .credentials
            .iter()
            .map(|one| Credential { name: one.name.clone(), breaker: breaker(&one.breaker) })
            .collect(),
        price: match deployment.pricing {
            Pricing::PerToken(_) => "per_token",
            Pricing::Free => "free",
            Pricing::Unpriced => "unpriced",
        },
    }
}

fn breaker(breaker: &BreakerSnapshot) -> Breaker {
    Breaker {
        state: breaker.state.as_str(),
        consecutive_failures: breaker.consecutive_failures,
        open_until: breaker.open_until.map(UtcTime::to_rfc3339),
        cooldown_until: breaker.cooldown_until.map(UtcTime::to_rfc3339),
    }
}
