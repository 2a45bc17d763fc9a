//! Rewrites a request for one deployment: a few byte ranges change, everything else stays as the caller wrote it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use gw_types::{Loss, LossKind, NormalizedRequest, Operation, TokenCount};

use crate::{
    edit::Edits,
    json::{Node, Value, quoted},
    neutral::{LossReport, Origin, Place, Signature, TAG},
    openai::encode::{put_field, range},
};

/// What changes in a request on its way to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesEdits<'a> {
    /// The model as the provider knows it.
    pub model: &'a str,
    /// The output bound to send; `None` leaves what the caller wrote. A request to count tokens takes none.
    pub output_bound: Option<TokenCount>,
}

/// Returns the body to send: the caller's own, without a copy, if nothing changes; else one copy with the edits spliced
/// in. Every other byte stays, numbers and unknown fields included.
///
/// The request's facts must have been read from its body by [`super::read_messages`] or [`super::read_count_tokens`].
/// Reasoning that another provider signed is taken out of the history, as the loss says: nobody but that provider could
/// read it, and this one would refuse it.
pub fn rewrite_messages(request: &NormalizedRequest, edits: &MessagesEdits<'_>) -> (Bytes, Loss) {
    // The facts vouch for UTF-8; a body that is none is sent as it is, and the provider refuses it.
    let Ok(text) = std::str::from_utf8(&request.body) else {
        return (request.body.clone(), Loss::default());
    };
    let facts = &request.facts;
    let mut list = Edits::default();
    let mut loss = LossReport::new(request.operation);
    if edits.model != &*facts.model {
        list.replace(range(facts.model_span), quoted(edits.model));
    }
    if let Some(bound) = edits.output_bound.filter(|_| request.operation == Operation::Messages) {
        match facts.output {
            Some(output) if output.tokens == bound => {}
            Some(output) => list.replace(range(output.span), bound.to_string()),
            None => put_field(&mut list, request, text, "max_tokens", bound.to_string()),
        }
    }
    if has_foreign_state(text) {
        take_foreign_state_out(text, &mut list, &mut loss);
    }
    if list.is_empty() {
        return (request.body.clone(), Loss::default());
    }
    let mut body = Vec::new();
    list.apply(&request.body, &mut body, 0);
    (Bytes::from(body), loss.into_loss())
}

/// Returns whether the body may hold a signature that gw has tagged, which are written without escapes.
fn has_foreign_state(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), TAG.as_bytes()).is_some()
}

fn take_foreign_state_out(text: &str, list: &mut Edits<'_>, loss: &mut LossReport) {
    let Ok(body) = Node::read(text) else { return };
    let messages = body.get("messages").map(Node::items).unwrap_or_default();
    for (index, message) in messages.iter().enumerate() {
        let Some(content) = message.get("content") else { continue };
        let foreign: Vec<usize> = content
            .items()
            .iter()
            .enumerate()
            .filter(|(_, block)| is_foreign(block))
            .map(|(block, _)| block)
            .collect();
        if foreign.is_empty() {
            continue;
        }
        for block in &foreign {
            let place = Place::item("messages", index).in_part("content", *block);
            loss.block(place, LossKind::Dropped, "reasoning goes back to its own provider alone");
        }
        list.replace(span(content), without(content.items(), &foreign));
    }
}

fn is_foreign(block: &Node<'_>) -> bool {
    ["signature", "data"]
        .iter()
        .filter_map(|field| block.get(field))
        .filter(|node| matches!(node.value, Value::String(_)))
        .filter_map(Node::as_str)
        .any(|text| Signature::from_wire(&text, Origin::Anthropic).origin != Origin::Anthropic)
}

/// Returns the array without some of its items. An empty one would be refused, so a word stands for it.
fn without(items: &[Node<'_>], foreign: &[usize]) -> String {
    let kept: Vec<&str> = items
        .iter()
        .enumerate()
        .filter(|(index, _)| !foreign.contains(index))
        .map(|(_, item)| item.raw)
        .collect();
    if kept.is_empty() {
        return r#"[{"type":"text","text":"(no text)"}]"#.to_owned();
    }
    format!("[{}]", kept.join(","))
}

fn span(node: &Node<'_>) -> Range<usize> {
    node.at..node.at + node.raw.len()
}
