//! From the bytes of a provider's stream to items: what to relay, and what it means.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{FinishReason, FrameFacts, GatewayError, StreamItem};

use super::decode::{Item as OutputItem, Response};
use crate::{
    edit::Edits,
    failure::{interrupted, malformed},
    json::{Fault, Kind, Reader, Text},
    openai::{classify, content::filled},
    relay::{self, Item, Relay},
    sse,
};

/// Decodes one streamed answer, chunk by chunk.
///
/// Events that came as a name line, one line of data and a blank line are relayed as slices of what came; others are framed
/// anew, named after their `type`. A stream is complete with `response.completed` or `response.incomplete`, which is relayed;
/// an end before that is `StreamInterrupted`, and a final marker of chat's kind means nothing. `error` and `response.failed` are
/// not relayed: gw writes the ending of a stream that fails.
///
/// ```
/// use std::collections::VecDeque;
/// use bytes::Bytes;
/// use gw_dialects::responses::StreamDecoder;
///
/// let mut decoder = StreamDecoder::new();
/// let mut items = VecDeque::new();
/// let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";
/// decoder.push(Bytes::from(delta), &mut items);
/// let item = items.pop_front().unwrap();
/// assert_eq!((item.raw, item.facts.content_bytes), (delta.into(), 2));
/// assert!(decoder.end().is_err());
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
    /// After an item that is terminal or carries an error nothing follows, and further bytes are ignored.
    pub fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        self.relay.push(chunk, sink);
    }

    /// Says that the body has ended; returns the last item, which is empty after the end.
    ///
    /// A last event that lacks its blank line still counts, if it is whole.
    ///
    /// # Errors
    /// `StreamInterrupted`, if the answer is not complete.
    pub fn end(&mut self) -> Result<StreamItem, GatewayError> {
        self.relay.end()
    }
}

/// What is known of the answer so far.
#[derive(Debug, Default)]
struct Reading {
    served: bool,
    tool_calls: bool,
}

impl relay::Reading for Reading {
    fn event(
        &mut self,
        event: &sse::Event<'_>,
        item: &mut Item,
        sink: &mut VecDeque<StreamItem>,
    ) -> Result<bool, GatewayError> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            return Err(interrupted());
        }
        let Ok(text) = std::str::from_utf8(event.data) else {
            return Err(malformed("the provider's stream is not valid UTF-8"));
        };
        let Ok(read) = Event::read(text) else {
            return Err(malformed("the provider's stream holds an event that is not JSON"));
        };
        let kind = read.kind.map(|kind| kind.decoded());
        let Some(kind) = kind.as_deref().filter(|_| !read.is_error(event.name)) else {
            let is_error = read.is_error(event.name);
            return Err(if is_error {
                classify::in_band(data)
            } else {
                malformed("the provider's stream holds an event without a type")
            });
        };
        let facts = self.take(kind, &read, text)?;
        let terminal = facts.terminal;
        item.put(event, Some(kind), text, Edits::default(), sink);
        item.add(facts);
        Ok(terminal)
    }

    fn is_whole(&self, data: &[u8]) -> bool {
        std::str::from_utf8(data).is_ok_and(|text| Event::read(text).is_ok())
    }
}

impl Reading {
    /// Returns the facts of an event, after those of the events before.
    fn take(&mut self, kind: &str, event: &Event<'_>, text: &str) -> Result<FrameFacts, GatewayError> {
        let mut facts = FrameFacts {
            content_bytes: u32::try_from(event.delta_bytes).unwrap_or(u32::MAX),
            content_frames: u32::from(event.delta_bytes > 0),
            ..FrameFacts::default()
        };
        if kind == "response.output_item.added" && event.is_call {
            // A caller that has seen a call begin is bound to this answer, whether or not arguments have come.
            facts.content_frames = 1;
            facts.tool_calls = !std::mem::replace(&mut self.tool_calls, true);
        }
        let Some(response) = &event.response else { return Ok(facts) };
        if !self.served
            && let Some(model) = response.served_model()
        {
            self.served = true;
            facts.served_model = Some(model);
        }
        match kind {
            "response.failed" => return Err(response.failure(text)),
            "response.completed" | "response.incomplete" => {
                let finish = response.finish(text)?;
                // Some servers leave the output out at the end; what was streamed counts.
                let calls = self.tool_calls && finish == Some(FinishReason::Stop);
                facts.finish = if calls { Some(FinishReason::ToolCalls) } else { finish };
                facts.tool_calls = response.tool_calls && !self.tool_calls;
                facts.usage = response.classes().map(Box::new);
                facts.terminal = true;
            }
            _ => {}
        }
        Ok(facts)
    }
}

/// One event of a streamed answer, read in one pass.
#[derive(Debug, Default)]
struct Event<'a> {
    kind: Option<Text<'a>>,
    /// The length of the text in `delta`.
    delta_bytes: u64,
    /// Whether `item` is a call that the caller must answer.
    is_call: bool,
    response: Option<Response<'a>>,
    /// Whether there is an error object on top.
    error: bool,
}

impl<'a> Event<'a> {
    fn read(text: &'a str) -> Result<Self, Fault> {
        let mut event = Self::default();
        let mut reader = Reader::new(text);
        reader.object::<Fault>(|reader, key| match key.raw() {
            "type" => {
                event.kind = filled(reader)?;
                Ok(())
            }
            "delta" if reader.kind()? == Kind::String => {
                event.delta_bytes = reader.string()?.decoded_len();
                Ok(())
            }
            "item" => {
                event.is_call = OutputItem::read(reader)?.is_call;
                Ok(())
            }
            "response" if reader.kind()? == Kind::Object => {
                event.response = Some(Response::read(reader)?);
                Ok(())
            }
            "error" => {
                event.error = reader.kind()? != Kind::Null;
                reader.skip().map(drop)
            }
            _ => reader.skip().map(drop),
        })?;
        reader.end()?;
        Ok(event)
    }

    fn is_error(&self, name: &[u8]) -> bool {
        self.error || name == b"error" || self.kind.is_some_and(|kind| kind.is("error"))
    }
}
