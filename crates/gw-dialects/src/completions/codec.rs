//! The neutral parts of text completions, for the cache.

use bytes::Bytes;
use gw_types::{Choice, Completion, DialectCodec, NormalizedRequest, Question, StreamCollector};

use super::read_answer;
use crate::openai::{codec, content::Part};

/// Reads neutral parts out of text completions.
///
/// An answer with log probabilities has no neutral form here and is not read at all. A prompt has no last user turn, so
/// nothing is compared by meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionsCodec;

impl DialectCodec for CompletionsCodec {
    fn completion(&self, raw: &Bytes) -> Option<Completion> {
        codec::read(raw, read_answer(raw).ok()?, Part::Text)
    }

    fn choices(&self, raw: &Bytes) -> Option<Vec<Choice>> {
        codec::choices(raw, Part::Text)
    }

    fn collector(&self) -> Box<dyn StreamCollector> {
        Box::new(codec::Collector::of(Part::Text))
    }

    fn question(&self, _request: &NormalizedRequest) -> Option<Question> {
        None
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
