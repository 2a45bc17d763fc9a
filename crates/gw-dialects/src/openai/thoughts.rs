//! Writes reasoning with what lets a provider trust it when it comes back, in the field that OpenRouter has made known.

use crate::{
    json::Writer,
    neutral::{CacheMark, Content, Origin},
};

/// Writes `reasoning_details` if there is any reasoning.
pub(super) fn write<'a>(json: &mut Writer, contents: impl Iterator<Item = &'a Content>) {
    json.member_array("reasoning_details", |json| {
        for (index, content) in contents.enumerate() {
            detail(json, index, content);
        }
    });
}

/// Writes one item of `reasoning_details`; nothing for what is no reasoning.
pub(super) fn detail(json: &mut Writer, index: usize, content: &Content) {
    match content {
        Content::Thinking(thinking) => json.object(|json| {
            json.member_string("type", "reasoning.text");
            json.member_string("text", &thinking.text);
            if let Some(signature) = &thinking.signature {
                json.member_string("signature", &signature.to_wire(Origin::Anthropic));
            }
            json.member_number("index", index);
        }),
        Content::RedactedThinking(data) => json.object(|json| {
            json.member_string("type", "reasoning.encrypted");
            json.member_string("data", &data.to_wire(Origin::OpenAi));
            json.member_number("index", index);
        }),
        Content::Text(_)
        | Content::Image(_)
        | Content::Document(_)
        | Content::Audio(_)
        | Content::ToolUse(_)
        | Content::ToolResult(_)
        | Content::Refusal(_)
        | Content::Opaque(_) => {}
    }
}

/// Writes the mark at which a prompt cache ends.
pub(crate) fn cache_mark(json: &mut Writer, mark: Option<CacheMark>) {
    let Some(mark) = mark else { return };
    json.member_object("cache_control", |json| {
        json.member_string("type", "ephemeral");
        if mark == CacheMark::Long {
            json.member_string("ttl", "1h");
        }
    });
}
