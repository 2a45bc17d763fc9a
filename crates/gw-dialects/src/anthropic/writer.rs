//! From neutral events to a messages stream.

mod queue;
#[cfg(test)]
mod tests;

use bytes::BytesMut;
use gw_types::{ErrorKind, FinishReason, GatewayError, Usage};

use self::queue::Queue;
use super::{
    error_event,
    reply::{self, event},
    usage,
};
use crate::neutral::{AnswerStamp, At, BlockKind, Citation, Event, Origin, Signature};

/// Writes one streamed answer as a caller of messages reads it.
///
/// The format has one choice, and blocks one after the other: of what the provider sends side by side, the later waits
/// until the earlier is complete. The first event is held until something follows it, so that it can say what the input
/// has used where the provider says so early.
pub struct StreamWriter {
    id: String,
    model: String,
    started: bool,
    ended: bool,
    /// The index of the next block.
    index: u32,
    open: Option<Open>,
    queue: Queue,
    usage: Option<Usage>,
    tier: Option<String>,
    finish: Option<(FinishReason, Option<String>)>,
}

impl std::fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamWriter")
            .field("index", &self.index)
            .field("open", &self.open)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The block that is being written.
#[derive(Debug)]
struct Open {
    at: At,
    /// Whether the caller sees it.
    shown: bool,
    is_thinking: bool,
    /// The signature so far, where it belongs to something that has no place for one.
    signature: Option<Signature>,
    /// Whether the tag of a foreign signature was written.
    tagged: bool,
}

