//! From the frames of `ConverseStream` to neutral events.

mod blocks;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{FinishReason, GatewayError};

use self::blocks::Blocks;
use super::{classify, decode, usage};
use crate::{
    event_stream::{Decoder, Frame},
    failure::{interrupted, malformed},
    json::Node,
    neutral::{Event, UnreadFields, derived_finish},
};

/// Reads one streamed answer.
///
/// It is complete once Bedrock has said why it ended (`messageStop`) and what it has used (`metadata`), which comes after
/// that; a body that ends between the two is complete as well, without usage. An end before is `StreamInterrupted`, a
/// frame whose checksum is wrong is `MalformedResponse`.
///
/// ```
/// use gw_dialects::{bedrock::StreamReader, event_stream::{HeaderValue, encode}, neutral::Event};
///
/// let frame = |kind, payload: &str| {
///     let headers = [(":message-type", HeaderValue::Text("event")), (":event-type", HeaderValue::Text(kind))];
///     encode(&headers, payload.as_bytes())
/// };
/// let mut reader = StreamReader::new();
/// let mut events = Vec::new();
/// reader.push(frame("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hi"}}"#), &mut events);
/// reader.push(frame("messageStop", r#"{"stopReason":"end_turn"}"#), &mut events);
/// reader.push(frame("metadata", r#"{"usage":{"inputTokens":1,"outputTokens":1}}"#), &mut events);
/// assert_eq!(events.last(), Some(&Event::End));
/// ```
#[derive(Debug, Default)]
pub struct StreamReader {
    frames: Decoder,
    reading: Reading,
    ended: bool,
}

#[derive(Debug, Default)]
struct Reading {
    started: bool,
    blocks: Blocks,
    finished: bool,
    accounted: bool,
    unread: UnreadFields,
    /// Why the answer ended, until it is known what it has used and which tier served it.
    ending: Option<Event>,
}

impl StreamReader {
    /// Returns a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the body; appends what they bring. After `End` or `Error` nothing follows.
    pub fn push(&mut self, chunk: Bytes, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        self.frames.push(chunk);
        while let Some(frame) = self.frames.next_frame() {
            let read = match frame {
                Ok(frame) => self.reading.frame(&frame, events),
                Err(_) => Err(malformed("the provider's event stream is damaged")),
            };
            match read {
                Ok(()) if self.reading.finished && self.reading.accounted => self.reading.end(events),
                Ok(()) => continue,
                Err(error) => events.push(Event::Error(error)),
            }
            self.ended = true;
            return;
        }
    }

    /// Says that the body has ended; appends `End` or `Error`, unless that was said already.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        self.ended = true;
        if self.reading.finished && self.frames.is_between_frames() {
            self.reading.end(events);
        } else {
            events.push(Event::Error(interrupted()));
        }
    }
}

impl Reading {
    fn frame(&mut self, frame: &Frame<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        if let Some(error) = classify::frame(frame) {
            return Err(error);
        }
        let kind = frame.text_header(":event-type").unwrap_or_default();
        let text = std::str::from_utf8(frame.payload)
            .map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
        let node = Node::read(text)
            .map_err(|_| malformed("the provider's stream holds an event that is not JSON"))?;
        if !std::mem::replace(&mut self.started, true) {
            events.push(Event::Start { id: None, model: None });
        }
        match kind {
            // Nothing is added to an answer that has said why it ended.
            "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" if self.finished => Ok(()),
            "contentBlockStart" => self.blocks.start(&node, events),
            "contentBlockDelta" => self.blocks.delta(&node, events),
            "contentBlockStop" => {
                self.blocks.stop(&node, events);
                Ok(())
            }
            "messageStop" => self.finish(&node, events),
            "metadata" => {
                self.accounted = true;
                let tier = node.get("serviceTier").and_then(|tier| tier.filled("type"));
                events.extend(tier.map(Event::ServiceTier));
                events.extend(node.get("usage").and_then(usage::read).map(Event::Usage));
                decode::look_for_unread(&node, &mut self.unread);
                events.extend(self.unread.news().map(Event::Unread));
                Ok(())
            }
            // `messageStart` says the role, which is known; others are new and say nothing that gw waits for.
            _ => Ok(()),
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        events.extend(self.ending.take());
        events.push(Event::End);
    }

    fn finish(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        self.blocks.stop_all(events);
        let reason = node.text("stopReason").unwrap_or_default();
        let reason = decode::ending(&reason, self.blocks.count())?;
        let reason: FinishReason = derived_finish(reason, self.blocks.has_calls(), false);
        let stop_sequence = decode::stop_sequence(node);
        self.ending = Some(Event::Finish { choice: 0, reason, stop_sequence });
        Ok(())
    }
}
