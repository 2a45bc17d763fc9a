//! `/admin/v1/deployments`: what may answer, and how busy it is.

use gw_types::{
    Capability, Classification, Deployment, DeploymentName, GatewayError, ModelName, Pricing, ProviderName,
    Region,
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
    price: &'static str,
}

#[derive(Debug, Serialize)]
struct Concurrency {
    limit: Option<u32>,
    in_use: u32,
}

pub(super) fn list(app: &App) -> Result<Answer, GatewayError> {
    let policy = app.gateway.policy();
    let describe =
        |deployment: &Deployment| describe(deployment, app.gateway.deployment_in_use(&deployment.name));
    let deployments = policy.targets().iter().map(|target| describe(&target.deployment)).collect();
    json(&Deployments { deployments })
}

fn describe(deployment: &Deployment, in_use: u32) -> Described {
    Described {
        name: deployment.name.clone(),
        provider: deployment.provider.clone(),
        model: deployment.model.clone(),
        region: deployment.region.clone(),
        classification_ceiling: deployment.classification_ceiling,
        capabilities: deployment.capabilities.iter().collect(),
        concurrency: Concurrency { limit: deployment.max_concurrency.map(std::num::NonZeroU32::get), in_use },
        price: match deployment.pricing {
            Pricing::PerToken(_) => "per_token",
            Pricing::Free => "free",
            Pricing::Unpriced => "unpriced",
        },
    }
}
