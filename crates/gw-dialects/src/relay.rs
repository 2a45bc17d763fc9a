//! Puts items together: what of a provider's stream is relayed as it came, and what is framed anew.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use gw_types::{FrameFacts, GatewayError, StreamItem};

use crate::{edit::Edits, failure::interrupted, sse};

/// What one format reads of a stream while it is relayed.
pub(crate) trait Reading {
    /// Reads one event and puts into the item what the caller gets of it; returns whether it was the last.
    fn event(
        &mut self,
        event: &sse::Event<'_>,
        item: &mut Item,
        sink: &mut VecDeque<StreamItem>,
    ) -> Result<bool, GatewayError>;

    /// Returns the bytes of text in a chunk that is one event, framed as the dialect does it, and differs from an earlier
    /// one in nothing but its text; most chunks are that. `None`: it is to be read.
    fn only_text(&self, _chunk: &[u8]) -> Option<u64> {
        None
    }

    /// Returns whether the data of an event without its blank line is whole. A cut one is no JSON, and then the
    /// interruption is what counts.
    fn is_whole(&self, data: &[u8]) -> bool;

    /// Says what the end of the body means, where no event was the last.
    fn body_ended(&self) -> Result<(), GatewayError> {
        Err(interrupted())
    }
}

/// Relays one streamed answer, chunk by chunk: what the decoders of all formats do alike.
#[derive(Debug, Default)]
pub(crate) struct Relay<R> {
    events: sse::Decoder,
    reading: R,
    ended: bool,
}

impl<R: Reading> Relay<R> {
    pub(crate) fn new(reading: R) -> Self {
        Self { events: sse::Decoder::new(), reading, ended: false }
    }

    /// Adds the next bytes of the body; appends what they bring to `sink`.
    pub(crate) fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        if self.ended {
            return;
        }
        let may_be_event = chunk.len() <= sse::EVENT_BYTES_MAX && self.events.is_at_event();
        let only_text = may_be_event.then(|| self.reading.only_text(&chunk)).flatten();
        let mut item = Item::new(chunk);
        if let Some(bytes) = only_text {
            item.run = 0..item.chunk.len();
            item.add_content(bytes);
            return item.flush(sink);
        }
        self.events.push(item.chunk.clone());
        while let Some(event) = self.events.next_event() {
            let step = match event {
                Ok(event) => self.reading.event(&event, &mut item, sink),
                Err(too_long) => Err(too_long.into()),
            };
            match step {
                Ok(false) => continue,
                Ok(true) => item.facts.terminal = true,
                Err(error) => item.facts.error = Some(error),
            }
            self.ended = true;
            break;
        }
        item.flush(sink);
    }

    /// Says that the body has ended; returns the last item. A last event that lacks its blank line still counts.
    ///
    /// # Errors
    /// `StreamInterrupted`, if the answer is not complete, or what an unfinished last event says is wrong. Where that event
    /// brought anything else, the item carries it, and the error in its facts instead.
    pub(crate) fn end(&mut self) -> Result<StreamItem, GatewayError> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(StreamItem::default());
        }
        let mut item = Item::new(Bytes::new());
        let mut sink = VecDeque::new();
        let step = match self.events.finish() {
            Some(event) if self.reading.is_whole(event.data) => {
                self.reading.event(&event, &mut item, &mut sink)
            }
            Some(_) | None => Ok(false),
        };
        let step = step.and_then(|last| if last { Ok(()) } else { self.reading.body_ended() });
        match step {
            Ok(()) => item.facts.terminal = true,
            Err(error) if item.is_empty() => return Err(error),
            Err(error) => item.facts.error = Some(error),
        }
        item.flush(&mut sink);
        Ok(sink.pop_back().unwrap_or_default())
    }
}

