//! From the bytes of a provider's stream to items: what to relay, and what it means.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{BoundedText, FrameFacts, GatewayError, StreamItem};

use super::{classify, finish, usage::WireUsage};
use crate::{
    edit::Edits,
    failure::malformed,
    json::{Node, Reader, Text, Value},
    relay::{self, Item, Relay},
    sse,
};

/// Decodes one streamed answer, chunk by chunk.
///
/// Events that came as `event: name`, `data: {...}` and a blank line are relayed as slices of what came, `message_stop`
/// included; others are framed anew, without comments and other fields. A stream is complete only with its `message_stop`:
/// an end without it is `StreamInterrupted`, whatever else was sent. Pings are relayed and are no progress.
///
/// ```
/// use std::collections::VecDeque;
/// use bytes::Bytes;
/// use gw_dialects::anthropic::StreamDecoder;
///
/// let mut decoder = StreamDecoder::new();
/// let mut items = VecDeque::new();
/// let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
/// decoder.push(Bytes::from_static(stop.as_bytes()), &mut items);
/// let item = items.pop_front().unwrap();
/// assert!(item.raw == stop && item.facts.terminal);
/// ```
#[derive(Debug, Default)]
pub struct StreamDecoder {
    relay: Relay<Reading>,
}

impl StreamDecoder {
    /// Returns a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the body; appends what they bring to `sink`.
    ///
    /// Usually one item, or none; more where an event in between was framed anew. After an item that is terminal or carries
    /// an error nothing follows, and further bytes are ignored.
    pub fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        self.relay.push(chunk, sink);
    }

    /// Says that the body has ended; returns the last item.
    ///
    /// A last event that lacks its blank line still counts. After the end it is empty.
    ///
    /// # Errors
    /// `StreamInterrupted`, if the answer is not complete, or what an unfinished last event says is wrong. Where that event
    /// brought anything else, the item carries it, and the error in its facts instead.
    pub fn end(&mut self) -> Result<StreamItem, GatewayError> {
        self.relay.end()
    }
}

/// What is known of the answer so far.
#[derive(Debug, Default)]
struct Reading {
    usage: WireUsage,
    /// What stands before the text of the last event that was a delta of text and nothing else, framed as an event.
    template: Option<Box<str>>,
}

/// What stands before the data of a framed delta.
const FRAME: &str = "event: content_block_delta\ndata: ";

/// The longest template kept, in bytes.
const TEMPLATE_BYTES_MAX: usize = 1_024;

impl relay::Reading for Reading {
    fn event(
        &mut self,
        event: &sse::Event<'_>,
        item: &mut Item,
        sink: &mut VecDeque<StreamItem>,
    ) -> Result<bool, GatewayError> {
        let text = std::str::from_utf8(event.data)
            .map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
        if text.trim_ascii().is_empty() {
            return Ok(false);
        }
        if let Some(bytes) = self.text_bytes(event, text) {
            item.put(event, Some("content_block_delta"), text, Edits::default(), sink);
            item.add_content(bytes);
            return Ok(false);
        }
        let node = Node::read(text).ok().filter(Node::is_object);
        let node = node.ok_or_else(|| malformed("the provider's stream holds an event that is not JSON"))?;
        let kind = node.text("type").or_else(|| std::str::from_utf8(event.name).ok().map(str::to_owned));
        let Some(kind) = kind.filter(|kind| is_name(kind)) else {
            return Err(malformed("the provider's stream holds an event without a type"));
        };
        if kind == "error" || node.get("error").is_some() {
            return Err(classify::in_band(event.data));
        }
        let facts = self.facts(&kind, &node);
        self.template = template(&kind, text, &node);
        item.put(event, Some(&kind), text, Edits::default(), sink);
        item.add(facts);
        Ok(kind == "message_stop")
    }

    fn only_text(&self, chunk: &[u8]) -> Option<u64> {
        let template = self.template.as_deref()?;
        let data =
            chunk.strip_prefix(template.as_bytes()).and(chunk.strip_suffix(b"\n\n"))?.get(FRAME.len()..)?;
        text_behind(template.len() - FRAME.len(), std::str::from_utf8(data).ok()?)
    }

    fn is_whole(&self, data: &[u8]) -> bool {
        std::str::from_utf8(data).is_ok_and(|text| Node::read(text).is_ok())
    }
}

