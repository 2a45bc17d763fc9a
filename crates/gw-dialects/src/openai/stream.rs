//! From the bytes of a provider's stream to items: what to relay, and what it means.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{BoundedText, FinishReason, FrameFacts, GatewayError, StreamItem};

use super::{
    chunk::{ChoicesField, Chunk, ErrorField},
    classify,
    content::Part,
    finish,
    repair::CallList,
    template::Template,
    usage::WireUsage,
};
use crate::{
    edit::Edits,
    failure::{interrupted, malformed},
    relay::{self, Item, Relay},
    sse,
};

/// How a stream is relayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether the caller asked for the usage chunk; else it is read and kept back.
    pub relay_usage: bool,
}

/// Decodes one streamed answer, chunk by chunk.
///
/// Events that came as `data: {...}` and a blank line are relayed as slices of what came; others are framed anew, without
/// comments and other fields. The final marker is never relayed. A stream is complete only when every choice has said why
/// it ended: an end without that is `StreamInterrupted`, whatever else was sent.
///
/// ```
/// use std::collections::VecDeque;
/// use bytes::Bytes;
/// use gw_dialects::openai::{StreamDecoder, StreamOptions};
///
/// let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: false });
/// let mut items = VecDeque::new();
/// let chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
/// decoder.push(Bytes::from(format!("{chunk}data: [DONE]\n\n")), &mut items);
/// let item = items.pop_front().unwrap();
/// assert_eq!(item.raw, chunk);
/// assert!(item.facts.terminal && item.facts.content_bytes == 2);
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    relay: Relay<Reading>,
}

impl StreamDecoder {
    /// Returns a decoder at the start of a stream.
    pub fn new(options: StreamOptions) -> Self {
        Self::of(Part::Delta, options)
    }

    /// Returns a decoder of chunks whose choices hold their content in the field of `part`.
    pub(crate) fn of(part: Part, options: StreamOptions) -> Self {
        Self { relay: Relay::new(Reading::new(part, options)) }
    }

    /// Adds the next bytes of the body; appends what they bring to `sink`.
    ///
    /// Usually one item, or none; more where an event in between was kept back or framed anew. After an item that is
    /// terminal or carries an error nothing follows, and further bytes are ignored.
    pub fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        self.relay.push(chunk, sink);
    }

    /// Says that the body has ended; returns the last item.
    ///
    /// The item is terminal if the answer is complete, with or without the final marker. A last event that lacks its blank
    /// line still counts. After the end it is empty.
    ///
    /// # Errors
    /// `StreamInterrupted`, if the answer is not complete, or what an unfinished last event says is wrong. Where that event
    /// brought anything else, the item carries it, and the error in its facts instead.
    pub fn end(&mut self) -> Result<StreamItem, GatewayError> {
        self.relay.end()
    }
}

/// What is known of the answer so far.
#[derive(Debug)]
struct Reading {
    part: Part,
    options: StreamOptions,
    usage: WireUsage,
    served: bool,
    finish: Option<FinishReason>,
    refusal: bool,
    /// One bit a choice: begun, and ended.
    seen: u128,
    ended: u128,
    calls: CallList,
    template: Option<Template>,
}

impl Reading {
    fn new(part: Part, options: StreamOptions) -> Self {
        Self {
            part,
            options,
            usage: WireUsage::default(),
            served: false,
            finish: None,
            refusal: false,
            seen: 0,
            ended: 0,
            calls: CallList::default(),
            template: None,
        }
    }
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
            return self.body_ended().map(|()| true);
        }
        if event.name == b"error" {
            return Err(classify::in_band(data));
        }
        let Ok(text) = std::str::from_utf8(event.data) else {
            return Err(malformed("the provider's stream is not valid UTF-8"));
        };
        if let Some(said) = self.template.as_ref().and_then(|template| template.text(text)) {
            let bytes = said.decoded_len();
            item.put(event, None, text, Edits::default(), sink);
            item.add(FrameFacts {
                content_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                content_frames: u32::from(bytes > 0),
                ..FrameFacts::default()
            });
            return Ok(false);
        }
        let Ok(chunk) = Chunk::read(text, self.part) else {
            return Err(malformed("the provider's stream holds an event that is not a chunk"));
        };
        if chunk.error == ErrorField::Present || chunk.choices.error {
            return Err(classify::in_band(data));
        }
        let facts = self.take(&chunk);
        let mut edits = Edits::default();
        self.edit(text, &chunk, &mut edits)?;
        if self.is_relayed(&chunk) {
            if edits.is_empty() {
                self.template = Template::of(text, &chunk);
            }
            item.put(event, None, text, edits, sink);
        }
        item.add(facts);
        Ok(false)
    }

    /// Returns whether the data is the final marker, or JSON that ends.
    fn is_whole(&self, data: &[u8]) -> bool {
        let data = data.trim_ascii();
        data == b"[DONE]" || std::str::from_utf8(data).is_ok_and(|text| Chunk::read(text, self.part).is_ok())
    }

    fn body_ended(&self) -> Result<(), GatewayError> {
        let complete = self.ended != 0 && self.seen & !self.ended == 0;
        if complete { Ok(()) } else { Err(interrupted()) }
    }
}

impl Reading {
    /// Returns the facts of a chunk, after those of the chunks before.
    fn take(&mut self, chunk: &Chunk<'_>) -> FrameFacts {
        let choices = &chunk.choices;
        let mut facts = FrameFacts {
            content_bytes: u32::try_from(choices.content_bytes).unwrap_or(u32::MAX),
            content_frames: u32::from(choices.has_content),
            tool_calls: choices.tool_calls,
            ..FrameFacts::default()
        };
        self.refusal |= choices.refusal;
        self.seen |= choices.seen;
        self.ended |= choices.ended;
        if let Some(reason) = choices.finish {
            let refused = self.refusal && reason == FinishReason::Stop;
            let reason = if refused { FinishReason::Refusal } else { reason };
            let combined = Some(finish::combine(self.finish, reason));
            if combined != self.finish {
                self.finish = combined;
                facts.finish = combined;
            }
        }
        if let Some(usage) = &chunk.usage {
            let before = self.usage;
            self.usage.merge(usage);
            if self.usage != before {
                facts.usage = self.usage.classes().map(Box::new);
            }
        }
        if !self.served
            && let Some(model) = chunk.model
        {
            self.served = true;
            facts.served_model = Some(BoundedText::new(&model.decoded()));
        }
        facts
    }

    /// Collects the repairs that a chunk needs.
    fn edit(&mut self, text: &str, chunk: &Chunk<'_>, edits: &mut Edits<'_>) -> Result<(), GatewayError> {
        if let ErrorField::Null(member) = &chunk.error {
            edits.remove_member(text, member.clone());
        }
        if let ChoicesField::Null(value) = &chunk.choices_field {
            edits.replace(value.clone(), "[]");
        }
        self.calls
            .repair(text, &chunk.choices.calls, edits)
            .map_err(|_| malformed("the provider's stream holds too many tool calls"))
    }

    /// Returns whether the caller gets to see a chunk. The usage chunk is one without choices.
    fn is_relayed(&self, chunk: &Chunk<'_>) -> bool {
        match chunk.choices_field {
            ChoicesField::Array if chunk.choices.count > 0 => true,
            ChoicesField::Array => chunk.usage.is_none() || self.options.relay_usage,
            ChoicesField::Null(_) => chunk.usage.is_some() && self.options.relay_usage,
            ChoicesField::Absent => false,
        }
    }
}
