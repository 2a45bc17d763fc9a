//! From the bytes of a provider's stream to items: what to relay, and what it means.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use gw_types::{BoundedText, ErrorKind, FinishReason, FrameFacts, GatewayError, StreamItem};

use super::{
    chunk::{ChoicesField, Chunk, ErrorField},
    classify, finish,
    repair::CallList,
    template::Template,
    usage::WireUsage,
};
use crate::{edit::Edits, sse};

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
    events: sse::Decoder,
    reading: Reading,
    ended: bool,
}

impl StreamDecoder {
    /// Returns a decoder at the start of a stream.
    pub fn new(options: StreamOptions) -> Self {
        Self { events: sse::Decoder::new(), reading: Reading::new(options), ended: false }
    }

    /// Adds the next bytes of the body; appends what they bring to `sink`.
    ///
    /// Usually one item, or none; more where an event in between was kept back or framed anew. After an item that is
    /// terminal or carries an error nothing follows, and further bytes are ignored.
    pub fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        if self.ended {
            return;
        }
        self.events.push(chunk.clone());
        let mut item = Item::new(chunk);
        while let Some(event) = self.events.next_event() {
            let step = match event {
                Ok(event) => self.reading.event(event, &mut item, sink),
                Err(sse::EventTooLong) => {
                    Step::Failed(malformed("the provider's stream holds an event longer than 8 MiB"))
                }
            };
            if self.ended_by(step, &mut item) {
                break;
            }
        }
        item.flush(sink);
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
        if self.ended {
            return Ok(StreamItem::default());
        }
        self.ended = true;
        let mut item = Item::new(Bytes::new());
        let mut sink = VecDeque::new();
        let step = match self.events.finish() {
            // A cut event is no JSON: it is the interruption that counts then.
            Some(event) if is_whole(event.data) => self.reading.event(event, &mut item, &mut sink),
            Some(_) | None => Step::Next,
        };
        let step = if let Step::Next = step { self.reading.end() } else { step };
        if let Step::Failed(error) = &step
            && item.is_empty()
        {
            return Err(error.clone());
        }
        self.ended_by(step, &mut item);
        item.flush(&mut sink);
        Ok(sink.pop_back().unwrap_or_default())
    }

    fn ended_by(&mut self, step: Step, item: &mut Item) -> bool {
        match step {
            Step::Next => return false,
            Step::Complete => item.facts.terminal = true,
            Step::Failed(error) => item.facts.error = Some(error),
        }
        self.ended = true;
        true
    }
}

/// What an event means for the stream.
enum Step {
    Next,
    Complete,
    Failed(GatewayError),
}

