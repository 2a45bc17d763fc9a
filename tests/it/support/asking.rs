//! What a test asks for.

use bytes::Bytes;
use gw_types::{NormalizedRequest, Operation, RequestContext};
use serde_json::{Value, json};

/// Returns the key of a tenant of [`super::Toml::tenant`].
pub(crate) fn key_of(tenant: &str) -> String {
    format!("key-of-tenant-{tenant}")
}

/// Returns a chat request.
pub(crate) fn chat(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

/// A request of a tenant to a house in this process.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) tenant: &'static str,
    body: Value,
    context: RequestContext,
}

impl Ask {
    /// Returns a plain chat request.
    pub(crate) fn of(tenant: &'static str, model: &str, text: &str) -> Self {
        Self { tenant, body: chat(model, text), context: RequestContext::default() }
    }

    /// Sets a field of the body.
    #[must_use]
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.body[field] = value.into();
        self
    }

    /// Asks for a stream.
    #[must_use]
    pub(crate) fn streaming(self) -> Self {
        self.with("stream", true)
    }

    /// Changes what the headers say.
    #[must_use]
    pub(crate) fn context(mut self, change: impl FnOnce(&mut RequestContext)) -> Self {
        change(&mut self.context);
        self
    }

    /// Returns the model asked for.
    pub(crate) fn model(&self) -> &str {
        self.body["model"].as_str().unwrap()
    }

    /// Returns the request as the server would read it.
    pub(crate) fn request(&self) -> NormalizedRequest {
        let body = Bytes::from(self.body.to_string());
        let facts = gw_dialects::openai::read_chat(&body).unwrap();
        NormalizedRequest { operation: Operation::Chat, body, facts, context: self.context.clone() }
    }
}
