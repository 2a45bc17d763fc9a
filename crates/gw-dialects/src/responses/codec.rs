//! The neutral parts of responses, for the cache, and answers written from them.

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use gw_types::{
    Choice, Completion, DialectCodec, FinishReason, NormalizedRequest, Question, StreamCollector, StreamItem,
    ToolCall,
};

use super::{
    StreamWriter, read_message,
    reply::{events_of, write_message},
};
use crate::{
    json::{Node, value_at},
    neutral::{AnswerStamp, Content, Message, MessageChoice, Thinking, ToolUse},
};

/// Reads neutral parts out of responses.
///
/// An answer with log probabilities, citations, encrypted reasoning, several messages or items of OpenAI's own has no neutral
/// form here and is not read at all: what is remembered must be the whole answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponsesCodec;

impl DialectCodec for ResponsesCodec {
    fn completion(&self, raw: &Bytes) -> Option<Completion> {
        let message = read_message(raw).ok()?;
        let served_model = message.model.as_deref().map(gw_types::BoundedText::new);
        let usage = message.usage;
        let mut choices = message.choices.into_iter();
        let choice = choices.next().filter(|choice| choice.logprobs.is_none())?;
        Some(Completion { choices: vec![remembered(choice)?], served_model, usage })
    }

    fn collector(&self) -> Box<dyn StreamCollector> {
        Box::new(Collector::default())
    }

    fn question(&self, _request: &NormalizedRequest) -> Option<Question> {
        None
    }

    fn answer_schema(&self, request: &NormalizedRequest) -> Option<Bytes> {
        value_at(&request.body, &["text", "format", "schema"])
    }
}

/// Returns the parts of an answer that the cache has a place for, if these are all.
pub(crate) fn remembered(choice: MessageChoice) -> Option<Choice> {
    let mut kept = Choice {
        text: String::new(),
        reasoning: String::new(),
        refusal: None,
        tool_calls: Vec::new(),
        finish: choice.finish,
    };
    for block in choice.blocks {
        let is_first = kept.text.is_empty() && kept.tool_calls.is_empty() && kept.refusal.is_none();
        match block {
            Content::Thinking(Thinking { text, signature: None })
                if is_first && kept.reasoning.is_empty() =>
            {
                kept.reasoning = text;
            }
            Content::Text(text) if is_first && text.citations.is_empty() => kept.text = text.text,
            Content::Refusal(text) if is_first => kept.refusal = Some(text),
            Content::ToolUse(ToolUse { id, name, arguments, signature: None }) => {
                kept.tool_calls.push(ToolCall { id, name, arguments });
            }
            Content::Thinking(_)
            | Content::Text(_)
            | Content::Refusal(_)
            | Content::ToolUse(_)
            | Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_)
            | Content::ToolResult(_)
            | Content::RedactedThinking(_)
            | Content::Opaque(_) => return None,
        }
    }
    Some(kept)
}

/// The most bytes of one streamed answer that are collected; a longer one is not read.
const COLLECTED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Collects a streamed answer, whose last event holds the whole of it.
#[derive(Default)]
struct Collector {
    response: Option<Bytes>,
    bytes: usize,
    unreadable: bool,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl StreamCollector for Collector {
    fn push(&mut self, item: &StreamItem) {
        self.bytes = self.bytes.saturating_add(item.raw.len());
        self.unreadable |= item.facts.error.is_some() || self.bytes > COLLECTED_BYTES_MAX;
        if self.unreadable || !item.facts.terminal {
            return;
        }
        let last = item.raw.split(|byte| *byte == b'\n').rev().find_map(|line| line.strip_prefix(b"data: "));
        let text = last.and_then(|data| std::str::from_utf8(data).ok());
        let node = text.and_then(|text| Node::read(text).ok());
        let response = node.as_ref().and_then(|node| node.get("response"));
        self.response = response.map(|response| Bytes::copy_from_slice(response.raw.as_bytes()));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(self: Box<Self>) -> Option<Completion> {
        let response = self.response.filter(|_| !self.unreadable)?;
        let completion = ResponsesCodec.completion(&response)?;
        // A server that leaves the output out at the end has streamed something that is not in its last event.
        let is_empty = completion
            .choices
            .iter()
            .all(|choice| choice.text.is_empty() && choice.tool_calls.is_empty() && choice.refusal.is_none());
        (!is_empty).then_some(completion)
    }
}

/// Returns a whole answer out of the cache.
pub fn completion_body(completion: &Completion, stamp: &AnswerStamp<'_>) -> Bytes {
    write_message(&message_of(completion), stamp)
}

/// Returns an answer out of the cache as the events of a stream, the last one included.
pub fn completion_events(completion: &Completion, stamp: &AnswerStamp<'_>) -> Bytes {
    let mut writer = StreamWriter::new(stamp);
    let mut out = BytesMut::new();
    for event in events_of(&message_of(completion)) {
        writer.write(&event, &mut out);
    }
    out.freeze()
}

pub(crate) fn message_of(completion: &Completion) -> Message {
    let choice = completion.choices.first().map(|choice| {
        let mut blocks = Vec::new();
        if !choice.reasoning.is_empty() {
            let text = choice.reasoning.clone();
            blocks.push(Content::Thinking(Thinking { text, signature: None }));
        }
        if !choice.text.is_empty() {
            blocks.push(Content::text(choice.text.clone()));
        }
        blocks.extend(choice.refusal.clone().map(Content::Refusal));
        blocks.extend(choice.tool_calls.iter().map(|call| {
            Content::ToolUse(ToolUse {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                signature: None,
            })
        }));
        MessageChoice::new(blocks, choice.finish)
    });
    let unfinished = || MessageChoice::new(Vec::new(), FinishReason::Other);
    Message {
        model: completion.served_model.as_ref().map(ToString::to_string),
        choices: vec![choice.unwrap_or_else(unfinished)],
        usage: completion.usage,
        ..Message::default()
    }
}
