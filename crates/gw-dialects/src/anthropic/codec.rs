//! The neutral parts of messages, for the cache, and answers written from them.

use bytes::{Bytes, BytesMut};
use gw_types::{
    BoundedText, Completion, DialectCodec, NormalizedRequest, Question, StreamCollector, StreamItem,
};

use super::{StreamReader, StreamWriter, read_message, write_message};
use crate::{
    collect,
    json::value_at,
    neutral::{AnswerStamp, Event, Message},
    openai::question,
    responses::{
        codec::{message_of, remembered},
        reply::events_of,
    },
};

/// Reads neutral parts out of messages.
///
/// An answer with citations, signed or encrypted reasoning, several texts or blocks of Anthropic's own has no neutral form
/// here and is not read at all: what is remembered must be the whole answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagesCodec;

impl DialectCodec for MessagesCodec {
    fn completion(&self, raw: &Bytes) -> Option<Completion> {
        completion_of(read_message(raw).ok()?)
    }

    fn collector(&self) -> Box<dyn StreamCollector> {
        Box::new(Collector::default())
    }

    fn question(&self, request: &NormalizedRequest) -> Option<Question> {
        question::read(&request.body)
    }

    fn answer_schema(&self, request: &NormalizedRequest) -> Option<Bytes> {
        value_at(&request.body, &["output_config", "format", "schema"])
            .or_else(|| value_at(&request.body, &["output_format", "schema"]))
    }
}

fn completion_of(message: Message) -> Option<Completion> {
    let served_model = message.model.as_deref().map(BoundedText::new);
    let usage = message.usage;
    let choice = message.choices.into_iter().next().filter(|choice| choice.stop_sequence.is_none())?;
    Some(Completion { choices: vec![remembered(choice)?], served_model, usage })
}

/// The most bytes of one streamed answer that are collected; a longer one is not read.
const COLLECTED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Collects a streamed answer.
#[derive(Debug, Default)]
struct Collector {
    reader: StreamReader,
    collected: collect::Collector,
    events: Vec<Event>,
    bytes: usize,
    whole: bool,
    unreadable: bool,
}

impl StreamCollector for Collector {
    fn push(&mut self, item: &StreamItem) {
        self.bytes = self.bytes.saturating_add(item.raw.len());
        self.unreadable |= item.facts.error.is_some() || self.bytes > COLLECTED_BYTES_MAX;
        if self.unreadable {
            self.collected = collect::Collector::default();
            return;
        }
        self.reader.push(item.raw.clone(), &mut self.events);
        for event in self.events.drain(..) {
            self.whole |= matches!(event, Event::End);
            self.unreadable |= matches!(event, Event::Error(_));
            self.collected.push(event);
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(self: Box<Self>) -> Option<Completion> {
        if self.unreadable || !self.whole {
            return None;
        }
        completion_of(self.collected.finish())
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{
        Choice, Completion, DialectCodec, FinishReason, FrameFacts, StreamItem, TokenCount, ToolCall, Usage,
    };

    use super::{MessagesCodec, completion_body, completion_events};
    use crate::neutral::AnswerStamp;

    const STAMP: AnswerStamp<'_> = AnswerStamp { id: "msg_1", created: 7, model: "m" };

    fn completion() -> Completion {
        let call = ToolCall { id: "t".to_owned(), name: "f".to_owned(), arguments: "{\"a\":1}".to_owned() };
        let choice = Choice {
            text: "é".to_owned(),
            reasoning: "Hm".to_owned(),
            refusal: None,
            tool_calls: vec![call],
            finish: FinishReason::ToolCalls,
        };
        let usage = Usage { input: TokenCount::new(2), output: TokenCount::new(3), ..Usage::default() };
        let served_model = Some(gw_types::BoundedText::new("claude"));
        Completion { choices: vec![choice], served_model, usage: Some(usage) }
    }

    fn collected(raw: Bytes) -> Option<Completion> {
        let mut collector = MessagesCodec.collector();
        collector.push(&StreamItem { raw, facts: FrameFacts::default() });
        collector.finish()
    }

    #[test]
    fn what_is_remembered_reads_back() {
        let kept = completion();
        assert_eq!(MessagesCodec.completion(&completion_body(&kept, &STAMP)), Some(kept.clone()));
        let events = completion_events(&kept, &STAMP);
        assert_eq!(collected(events.clone()), Some(kept));
        assert_eq!(collected(events.slice(..events.len() - 60)), None);
    }

    #[test]
    fn signed_reasoning_is_not_remembered() {
        let raw =
            r#"{"content":[{"type":"thinking","thinking":"a","signature":"S"}],"stop_reason":"end_turn"}"#;
        assert_eq!(MessagesCodec.completion(&Bytes::from_static(raw.as_bytes())), None);
    }
}
