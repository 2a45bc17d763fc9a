//! `model = "*"`: the provider gets the model name that the caller asked for.

use std::sync::Arc;

use async_trait::async_trait;
use gw_types::{
    Adapter, Answer, AttemptPlan, Deployment, ErrorKind, GatewayError, ModelName, NormalizedRequest, Prepared,
};

/// How a deployment says that it takes any model.
pub(super) const ANY_MODEL: &str = "*";

/// Prepares calls as if the deployment had the caller's model. Everything else is the inner adapter's.
#[derive(Debug)]
pub(super) struct PassThrough(pub(super) Arc<dyn Adapter>);

#[async_trait]
impl Adapter for PassThrough {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        let model = ModelName::new(&request.facts.model).map_err(|_| {
            GatewayError::new(ErrorKind::InvalidRequest, "the model's name cannot be passed on")
                .with_param("model")
        })?;
        self.0.prepare(request, &Deployment { model, ..deployment.clone() }, plan)
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        self.0.call(prepared).await
    }
}
