//! From the bytes of a deployment's stream to items in the caller's format.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use gw_types::{BoundedText, FinishReason, FrameFacts, GatewayError, Operation, StreamItem};

use super::{WireFormat, combined, untranslatable};
use crate::{
    anthropic, bedrock, gemini,
    neutral::{AnswerLoss, AnswerStamp, BlockKind, Event},
    ollama, openai, responses,
};

/// What most events take when they are written, in bytes.
const EVENT_BYTES: usize = 256;

/// How a stream is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTranslation<'a> {
    /// What the deployment speaks.
    pub from: WireFormat,
    /// What the caller reads.
    pub to: Operation,
    /// What identifies the answer.
    pub stamp: AnswerStamp<'a>,
    /// Whether the caller of chat completions asked for the usage chunk.
    pub relay_usage: bool,
}

/// Translates one streamed answer, chunk by chunk; works like the decoders of streams that pass through.
///
/// The final marker of chat completions is left to the server; the last event of the other formats is written here.
#[derive(Debug)]
pub struct StreamTranslator {
    reader: Reader,
    writer: Writer,
    events: Vec<Event>,
    loss: AnswerLoss,
    finish: Option<FinishReason>,
    ended: bool,
}

/// The reader of each format that a deployment speaks.
#[derive(Debug)]
enum Reader {
    Chat(openai::StreamReader),
    Responses(responses::StreamReader),
    Messages(anthropic::StreamReader),
    Gemini(gemini::StreamReader),
    Converse(bedrock::StreamReader),
    Ollama(ollama::StreamReader),
}

/// The writer of each format that a caller reads.
#[derive(Debug)]
enum Writer {
    Chat(openai::StreamWriter),
    Responses(responses::StreamWriter),
    Messages(anthropic::StreamWriter),
}

impl StreamTranslator {
    /// Returns a translator at the start of a stream.
    ///
    /// # Errors
    /// `InvalidRequest` for an operation that is never translated.
    pub fn new(translation: &StreamTranslation<'_>) -> Result<Self, GatewayError> {
        let stamp = &translation.stamp;
        let reader = match translation.from {
            WireFormat::OpenAiChat => Reader::Chat(openai::StreamReader::new()),
            WireFormat::OpenAiResponses => Reader::Responses(responses::StreamReader::new()),
            WireFormat::AnthropicMessages => Reader::Messages(anthropic::StreamReader::new()),
            WireFormat::Gemini => Reader::Gemini(gemini::StreamReader::new()),
            WireFormat::BedrockConverse => Reader::Converse(bedrock::StreamReader::new()),
            WireFormat::OllamaChat => Reader::Ollama(ollama::StreamReader::new()),
        };
        let writer = match translation.to {
            Operation::Chat => Writer::Chat(openai::StreamWriter::new(stamp, translation.relay_usage)),
            Operation::Responses => Writer::Responses(responses::StreamWriter::new(stamp)),
            Operation::Messages => Writer::Messages(anthropic::StreamWriter::new(stamp)),
            Operation::Completions | Operation::Embeddings | Operation::CountTokens => {
                return Err(untranslatable(translation.to));
            }
        };
        let loss = AnswerLoss::new(translation.to);
        Ok(Self { reader, writer, events: Vec::new(), loss, finish: None, ended: false })
    }

    /// Adds the next bytes of the body; appends what they bring to `sink`: one item, or none.
    ///
    /// After an item that is terminal or carries an error nothing follows, and further bytes are ignored.
    pub fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        if self.ended {
            return;
        }
        let events = &mut self.events;
        match &mut self.reader {
            Reader::Chat(reader) => reader.push(chunk, events),
            Reader::Responses(reader) => reader.push(chunk, events),
            Reader::Messages(reader) => reader.push(chunk, events),
            Reader::Gemini(reader) => reader.push(chunk, events),
            Reader::Converse(reader) => reader.push(chunk, events),
            Reader::Ollama(reader) => reader.push(chunk, events),
        }
        let item = self.item();
        if !item.raw.is_empty() || item.facts != FrameFacts::default() {
            sink.push_back(item);
        }
    }

    /// Says that the body has ended; returns the last item, which is empty after the end.
    ///
    /// # Errors
    /// `StreamInterrupted`, if the answer is not complete, or what the last bytes say is wrong. Where they brought anything
    /// else, the item carries it, and the error in its facts instead.
    pub fn end(&mut self) -> Result<StreamItem, GatewayError> {
        if self.ended {
            return Ok(StreamItem::default());
        }
        let events = &mut self.events;
        match &mut self.reader {
            Reader::Chat(reader) => reader.end(events),
            Reader::Responses(reader) => reader.end(events),
            Reader::Messages(reader) => reader.end(events),
            Reader::Gemini(reader) => reader.end(events),
            Reader::Converse(reader) => reader.end(events),
            Reader::Ollama(reader) => reader.end(events),
        }
        let mut item = self.item();
        self.ended = true;
        match item.facts.error.take() {
            Some(error) if item.raw.is_empty() && item.facts == FrameFacts::default() => Err(error),
            error => {
                item.facts.error = error;
                Ok(item)
            }
        }
    }

    /// Writes what the reader has read, and says what it means. An error is the server's to write.
    fn item(&mut self) -> StreamItem {
        let mut out = BytesMut::with_capacity(if self.events.is_empty() { 0 } else { EVENT_BYTES });
        let mut facts = FrameFacts::default();
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.note(&event, &mut facts);
            self.loss.note(&event);
            if let Event::Error(error) = event {
                facts.error = Some(error);
                self.ended = true;
                break;
            }
            match &mut self.writer {
                Writer::Chat(writer) => writer.write(&event, &mut out),
                Writer::Responses(writer) => writer.write(&event, &mut out),
                Writer::Messages(writer) => writer.write(&event, &mut out),
            }
            if let Event::End = event {
                facts.terminal = true;
                self.ended = true;
                break;
            }
        }
        self.events = events;
        facts.loss = self.loss.news();
        StreamItem { raw: out.freeze(), facts }
    }

    fn note(&mut self, event: &Event, facts: &mut FrameFacts) {
        match event {
            Event::Start { model, .. } => {
                facts.served_model = model.as_deref().map(BoundedText::new).or(facts.served_model.take());
            }
            Event::BlockStart(_, BlockKind::ToolUse { .. }) => {
                facts.tool_calls = true;
                facts.content_frames += 1;
            }
            Event::TextDelta(_, text)
            | Event::ThinkingDelta(_, text)
            | Event::ArgumentsDelta(_, text)
            | Event::RefusalDelta(_, text) => {
                let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
                facts.content_bytes = facts.content_bytes.saturating_add(bytes);
                facts.content_frames += u32::from(bytes > 0);
            }
            Event::Usage(usage) => facts.usage = Some(Box::new(*usage)),
            Event::Finish { reason, .. } => {
                self.finish = combined(self.finish, *reason);
                facts.finish = self.finish;
            }
            Event::BlockStart(..)
            | Event::SignatureDelta(..)
            | Event::Citation(..)
            | Event::BlockStop(_)
            | Event::Logprobs(..)
            | Event::ServiceTier(_)
            | Event::Unread(_)
            | Event::Error(_)
            | Event::End => {}
        }
    }
}
