//! Reads a whole answer into neutral parts.

use bytes::Bytes;
use gw_types::{FinishReason, GatewayError};

use super::{decode, prompt::citation, unread};
use crate::{
    json::Node,
    neutral::{
        ANSWER_TOOL, Content, Message, MessageChoice, Opaque, Origin, RawJson, Signature, Text, Thinking,
        ToolUse, UnreadFields,
    },
};

/// Reads a whole answer into neutral parts.
///
/// # Errors
/// Those of [`super::read_answer`].
pub fn read_message(raw: &Bytes) -> Result<Message, GatewayError> {
    let node = decode::read(raw)?;
    let facts = decode::facts(&node)?;
    let blocks = node.get("content").map(Node::items).unwrap_or_default();
    let mut blocks: Vec<Content> = blocks.iter().filter_map(block).collect();
    blocks.extend(explanation(&node).map(Content::Refusal));
    let reason = finish_of(facts.finish, blocks.iter().any(|block| matches!(block, Content::ToolUse(_))));
    let mut unread = UnreadFields::default();
    unread::look(&node, &mut unread);
    let mut choice = MessageChoice::new(blocks, reason);
    choice.stop_sequence = node.filled("stop_sequence");
    Ok(Message {
        id: node.filled("id"),
        model: node.filled("model"),
        choices: vec![choice],
        usage: facts.usage,
        service_tier: node.get("usage").and_then(|usage| usage.filled("service_tier")),
        unread: unread.into_paths(),
    })
}

/// Returns why an answer ended whose only call was of the tool that stood for a schema: it is an answer after all.
pub(super) fn finish_of(reason: Option<FinishReason>, calls: bool) -> FinishReason {
    match reason {
        Some(FinishReason::ToolCalls) if !calls => FinishReason::Stop,
        Some(reason) => reason,
        None => FinishReason::Other,
    }
}

/// Reads what the provider says about a refusal.
pub(super) fn explanation(node: &Node<'_>) -> Option<String> {
    node.get("stop_details")?.filled("explanation")
}

/// Reads a block; `None` for one without a type.
pub(super) fn block(node: &Node<'_>) -> Option<Content> {
    Some(match node.text("type")?.as_str() {
        "text" => Content::Text(Text {
            text: node.text("text").unwrap_or_default(),
            citations: node
                .get("citations")
                .map(Node::items)
                .unwrap_or_default()
                .iter()
                .map(citation)
                .collect(),
            signature: None,
        }),
        "thinking" => Content::Thinking(Thinking {
            text: node.text("thinking").unwrap_or_default(),
            signature: node.filled("signature").map(|text| Signature::from_wire(&text, Origin::Anthropic)),
        }),
        "redacted_thinking" => {
            let data = node.text("data").unwrap_or_default();
            Content::RedactedThinking(Signature::from_wire(&data, Origin::Anthropic))
        }
        "tool_use" => {
            let input = node.get("input").map_or("{}", |input| input.raw);
            let name = node.text("name").unwrap_or_default();
            if name == ANSWER_TOOL {
                return Some(Content::text(input));
            }
            let id = node.text("id").unwrap_or_default();
            Content::ToolUse(ToolUse { id, name, arguments: input.to_owned(), signature: None })
        }
        _ => Content::Opaque(Opaque { origin: Origin::Anthropic, value: RawJson::new(node.raw)? }),
    })
}
