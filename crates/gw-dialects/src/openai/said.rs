//! What the body of a provider's error says, whatever shape it has.

use gw_types::UpstreamDetail;
use serde_json::Value;

use crate::failure::error_text;

/// The longest error body that is read, in bytes. Longer ones are error pages.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// What an error body says. Holds the provider's text, so it never leaves this crate but as an [`UpstreamDetail`].
#[derive(Default)]
pub(super) struct Said {
    message: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) code: Option<String>,
    param: Option<String>,
    /// The code inside Azure's `innererror`.
    pub(super) inner_code: Option<String>,
    /// Whether OpenRouter's moderation flagged the prompt.
    pub(super) flagged: bool,
    /// The HTTP status that the body itself names.
    pub(super) status: Option<u16>,
}

impl Said {
    /// Reads an error body. A body that is no JSON object says nothing: an error page must not reach the caller.
    pub(super) fn read(body: &[u8]) -> Self {
        let read =
            (body.len() <= BODY_BYTES_MAX).then(|| serde_json::from_str::<Value>(error_text(body)).ok());
        let read = read.flatten();
        let Some(value) = read else { return Self::default() };
        // Gemini's compatible endpoint wraps the object in an array.
        let outer = value.get(0).unwrap_or(&value);
        let mut said = Self::default();
        // OpenRouter puts what went wrong with a choice into the choice.
        let inner = &outer["choices"][0]["error"];
        match Some(&outer["error"]).filter(|error| !error.is_null()).unwrap_or(inner) {
            error @ Value::Object(_) => said.take(error),
            Value::String(message) => said.message = Some(message.clone()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
        }
        // xAI puts the code beside a string `error`; Mistral, Cohere and Azure's gateway put everything on top.
        said.take(outer);
        said
    }

    /// Takes what is not known yet from an object.
    fn take(&mut self, object: &Value) {
        let message = ["message", "detail", "error_message", "msg"]
            .iter()
            .find_map(|field| message_in(&object[*field]));
        self.message = self.message.take().or(message);
        // An event of type `error` says no more than that it is one.
        self.kind = self.kind.take().or_else(|| text(&object["type"]).filter(|kind| kind != "error"));
        self.param = self.param.take().or_else(|| text(&object["param"]));
        self.inner_code = self.inner_code.take().or_else(|| text(&object["innererror"]["code"]));
        let metadata = &object["metadata"];
        self.flagged |= metadata["flagged_input"].is_string() || metadata["reasons"].is_array();
        let code = &object["code"];
        let status = [code, &object["status_code"], &object["status"]].into_iter().find_map(status);
        self.status = self.status.or(status);
        // A code that only repeats the status says nothing more.
        if self.code.is_none() && self::status(code).is_none() {
            self.code = text(code).or_else(|| code.as_i64().map(|code| code.to_string()));
        }
    }

    /// Returns whether nothing could be read.
    pub(super) fn is_silent(&self) -> bool {
        self.message.is_none() && self.code.is_none() && self.kind.is_none() && self.status.is_none()
    }

    /// Returns whether the code, the type or the inner code is one of these.
    pub(super) fn is_one_of(&self, names: &[&str]) -> bool {
        let given = [&self.code, &self.kind, &self.inner_code];
        given.into_iter().flatten().any(|given| names.iter().any(|name| given.eq_ignore_ascii_case(name)))
    }

    /// Returns whether the message has one of these phrases, which are in lower case.
    pub(super) fn mentions(&self, phrases: &[&str]) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }

    /// Returns what may stand in the caller's error body; with `own_words` also the provider's type and code.
    pub(super) fn detail(&self, own_words: bool) -> Option<UpstreamDetail> {
        let mut detail = UpstreamDetail::new(self.message.as_deref()?);
        if !own_words {
            return Some(detail);
        }
        if let Some(kind) = &self.kind {
            detail = detail.with_kind(kind);
        }
        if let Some(code) = &self.code {
            detail = detail.with_code(code);
        }
        if let Some(param) = &self.param {
            detail = detail.with_param(param);
        }
        Some(detail)
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns a message: text, or the first `msg` of a list of validation errors.
fn message_in(value: &Value) -> Option<String> {
    text(value).or_else(|| text(&value[0]["msg"])).or_else(|| text(&value["message"]))
}

/// Returns an HTTP error status, written as a number or as text.
fn status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}
