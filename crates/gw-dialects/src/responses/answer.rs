//! Reads a whole answer into neutral parts.

use bytes::Bytes;
use gw_types::{FinishReason, GatewayError};

use super::{decode, prompt::items::thought};
use crate::{
    failure::malformed,
    json::Node,
    neutral::{
        Citation, Content, Message, MessageChoice, Opaque, Origin, RawJson, Signature, Text, ToolUse,
        UnreadFields,
    },
    openai::answer::{arguments, signature},
};

/// Reads a whole answer into neutral parts. Items that only OpenAI knows, such as its own tools', stay as they are.
///
/// # Errors
/// Those of [`super::read_answer`].
pub fn read_message(raw: &Bytes) -> Result<Message, GatewayError> {
    let facts = decode::read_answer(raw)?;
    let text = std::str::from_utf8(raw).map_err(|_| malformed("the provider's answer is not readable"))?;
    let node = Node::read(text).map_err(|_| malformed("the provider's answer is not readable"))?;
    let items = node.get("output").map(Node::items).unwrap_or_default();
    let mut blocks = Vec::new();
    let mut unread = UnreadFields::default();
    for item in items {
        read_item(item, &mut blocks);
        look_for_unread(item, &mut unread);
    }
    let mut choice = MessageChoice::new(blocks, facts.finish.unwrap_or(FinishReason::Other));
    choice.logprobs = logprobs(items);
    Ok(Message {
        id: node.filled("id"),
        model: node.filled("model"),
        choices: vec![choice],
        usage: facts.usage,
        service_tier: node.filled("service_tier"),
        unread: unread.into_paths(),
    })
}

/// Reads one item of the output.
pub(super) fn read_item(item: &Node<'_>, blocks: &mut Vec<Content>) {
    match item.text("type").as_deref() {
        Some("message") => {
            let content = item.get("content");
            let parts = content.map(Node::items).unwrap_or_default();
            blocks.extend(parts.iter().filter_map(part));
            // Some servers leave the parts out where there is nothing but text.
            let text = content.and_then(Node::as_str).filter(|text| !text.is_empty());
            blocks.extend(text.map(Content::text));
        }
        Some("function_call") => blocks.push(Content::ToolUse(ToolUse {
            id: item.filled("call_id").or(item.filled("id")).unwrap_or_default(),
            name: item.text("name").unwrap_or_default(),
            arguments: arguments(item).unwrap_or_default(),
            signature: signature(item),
        })),
        Some("reasoning") => {
            let parts = |field| item.get(field).map(Node::items).unwrap_or_default();
            blocks.extend(thought(parts("content"), parts("summary"), encrypted(item)));
        }
        Some(_) | None => {
            let value = RawJson::new(item.raw);
            blocks.extend(value.map(|value| Content::Opaque(Opaque { origin: Origin::OpenAi, value })));
        }
    }
}

/// Looks for what is not read of an item: of a message only, for others are read whole.
pub(super) fn look_for_unread(item: &Node<'_>, fields: &mut UnreadFields) {
    if item.text("type").as_deref() != Some("message") {
        return;
    }
    fields.look(item, "output[].", |name| matches!(name, "id" | "role" | "type" | "status" | "content"));
    for part in item.get("content").map(Node::items).unwrap_or_default() {
        fields.look(part, "output[].content[].", |name| {
            matches!(name, "type" | "text" | "refusal" | "annotations" | "logprobs")
        });
        let annotations = part.get("annotations").map(Node::items).unwrap_or_default();
        if annotations.iter().any(|annotation| citation(annotation).is_none()) {
            fields.add("output[].content[].", "annotations");
        }
    }
}

/// Returns the encrypted form of a reasoning item.
pub(super) fn encrypted(item: &Node<'_>) -> Option<Signature> {
    item.filled("encrypted_content").map(|text| Signature::from_wire(&text, Origin::OpenAi))
}

fn part(part: &Node<'_>) -> Option<Content> {
    if let Some(refusal) = part.filled("refusal") {
        return Some(Content::Refusal(refusal));
    }
    let text = part.filled("text")?;
    let annotations = part.get("annotations").map(Node::items).unwrap_or_default();
    let citations = annotations.iter().filter_map(citation).collect();
    Some(Content::Text(Text { text, citations, signature: None }))
}

/// Reads an annotation; files of OpenAI's own stay behind.
pub(super) fn citation(annotation: &Node<'_>) -> Option<Citation> {
    if annotation.text("type").as_deref() != Some("url_citation") {
        return None;
    }
    Some(Citation {
        url: annotation.filled("url"),
        title: annotation.filled("title"),
        quote: None,
        span: annotation.count("start_index").zip(annotation.count("end_index")),
        native: None,
    })
}

/// Returns the log probabilities of all text, as chat writes them.
fn logprobs(items: &[Node<'_>]) -> Option<RawJson> {
    let parts = items.iter().filter_map(|item| item.get("content")).flat_map(Node::items);
    let tokens = parts.filter_map(|part| part.get("logprobs")).flat_map(Node::items);
    as_chat(tokens.map(|token| token.raw))
}

/// Returns log probabilities of tokens as chat writes them; `None` for none.
pub(crate) fn as_chat<'a>(tokens: impl Iterator<Item = &'a str>) -> Option<RawJson> {
    let tokens: Vec<&str> = tokens.collect();
    if tokens.is_empty() {
        return None;
    }
    RawJson::new(&format!("{{\"content\":[{}],\"refusal\":null}}", tokens.join(",")))
}
