//! Writes a whole answer out of neutral parts as chat completions.

use bytes::Bytes;
use gw_types::{Operation, Usage};

use super::{finish, request::google_signature, thoughts};
use crate::{
    json::Writer,
    neutral::{AnswerStamp, Citation, Content, Message, MessageChoice, Text, ToolUse, tier_for},
};

/// Returns a whole answer as a caller of chat completions reads it.
///
/// Reasoning stands in `reasoning_content`; where it is signed also in `reasoning_details`, which a caller may give back.
pub fn write_message(message: &Message, stamp: &AnswerStamp<'_>) -> Bytes {
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("id", stamp.id);
        json.member_string("object", "chat.completion");
        json.member_number("created", stamp.created);
        json.member_string("model", message.model.as_deref().unwrap_or(stamp.model));
        json.member_array("choices", |json| {
            for (index, choice) in message.choices.iter().enumerate() {
                self::choice(json, index, choice);
            }
        });
        if let Some(usage) = &message.usage {
            json.key("usage");
            write_usage(json, usage);
        }
        if let Some(tier) = tier_of(message.service_tier.as_deref()) {
            json.member_string("service_tier", tier);
        }
    });
    json.into_bytes()
}

fn choice(json: &mut Writer, index: usize, choice: &MessageChoice) {
    json.object(|json| {
        json.member_number("index", index);
        json.member_object("message", |json| body(json, choice));
        match &choice.logprobs {
            Some(logprobs) => json.member_raw("logprobs", logprobs.as_str()),
            None => json.member_null("logprobs"),
        }
        json.member_string("finish_reason", finish::write(choice.finish));
    });
}

fn body(json: &mut Writer, choice: &MessageChoice) {
    let parts = Parts::of(choice);
    json.member_string("role", "assistant");
    if parts.text.is_empty() && (!parts.calls.is_empty() || !parts.refusal.is_empty()) {
        json.member_null("content");
    } else {
        json.member_string("content", &parts.text);
    }
    if parts.refusal.is_empty() {
        json.member_null("refusal");
    } else {
        json.member_string("refusal", &parts.refusal);
    }
    if !parts.reasoning.is_empty() {
        json.member_string("reasoning_content", &parts.reasoning);
    }
    if parts.thoughts.iter().any(|thought| is_signed(thought)) {
        thoughts::write(json, parts.thoughts.iter().copied());
    }
    if !parts.citations.is_empty() {
        json.member_array("annotations", |json| {
            for (citation, span) in &parts.citations {
                annotation(json, citation, *span);
            }
        });
    }
    if !parts.calls.is_empty() {
        json.member_array("tool_calls", |json| parts.calls.iter().for_each(|call| tool_call(json, call)));
    }
}

/// What a message has fields for.
#[derive(Default)]
struct Parts<'a> {
    text: String,
    refusal: String,
    reasoning: String,
    thoughts: Vec<&'a Content>,
    calls: Vec<&'a ToolUse>,
    /// Citations with an address, and the characters of the text that they support.
    citations: Vec<(&'a Citation, (u64, u64))>,
}

impl<'a> Parts<'a> {
    fn of(choice: &'a MessageChoice) -> Self {
        let mut parts = Self::default();
        let mut characters = 0;
        for block in &choice.blocks {
            match block {
                Content::Text(Text { text, citations, .. }) => {
                    let end = characters + text.chars().count() as u64;
                    let cited = citations.iter().filter(|citation| citation.url.is_some());
                    let span = (characters, end);
                    parts.citations.extend(cited.map(|one| (one, one.span.unwrap_or(span))));
                    characters = end;
                    parts.text.push_str(text);
                }
                Content::Refusal(text) => parts.refusal.push_str(text),
                Content::Thinking(thinking) => {
                    parts.reasoning.push_str(&thinking.text);
                    parts.thoughts.push(block);
                }
                Content::RedactedThinking(_) => parts.thoughts.push(block),
                Content::ToolUse(call) => parts.calls.push(call),
                // An answer holds none of these that chat completions could show.
                Content::Image(_)
                | Content::Document(_)
                | Content::Audio(_)
                | Content::ToolResult(_)
                | Content::Opaque(_) => {}
            }
        }
        parts
    }
}

fn is_signed(content: &Content) -> bool {
    match content {
        Content::Thinking(thinking) => thinking.signature.is_some(),
        Content::RedactedThinking(_) => true,
        Content::Text(_)
        | Content::Image(_)
        | Content::Document(_)
        | Content::Audio(_)
        | Content::ToolUse(_)
        | Content::ToolResult(_)
        | Content::Refusal(_)
        | Content::Opaque(_) => false,
    }
}

/// Writes one annotation; nothing for a citation without an address.
pub(super) fn annotation(json: &mut Writer, citation: &Citation, (start, end): (u64, u64)) {
    let Some(url) = &citation.url else { return };
    json.object(|json| {
        json.member_string("type", "url_citation");
        json.member_object("url_citation", |json| {
            json.member_string("url", url);
            json.member_string("title", citation.title.as_deref().unwrap_or_default());
            json.member_number("start_index", start);
            json.member_number("end_index", end);
        });
    });
}

fn tool_call(json: &mut Writer, call: &ToolUse) {
    json.object(|json| {
        json.member_string("id", &call.id);
        json.member_string("type", "function");
        json.member_object("function", |json| {
            json.member_string("name", &call.name);
            json.member_string("arguments", &call.arguments);
        });
        if let Some(signature) = &call.signature {
            google_signature(json, signature);
        }
    });
}

/// Writes usage in OpenAI's convention: cached input is part of the prompt, reasoning of the completion.
pub(super) fn write_usage(json: &mut Writer, usage: &Usage) {
    let written = usage.cache_write.saturating_add(usage.cache_write_long);
    json.object(|json| {
        json.member_number("prompt_tokens", usage.input_total());
        json.member_number("completion_tokens", usage.output_total());
        json.member_number("total_tokens", usage.total());
        json.member_object("prompt_tokens_details", |json| {
            json.member_number("cached_tokens", usage.cached_input);
            json.member_number("audio_tokens", usage.audio_input);
            if !written.is_zero() {
                json.member_number("cache_write_tokens", written);
            }
        });
        json.member_object("completion_tokens_details", |json| {
            json.member_number("reasoning_tokens", usage.reasoning);
            json.member_number("audio_tokens", usage.audio_output);
        });
    });
}

/// Returns the tier as chat completions say it, where they have a word for it.
pub(super) fn tier_of(tier: Option<&str>) -> Option<&'static str> {
    tier.and_then(|tier| tier_for(Operation::Chat, tier))
}
