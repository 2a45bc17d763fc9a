//! Rewrites a request for one deployment: a few byte ranges change, everything else stays as the caller wrote it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use gw_types::{BodySpan, NormalizedRequest, OutputField, TokenCount};

use crate::{
    edit::Edits,
    json::{Fault, Reader, quoted},
};

/// What changes in a request on its way to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatEdits<'a> {
    /// The model as the provider knows it.
    pub model: &'a str,
    /// The output bound to send; `None` leaves what the caller wrote.
    pub output_bound: Option<TokenCount>,
    /// The field that carries the bound where the caller named none.
    pub output_field: OutputField,
    /// Whether to ask for the usage chunk of a stream.
    pub ask_usage: bool,
}

/// Returns the body to send: the caller's own, without a copy, if nothing changes; else one copy with the edits spliced
/// in. Every other byte stays, numbers and unknown fields included.
///
/// The request's facts must have been read from its body by [`super::read_chat`]. Usage is asked for only where the
/// caller asked for a stream.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::openai::{ChatEdits, read_chat, rewrite_chat};
/// use gw_types::{NormalizedRequest, Operation, OutputField, RequestContext};
///
/// let body = Bytes::from_static(br#"{ "model":"fast","messages":[{"role":"user","content":"Hi"}],"x":1e400}"#);
/// let facts = read_chat(&body).unwrap();
/// let context = RequestContext::default();
/// let request = NormalizedRequest { operation: Operation::Chat, body, facts, context };
/// let edits =
///     ChatEdits { model: "gpt", output_bound: None, output_field: OutputField::MaxTokens, ask_usage: true };
/// let sent = rewrite_chat(&request, &edits);
/// assert_eq!(sent, br#"{ "model":"gpt","messages":[{"role":"user","content":"Hi"}],"x":1e400}"#.as_slice());
/// ```
pub fn rewrite_chat(request: &NormalizedRequest, edits: &ChatEdits<'_>) -> Bytes {
    // The facts vouch for UTF-8; a body that is none is sent as it is, and the provider refuses it.
    let Ok(text) = std::str::from_utf8(&request.body) else { return request.body.clone() };
    let facts = &request.facts;
    let mut list = Edits::default();
    if edits.model != &*facts.model {
        list.replace(range(facts.model_span), quoted(edits.model));
    }
    if let Some(bound) = edits.output_bound {
        bound_output(&mut list, request, text, bound, edits.output_field);
    }
    if edits.ask_usage && facts.stream && !facts.include_usage {
        ask_usage(&mut list, request, text);
    }
    if list.is_empty() {
        return request.body.clone();
    }
    let mut body = Vec::new();
    list.apply(&request.body, &mut body, 0);
    Bytes::from(body)
}

pub(crate) fn bound_output(
    list: &mut Edits<'_>,
    request: &NormalizedRequest,
    text: &str,
    bound: TokenCount,
    field: OutputField,
) {
    let Some(output) = request.facts.output else {
        return put_field(list, request, text, name(field), bound.to_string());
    };
    if output.tokens == bound {
        return;
    }
    list.replace(range(output.span), bound.to_string());
    // A caller may name the same bound in both fields; then both change.
    let twin = match output.field {
        OutputField::MaxTokens => OutputField::MaxCompletionTokens,
        OutputField::MaxCompletionTokens | OutputField::MaxOutputTokens => OutputField::MaxTokens,
    };
    if let Some(twin) = find_field(text, name(twin))
        && text.get(twin.clone()) != Some("null")
    {
        list.replace(twin, bound.to_string());
    }
}

pub(crate) fn ask_usage(list: &mut Edits<'_>, request: &NormalizedRequest, text: &str) {
    let Some(options) = request.facts.stream_options else {
        let value = r#"{"include_usage":true}"#.to_owned();
        return put_field(list, request, text, "stream_options", value);
    };
    let object = text.get(range(options)).unwrap_or_default();
    if let Some(value) = find_field(object, "include_usage") {
        return list.replace(options.start + value.start..options.start + value.end, "true");
    }
    let empty = object.get(1..).is_some_and(|rest| rest.trim_ascii_start().starts_with('}'));
    let field = if empty { r#""include_usage":true"# } else { r#""include_usage":true,"# };
    list.insert(options.start + 1, field);
}

/// Sets a field that the facts say is absent or `null`. The body holds a model name, so a comma always follows.
pub(crate) fn put_field(
    list: &mut Edits<'_>,
    request: &NormalizedRequest,
    text: &str,
    field: &str,
    value: String,
) {
    match find_field(text, field) {
        Some(null) => list.replace(null, value),
        None => list.insert(request.facts.object_start, format!("\"{field}\":{value},")),
    }
}

/// Returns where the value of a field of the outermost object stands.
///
/// A search for the bare name comes first: it rules most bodies out at memory speed. It misses nothing, because
/// [`super::read_chat`] refuses names spelt with escapes.
pub(crate) fn find_field(object: &str, field: &str) -> Option<Range<usize>> {
    memchr::memmem::find(object.as_bytes(), field.as_bytes())?;
    let mut found = None;
    let read = Reader::new(object).object::<Fault>(|reader, key| {
        let value = reader.skip()?;
        if key.raw() == field {
            found = Some(value);
        }
        Ok(())
    });
    read.ok().and(found)
}

pub(crate) const fn name(field: OutputField) -> &'static str {
    match field {
        OutputField::MaxTokens => "max_tokens",
        OutputField::MaxCompletionTokens => "max_completion_tokens",
        OutputField::MaxOutputTokens => "max_output_tokens",
    }
}

pub(crate) fn range(span: BodySpan) -> Range<usize> {
    span.start..span.end
}
