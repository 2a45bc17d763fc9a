//! Rewrites a responses request for one deployment that speaks the format itself.

use bytes::Bytes;
use gw_types::{NormalizedRequest, OutputField, TokenCount};

use crate::{
    edit::Edits,
    json::quoted,
    openai::encode::{find_field, name, range},
};

/// What changes in a request on its way to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponsesEdits<'a> {
    /// The model as the provider knows it.
    pub model: &'a str,
    /// The output bound to send as `max_output_tokens`; `None` leaves what the caller wrote.
    pub output_bound: Option<TokenCount>,
}

/// Returns the body to send: the caller's own, without a copy, if nothing changes; else one copy with the edits spliced in.
///
/// The request's facts must have been read from its body by [`super::read_request`].
pub fn rewrite(request: &NormalizedRequest, edits: &ResponsesEdits<'_>) -> Bytes {
    let Ok(text) = std::str::from_utf8(&request.body) else { return request.body.clone() };
    let facts = &request.facts;
    let mut list = Edits::default();
    if edits.model != &*facts.model {
        list.replace(range(facts.model_span), quoted(edits.model));
    }
    if let Some(bound) = edits.output_bound {
        let field = name(OutputField::MaxOutputTokens);
        match facts.output {
            Some(output) if output.tokens == bound => {}
            Some(output) => list.replace(range(output.span), bound.to_string()),
            None => match find_field(text, field) {
                Some(null) => list.replace(null, bound.to_string()),
                None => list.insert(facts.object_start, format!("\"{field}\":{bound},")),
            },
        }
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
    use gw_types::{NormalizedRequest, Operation, RequestContext, TokenCount};

    use super::{ResponsesEdits, rewrite};
    use crate::responses::read_request;

    #[track_caller]
    fn check(body: &str, model: &str, bound: Option<u64>, expected: &str) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let facts = read_request(&body).unwrap().facts;
        let context = RequestContext::default();
        let request = NormalizedRequest { operation: Operation::Responses, body, facts, context };
        let edits = ResponsesEdits { model, output_bound: bound.map(TokenCount::new) };
        assert_eq!(rewrite(&request, &edits), expected);
    }

    #[test]
    fn i19_edits_change_what_they_name_and_nothing_else() {
        let body = r#"{ "input" : "Hi", "model":"fast","x":1e400,"max_tokens":5 }"#;
        check(body, "fast", None, body);
        check(body, "gpt", None, &body.replace("fast", "gpt"));
        check(body, "fast", Some(9), &body.replacen("{ ", "{\"max_output_tokens\":9, ", 1));
        let bounded = r#"{"model":"m","input":"a","max_output_tokens":100}"#;
        check(bounded, "m", Some(100), bounded);
        check(bounded, "m", Some(9), r#"{"model":"m","input":"a","max_output_tokens":9}"#);
        let null = r#"{"model":"m","input":"a","max_output_tokens":null}"#;
        check(null, "m", Some(9), r#"{"model":"m","input":"a","max_output_tokens":9}"#);
    }
}
