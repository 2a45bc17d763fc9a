//! Rewrites a chat request for a server with differences.

use std::ops::Range;

use bytes::Bytes;
use gw_types::{NormalizedRequest, OutputField, TokenCount};

use super::{OutputName, Preset};
use crate::{
    edit::Edits,
    json::{Fault, Reader, quoted},
    openai::{
        ChatEdits,
        encode::{ask_usage, bound_output, name, range},
    },
};

/// Returns the body to send to a server of the preset; the caller's own, without a copy, if nothing changes.
///
/// As [`crate::openai::rewrite_chat`], with two changes more: the output bound stands in the one field that the server takes,
/// and `stream_options` is left out where the server refuses it. The request's facts must have been read from its body by
/// [`crate::openai::read_chat`]. Of `edits`, the output field is the preset's.
pub fn rewrite_chat(request: &NormalizedRequest, edits: &ChatEdits<'_>, preset: &Preset) -> Bytes {
    let Ok(text) = std::str::from_utf8(&request.body) else { return request.body.clone() };
    let facts = &request.facts;
    let mut list = Edits::default();
    if edits.model != &*facts.model {
        list.replace(range(facts.model_span), quoted(edits.model));
    }
    match preset.output {
        OutputName::Either(field) => {
            if let Some(bound) = edits.output_bound {
                bound_output(&mut list, request, text, bound, field);
            }
        }
        OutputName::Only(field) => move_bound(&mut list, request, text, edits.output_bound, field),
    }
    if !preset.takes_stream_options {
        if let Some(options) = find_member(text, "stream_options") {
            list.remove_member(text, options.whole());
        }
    } else if edits.ask_usage && facts.stream && !facts.include_usage {
        ask_usage(&mut list, request, text);
    }
    if list.is_empty() {
        return request.body.clone();
    }
    let mut body = Vec::new();
    list.apply(&request.body, &mut body, 0);
    Bytes::from(body)
}

/// Puts the bound into the one field that the server takes, and takes the other one out.
fn move_bound(
    list: &mut Edits<'_>,
    request: &NormalizedRequest,
    text: &str,
    bound: Option<TokenCount>,
    field: OutputField,
) {
    let other = match field {
        OutputField::MaxTokens => OutputField::MaxCompletionTokens,
        OutputField::MaxCompletionTokens | OutputField::MaxOutputTokens => OutputField::MaxTokens,
    };
    let wanted = find_member(text, name(field));
    let other = find_member(text, name(other));
    let Some(value) = bound.or(request.facts.output.map(|output| output.tokens)) else {
        // A `null` bounds nothing, but a strict server refuses the name.
        if let Some(other) = other {
            list.remove_member(text, other.whole());
        }
        return;
    };
    let value = value.to_string();
    let mut set = |member: &Member| {
        if text.get(member.value.clone()) != Some(value.as_str()) {
            list.replace(member.value.clone(), value.clone());
        }
    };
    match (wanted, other) {
        (Some(wanted), None) => set(&wanted),
        (None, Some(other)) => {
            set(&other);
            list.replace(other.key, format!("\"{}\"", name(field)));
        }
        (Some(wanted), Some(other)) => {
            set(&wanted);
            list.remove_member(text, other.whole());
        }
        (None, None) => {
            list.insert(request.facts.object_start, format!("\"{}\":{value},", name(field)));
        }
    }
}

/// A member of the outermost object.
struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

impl Member {
    fn whole(&self) -> Range<usize> {
        self.key.start..self.value.end
    }
}

fn find_member(object: &str, field: &str) -> Option<Member> {
    memchr::memmem::find(object.as_bytes(), field.as_bytes())?;
    let mut found = None;
    let read = Reader::new(object).object::<Fault>(|reader, key| {
        let value = reader.skip()?;
        if key.raw() == field {
            found = Some(Member { key: key.span(), value });
        }
        Ok(())
    });
    read.ok().and(found)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{NormalizedRequest, Operation, OutputField, RequestContext, TokenCount};

    use super::rewrite_chat;
    use crate::{
        openai::{ChatEdits, read_chat},
        vendors::{OutputName, Preset},
    };

    /// Takes `max_completion_tokens` alone, as OpenAI's reasoning models do.
    fn newer() -> Preset {
        let preset = *Preset::named("groq").unwrap();
        Preset { output: OutputName::Only(OutputField::MaxCompletionTokens), ..preset }
    }

    #[track_caller]
    fn check(preset: &Preset, fields: &str, bound: Option<u64>, expected: &str) {
        let body = Bytes::from(format!(r#"{{"model":"m","messages":[{{"role":"user"}}]{fields}}}"#));
        let facts = read_chat(&body).unwrap();
        let context = RequestContext::default();
        let request = NormalizedRequest { operation: Operation::Chat, body, facts, context };
        let edits = ChatEdits {
            model: "m",
            output_bound: bound.map(TokenCount::new),
            output_field: OutputField::MaxTokens,
            ask_usage: true,
        };
        let sent = rewrite_chat(&request, &edits, preset);
        let sent = std::str::from_utf8(&sent).unwrap();
        serde_json::from_str::<serde_json::Value>(sent).unwrap();
        let rest = sent.replace(r#""model":"m","messages":[{"role":"user"}]"#, "");
        assert_eq!(rest, format!("{{{expected}}}"));
    }

    #[test]
    fn output_token_limit_has_two_names_and_a_default() {
        let (newer, older) = (&newer(), Preset::named("mistral").unwrap());
        check(newer, r#","max_tokens":64"#, None, r#","max_completion_tokens":64"#);
        check(older, r#","max_completion_tokens": 64"#, None, r#","max_tokens": 64"#);
        let both = r#","max_tokens":64,"max_completion_tokens":64"#;
        check(newer, both, None, r#","max_completion_tokens":64"#);
        check(older, both, None, r#","max_tokens":64"#);
        check(older, both, Some(9), r#","max_tokens":9"#);
        check(older, r#","max_completion_tokens":64"#, Some(9), r#","max_tokens":9"#);
        check(older, "", Some(9), r#""max_tokens":9,"#);
        check(older, "", None, "");
        check(older, r#","max_completion_tokens":null"#, None, "");
        check(older, r#","max_completion_tokens":null"#, Some(9), r#","max_tokens":9"#);
        check(older, r#","max_tokens":null"#, Some(9), r#","max_tokens":9"#);
    }

    #[test]
    fn both_names_stay_where_both_are_taken() {
        let preset = Preset::named("vllm").unwrap();
        check(preset, r#","max_tokens":64"#, None, r#","max_tokens":64"#);
        check(preset, r#","max_tokens":64"#, Some(9), r#","max_tokens":9"#);
        check(preset, "", Some(9), r#""max_completion_tokens":9,"#);
    }

    #[test]
    fn usage_is_asked_for_where_that_is_taken() {
        let asked = r#","stream":true,"stream_options":{"include_usage":true}"#;
        check(Preset::named("mistral").unwrap(), asked, None, r#","stream":true"#);
        check(Preset::named("cohere").unwrap(), r#","stream":true"#, None, r#","stream":true"#);
        check(Preset::named("groq").unwrap(), asked, None, asked);
        check(
            Preset::named("groq").unwrap(),
            r#","stream":true"#,
            None,
            r#""stream_options":{"include_usage":true},,"stream":true"#,
        );
    }
}
