//! Ends a stream that was cut: what gw writes behind the events that were relayed.

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use gw_types::{FinishReason, GatewayError};

use super::{
    answer::encrypted,
    output::{Item, Output, Part, PartKind, State, Status},
    reply::{Standing, base, write_failure, write_response},
};
use crate::{json::Node, neutral::AnswerStamp, openai::answer::signature};

/// The most bytes of text that are kept of a stream; what comes after is missing in the last event alone.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Watches what is relayed to a caller of responses, so that the stream can be ended at any point.
///
/// Unlike in other formats the last event repeats the whole answer, and every event has a number, so that the ending depends
/// on what came before it. Costs one reading of each event, and the memory of the text.
pub struct StreamEnding {
    base: String,
    output: Output,
    kept_bytes: usize,
}

impl std::fmt::Debug for StreamEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The base is the provider's, and repeats the caller's instructions.
        f.debug_struct("StreamEnding").field("output", &self.output).finish_non_exhaustive()
    }
}

impl StreamEnding {
    /// Returns an ending for a stream of which nothing was relayed yet.
    pub fn new(stamp: &AnswerStamp<'_>) -> Self {
        Self { base: base(stamp, None, None), output: Output::default(), kept_bytes: 0 }
    }

    /// Takes notice of bytes that were relayed: complete events in the dialect's framing.
    pub fn observe(&mut self, relayed: &[u8]) {
        for line in relayed.split(|byte| *byte == b'\n') {
            let data = line.strip_prefix(b"data: ").and_then(|data| std::str::from_utf8(data).ok());
            if let Some(event) = data.and_then(|data| Node::read(data).ok()) {
                self.event(&event);
            }
        }
    }

    /// Returns the events that end the stream at its output bound: what is open ends as incomplete, then the response does.
    pub fn capped(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        self.output.end_all(Status::Incomplete, &mut out);
        let standing = Standing { finish: Some(FinishReason::Length), ..Standing::default() };
        let items = std::mem::take(&mut self.output);
        self.output.next = items.next;
        self.output.event(&mut out, standing.event(), |json| {
            json.key("response");
            write_response(json, &self.base, &items, &standing);
        });
        out.freeze()
    }

    /// Returns the events that end the stream with an error: the error, then the response that failed of it.
    pub fn failed(&mut self, error: &GatewayError) -> Bytes {
        let mut out = BytesMut::new();
        write_failure(&mut self.output, &self.base, error, &mut out);
        out.freeze()
    }

    fn event(&mut self, event: &Node<'_>) {
        let number = event.count("sequence_number").unwrap_or(self.output.next);
        self.output.next = number.saturating_add(1);
        let kind = event.text("type").unwrap_or_default();
        let kind = kind.strip_prefix("response.").unwrap_or(&kind);
        match kind {
            "created" | "queued" | "in_progress" => {
                if let Some(response) = event.get("response") {
                    response.raw.clone_into(&mut self.base);
                }
            }
            "output_item.added" => self.begin(event),
            "content_part.added" | "reasoning_summary_part.added" => {
                let kind = event.get("part").and_then(|part| part_kind(part.text("type").as_deref()));
                self.part(event, kind, |_| {});
            }
            "output_text.delta" => self.say(event, PartKind::Text),
            "refusal.delta" => self.say(event, PartKind::Refusal),
            "reasoning_text.delta" => self.say(event, PartKind::Reasoning),
            "reasoning_summary_text.delta" => self.say(event, PartKind::Summary),
            "output_text.annotation.added" => {
                if let Some(annotation) = event.get("annotation") {
                    let annotation = annotation.raw.to_owned();
                    self.part(event, Some(PartKind::Text), |part| part.annotations.push(annotation));
                }
            }
            "content_part.done" | "reasoning_summary_part.done" => {
                let kind = event.get("part").and_then(|part| part_kind(part.text("type").as_deref()));
                self.part(event, kind, |part| part.is_open = false);
            }
            "function_call_arguments.delta" => self.argue(event),
            "function_call_arguments.done" => {
                if let Some(Item { state: State::Call { said, .. }, .. }) = self.item(event) {
                    *said = true;
                }
            }
            "output_item.done" => {
                let index = event.count("output_index");
                let at = self.output.items.iter().position(|item| Some(item.index) == index);
                if let (Some(at), Some(item)) = (at, event.get("item")) {
                    self.output.keep(at, item.raw.to_owned());
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, event: &Node<'_>) {
        let (Some(item), Some(index)) = (event.get("item"), event.count("output_index")) else { return };
        let state = match item.text("type").as_deref() {
            Some("message") => State::Message(Vec::new()),
            Some("reasoning") => State::Reasoning { parts: Vec::new(), encrypted: encrypted(item) },
            Some("function_call") => State::Call {
                call_id: item.text("call_id").unwrap_or_default(),
                name: item.text("name").unwrap_or_default(),
                arguments: item.text("arguments").unwrap_or_default(),
                signature: signature(item),
                said: false,
            },
            Some(_) | None => State::Done(item.raw.to_owned()),
        };
        self.output.items.push(Item { id: item.text("id").unwrap_or_default(), index, state });
    }

    fn item(&mut self, event: &Node<'_>) -> Option<&mut Item> {
        let index = event.count("output_index")?;
        self.output.items.iter_mut().rev().find(|item| item.index == index)
    }

    /// Changes a part of an item, which begins with what is said of it first.
    fn part(&mut self, event: &Node<'_>, kind: Option<PartKind>, change: impl FnOnce(&mut Part)) {
        let Some(kind) = kind else { return };
        let place = event.count("content_index").or(event.count("summary_index")).unwrap_or(0);
        let Some(parts) = self.item(event).and_then(Item::parts) else { return };
        let numbered = |part: &&mut Part| (part.kind == PartKind::Summary) == (kind == PartKind::Summary);
        let known = parts.iter_mut().filter(numbered).nth(usize::try_from(place).unwrap_or(usize::MAX));
        match known {
            Some(part) => change(part),
            None => {
                let mut part = Part::new(kind);
                change(&mut part);
                parts.push(part);
            }
        }
    }

    fn say(&mut self, event: &Node<'_>, kind: PartKind) {
        if let Some(delta) = self.delta(event) {
            self.part(event, Some(kind), |part| part.text.push_str(&delta));
        }
    }

    fn argue(&mut self, event: &Node<'_>) {
        let Some(delta) = self.delta(event) else { return };
        if let Some(Item { state: State::Call { arguments, .. }, .. }) = self.item(event) {
            arguments.push_str(&delta);
        }
    }

    fn delta(&mut self, event: &Node<'_>) -> Option<String> {
        let delta = event.text("delta")?;
        self.kept_bytes = self.kept_bytes.saturating_add(delta.len());
        (self.kept_bytes <= KEPT_BYTES_MAX).then_some(delta)
    }
}

fn part_kind(name: Option<&str>) -> Option<PartKind> {
    match name? {
        "output_text" => Some(PartKind::Text),
        "refusal" => Some(PartKind::Refusal),
        "summary_text" => Some(PartKind::Summary),
        "reasoning_text" => Some(PartKind::Reasoning),
        _ => None,
    }
}
