//! Writes a whole answer out of neutral parts as a message.

use bytes::Bytes;
use gw_types::{FinishReason, Usage};

use super::{finish, usage};
use crate::{
    json::Writer,
    neutral::{AnswerStamp, Content, Message, Origin, Signature, Text},
};

/// Returns a whole answer as a caller of messages reads it: the first choice, since the format has only one.
///
/// Opaque state of another provider stands, tagged, where the format keeps its own, so that it comes back.
pub fn write_message(message: &Message, stamp: &AnswerStamp<'_>) -> Bytes {
    let choice = message.choices.first();
    let reason = choice.map_or(FinishReason::Other, |choice| choice.finish);
    let stop_sequence = choice.and_then(|choice| choice.stop_sequence.as_deref());
    let mut json = Writer::default();
    json.object(|json| {
        head(json, stamp.id, message.model.as_deref().unwrap_or(stamp.model));
        json.member_array("content", |json| {
            for content in choice.map(|choice| &*choice.blocks).unwrap_or_default() {
                block(json, content);
            }
        });
        stop(json, reason, stop_sequence);
        json.key("usage");
        usage::write(json, &message.usage.unwrap_or_default(), message.service_tier.as_deref());
    });
    json.into_bytes()
}

/// Writes the members with which a message begins.
pub(super) fn head(json: &mut Writer, id: &str, model: &str) {
    json.member_string("id", id);
    json.member_string("type", "message");
    json.member_string("role", "assistant");
    json.member_string("model", model);
}

/// Writes the members that say why a message ended.
pub(super) fn stop(json: &mut Writer, reason: FinishReason, stop_sequence: Option<&str>) {
    json.member_string("stop_reason", finish::write(reason, stop_sequence.is_some()));
    match stop_sequence {
        Some(text) => json.member_string("stop_sequence", text),
        None => json.member_null("stop_sequence"),
    }
}

fn block(json: &mut Writer, content: &Content) {
    match content {
        Content::Text(text) => {
            self::text(json, text);
            if let Some(signature) = &text.signature {
                redacted(json, signature);
            }
        }
        Content::Refusal(text) => self::text(json, &Text { text: text.clone(), ..Text::default() }),
        Content::ToolUse(call) => {
            if let Some(signature) = &call.signature {
                redacted(json, signature);
            }
            json.object(|json| {
                json.member_string("type", "tool_use");
                json.member_string("id", &call.id);
                json.member_string("name", &call.name);
                json.member_raw("input", call.arguments_object().as_str());
            });
        }
        Content::Thinking(thinking) => json.object(|json| {
            json.member_string("type", "thinking");
            json.member_string("thinking", &thinking.text);
            let signature = thinking.signature.as_ref().map(|signature| signature.to_wire(Origin::Anthropic));
            json.member_string("signature", signature.as_deref().unwrap_or_default());
        }),
        Content::RedactedThinking(data) => redacted(json, data),
        Content::Opaque(opaque) if opaque.origin == Origin::Anthropic => json.raw(opaque.value.as_str()),
        // An answer holds none of these that the format could show.
        Content::Opaque(_)
        | Content::Image(_)
        | Content::Document(_)
        | Content::Audio(_)
        | Content::ToolResult(_) => {}
    }
}

fn text(json: &mut Writer, text: &Text) {
    let own = text.citations.iter().filter_map(|citation| citation.native.as_ref());
    let own: Vec<&str> =
        own.filter(|(origin, _)| *origin == Origin::Anthropic).map(|(_, raw)| raw.as_str()).collect();
    json.object(|json| {
        json.member_string("type", "text");
        json.member_string("text", &text.text);
        if !own.is_empty() {
            json.member_array("citations", |json| own.iter().for_each(|raw| json.raw(raw)));
        }
    });
}

/// Writes a block that its own provider alone can read.
pub(super) fn redacted(json: &mut Writer, data: &Signature) {
    json.object(|json| {
        json.member_string("type", "redacted_thinking");
        json.member_string("data", &data.to_wire(Origin::Anthropic));
    });
}

/// Appends the event that says why an answer ended; `whole` where all of the usage is known and not its output alone.
pub(super) fn message_delta(
    reason: FinishReason,
    stop_sequence: Option<&str>,
    usage: &Usage,
    whole: bool,
    out: &mut bytes::BytesMut,
) {
    event("message_delta", out, |json| {
        json.member_object("delta", |json| stop(json, reason, stop_sequence));
        json.key("usage");
        if whole {
            usage::write(json, usage, None);
        } else {
            json.object(|json| json.member_number("output_tokens", usage.output_total()));
        }
    });
}

/// Appends one event.
pub(super) fn event(name: &str, out: &mut bytes::BytesMut, members: impl FnOnce(&mut Writer)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    Writer::within(out, |json| {
        json.object(|json| {
            json.member_string("type", name);
            members(json);
        });
    });
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use gw_types::FinishReason;

    use super::write_message;
    use crate::{
        anthropic::read_message,
        neutral::{AnswerStamp, Content, Message, MessageChoice, Origin, Signature, Thinking, ToolUse},
    };

    const STAMP: AnswerStamp<'_> = AnswerStamp { id: "msg_1", created: 7, model: "m" };

    fn written(blocks: Vec<Content>, reason: FinishReason) -> String {
        let message = Message { choices: vec![MessageChoice::new(blocks, reason)], ..Message::default() };
        String::from_utf8(write_message(&message, &STAMP).to_vec()).unwrap()
    }

    #[test]
    fn cut_arguments_are_an_object() {
        let call = ToolUse {
            id: "t".to_owned(),
            name: "f".to_owned(),
            arguments: "{\"city\":\"Par".to_owned(),
            signature: None,
        };
        let text = written(vec![Content::ToolUse(call)], FinishReason::Length);
        assert!(text.contains(r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#), "{text}");
        assert!(text.contains(r#""stop_reason":"max_tokens","stop_sequence":null"#), "{text}");
    }

    #[test]
    fn foreign_signatures_are_tagged_and_read_back() {
        let thinking =
            Thinking { text: "a".to_owned(), signature: Some(Signature::new(Origin::Gemini, "S")) };
        let blocks = vec![Content::Thinking(thinking), Content::text("b")];
        let text = written(blocks.clone(), FinishReason::Stop);
        assert!(text.contains(r#""signature":"gw1.gemini.S""#), "{text}");
        let read = read_message(&bytes::Bytes::from(text)).unwrap();
        assert!(read.choices[0].blocks == blocks);
    }
}
