//! The neutral parts of answers and requests, for the cache.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{
    AnswerFacts, BoundedText, Choice, Completion, DialectCodec, FinishReason, NormalizedRequest, Question,
    StreamCollector, StreamItem, ToolCall, Usage,
};
use memchr::memchr_iter;

use super::{
    chunk::Chunk,
    content::Part as PartKind,
    decode, finish, question,
    template::Template,
    wire::{Call, Content, Document, DocumentChoice, Message, Part},
};
use crate::json::value_at;

/// Reads neutral parts out of chat completions.
///
/// An answer with sound, log probabilities, annotations or the old function call has no neutral form here and is not read
/// at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatCodec;

impl DialectCodec for ChatCodec {
    fn completion(&self, raw: &Bytes) -> Option<Completion> {
        read(raw, decode::read_answer(raw).ok()?, PartKind::Message)
    }

    fn choices(&self, raw: &Bytes) -> Option<Vec<Choice>> {
        choices(raw, PartKind::Message)
    }

    fn collector(&self) -> Box<dyn StreamCollector> {
        Box::new(Collector::of(PartKind::Delta))
    }

    fn question(&self, request: &NormalizedRequest) -> Option<Question> {
        question::read(&request.body)
    }

    fn answer_schema(&self, request: &NormalizedRequest) -> Option<Bytes> {
        value_at(&request.body, &["response_format", "json_schema", "schema"])
    }
}

/// The most bytes of one streamed answer that are collected; a longer one is not read.
const COLLECTED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most choices and tool calls that are collected.
const PARTS_MAX: usize = 1_024;

/// Reads the neutral parts of a whole answer whose choices hold them in the field of `part`.
pub(crate) fn read(raw: &Bytes, facts: AnswerFacts, part: PartKind) -> Option<Completion> {
    let AnswerFacts { served_model, usage, .. } = facts;
    Some(Completion { choices: choices(raw, part)?, served_model, usage })
}

/// Reads the choices of a whole answer that hold their content in the field of `part`.
pub(crate) fn choices(raw: &Bytes, part: PartKind) -> Option<Vec<Choice>> {
    let mut collected = Collected::of(part);
    // Checked once, and not each of its strings again.
    collected.document(serde_json::from_str(std::str::from_utf8(raw).ok()?).ok()?);
    collected.into_choices()
}

/// Collects a streamed answer.
pub(crate) struct Collector {
    collected: Collected,
    /// What most chunks look like, and where their text goes.
    known: Option<(Template, Place)>,
    bytes: usize,
    served_model: Option<BoundedText>,
    usage: Option<Usage>,
}

