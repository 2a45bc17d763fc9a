//! From the bytes of a messages stream to neutral events.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{FinishReason, GatewayError, Usage};

use super::{answer, classify, finish, prompt::citation, unread, usage::WireUsage};
use crate::{
    event_reader::EventReader,
    failure::malformed,
    json::Node,
    neutral::{
        ANSWER_TOOL, At, BlockKind, Content, Event, Origin, Signature, TierReport, UnreadFields,
        derived_finish,
    },
    sse,
};

/// The most blocks that one answer may hold.
const BLOCKS_MAX: usize = 4_096;

/// Reads one streamed answer, chunk by chunk, into neutral events.
///
/// The answer is complete with `message_stop` alone; an end without it is an error event of kind `StreamInterrupted`.
#[derive(Default)]
pub struct StreamReader {
    sse: sse::Decoder,
    blocks: Vec<Block>,
    usage: WireUsage,
    tier: TierReport,
    reported: Option<Usage>,
    finish: Option<FinishReason>,
    stop_sequence: Option<String>,
    explanation: Option<String>,
    unread: UnreadFields,
    ended: bool,
}

impl std::fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamReader")
            .field("blocks", &self.blocks.len())
            .field("finish", &self.finish)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// A block of the answer, at the provider's index.
#[derive(Debug)]
struct Block {
    index: u64,
    open: bool,
    /// Whether it is the call of the tool that stands for a schema, whose arguments are the answer's text.
    is_answer: bool,
    is_call: bool,
    /// Whether it is a call whose arguments have not begun.
    is_bare: bool,
}

impl EventReader for StreamReader {
    fn body(&mut self) -> (&mut sse::Decoder, &mut bool) {
        (&mut self.sse, &mut self.ended)
    }

