//! Rewrites an embeddings request for one deployment.

use bytes::Bytes;
use gw_types::NormalizedRequest;

use crate::{
    edit::Edits,
    json::quoted,
    openai::encode::{find_field, range},
};

/// What changes in a request on its way to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingsEdits<'a> {
    /// The model as the provider knows it.
    pub model: &'a str,
    /// Whether the provider gives floats only, so that `base64` must not be asked for.
    pub floats_only: bool,
}

/// Returns the body to send: the caller's own, without a copy, if nothing changes.
///
/// The request's facts must have been read from its body by [`super::read_request`]. Every byte outside the model name and,
/// with `floats_only`, the value of `encoding_format` stays.
pub fn rewrite(request: &NormalizedRequest, edits: &EmbeddingsEdits<'_>) -> Bytes {
    let Ok(text) = std::str::from_utf8(&request.body) else { return request.body.clone() };
    let mut list = Edits::default();
    if edits.model != &*request.facts.model {
        list.replace(range(request.facts.model_span), quoted(edits.model));
    }
    if edits.floats_only
        && let Some(value) = find_field(text, "encoding_format")
        && text.get(value.clone()) == Some("\"base64\"")
    {
        list.replace(value, "\"float\"");
    }
    if list.is_empty() {
        return request.body.clone();
    }
    let mut body = Vec::new();
    list.apply(&request.body, &mut body, 0);
    Bytes::from(body)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{NormalizedRequest, Operation, RequestContext};

    use super::{EmbeddingsEdits, rewrite};
    use crate::embeddings::read_request;

    #[track_caller]
    fn check(body: &str, edits: EmbeddingsEdits<'_>, expected: &str) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let facts = read_request(&body).unwrap();
        let context = RequestContext::default();
        let request = NormalizedRequest { operation: Operation::Embeddings, body, facts, context };
        assert_eq!(rewrite(&request, &edits), expected);
    }

    #[test]
    fn i19_only_the_model_changes() {
        let body = r#"{ "input" : ["a"], "model":"fast","x":1e400,"encoding_format":"base64" }"#;
        let edits = |model, floats_only| EmbeddingsEdits { model, floats_only };
        check(body, edits("fast", false), body);
        check(body, edits("m\"1", false), &body.replace("\"fast\"", r#""m\"1""#));
    }

    #[test]
    fn base64_is_not_asked_of_a_provider_without_it() {
        let edits = EmbeddingsEdits { model: "m", floats_only: true };
        let body = r#"{"model":"m","input":"base64","encoding_format":"base64"}"#;
        check(body, edits, r#"{"model":"m","input":"base64","encoding_format":"float"}"#);
        let plain = r#"{"model":"m","input":"base64"}"#;
        check(plain, edits, plain);
        let own = r#"{"model":"m","input":"a","encoding_format":"int8"}"#;
        check(own, edits, own);
    }
}
