//! From the bytes of a chat-completions stream to neutral events.

mod calls;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;
use gw_types::{FinishReason, GatewayError, Usage};

use self::calls::Calls;
use super::{answer, classify, content::CHOICES_MAX, finish, unread, usage::WireUsage};
use crate::{
    event_reader::EventReader,
    failure::{interrupted, malformed},
    json::{Node, Reader},
    neutral::{At, BlockKind, Citation, Event, Origin, Signature, TierReport, UnreadFields, derived_finish},
    sse,
};

/// Reads one streamed answer, chunk by chunk, into neutral events.
///
/// Why a choice ended is said at the end of the stream: servers send content after it, or repeat it. An end without a
/// reason for every choice is an error event of kind `StreamInterrupted`.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::{neutral::Event, openai::StreamReader};
///
/// let mut reader = StreamReader::new();
/// let mut events = Vec::new();
/// let chunk = "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
/// reader.push(Bytes::from(format!("{chunk}data: [DONE]\n\n")), &mut events);
/// assert!(events.iter().any(|event| matches!(event, Event::TextDelta(_, text) if text == "Hi")));
/// assert!(matches!(events.last(), Some(Event::End)));
/// ```
#[derive(Debug, Default)]
pub struct StreamReader {
    sse: sse::Decoder,
    choices: Vec<Choice>,
    calls: Calls,
    usage: WireUsage,
    tier: TierReport,
    reported: Option<Usage>,
    sources: Vec<Citation>,
    unread: UnreadFields,
    started: bool,
    ended: bool,
}

/// What is known of one choice so far.
#[derive(Debug, Default)]
struct Choice {
    seen: bool,
    blocks: u32,
    /// The block that text, reasoning or a refusal goes into.
    open: Option<(Kind, At)>,
    /// The last block of text, for what it is taken from.
    text: Option<At>,
    finish: Option<FinishReason>,
    refused: bool,
    called: bool,
}

/// Names the blocks that a delta goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Refusal,
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
        if is_done(data) {
            self.complete(events);
            return Ok(());
        }
        if event.name == b"error" {
            return Err(classify::in_band(data));
        }
        let text = std::str::from_utf8(event.data)
            .map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
        let chunk = Node::read(text).ok().filter(Node::is_object);
        let chunk =
            chunk.ok_or_else(|| malformed("the provider's stream holds an event that is not a chunk"))?;
        let says_error = chunk.says("object", "error") || chunk.says("object", "Error");
        let choices = chunk.get("choices").map(Node::items).unwrap_or_default();
        let fails = choices.iter().any(|choice| choice.get("error").is_some_and(Node::is_object));
        if says_error || fails || chunk.get("error").is_some() {
            return Err(classify::in_band(data));
        }
        self.chunk(&chunk, events)
    }

    fn is_whole(data: &[u8]) -> bool {
        is_done(data) || std::str::from_utf8(data).is_ok_and(|text| Node::read(text).is_ok())
    }

    fn body_ended(&mut self, events: &mut Vec<Event>) {
        self.complete(events);
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

    /// Ends the answer if it is complete, else says that it was interrupted.
    fn complete(&mut self, events: &mut Vec<Event>) {
        let seen = || self.choices.iter().filter(|choice| choice.seen);
        if seen().count() == 0 || seen().any(|choice| choice.finish.is_none()) {
            return self.fail(interrupted(), events);
        }
        self.ended = true;
        self.calls.stop_all(events);
        for (index, choice) in self.choices.iter_mut().enumerate() {
            let Some(reason) = choice.finish else { continue };
            if let Some(at) = choice.text.filter(|_| index == 0) {
                events.extend(self.sources.drain(..).map(|source| Event::Citation(at, source)));
            }
            choice.close(events);
            events.push(Event::Finish {
                choice: u32::try_from(index).unwrap_or(CHOICES_MAX),
                reason: derived_finish(reason, choice.called, choice.refused),
                stop_sequence: None,
            });
        }
        events.push(Event::End);
    }

    fn chunk(&mut self, chunk: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let choices = chunk.get("choices").map(Node::items).unwrap_or_default();
        if !self.started {
            // Azure's first chunk has neither choices nor an id worth the name.
            let id = chunk.filled("id");
            if id.is_some() || !choices.is_empty() {
                self.started = true;
                events.push(Event::Start { id, model: chunk.filled("model") });
            }
        }
        if self.started {
            events.extend(self.tier.news(chunk.filled("service_tier")));
        }
        if self.sources.is_empty() {
            self.sources = answer::sources(chunk);
        }
        for (position, choice) in choices.iter().enumerate() {
            self.choice(position, choice, events)?;
        }
        let groq = chunk.get("x_groq").and_then(|groq| groq.get("usage"));
        if let Some(usage) = chunk.get("usage").or(groq) {
            self.usage(usage, events);
        }
        unread::look(chunk, &mut self.unread);
        if self.started {
            events.extend(self.unread.news().map(Event::Unread));
        }
        Ok(())
    }

    fn usage(&mut self, node: &Node<'_>, events: &mut Vec<Event>) {
        if let Ok(Some(usage)) = WireUsage::read(&mut Reader::new(node.raw)) {
            self.usage.merge(&usage);
            let classes = self.usage.classes();
            if classes != self.reported {
                self.reported = classes;
                events.extend(classes.map(Event::Usage));
            }
        }
    }

    fn choice(
        &mut self,
        position: usize,
        node: &Node<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        let index = node.count("index").and_then(|index| usize::try_from(index).ok()).unwrap_or(position);
        if index >= CHOICES_MAX as usize {
            return Err(malformed("the provider's stream holds too many choices"));
        }
        if self.choices.len() <= index {
            self.choices.resize_with(index + 1, Choice::default);
        }
        let number = u32::try_from(index).unwrap_or(0);
        let choice = &mut self.choices[index];
        choice.seen = true;
        if let Some(delta) = node.get("delta").or(node.get("message")) {
            choice.delta(number, delta, events);
            let calls = delta.get("tool_calls").map(Node::items).unwrap_or_default().iter();
            let calls = calls.map(|call| (call, call.get("function")));
            let older = delta.get("function_call").map(|function| (function, Some(function)));
            for (call, function) in calls.chain(older) {
                choice.close(events);
                choice.called = true;
                self.calls
                    .add(number, call, function, &mut choice.blocks, events)
                    .map_err(|_| malformed("the provider's stream holds too many or broken tool calls"))?;
            }
        }
        if let Some(logprobs) = answer::logprobs(node) {
            events.push(Event::Logprobs(number, logprobs));
        }
        if let Some(reason) = node.filled("finish_reason") {
            choice.finish = Some(finish::read(&reason));
        }
        Ok(())
    }
}