    fn event(&mut self, event: &sse::Event<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let text = std::str::from_utf8(event.data)
            .map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let node = Node::read(text).ok().filter(Node::is_object);
        let node = node.ok_or_else(|| malformed("the provider's stream holds an event that is not JSON"))?;
        let kind = node.get("type").and_then(Node::as_str).unwrap_or_default();
        if kind == "error" || node.get("error").is_some() {
            return Err(classify::in_band(event.data));
        }
        match &*kind {
            "message_start" => {
                let message = node.get("message");
                let field = |name| message.and_then(|message: &Node<'_>| message.filled(name));
                events.push(Event::Start { id: field("id"), model: field("model") });
                self.report(message.and_then(|message| message.get("usage")), events);
                message.into_iter().for_each(|message| unread::look(message, &mut self.unread));
            }
            "content_block_start" => self.start(&node, events)?,
            "content_block_delta" => self.delta(&node, events),
            "content_block_stop" => self.stop(&node, events),
            "message_delta" => {
                if let Some(delta) = node.get("delta") {
                    let reason = delta.filled("stop_reason").map(|reason| finish::read(&reason));
                    self.finish = reason.or(self.finish);
                    self.stop_sequence = delta.filled("stop_sequence").or(self.stop_sequence.take());
                    self.explanation = answer::explanation(delta).or(self.explanation.take());
                }
                self.report(node.get("usage"), events);
                unread::look_at_delta(&node, &mut self.unread);
            }
            "message_stop" => {
                self.complete(events);
                return Ok(());
            }
            // Pings, and what is yet to be invented.
            _ => {}
        }
        events.extend(self.unread.news().map(Event::Unread));
        Ok(())
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

    fn report(&mut self, node: Option<&Node<'_>>, events: &mut Vec<Event>) {
        let Some(node) = node else { return };
        self.usage.merge(&WireUsage::read(node));
        events.extend(self.tier.news(node.filled("service_tier")));
        let classes = self.usage.classes();
        if classes != self.reported {
            self.reported = classes;
            events.extend(classes.map(Event::Usage));
        }
    }

    fn start(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let content = node.get("content_block").and_then(answer::block);
        let Some(content) = content else {
            return Err(malformed("the provider's stream holds a block without a type"));
        };
        if self.blocks.len() >= BLOCKS_MAX {
            return Err(malformed("the provider's stream holds too many blocks"));
        }
        let index = node.count("index").unwrap_or(self.blocks.len() as u64);
        let named = node.get("content_block").and_then(|block| block.text("name"));
        let is_answer = named.as_deref() == Some(ANSWER_TOOL);
        let is_call = matches!(content, Content::ToolUse(_));
        let is_bare = matches!(&content, Content::ToolUse(call) if call.arguments == "{}");
        self.blocks.push(Block { index, open: true, is_answer, is_call, is_bare });
        let at = self.last();
        match content {
            Content::Text(text) => {
                events.push(Event::BlockStart(at, BlockKind::Text));
                // The arguments come in the deltas; here stands an empty object.
                if !text.text.is_empty() && !is_answer {
                    events.push(Event::TextDelta(at, text.text));
                }
                events.extend(text.citations.into_iter().map(|citation| Event::Citation(at, citation)));
            }
            Content::Thinking(thinking) => {
                events.push(Event::BlockStart(at, BlockKind::Thinking));
                if !thinking.text.is_empty() {
                    events.push(Event::ThinkingDelta(at, thinking.text));
                }
                events.extend(thinking.signature.map(|signature| Event::SignatureDelta(at, signature)));
            }
            Content::RedactedThinking(data) => {
                events.push(Event::BlockStart(at, BlockKind::RedactedThinking(data)));
            }
            Content::ToolUse(call) => {
                let kind = BlockKind::ToolUse { id: call.id, name: call.name, signature: None };
                events.push(Event::BlockStart(at, kind));
                if !is_bare {
                    events.push(Event::ArgumentsDelta(at, call.arguments));
                }
            }
            Content::Opaque(opaque) => {
                events.push(Event::BlockStart(at, BlockKind::Opaque(opaque.origin, opaque.value)));
            }
            // The reader of blocks makes none of these.
            Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_)
            | Content::ToolResult(_)
            | Content::Refusal(_) => events.push(Event::BlockStart(at, BlockKind::Text)),
        }
        Ok(())
    }

    fn delta(&mut self, node: &Node<'_>, events: &mut Vec<Event>) {
        let Some((at, block)) = self.find(node) else { return };
        let Some(delta) = node.get("delta").filter(|_| block.open) else { return };
        let text = |name| delta.filled(name);
        let event = match delta.get("type").and_then(Node::as_str).as_deref() {
            Some("text_delta") => text("text").map(|text| Event::TextDelta(at, text)),
            Some("thinking_delta") => text("thinking").map(|text| Event::ThinkingDelta(at, text)),
            Some("signature_delta") => text("signature")
                .map(|text| Event::SignatureDelta(at, Signature::from_wire(&text, Origin::Anthropic))),
            Some("input_json_delta") if block.is_answer => {
                text("partial_json").map(|text| Event::TextDelta(at, text))
            }
            Some("input_json_delta") if block.is_call => {
                text("partial_json").map(|text| Event::ArgumentsDelta(at, text))
            }
            Some("citations_delta") => delta.get("citation").map(|node| Event::Citation(at, citation(node))),
            // A block that only its provider knows begins whole.
            Some("input_json_delta") | None => None,
            Some(other) => {
                self.unread.add("content[].", other);
                None
            }
        };
        if let Some(Event::ArgumentsDelta(..)) = event {
            self.blocks[at.block as usize].is_bare = false;
        }
        events.extend(event);
    }

    fn stop(&mut self, node: &Node<'_>, events: &mut Vec<Event>) {
        let Some((at, _)) = self.find(node) else { return };
        if let Some(block) = self.blocks.get_mut(at.block as usize).filter(|block| block.open) {
            block.close(at, events);
        }
    }

    fn complete(&mut self, events: &mut Vec<Event>) {
        self.ended = true;
        for (place, block) in self.blocks.iter_mut().enumerate().filter(|(_, block)| block.open) {
            block.close(at(place), events);
        }
        let refused = self.explanation.take().map(|text| {
            let at = at(self.blocks.len());
            events.push(Event::BlockStart(at, BlockKind::Refusal));
            events.push(Event::RefusalDelta(at, text));
            events.push(Event::BlockStop(at));
        });
        let calls = self.blocks.iter().any(|block| block.is_call);
        let reason = derived_finish(answer::finish_of(self.finish, calls), calls, refused.is_some());
        let stop_sequence = self.stop_sequence.take();
        events.push(Event::Finish { choice: 0, reason, stop_sequence });
        events.push(Event::End);
    }

    /// Returns the block that an event names by the provider's index.
    fn find(&self, node: &Node<'_>) -> Option<(At, &Block)> {
        let index = node.count("index")?;
        let place = self.blocks.iter().rposition(|block| block.index == index)?;
        Some((at(place), &self.blocks[place]))
    }

    fn last(&self) -> At {
        at(self.blocks.len().saturating_sub(1))
    }
}

impl Block {
    fn close(&mut self, at: At, events: &mut Vec<Event>) {
        self.open = false;
        // A tool without arguments sends none, and nothing is no JSON.
        if std::mem::take(&mut self.is_bare) {
            events.push(Event::ArgumentsDelta(at, "{}".to_owned()));
        }
        events.push(Event::BlockStop(at));
    }
}

fn at(place: usize) -> At {
    At { choice: 0, block: u32::try_from(place).unwrap_or(u32::MAX) }
}