impl Reading {
    fn facts(&mut self, kind: &str, node: &Node<'_>) -> FrameFacts {
        match kind {
            "message_start" => {
                let message = node.get("message");
                let model = message.and_then(|message| message.filled("model"));
                FrameFacts {
                    usage: self.report(message.and_then(|message| message.get("usage"))),
                    served_model: model.map(|model| BoundedText::new(&model)),
                    ..FrameFacts::default()
                }
            }
            "content_block_start" => {
                let block = node.get("content_block");
                let kind = block.and_then(|block| block.text("type"));
                let calls = kind.as_deref() == Some("tool_use");
                let bytes = block.map_or(0, |block| said(block, &["text", "thinking"]));
                // A caller that has seen a call begin is bound to this answer, whether or not arguments have come.
                FrameFacts { tool_calls: calls, ..content(bytes, calls || bytes > 0) }
            }
            "content_block_delta" => {
                let bytes =
                    node.get("delta").map_or(0, |delta| said(delta, &["text", "thinking", "partial_json"]));
                content(bytes, bytes > 0)
            }
            "message_delta" => {
                let reason = node.get("delta").and_then(|delta| delta.filled("stop_reason"));
                FrameFacts {
                    usage: self.report(node.get("usage")),
                    finish: reason.map(|reason| finish::read(&reason)),
                    ..FrameFacts::default()
                }
            }
            _ => FrameFacts::default(),
        }
    }

    /// Takes over a report of usage; returns the usage so far where that changed it.
    fn report(&mut self, node: Option<&Node<'_>>) -> Option<Box<gw_types::Usage>> {
        let before = self.usage;
        self.usage.merge(&WireUsage::read(node?));
        if self.usage == before { None } else { self.usage.classes().map(Box::new) }
    }

    /// Returns the length of the text of an event that differs from the one before in nothing but its text and the blanks
    /// that pad it.
    fn text_bytes(&self, event: &sse::Event<'_>, data: &str) -> Option<u64> {
        let head = self.template.as_deref()?.get(FRAME.len()..)?;
        let begins_alike = event.name == b"content_block_delta" && data.starts_with(head);
        begins_alike.then(|| text_behind(head.len(), data)).flatten()
    }
}

/// Returns the length of the text that begins at `start`, where nothing but the ends of two objects and blanks follow.
fn text_behind(start: usize, data: &str) -> Option<u64> {
    let said = Reader::starting_at(data, start).string().ok()?;
    let rest = data.get(said.span().end..)?;
    closes(rest).then(|| said.decoded_len())
}

/// Returns what stands before the text of a delta that means text and nothing else.
fn template(kind: &str, text: &str, node: &Node<'_>) -> Option<Box<str>> {
    let delta = node.get("delta")?;
    let said = match &delta.get("text")?.value {
        Value::String(said) if kind == "content_block_delta" => said,
        Value::String(_)
        | Value::Object(_)
        | Value::Array(_)
        | Value::Number
        | Value::Bool(_)
        | Value::Null => return None,
    };
    let span = Text::span(said);
    let is_last = closes(text.get(span.end..)?) && delta.text("type").as_deref() == Some("text_delta");
    let head = text.get(..span.start).filter(|head| head.len() <= TEMPLATE_BYTES_MAX)?;
    // Data of several lines is not framed as the dialect does it.
    let is_line = !head.contains(['\n', '\r']);
    (is_last && is_line).then(|| format!("{FRAME}{head}").into())
}

/// Returns whether a text closes two objects and holds nothing else but blanks.
fn closes(text: &str) -> bool {
    let mut braces = 0;
    for byte in text.bytes() {
        match byte {
            b'}' => braces += 1,
            b' ' => {}
            _ => return false,
        }
    }
    braces == 2
}

/// Returns whether a text can stand as the name of an event.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

fn said(node: &Node<'_>, fields: &[&str]) -> u64 {
    let lengths = fields.iter().filter_map(|field| match &node.get(field)?.value {
        Value::String(text) => Some(text.decoded_len()),
        Value::Object(_) | Value::Array(_) | Value::Number | Value::Bool(_) | Value::Null => None,
    });
    lengths.sum()
}

fn content(bytes: u64, is_content: bool) -> FrameFacts {
    FrameFacts {
        content_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        content_frames: u32::from(is_content),
        ..FrameFacts::default()
    }
}