impl StreamWriter {
    /// Returns a writer at the start of a stream.
    pub fn new(stamp: &AnswerStamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            model: stamp.model.to_owned(),
            started: false,
            ended: false,
            index: 0,
            open: None,
            queue: Queue::default(),
            usage: None,
            tier: None,
            finish: None,
        }
    }

    /// Appends what an event brings for the caller.
    pub fn write(&mut self, event: &Event, out: &mut BytesMut) {
        if self.ended {
            return;
        }
        match event {
            Event::Start { model, .. } => {
                if let Some(model) = model {
                    self.model.clone_from(model);
                }
            }
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::ServiceTier(tier) => self.tier = Some(tier.clone()),
            Event::BlockStart(at, _)
            | Event::TextDelta(at, _)
            | Event::ThinkingDelta(at, _)
            | Event::SignatureDelta(at, _)
            | Event::ArgumentsDelta(at, _)
            | Event::RefusalDelta(at, _)
            | Event::Citation(at, _)
            | Event::BlockStop(at) => self.of_block(*at, event, out),
            Event::Finish { choice: 0, reason, stop_sequence } => {
                self.finish = Some((*reason, stop_sequence.clone()));
            }
            // The format has neither further choices nor log probabilities.
            Event::Finish { .. } | Event::Logprobs(..) | Event::Unread(_) => {}
            Event::Error(error) => {
                self.ended = true;
                out.extend_from_slice(&error_event(error, None));
            }
            Event::End => self.end(out),
        }
    }

    fn of_block(&mut self, at: At, event: &Event, out: &mut BytesMut) {
        if at.choice != 0 {
            return;
        }
        let is_next = match (&self.open, event) {
            (None, Event::BlockStart(..)) => true,
            (Some(open), _) => open.at == at,
            (None, _) => false,
        };
        if !is_next {
            if self.queue.hold(at, event).is_err() {
                self.ended = true;
                let message = "the provider's stream holds too much side by side";
                let error = GatewayError::new(ErrorKind::MalformedResponse, message);
                out.extend_from_slice(&error_event(&error, None));
            }
            return;
        }
        self.step(at, event, out);
        while self.open.is_none()
            && let Some((at, events)) = self.queue.next()
        {
            events.iter().for_each(|event| self.step(at, event, out));
        }
    }

    fn step(&mut self, at: At, event: &Event, out: &mut BytesMut) {
        match event {
            Event::BlockStart(_, kind) => self.start(at, kind, out),
            Event::TextDelta(_, text) | Event::RefusalDelta(_, text) => {
                self.delta("text_delta", "text", text, out);
            }
            Event::ThinkingDelta(_, text) => self.delta("thinking_delta", "thinking", text, out),
            Event::ArgumentsDelta(_, text) => self.delta("input_json_delta", "partial_json", text, out),
            Event::SignatureDelta(_, signature) => self.sign(signature, out),
            Event::Citation(_, citation) => self.cite(citation, out),
            Event::BlockStop(_) => self.stop(out),
            Event::Start { .. }
            | Event::Logprobs(..)
            | Event::Finish { .. }
            | Event::Usage(_)
            | Event::ServiceTier(_)
            | Event::Unread(_)
            | Event::Error(_)
            | Event::End => {}
        }
    }

    fn start(&mut self, at: At, kind: &BlockKind, out: &mut BytesMut) {
        self.begin(out);
        if let BlockKind::ToolUse { signature: Some(signature), .. } = kind {
            self.redacted(signature, out);
        }
        let shown = !matches!(kind, BlockKind::Opaque(origin, _) if *origin != Origin::Anthropic);
        let is_thinking = matches!(kind, BlockKind::Thinking);
        self.open = Some(Open { at, shown, is_thinking, signature: None, tagged: false });
        if !shown {
            return;
        }
        event("content_block_start", out, |json| {
            json.member_number("index", self.index);
            json.key("content_block");
            match kind {
                BlockKind::Text | BlockKind::Refusal => json.raw(r#"{"type":"text","text":""}"#),
                BlockKind::Thinking => json.raw(r#"{"type":"thinking","thinking":"","signature":""}"#),
                BlockKind::RedactedThinking(data) => reply::redacted(json, data),
                BlockKind::ToolUse { id, name, .. } => json.object(|json| {
                    json.member_string("type", "tool_use");
                    json.member_string("id", id);
                    json.member_string("name", name);
                    json.member_raw("input", "{}");
                }),
                BlockKind::Opaque(_, value) => json.raw(value.as_str()),
            }
        });
    }

    fn delta(&self, kind: &str, field: &str, text: &str, out: &mut BytesMut) {
        event("content_block_delta", out, |json| {
            json.member_number("index", self.index);
            json.member_object("delta", |json| {
                json.member_string("type", kind);
                json.member_string(field, text);
            });
        });
    }

    fn sign(&mut self, more: &Signature, out: &mut BytesMut) {
        let Some(open) = &mut self.open else { return };
        if !open.is_thinking {
            match &mut open.signature {
                Some(signature) => signature.data.push_str(&more.data),
                None => open.signature = Some(more.clone()),
            }
            return;
        }
        let tag = if open.tagged || more.origin == Origin::Anthropic { String::new() } else { more.tag() };
        open.tagged = true;
        self.delta("signature_delta", "signature", &format!("{tag}{}", more.data), out);
    }

    fn cite(&self, citation: &Citation, out: &mut BytesMut) {
        // A citation that another provider wrote lacks what this format's kinds demand.
        let Some((Origin::Anthropic, raw)) = &citation.native else { return };
        event("content_block_delta", out, |json| {
            json.member_number("index", self.index);
            json.member_object("delta", |json| {
                json.member_string("type", "citations_delta");
                json.member_raw("citation", raw.as_str());
            });
        });
    }

    fn stop(&mut self, out: &mut BytesMut) {
        let Some(open) = self.open.take() else { return };
        if open.shown {
            self.block_stop(out);
        }
        if let Some(signature) = &open.signature {
            self.redacted(signature, out);
        }
    }

    /// Writes a whole block that its own provider alone can read.
    fn redacted(&mut self, data: &Signature, out: &mut BytesMut) {
        event("content_block_start", out, |json| {
            json.member_number("index", self.index);
            json.key("content_block");
            reply::redacted(json, data);
        });
        self.block_stop(out);
    }

    fn block_stop(&mut self, out: &mut BytesMut) {
        event("content_block_stop", out, |json| json.member_number("index", self.index));
        self.index += 1;
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        event("message_start", out, |json| {
            json.member_object("message", |json| {
                reply::head(json, &self.id, &self.model);
                json.member_array("content", |_| {});
                json.member_null("stop_reason");
                json.member_null("stop_sequence");
                json.key("usage");
                usage::write(json, &self.usage.unwrap_or_default(), self.tier.as_deref());
            });
        });
    }

    fn end(&mut self, out: &mut BytesMut) {
        self.begin(out);
        while self.open.is_some() {
            self.stop(out);
            if let Some((at, events)) = self.queue.next() {
                events.iter().for_each(|event| self.step(at, event, out));
            }
        }
        let (reason, stop_sequence) = self.finish.take().unwrap_or((FinishReason::Other, None));
        let usage = self.usage.unwrap_or_default();
        reply::message_delta(reason, stop_sequence.as_deref(), &usage, true, out);
        event("message_stop", out, |_| {});
        self.ended = true;
    }
}
