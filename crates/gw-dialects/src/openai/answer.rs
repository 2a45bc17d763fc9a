//! Reads a whole answer into neutral parts.

use std::borrow::Cow;

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason, GatewayError};

use super::{decode, finish, unread};
use crate::{
    json::{Node, Value},
    neutral::{
        Citation, Content, Message, MessageChoice, Origin, RawJson, Signature, Text, Thinking, ToolUse,
        UnreadFields,
    },
};

/// Reads a whole answer into neutral parts.
///
/// # Errors
/// Those of [`super::read_answer`].
pub fn read_message(raw: &Bytes) -> Result<Message, GatewayError> {
    let facts = decode::read_answer(raw)?;
    let malformed =
        || GatewayError::new(ErrorKind::MalformedResponse, "the provider's answer is not readable");
    let text = std::str::from_utf8(raw).map_err(|_| malformed())?;
    let node = Node::read(text).map_err(|_| malformed())?;
    let sources = sources(&node);
    let choices = node.get("choices").map(Node::items).unwrap_or_default();
    let mut unread = UnreadFields::default();
    unread::look(&node, &mut unread);
    Ok(Message {
        id: node.filled("id"),
        model: node.filled("model"),
        choices: choices.iter().map(|choice| self::choice(choice, &sources)).collect(),
        usage: facts.usage,
        service_tier: node.filled("service_tier"),
        unread: unread.into_paths(),
    })
}

fn choice(node: &Node<'_>, sources: &[Citation]) -> MessageChoice {
    let mut blocks = Vec::new();
    if let Some(message) = node.get("message") {
        thoughts(message, &mut blocks);
        if let Some(content) = message.get("content") {
            text(content, &mut blocks);
        }
        if let Some(transcript) = message.get("audio").and_then(|audio| audio.filled("transcript")) {
            blocks.push(Content::text(transcript));
        }
        cite(message, sources, &mut blocks);
        blocks.extend(message.filled("refusal").map(Content::Refusal));
        calls(message, &mut blocks);
    }
    let reason = node.filled("finish_reason").map_or(FinishReason::Other, |reason| finish::read(&reason));
    let mut choice = MessageChoice::new(blocks, reason);
    choice.logprobs = logprobs(node);
    choice
}

/// Reads the log probabilities of a choice, which are an object wherever they are any.
pub(super) fn logprobs(choice: &Node<'_>) -> Option<RawJson> {
    choice.get("logprobs").filter(|node| node.is_object()).and_then(|node| RawJson::new(node.raw))
}

/// Reads the sources of the whole answer (Perplexity).
pub(super) fn sources(node: &Node<'_>) -> Vec<Citation> {
    let results = node.get("search_results").map(Node::items).unwrap_or_default();
    if !results.is_empty() {
        let cite = |node: &Node<'_>| Citation {
            url: node.filled("url"),
            title: node.filled("title"),
            ..Citation::default()
        };
        return results.iter().map(cite).collect();
    }
    let addresses = node.get("citations").map(Node::items).unwrap_or_default();
    let addresses = addresses.iter().filter_map(Node::as_str);
    addresses.map(|url| Citation { url: Some(url.into_owned()), ..Citation::default() }).collect()
}

/// Reads reasoning, in whichever of the fields a server has for it.
fn thoughts(message: &Node<'_>, blocks: &mut Vec<Content>) {
    let details = message.get("reasoning_details").map(Node::items).unwrap_or_default();
    for detail in details {
        let signature = detail.filled("signature").map(|text| Signature::from_wire(&text, Origin::Anthropic));
        match detail.text("type").as_deref() {
            Some("reasoning.encrypted") => {
                let data = detail.filled("data");
                blocks.extend(
                    data.map(|data| Content::RedactedThinking(Signature::from_wire(&data, Origin::OpenAi))),
                );
            }
            Some("reasoning.text") => {
                let text = detail.text("text").unwrap_or_default();
                blocks.push(Content::Thinking(Thinking { text, signature }));
            }
            Some(_) | None => {}
        }
    }
    let shown = blocks.iter().any(|block| matches!(block, Content::Thinking(_)));
    let plain = ["reasoning_content", "reasoning"].into_iter().find_map(|field| message.filled(field));
    if let Some(text) = plain.filter(|_| !shown) {
        blocks.insert(0, Content::Thinking(Thinking { text, signature: None }));
    }
}