impl Collector {
    /// Returns a collector of chunks whose choices hold their content in the field of `part`.
    pub(crate) fn of(part: PartKind) -> Self {
        Self { collected: Collected::of(part), known: None, bytes: 0, served_model: None, usage: None }
    }
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl StreamCollector for Collector {
    fn push(&mut self, item: &StreamItem) {
        self.bytes = self.bytes.saturating_add(item.raw.len());
        self.collected.unreadable |= item.facts.error.is_some() || self.bytes > COLLECTED_BYTES_MAX;
        if self.collected.unreadable {
            self.collected.choices = Vec::new();
            return;
        }
        if let Some(model) = &item.facts.served_model {
            self.served_model.get_or_insert_with(|| model.clone());
        }
        if let Some(usage) = &item.facts.usage {
            self.usage = Some(**usage);
        }
        // Items hold whole events in canonical framing: one line of data, then a blank line.
        let mut from = 0;
        for end in memchr_iter(b'\n', &item.raw).chain([item.raw.len()]) {
            let line = item.raw.get(from..end).unwrap_or_default();
            from = end + 1;
            if let Some(data) = line.strip_prefix(b"data: ") {
                self.collected.unreadable |= self.chunk(data).is_none();
            }
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(self: Box<Self>) -> Option<Completion> {
        let choices = self.collected.into_choices()?;
        Some(Completion { choices, served_model: self.served_model, usage: self.usage })
    }
}

impl Collector {
    /// Reads a chunk; one that differs from the one before in its text alone is not taken apart again.
    fn chunk(&mut self, data: &[u8]) -> Option<()> {
        let chunk = std::str::from_utf8(data).ok()?;
        if let Some((template, place)) = &self.known
            && let Some(said) = template.text(chunk)
        {
            return self.collected.add_text(*place, chunk.get(said.span())?, said.is_escaped());
        }
        let document = serde_json::from_str(chunk).ok()?;
        let place = Place::of(&document, self.collected.part);
        self.known = place.and_then(|place| {
            let template = Template::of(chunk, &Chunk::read(chunk, self.collected.part).ok()?)?;
            Some((template, place))
        });
        self.collected.document(document);
        Some(())
    }
}

/// Where the one text of a chunk goes.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    is_reasoning: bool,
}

impl Place {
    /// Returns the place, if the chunk can have one text only.
    fn of(document: &Document, part: PartKind) -> Option<Self> {
        let [choice] = &*document.choices else { return None };
        let is_reasoning = match part {
            PartKind::Text => false,
            PartKind::Delta | PartKind::Message => {
                let message = choice.message.as_ref()?;
                match (&message.content, message.reasoning_content.as_ref().or(message.reasoning.as_ref())) {
                    (Some(Content::Text(_)), None) => false,
                    (None, Some(Content::Text(_))) => true,
                    (None | Some(_), None | Some(_)) => return None,
                }
            }
        };
        Some(Self { index: choice.index.unwrap_or_default() as usize, is_reasoning })
    }
}

/// Choices while they are collected.
struct Collected {
    part: PartKind,
    choices: Vec<Partial>,
    /// Whether something came that has no neutral form.
    unreadable: bool,
}

#[derive(Default)]
struct Partial {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<ToolCall>,
    finish: Option<FinishReason>,
}

impl Collected {
    fn of(part: PartKind) -> Self {
        Self { part, choices: Vec::new(), unreadable: false }
    }

    fn document(&mut self, document: Document) {
        for (position, choice) in document.choices.into_iter().enumerate() {
            let index = choice.index.map_or(position, |index| index as usize);
            if index >= PARTS_MAX {
                self.unreadable = true;
                return;
            }
            if self.choices.len() <= index {
                self.choices.resize_with(index + 1, Partial::default);
            }
            let read = self.choices[index].add(choice, self.part);
            self.unreadable |= read.is_none();
        }
    }

    /// Adds a text in quotes to a choice that is there already.
    fn add_text(&mut self, place: Place, quoted: &str, is_escaped: bool) -> Option<()> {
        let partial = self.choices.get_mut(place.index)?;
        let text = if place.is_reasoning { &mut partial.reasoning } else { &mut partial.text };
        if is_escaped {
            text.push_str(&serde_json::from_str::<String>(quoted).ok()?);
        } else {
            text.push_str(quoted.get(1..quoted.len() - 1)?);
        }
        Some(())
    }

    fn into_choices(self) -> Option<Vec<Choice>> {
        if self.unreadable || self.choices.is_empty() {
            return None;
        }
        self.choices.into_iter().map(Partial::into_choice).collect()
    }
}

impl Partial {
    fn add(&mut self, choice: DocumentChoice, part: PartKind) -> Option<()> {
        if choice.logprobs.is_some() {
            return None;
        }
        if let Some(reason) = &choice.finish_reason {
            self.finish = Some(finish::read(reason));
        }
        if part == PartKind::Text {
            // Some servers of chat say the text of a delta here once more.
            self.text.push_str(choice.text.as_deref().unwrap_or_default());
            return Some(());
        }
        let message = choice.message.unwrap_or_default();
        let annotated = message.annotations.as_ref().is_some_and(|annotations| !annotations.is_empty());
        if annotated || message.audio.is_some() || message.function_call.is_some() {
            return None;
        }
        self.take(message)
    }

    fn take(&mut self, message: Message) -> Option<()> {
        match message.content {
            Some(Content::Text(text)) => self.text.push_str(&text),
            Some(Content::Parts(parts)) => parts.into_iter().for_each(|part| self.part(part)),
            None => {}
        }
        match message.reasoning_content.or(message.reasoning) {
            Some(Content::Text(text)) => self.reasoning.push_str(&text),
            Some(Content::Parts(_)) => return None,
            None => {}
        }
        self.refusal.push_str(message.refusal.as_deref().unwrap_or_default());
        for (position, call) in message.tool_calls.into_iter().flatten().enumerate() {
            self.call(position, call)?;
        }
        Some(())
    }

    fn part(&mut self, part: Part) {
        match part {
            Part::Text { text } => self.text.push_str(&text),
            Part::Thinking { thinking } => {
                for part in thinking {
                    if let Part::Text { text } = part {
                        self.reasoning.push_str(&text);
                    }
                }
            }
        }
    }

    fn call(&mut self, position: usize, call: Call) -> Option<()> {
        let index = call.index.unwrap_or(position);
        if index > self.calls.len() || index >= PARTS_MAX {
            return None;
        }
        if index == self.calls.len() {
            let empty = ToolCall { id: String::new(), name: String::new(), arguments: String::new() };
            self.calls.push(empty);
        }
        let kept = &mut self.calls[index];
        kept.id.push_str(call.id.as_deref().unwrap_or_default());
        if let Some(function) = call.function {
            kept.name.push_str(function.name.as_deref().unwrap_or_default());
            kept.arguments.push_str(function.arguments.as_deref().unwrap_or_default());
        }
        Some(())
    }

    fn into_choice(self) -> Option<Choice> {
        let refusal = (!self.refusal.is_empty()).then_some(self.refusal);
        let finish = match self.finish? {
            FinishReason::Stop if refusal.is_some() => FinishReason::Refusal,
            reason => reason,
        };
        if self.calls.iter().any(|call| call.id.is_empty() || call.name.is_empty()) {
            return None;
        }
        Some(Choice { text: self.text, reasoning: self.reasoning, refusal, tool_calls: self.calls, finish })
    }
}