impl Choice {
    fn delta(&mut self, number: u32, delta: &Node<'_>, events: &mut Vec<Event>) {
        let plain = ["reasoning_content", "reasoning"].into_iter().find_map(|field| delta.filled(field));
        for detail in delta.get("reasoning_details").map(Node::items).unwrap_or_default() {
            self.reasoning_detail(number, detail, plain.is_none(), events);
        }
        if let Some(text) = plain {
            self.say(number, Kind::Thinking, text, events);
        }
        if let Some(content) = delta.get("content") {
            self.content(number, Kind::Text, content, events);
        }
        if let Some(transcript) = delta.get("audio").and_then(|audio| audio.filled("transcript")) {
            self.say(number, Kind::Text, transcript, events);
        }
        if let Some(text) = delta.filled("refusal") {
            self.refused = true;
            self.say(number, Kind::Refusal, text, events);
        }
        if let Some(at) = self.text {
            let annotations = delta.get("annotations").map(Node::items).unwrap_or_default();
            let cited = annotations.iter().filter_map(answer::citation);
            events.extend(cited.map(|citation| Event::Citation(at, citation)));
        }
    }

    /// Reads text, or Mistral's parts.
    fn content(&mut self, number: u32, kind: Kind, content: &Node<'_>, events: &mut Vec<Event>) {
        if let Some(text) = content.as_str() {
            return self.say(number, kind, text.into_owned(), events);
        }
        for part in content.items() {
            if let Some(thinking) = part.get("thinking") {
                self.content(number, Kind::Thinking, thinking, events);
            } else if let Some(text) = part.filled("text").or(part.as_str().map(Cow::into_owned)) {
                self.say(number, kind, text, events);
            } else if let Some(text) = part.filled("refusal") {
                self.refused = true;
                self.say(number, Kind::Refusal, text, events);
            }
        }
    }

    /// Reads one of OpenRouter's details; its text only where the plain field does not have it too.
    fn reasoning_detail(&mut self, number: u32, detail: &Node<'_>, with_text: bool, events: &mut Vec<Event>) {
        match detail.text("type").as_deref() {
            Some("reasoning.encrypted") => {
                if let Some(data) = detail.filled("data") {
                    self.close(events);
                    let at = self.next(number);
                    let data = Signature::from_wire(&data, Origin::OpenAi);
                    events.push(Event::BlockStart(at, BlockKind::RedactedThinking(data)));
                    events.push(Event::BlockStop(at));
                }
            }
            Some("reasoning.text") => {
                if let Some(text) = detail.filled("text").filter(|_| with_text) {
                    self.say(number, Kind::Thinking, text, events);
                }
                if let Some(text) = detail.filled("signature")
                    && let Some((Kind::Thinking, at)) = self.open
                {
                    events.push(Event::SignatureDelta(at, Signature::from_wire(&text, Origin::Anthropic)));
                }
            }
            Some(_) | None => {}
        }
    }

    fn say(&mut self, number: u32, kind: Kind, text: String, events: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        let at = match self.open {
            Some((open, at)) if open == kind => at,
            Some(_) | None => {
                self.close(events);
                let at = self.next(number);
                let (block, is_text) = match kind {
                    Kind::Text => (BlockKind::Text, true),
                    Kind::Thinking => (BlockKind::Thinking, false),
                    Kind::Refusal => (BlockKind::Refusal, false),
                };
                self.open = Some((kind, at));
                if is_text {
                    self.text = Some(at);
                }
                events.push(Event::BlockStart(at, block));
                at
            }
        };
        events.push(match kind {
            Kind::Text => Event::TextDelta(at, text),
            Kind::Thinking => Event::ThinkingDelta(at, text),
            Kind::Refusal => Event::RefusalDelta(at, text),
        });
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        events.extend(self.open.take().map(|(_, at)| Event::BlockStop(at)));
    }

    fn next(&mut self, number: u32) -> At {
        let at = At { choice: number, block: self.blocks };
        self.blocks += 1;
        at
    }
}

fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}