/// Reads text, or Mistral's parts.
fn text(content: &Node<'_>, blocks: &mut Vec<Content>) {
    if let Some(text) = content.as_str() {
        if !text.is_empty() {
            blocks.push(Content::text(text));
        }
        return;
    }
    for part in content.items() {
        if let Some(thinking) = part.get("thinking") {
            let mut said = Vec::new();
            text(thinking, &mut said);
            let text = said.iter().filter_map(Content::as_text).collect();
            blocks.push(Content::Thinking(Thinking { text, signature: None }));
        } else if let Some(refusal) = part.filled("refusal") {
            blocks.push(Content::Refusal(refusal));
        } else if let Some(said) = part.filled("text").or(part.as_str().map(Cow::into_owned)) {
            match blocks.last_mut() {
                Some(Content::Text(last)) => last.text.push_str(&said),
                Some(_) | None => blocks.push(Content::text(said)),
            }
        }
    }
}

/// Reads what the text is taken from.
fn cite(message: &Node<'_>, sources: &[Citation], blocks: &mut [Content]) {
    let last = blocks.iter_mut().rev().find_map(|block| match block {
        Content::Text(text) => Some(text),
        Content::Image(_)
        | Content::Document(_)
        | Content::Audio(_)
        | Content::ToolUse(_)
        | Content::ToolResult(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::Refusal(_)
        | Content::Opaque(_) => None,
    });
    let Some(Text { citations, .. }) = last else { return };
    let annotations = message.get("annotations").map(Node::items).unwrap_or_default();
    citations.extend(annotations.iter().filter_map(citation));
    citations.extend_from_slice(sources);
}

/// Reads one of OpenAI's annotations.
pub(super) fn citation(annotation: &Node<'_>) -> Option<Citation> {
    let cited = annotation.get("url_citation")?;
    Some(Citation {
        url: cited.filled("url"),
        title: cited.filled("title"),
        quote: cited.filled("content"),
        span: cited.count("start_index").zip(cited.count("end_index")),
        native: None,
    })
}

fn calls(message: &Node<'_>, blocks: &mut Vec<Content>) {
    let calls = message.get("tool_calls").map(Node::items).unwrap_or_default();
    for (index, call) in calls.iter().enumerate() {
        if let Some(function) = call.get("function") {
            let id = call.filled("id").unwrap_or_else(|| format!("call_{index}"));
            blocks.push(Content::ToolUse(self::call(id, function, signature(call))));
        }
    }
    if let Some(function) = message.get("function_call") {
        blocks.push(Content::ToolUse(call("call_0".to_owned(), function, None)));
    }
}

fn call(id: String, function: &Node<'_>, signature: Option<Signature>) -> ToolUse {
    let name = function.text("name").unwrap_or_default();
    ToolUse { id, name, arguments: arguments(function).unwrap_or_default(), signature }
}

/// Reads arguments: JSON text in a string, or from some servers the object itself.
pub(crate) fn arguments(function: &Node<'_>) -> Option<String> {
    let arguments = function.get("arguments")?;
    match &arguments.value {
        Value::String(text) => Some(text.decoded().into_owned()),
        Value::Object(_) => Some(arguments.raw.to_owned()),
        Value::Array(_) | Value::Number | Value::Bool(_) | Value::Null => None,
    }
}

/// Reads the signature that Google's compatible endpoint puts beside a call.
pub(crate) fn signature(call: &Node<'_>) -> Option<Signature> {
    let text = call.get("extra_content")?.get("google")?.filled("thought_signature")?;
    Some(Signature::from_wire(&text, Origin::Gemini))
}
