//! From the bytes of a responses stream to neutral events.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{FinishReason, GatewayError};

use super::{
    answer::{as_chat, citation, encrypted, look_for_unread, read_item},
    decode::Response,
    reply::block_events,
};
use crate::{
    event_reader::EventReader,
    failure::{interrupted, malformed},
    json::{Node, Reader},
    neutral::{At, BlockKind, Content, Event, UnreadFields, derived_finish},
    openai::{
        answer::{arguments, signature},
        classify,
    },
    sse,
};

/// The most items of one streamed answer that are told apart.
const ITEMS_MAX: usize = 4_096;

/// Reads one streamed answer, chunk by chunk, into neutral events.
///
/// Items are told apart by their place in the output, for servers are known to give one item several ids. An end without
/// `response.completed` or `response.incomplete` is an error event of kind `StreamInterrupted`.
#[derive(Debug, Default)]
pub struct StreamReader {
    sse: sse::Decoder,
    blocks: u32,
    items: Vec<Item>,
    /// The block of text, reasoning or a refusal that is open.
    open: Option<Open>,
    unread: UnreadFields,
    started: bool,
    called: bool,
    refused: bool,
    ended: bool,
}

/// What is known of one item of the output.
#[derive(Debug)]
struct Item {
    index: u64,
    /// The block of a call.
    call: Option<At>,
    /// Whether anything of it was passed on in deltas.
    said: bool,
    /// Which kind of reasoning it shows: itself, or a summary of it.
    summary: Option<bool>,
    done: bool,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    at: At,
    kind: Kind,
    /// The item and the part that it belongs to.
    item: u64,
    part: u64,
}

/// Names the blocks that a delta goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    Thinking,
}

impl EventReader for StreamReader {
    fn body(&mut self) -> (&mut sse::Decoder, &mut bool) {
        (&mut self.sse, &mut self.ended)
    }

    fn event(&mut self, event: &sse::Event<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        if data == b"[DONE]" {
            return Err(interrupted());
        }
        let text = std::str::from_utf8(event.data)
            .map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
        let node = Node::read(text).ok().filter(Node::is_object);
        let node = node.ok_or_else(|| malformed("the provider's stream holds an event that is not JSON"))?;
        let kind = node.filled("type");
        if event.name == b"error" || kind.as_deref() == Some("error") || node.get("error").is_some() {
            return Err(classify::in_band(data));
        }
        let kind = kind.ok_or_else(|| malformed("the provider's stream holds an event without a type"))?;
        self.step(kind.strip_prefix("response.").unwrap_or(&kind), &node, events)
    }
}

impl StreamReader {
    /// Returns a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the body; appends what they bring. After `End` or `Error` nothing follows.
    pub fn push(&mut self, chunk: Bytes, events: &mut Vec<Event>) {
        self.push_body(chunk, events);
    }

