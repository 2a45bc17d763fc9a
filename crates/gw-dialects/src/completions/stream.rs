//! Streams of text completions: chat's framing and endings around another kind of chunk.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{GatewayError, StreamItem};

use crate::openai::{self, StreamOptions, content::Part};

/// Decodes one streamed answer, chunk by chunk, as [`openai::StreamDecoder`] does for chat.
///
/// A stream is complete once every choice has said why it ended; an end before that is `StreamInterrupted`.
#[derive(Debug)]
pub struct StreamDecoder {
    chunks: openai::StreamDecoder,
}

impl StreamDecoder {
    /// Returns a decoder at the start of a stream.
    pub fn new(options: StreamOptions) -> Self {
        Self { chunks: openai::StreamDecoder::of(Part::Text, options) }
    }

    /// Adds the next bytes of the body; appends what they bring to `sink`.
    pub fn push(&mut self, chunk: Bytes, sink: &mut VecDeque<StreamItem>) {
        self.chunks.push(chunk, sink);
    }

    /// Says that the body has ended; returns the last item.
    ///
    /// # Errors
    /// As [`openai::StreamDecoder::end`].
    pub fn end(&mut self) -> Result<StreamItem, GatewayError> {
        self.chunks.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;
    use gw_types::{ErrorKind, FinishReason, StreamItem};

    use super::{StreamDecoder, StreamOptions};

    const ONE: &str = "data: {\"object\":\"text_completion\",\"choices\":[{\"text\":\"A\",\"index\":0,\"finish_reason\":null}]}\n\n";
    const TWO: &str = "data: {\"object\":\"text_completion\",\"choices\":[{\"text\":\"\\u00e9\",\"index\":0,\"finish_reason\":null}]}\n\n";
    const LAST: &str = "data: {\"object\":\"text_completion\",\"choices\":[{\"text\":\"\",\"index\":0,\"finish_reason\":\"length\"}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\n";

    /// Returns what is relayed, the content bytes, the finish, the output tokens and the error.
    fn read(
        stream: &str,
        size: usize,
    ) -> (String, u32, Option<FinishReason>, Option<u64>, Option<ErrorKind>) {
        let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: false });
        let mut items = VecDeque::new();
        for piece in stream.as_bytes().chunks(size) {
            decoder.push(Bytes::copy_from_slice(piece), &mut items);
        }
        let mut error = None;
        match decoder.end() {
            Ok(item) => items.push_back(item),
            Err(interrupted) => error = Some(interrupted.kind()),
        }
        let mut seen = (String::new(), 0, None, None, error);
        for StreamItem { raw, facts } in items {
            seen.0.push_str(std::str::from_utf8(&raw).unwrap());
            seen.1 += facts.content_bytes;
            seen.2 = facts.finish.or(seen.2);
            seen.3 = facts.usage.map(|usage| usage.output_total().get()).or(seen.3);
            seen.4 = facts.error.map(|error| error.kind()).or(seen.4);
        }
        seen
    }

    #[track_caller]
    fn check(
        stream: &str,
        relayed: &str,
        bytes: u32,
        end: Result<FinishReason, ErrorKind>,
        tokens: Option<u64>,
    ) {
        let whole = read(stream, usize::MAX);
        assert_eq!(whole, read(stream, 1));
        assert_eq!(whole, (relayed.to_owned(), bytes, end.ok(), tokens, end.err()));
    }

    #[test]
    fn text_is_relayed_and_counted() {
        let content = format!("{ONE}{TWO}{LAST}");
        check(&format!("{content}data: [DONE]\n\n"), &content, 3, Ok(FinishReason::Length), None);
        check(&content, &content, 3, Ok(FinishReason::Length), None);
        check(&format!("{content}{USAGE}data: [DONE]\n\n"), &content, 3, Ok(FinishReason::Length), Some(2));
    }

    #[test]
    fn an_early_end_is_an_interruption() {
        check(ONE, ONE, 1, Err(ErrorKind::StreamInterrupted), None);
        check(&format!("{ONE}data: [DONE]\n\n"), ONE, 1, Err(ErrorKind::StreamInterrupted), None);
        check("", "", 0, Err(ErrorKind::StreamInterrupted), None);
    }

    #[test]
    fn errors_inside_are_classified() {
        let error = "data: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n";
        check(&format!("{ONE}{error}{LAST}"), ONE, 1, Err(ErrorKind::ProviderRateLimited), None);
        check(&format!("{ONE}data: nothing\n\n"), ONE, 1, Err(ErrorKind::MalformedResponse), None);
    }
}