/// What is known of the answer so far.
#[derive(Debug)]
struct Reading {
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
    fn new(options: StreamOptions) -> Self {
        Self {
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

    fn event(&mut self, event: sse::Event<'_>, item: &mut Item, sink: &mut VecDeque<StreamItem>) -> Step {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Step::Next;
        }
        if data == b"[DONE]" {
            return self.end();
        }
        if event.name == b"error" {
            return Step::Failed(classify::in_band(data));
        }
        let Ok(text) = std::str::from_utf8(event.data) else {
            return Step::Failed(malformed("the provider's stream is not valid UTF-8"));
        };
        if let Some(bytes) = self.template.as_ref().and_then(|template| template.text_bytes(text)) {
            item.put(&event, text, Edits::default(), sink);
            item.add(FrameFacts {
                content_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                content_frames: u32::from(bytes > 0),
                ..FrameFacts::default()
            });
            return Step::Next;
        }
        let Ok(chunk) = Chunk::read(text) else {
            return Step::Failed(malformed("the provider's stream holds an event that is not a chunk"));
        };
        if chunk.error == ErrorField::Present {
            return Step::Failed(classify::in_band(data));
        }
        let facts = self.take(&chunk);
        let mut edits = Edits::default();
        if let Err(error) = self.edit(text, &chunk, &mut edits) {
            return Step::Failed(error);
        }
        if self.is_relayed(&chunk) {
            if edits.is_empty() {
                self.template = Template::of(text, &chunk);
            }
            item.put(&event, text, edits, sink);
        }
        item.add(facts);
        Step::Next
    }

    /// Returns what an end of the stream means now.
    fn end(&self) -> Step {
        if self.ended != 0 && self.seen & !self.ended == 0 {
            return Step::Complete;
        }
        let message = "the provider's stream ended before the answer was complete";
        Step::Failed(GatewayError::new(ErrorKind::StreamInterrupted, message))
    }

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

/// The item that is being put together: a run of the chunk as it came, or events framed anew.
struct Item {
    chunk: Bytes,
    run: Range<usize>,
    framed: Vec<u8>,
    facts: FrameFacts,
}

impl Item {
    fn new(chunk: Bytes) -> Self {
        Self { chunk, run: 0..0, framed: Vec::new(), facts: FrameFacts::default() }
    }

    fn is_empty(&self) -> bool {
        self.run.is_empty() && self.framed.is_empty() && self.facts == FrameFacts::default()
    }

    /// Adds the bytes of an event: as they came if that is canonical and nothing is edited, else framed anew.
    fn put(&mut self, event: &sse::Event<'_>, text: &str, edits: Edits<'_>, sink: &mut VecDeque<StreamItem>) {
        match event.canonical {
            Some((start, end)) if edits.is_empty() => self.relay(start..end, sink),
            Some(_) | None => self.frame(text, edits, sink),
        }
    }

    /// Adds an event as it came. Where it cannot be joined to what is there, that goes out first.
    fn relay(&mut self, event: Range<usize>, sink: &mut VecDeque<StreamItem>) {
        let joins = self.framed.is_empty() && self.run.end == event.start;
        if joins && !self.run.is_empty() {
            self.run.end = event.end;
        } else {
            self.flush(sink);
            self.run = event;
        }
    }

    /// Adds an event in canonical framing.
    fn frame(&mut self, text: &str, edits: Edits<'_>, sink: &mut VecDeque<StreamItem>) {
        const HEAD: &[u8] = b"data: ";
        const TAIL: &[u8] = b"\n\n";
        if !self.run.is_empty() {
            self.flush(sink);
        }
        self.framed.reserve(HEAD.len() + text.len() + TAIL.len());
        self.framed.extend_from_slice(HEAD);
        let start = self.framed.len();
        edits.apply(text.as_bytes(), &mut self.framed, TAIL.len());
        // A line end inside JSON is a blank; inside a frame it would end the line.
        for byte in &mut self.framed[start..] {
            if *byte == b'\n' {
                *byte = b' ';
            }
        }
        self.framed.extend_from_slice(TAIL);
    }

    /// Adds the facts of one more event.
    fn add(&mut self, facts: FrameFacts) {
        let sum = &mut self.facts;
        sum.content_bytes = sum.content_bytes.saturating_add(facts.content_bytes);
        sum.content_frames += facts.content_frames;
        sum.tool_calls |= facts.tool_calls;
        sum.usage = facts.usage.or(sum.usage.take());
        sum.finish = facts.finish.or(sum.finish);
        sum.served_model = sum.served_model.take().or(facts.served_model);
    }

    /// Sends what is there, if there is anything.
    fn flush(&mut self, sink: &mut VecDeque<StreamItem>) {
        if self.is_empty() {
            return;
        }
        let raw = if self.framed.is_empty() {
            self.chunk.slice(std::mem::take(&mut self.run))
        } else {
            Bytes::from(std::mem::take(&mut self.framed))
        };
        sink.push_back(StreamItem { raw, facts: std::mem::take(&mut self.facts) });
    }
}

/// Returns whether the data of an unfinished event is whole: the final marker, or JSON that ends.
fn is_whole(data: &[u8]) -> bool {
    let data = data.trim_ascii();
    data == b"[DONE]" || std::str::from_utf8(data).is_ok_and(|text| Chunk::read(text).is_ok())
}

fn malformed(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::MalformedResponse, message)
}
