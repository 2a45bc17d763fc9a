//! `POST /admin/v1/reload`.

use gw_config::Reloaded;
use gw_types::{ErrorKind, GatewayError};
use http::StatusCode;
use serde_json::json;

use crate::{
    answer::{self, Answer},
    app::App,
};

/// Reads the configuration again. Answers 200 with what is in force, 422 with every error where the old one goes on.
pub(super) async fn reload(app: &App) -> Result<Answer, GatewayError> {
    let Some(reloads) = app.reloads.get() else {
        let message = "the configuration is from no file that could change";
        return Err(GatewayError::new(ErrorKind::InvalidRequest, message));
    };
    let (code, value) = match reloads.reload("admin").await {
        Ok(Reloaded::Unchanged { digest }) => {
            (StatusCode::OK, json!({"status": "unchanged", "digest": digest.as_str()}))
        }
        Ok(Reloaded::Changed { before, digest, warnings }) => (
            StatusCode::OK,
            json!({
                "status": "changed",
                "before": before.as_str(),
                "digest": digest.as_str(),
                "warnings": warnings.to_values(),
            }),
        ),
        Err(faults) => {
            let digest = app.gateway.policy().digest().clone();
            let errors = faults.to_values();
            let refused = json!({"status": "refused", "digest": digest.as_str(), "errors": errors});
            (StatusCode::UNPROCESSABLE_ENTITY, refused)
        }
    };
    Ok(answer::json(code, value.to_string().into()))
}
