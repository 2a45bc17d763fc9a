//! The neutral parts of text completions, for the cache.

use bytes::Bytes;
use gw_types::{
    BoundedText, Choice, Completion, DialectCodec, NormalizedRequest, Question, StreamCollector, StreamItem,
    Usage,
};
use serde::{Deserialize, de::IgnoredAny};

use super::read_answer;
use crate::openai::finish;

/// Reads neutral parts out of text completions.
///
/// An answer with log probabilities has no neutral form here and is not read at all. A prompt has no last user turn, so
/// nothing is compared by meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionsCodec;

impl DialectCodec for CompletionsCodec {
    fn completion(&self, raw: &Bytes) -> Option<Completion> {
        let facts = read_answer(raw).ok()?;
        let mut collected = Collected::default();
        collected.document(serde_json::from_slice(raw).ok()?);
        collected.completion(facts.served_model, facts.usage)
    }

    fn collector(&self) -> Box<dyn StreamCollector> {
        Box::new(Collector::default())
    }

    fn question(&self, _request: &NormalizedRequest) -> Option<Question> {
        None
    }
}

/// The most bytes of one streamed answer that are collected; a longer one is not read.
const COLLECTED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most choices that are collected.
const CHOICES_MAX: usize = 1_024;

/// A whole answer, or one chunk of a streamed one.
#[derive(Deserialize)]
struct Document {
    choices: Vec<DocumentChoice>,
}

#[derive(Deserialize)]
struct DocumentChoice {
    index: Option<usize>,
    text: Option<String>,
    finish_reason: Option<String>,
    logprobs: Option<IgnoredAny>,
}

/// Collects a streamed answer.
#[derive(Default)]
struct Collector {
    collected: Collected,
    bytes: usize,
    served_model: Option<BoundedText>,
    usage: Option<Usage>,
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
        for line in item.raw.split(|byte| *byte == b'\n') {
            if let Some(data) = line.strip_prefix(b"data: ") {
                match serde_json::from_slice(data) {
                    Ok(document) => self.collected.document(document),
                    Err(_) => self.collected.unreadable = true,
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(self: Box<Self>) -> Option<Completion> {
        self.collected.completion(self.served_model, self.usage)
    }
}

/// Choices while they are collected.
#[derive(Default)]
struct Collected {
    choices: Vec<(String, Option<gw_types::FinishReason>)>,
    unreadable: bool,
}

impl Collected {
    fn document(&mut self, document: Document) {
        for (position, choice) in document.choices.into_iter().enumerate() {
            let index = choice.index.unwrap_or(position);
            if index >= CHOICES_MAX || choice.logprobs.is_some() {
                self.unreadable = true;
                return;
            }
            if self.choices.len() <= index {
                self.choices.resize_with(index + 1, Default::default);
            }
            let (text, ending) = &mut self.choices[index];
            text.push_str(choice.text.as_deref().unwrap_or_default());
            if let Some(reason) = &choice.finish_reason {
                *ending = Some(finish::read(reason));
            }
        }
    }

    fn completion(self, served_model: Option<BoundedText>, usage: Option<Usage>) -> Option<Completion> {
        if self.unreadable || self.choices.is_empty() {
            return None;
        }
        let choices = self.choices.into_iter().map(|(text, ending)| {
            let finish = ending?;
            Some(Choice { text, reasoning: String::new(), refusal: None, tool_calls: Vec::new(), finish })
        });
        Some(Completion { choices: choices.collect::<Option<_>>()?, served_model, usage })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;
    use gw_types::{Completion, DialectCodec, StreamItem};

    use super::CompletionsCodec;
    use crate::{
        completions::{StreamDecoder, completion_body, completion_events, length_event},
        openai::{AnswerStamp, StreamOptions},
    };

    const STAMP: AnswerStamp<'static> = AnswerStamp { id: "cmpl-1", created: 7, model: "m" };
    const BODY: &str = r#"{"id":"cmpl-1","object":"text_completion","created":7,"model":"m","choices":[{"text":"a\"b","index":0,"logprobs":null,"finish_reason":"length"},{"text":"","index":1,"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}}"#;

    fn read(body: &'static str) -> Option<Completion> {
        CompletionsCodec.completion(&Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn a_whole_answer_reads_back_as_it_was_written() {
        assert_eq!(completion_body(&read(BODY).unwrap(), &STAMP), BODY);
    }

    #[test]
    fn a_streamed_answer_reads_back_as_it_was_written() {
        let completion = read(BODY).unwrap();
        let stream = completion_events(&completion, &STAMP, true).concat();
        let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: true });
        let mut items = VecDeque::new();
        decoder.push(Bytes::from(stream), &mut items);
        items.push_back(decoder.end().unwrap());
        let mut collector = CompletionsCodec.collector();
        items.iter().for_each(|item: &StreamItem| collector.push(item));
        assert!(collector.bytes() > 0);
        let read = collector.finish().unwrap();
        assert_eq!(read, Completion { served_model: read.served_model.clone(), ..completion });
    }

    #[test]
    fn what_has_no_neutral_form_is_not_read() {
        assert_eq!(read(r#"{"choices":[{"text":"a","logprobs":{},"finish_reason":"stop"}]}"#), None);
        assert_eq!(read(r#"{"choices":[{"text":"a","finish_reason":null}]}"#), None);
        assert_eq!(read(r#"{"choices":[]}"#), None);
    }

    #[test]
    fn a_cut_stream_ends_with_length() {
        assert_eq!(
            length_event(&STAMP),
            "data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":7,\"model\":\"m\",\"choices\":[{\"text\":\"\",\"index\":0,\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\n"
        );
    }
}