/// The item that is being put together: a run of the chunk as it came, or events framed anew.
pub(crate) struct Item {
    chunk: Bytes,
    run: Range<usize>,
    framed: Vec<u8>,
    /// What the item means so far.
    pub(crate) facts: FrameFacts,
}

impl Item {
    pub(crate) fn new(chunk: Bytes) -> Self {
        Self { chunk, run: 0..0, framed: Vec::new(), facts: FrameFacts::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty() && self.framed.is_empty() && self.facts == FrameFacts::default()
    }

    /// Adds the bytes of an event: as they came if that is the dialect's framing and nothing is edited, else framed anew.
    ///
    /// The dialect's framing is one line of data behind the name where it names events, and without a name where not.
    pub(crate) fn put(
        &mut self,
        event: &sse::Event<'_>,
        name: Option<&str>,
        text: &str,
        edits: Edits<'_>,
        sink: &mut VecDeque<StreamItem>,
    ) {
        let place = match name {
            Some(name) if event.name == name.as_bytes() => event.named,
            Some(_) => None,
            None => event.canonical,
        };
        match place {
            Some((start, end)) if edits.is_empty() => self.relay(start..end, sink),
            Some(_) | None => self.frame(name, text, edits, sink),
        }
    }

    /// Adds an event as it came. Where it cannot be joined to what is there, that goes out first.
    fn relay(&mut self, event: Range<usize>, sink: &mut VecDeque<StreamItem>) {
        let joins = self.framed.is_empty() && self.run.end == event.start;
        if joins && !self.run.is_empty() {
            self.run.end = event.end;
        } else {
            if !(self.run.is_empty() && self.framed.is_empty()) {
                self.flush(sink);
            }
            self.run = event;
        }
    }

    /// Adds an event in the dialect's framing.
    fn frame(&mut self, name: Option<&str>, text: &str, edits: Edits<'_>, sink: &mut VecDeque<StreamItem>) {
        const NAME: &[u8] = b"event: ";
        const HEAD: &[u8] = b"data: ";
        const TAIL: &[u8] = b"\n\n";
        if !self.run.is_empty() {
            self.flush(sink);
        }
        let named = name.map_or(0, |name| NAME.len() + name.len() + 1);
        self.framed.reserve(named + HEAD.len() + text.len() + TAIL.len());
        if let Some(name) = name {
            self.framed.extend_from_slice(NAME);
            self.framed.extend_from_slice(name.as_bytes());
            self.framed.push(b'\n');
        }
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

    /// As [`Item::add`] for an event of so many bytes of text and nothing else.
    pub(crate) fn add_content(&mut self, bytes: u64) {
        let sum = &mut self.facts;
        sum.content_bytes = sum.content_bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        sum.content_frames += u32::from(bytes > 0);
    }

    /// Adds the facts of one more event.
    pub(crate) fn add(&mut self, facts: FrameFacts) {
        let sum = &mut self.facts;
        sum.content_bytes = sum.content_bytes.saturating_add(facts.content_bytes);
        sum.content_frames += facts.content_frames;
        sum.tool_calls |= facts.tool_calls;
        sum.usage = facts.usage.or(sum.usage.take());
        sum.finish = facts.finish.or(sum.finish);
        sum.served_model = sum.served_model.take().or(facts.served_model);
        sum.loss = sum.loss.take().or(facts.loss);
    }

    /// Sends what is there, if there is anything.
    pub(crate) fn flush(&mut self, sink: &mut VecDeque<StreamItem>) {
        if self.is_empty() {
            return;
        }
        let raw = if self.framed.is_empty() {
            let run = std::mem::take(&mut self.run);
            // Mostly a chunk is an event, and needs no second owner.
            if run == (0..self.chunk.len()) { std::mem::take(&mut self.chunk) } else { self.chunk.slice(run) }
        } else {
            Bytes::from(std::mem::take(&mut self.framed))
        };
        sink.push_back(StreamItem { raw, facts: std::mem::take(&mut self.facts) });
    }
}