    /// Says that the body has ended; appends the last events, `End` or `Error` at the end of them.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        self.end_body(events);
    }

    fn step(&mut self, kind: &str, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        match kind {
            "created" | "in_progress" | "queued" => {
                let response = node.get("response");
                self.start(response, events);
            }
            "completed" | "incomplete" | "failed" => {
                let response = node.get("response");
                self.start(response, events);
                let response =
                    response.ok_or_else(|| malformed("the provider's stream ends without a response"))?;
                self.complete(kind, response, events)?;
            }
            "output_item.added" => self.added(node, events)?,
            "output_item.done" => self.done(node, events)?,
            "output_text.delta" => {
                self.say(Kind::Text, node, "content_index", events)?;
                let tokens = node.get("logprobs").map(Node::items).unwrap_or_default();
                let logprobs = as_chat(tokens.iter().map(|token| token.raw));
                events.extend(logprobs.map(|logprobs| Event::Logprobs(0, logprobs)));
            }
            "refusal.delta" => {
                self.refused = true;
                self.say(Kind::Refusal, node, "content_index", events)?;
            }
            "reasoning_text.delta" => self.think(false, node, events)?,
            "reasoning_summary_text.delta" => self.think(true, node, events)?,
            "output_text.annotation.added" => {
                if let Some(Open { at, kind: Kind::Text, .. }) = self.open
                    && let Some(cited) = node.get("annotation").and_then(citation)
                {
                    events.push(Event::Citation(at, cited));
                }
            }
            // Reasoning ends with its item, which brings its encrypted form.
            "content_part.done" if self.open.is_some_and(|open| open.kind != Kind::Thinking) => {
                self.close(events);
            }
            "function_call_arguments.delta" => {
                if let Some(delta) = node.filled("delta")
                    && let Some(Item { call: Some(at), said, .. }) = self.item(node)
                {
                    *said = true;
                    events.push(Event::ArgumentsDelta(*at, delta));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, response: Option<&Node<'_>>, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.started, true) {
            let filled = |field| response.and_then(|response| response.filled(field));
            events.push(Event::Start { id: filled("id"), model: filled("model") });
        }
    }

    fn added(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        self.start(None, events);
        self.close(events);
        let Some(added) = node.get("item") else { return Ok(()) };
        let call = if added.text("type").as_deref() == Some("function_call") {
            self.called = true;
            let at = self.next();
            events.push(Event::BlockStart(at, call_kind(added)));
            Some(at)
        } else {
            None
        };
        let index = node.count("output_index").unwrap_or(self.items.len() as u64);
        self.know(index)?.call = call;
        Ok(())
    }

    /// Returns what is known of an item; it begins with what is said of it first.
    fn know(&mut self, index: u64) -> Result<&mut Item, GatewayError> {
        let known = self.items.iter().rposition(|item| item.index == index);
        let at = match known {
            Some(at) => at,
            None if self.items.len() >= ITEMS_MAX => {
                return Err(malformed("the provider's stream holds too many items"));
            }
            None => {
                self.items.push(Item { index, call: None, said: false, summary: None, done: false });
                self.items.len() - 1
            }
        };
        Ok(&mut self.items[at])
    }

    fn item(&mut self, node: &Node<'_>) -> Option<&mut Item> {
        let index = node.count("output_index")?;
        self.items.iter_mut().rev().find(|item| item.index == index)
    }

    fn done(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        self.start(None, events);
        let Some(finished) = node.get("item") else { return Ok(()) };
        let index = node.count("output_index").unwrap_or(self.items.len() as u64);
        let open = self.open.filter(|open| open.item == index);
        let item = self.know(index)?;
        item.done = true;
        look_for_unread(finished, &mut self.unread);
        events.extend(self.unread.news().map(Event::Unread));
        let item = self.know(index)?;
        let (call, said) = (item.call, item.said);
        if let Some(at) = call {
            if !said {
                let written = arguments(finished).filter(|text| !text.is_empty());
                events.extend(written.map(|text| Event::ArgumentsDelta(at, text)));
            }
            events.push(Event::BlockStop(at));
            return Ok(());
        }
        if let Some(Open { at, kind: Kind::Thinking, .. }) = open {
            events.extend(encrypted(finished).map(|signature| Event::SignatureDelta(at, signature)));
        }
        self.close(events);
        if !said {
            self.whole(finished, events);
        }
        Ok(())
    }

    /// Passes on an item of which nothing came in deltas.
    fn whole(&mut self, item: &Node<'_>, events: &mut Vec<Event>) {
        let mut blocks = Vec::new();
        read_item(item, &mut blocks);
        for content in blocks {
            self.called |= matches!(content, Content::ToolUse(_));
            self.refused |= matches!(content, Content::Refusal(_));
            block_events(self.next(), &content, events);
        }
    }

    fn think(&mut self, summary: bool, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let index = node.count("output_index").unwrap_or(0);
        // Where both come, one of them is enough: they say the same.
        if *self.know(index)?.summary.get_or_insert(summary) != summary {
            return Ok(());
        }
        self.say(Kind::Thinking, node, if summary { "summary_index" } else { "content_index" }, events)
    }

    fn say(
        &mut self,
        kind: Kind,
        node: &Node<'_>,
        place: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        let Some(text) = node.filled("delta") else { return Ok(()) };
        self.start(None, events);
        let (item, part) = (node.count("output_index").unwrap_or(0), node.count(place).unwrap_or(0));
        self.know(item)?.said = true;
        let mut new_part = false;
        let at = match &mut self.open {
            // The parts of one item's reasoning are one block.
            Some(open) if open.kind == kind && open.item == item && kind == Kind::Thinking => {
                new_part = std::mem::replace(&mut open.part, part) != part;
                open.at
            }
            Some(open) if open.kind == kind && open.item == item && open.part == part => open.at,
            Some(_) | None => {
                self.close(events);
                let at = self.next();
                self.open = Some(Open { at, kind, item, part });
                events.push(Event::BlockStart(
                    at,
                    match kind {
                        Kind::Text => BlockKind::Text,
                        Kind::Refusal => BlockKind::Refusal,
                        Kind::Thinking => BlockKind::Thinking,
                    },
                ));
                at
            }
        };
        events.push(match kind {
            Kind::Text => Event::TextDelta(at, text),
            Kind::Refusal => Event::RefusalDelta(at, text),
            Kind::Thinking if new_part => Event::ThinkingDelta(at, format!("\n\n{text}")),
            Kind::Thinking => Event::ThinkingDelta(at, text),
        });
        Ok(())
    }

    /// Ends the answer as its last event says.
    fn complete(
        &mut self,
        kind: &str,
        response: &Node<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        let read = Response::read(&mut Reader::new(response.raw))
            .map_err(|_| malformed("the provider's stream ends with an unreadable response"))?;
        if kind == "failed" {
            return Err(read.failure(response.raw));
        }
        let finish = read.finish(response.raw)?.unwrap_or(FinishReason::Other);
        self.close(events);
        for item in self.items.iter().filter(|item| !item.done) {
            events.extend(item.call.map(Event::BlockStop));
        }
        if self.items.is_empty() {
            let items = response.get("output").map(Node::items).unwrap_or_default();
            items.iter().for_each(|item| self.whole(item, events));
        }
        events.extend(read.classes().map(Event::Usage));
        // Earlier events repeat what was asked for; what it came to is said here.
        events.extend(response.filled("service_tier").map(Event::ServiceTier));
        let reason = derived_finish(finish, self.called, self.refused);
        events.push(Event::Finish { choice: 0, reason, stop_sequence: None });
        events.push(Event::End);
        self.ended = true;
        Ok(())
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        events.extend(self.open.take().map(|open| Event::BlockStop(open.at)));
    }

    fn next(&mut self) -> At {
        let at = At { choice: 0, block: self.blocks };
        self.blocks += 1;
        at
    }
}

fn call_kind(item: &Node<'_>) -> BlockKind {
    BlockKind::ToolUse {
        id: item.filled("call_id").or(item.filled("id")).unwrap_or_else(|| "call_0".to_owned()),
        name: item.text("name").unwrap_or_default(),
        signature: signature(item),
    }
}
