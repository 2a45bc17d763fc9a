//! Ends a stream that was cut: what gw writes behind the events that were relayed.

use bytes::{Bytes, BytesMut};
use gw_types::{FinishReason, GatewayError, TokenCount, Usage};

use super::{
    error_event,
    reply::{event, head, message_delta},
    usage,
};
use crate::{json::Node, neutral::AnswerStamp};

/// Watches what is relayed to a caller of messages, so that the stream can be ended at any point: a block that has begun
/// must stop before the answer may. Looks into the events that begin and stop blocks, and into no others.
#[derive(Debug)]
pub struct StreamEnding {
    id: String,
    model: String,
    started: bool,
    /// The index of the block that has begun and not stopped.
    open: Option<u64>,
}

impl StreamEnding {
    /// Returns an ending for a stream of which nothing was relayed yet.
    pub fn new(stamp: &AnswerStamp<'_>) -> Self {
        Self { id: stamp.id.to_owned(), model: stamp.model.to_owned(), started: false, open: None }
    }

    /// Takes notice of bytes that were relayed: complete events in the dialect's framing.
    pub fn observe(&mut self, relayed: &[u8]) {
        let mut rest = relayed;
        while let Some(line) = next_line(&mut rest) {
            match line {
                b"event: message_start" => self.started = true,
                b"event: content_block_start" => {
                    self.started = true;
                    self.open = next_line(&mut rest).and_then(index);
                }
                b"event: content_block_stop" => self.open = None,
                _ => {}
            }
        }
    }

    /// Returns what ends the stream at its output bound; `output_tokens` is what was written.
    pub fn capped(&mut self, output_tokens: u64) -> Bytes {
        let mut out = BytesMut::new();
        if !std::mem::replace(&mut self.started, true) {
            event("message_start", &mut out, |json| {
                json.member_object("message", |json| {
                    head(json, &self.id, &self.model);
                    json.member_array("content", |_| {});
                    json.member_null("stop_reason");
                    json.member_null("stop_sequence");
                    json.key("usage");
                    usage::write(json, &Usage::default(), None);
                });
            });
        }
        if let Some(index) = self.open.take() {
            event("content_block_stop", &mut out, |json| json.member_number("index", index));
        }
        let usage = Usage { output: TokenCount::new(output_tokens), ..Usage::default() };
        message_delta(FinishReason::Length, None, &usage, false, &mut out);
        event("message_stop", &mut out, |_| {});
        out.freeze()
    }

    /// Returns what ends the stream with an error.
    pub fn failed(&mut self, error: &GatewayError, request_id: Option<&str>) -> Bytes {
        error_event(error, request_id)
    }
}

fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = memchr::memchr(b'\n', rest)?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line)
}

fn index(line: &[u8]) -> Option<u64> {
    let data = std::str::from_utf8(line.strip_prefix(b"data: ")?).ok()?;
    Node::read(data).ok()?.count("index")
}

#[cfg(test)]
mod tests {
    use super::StreamEnding;
    use crate::neutral::AnswerStamp;

    const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n";
    const BLOCK: &str =
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3}\n\n";
    const STOP: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n";
    const END: &str = concat!(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\",",
        "\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    );

    #[track_caller]
    fn check(relayed: &[&str], expected: &str) {
        let mut ending = StreamEnding::new(&AnswerStamp { id: "msg_1", created: 7, model: "m" });
        relayed.iter().for_each(|relayed| ending.observe(relayed.as_bytes()));
        assert_eq!(ending.capped(9), expected);
    }

    #[test]
    fn a_cap_stops_the_block_and_ends_as_length() {
        check(&[START, BLOCK], &format!("{STOP}{END}"));
        check(&[START, BLOCK, STOP], END);
        check(&[&[START, BLOCK, STOP, BLOCK].concat()], &format!("{STOP}{END}"));
        check(&[START], END);
        let mut ending = StreamEnding::new(&AnswerStamp { id: "msg_1", created: 7, model: "m" });
        let whole = ending.capped(9);
        assert!(whole.starts_with(b"event: message_start\n") && whole.ends_with(END.as_bytes()));
    }
}
