//! `GET /v1/models` and `GET /v1/models/{id}`.

use gw_types::{Dialect, ErrorKind, GatewayError, KeyIdentity};
use http::{HeaderMap, StatusCode};

use crate::{
    answer::{self, Answer},
    app::App,
    wire,
};

/// Returns the dialect that the caller expects: the path is the same in both, and only one has a version header.
pub(super) fn dialect(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Anthropic } else { Dialect::OpenAi }
}

/// Lists the models that the caller may ask for.
pub(super) fn list(app: &App, identity: &KeyIdentity, dialect: Dialect) -> Answer {
    let names = app.gateway.models_of(identity);
    answer::json(StatusCode::OK, wire::models_body(dialect, &names, app.created))
}

/// Describes one model that the caller may ask for; for any other it says no more than that it does not exist.
pub(super) fn one(app: &App, identity: &KeyIdentity, id: &str, dialect: Dialect) -> Answer {
    let names = app.gateway.models_of(identity);
    match names.iter().find(|name| name.as_str() == id) {
        Some(name) => answer::json(StatusCode::OK, wire::model_body(dialect, name, app.created)),
        None => {
            let error = GatewayError::new(ErrorKind::UnknownModel, "no such model").with_param("model");
            answer::error(dialect, &error, 0, None)
        }
    }
}
