//! `GET /v1/models` and `GET /v1/models/{id}`.

use gw_dialects::openai;
use gw_types::{ErrorKind, GatewayError, KeyIdentity};
use http::StatusCode;

use crate::{
    answer::{self, Answer},
    app::App,
};

/// Lists the models that the caller may ask for.
pub(super) fn list(app: &App, identity: &KeyIdentity) -> Answer {
    let names = app.gateway.models(&identity.tenant);
    answer::json(StatusCode::OK, openai::models_body(&names, app.created))
}

/// Describes one model that the caller may ask for; for any other it says no more than that it does not exist.
pub(super) fn one(app: &App, identity: &KeyIdentity, id: &str) -> Answer {
    let names = app.gateway.models(&identity.tenant);
    match names.iter().find(|name| name.as_str() == id) {
        Some(name) => answer::json(StatusCode::OK, openai::model_body(name, app.created)),
        None => {
            answer::error(&GatewayError::new(ErrorKind::UnknownModel, "no such model").with_param("model"), 0)
        }
    }
}
