//! From neutral events to a responses stream.

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use gw_types::{FinishReason, Usage};

use super::{
    output::{Output, PartKind, State, Status},
    reply::{Standing, base, write_failure, write_response},
};
use crate::{
    json::{Node, Writer},
    neutral::{AnswerStamp, At, BlockKind, Event, Origin, RawJson, Signature},
};

/// Writes one streamed answer as a caller of responses reads it, every event of the documented order included.
///
/// Ids of items follow from the id of the answer. Of several choices the first alone is written: the format has no others.
#[derive(Debug)]
pub struct StreamWriter {
    id: String,
    created: i64,
    model: String,
    base: String,
    begun: bool,
    output: Output,
    /// The message that text goes into, while it is the last item.
    message: Option<usize>,
    blocks: Vec<(At, Target)>,
    /// Where the last text went, for its log probabilities.
    last_text: Option<(usize, usize)>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    tier: Option<String>,
}

/// Where the deltas of a block go.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// A part of a message.
    Part {
        item: usize,
        part: usize,
    },
    Call {
        item: usize,
    },
    Thought {
        item: usize,
        part: Option<usize>,
    },
}

impl StreamWriter {
    /// Returns a writer at the start of a stream.
    pub fn new(stamp: &AnswerStamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            created: stamp.created,
            model: stamp.model.to_owned(),
            base: base(stamp, None, None),
            begun: false,
            output: Output::default(),
            message: None,
            blocks: Vec::new(),
            last_text: None,
            finish: None,
            usage: None,
            tier: None,
        }
    }

    /// Appends what an event brings for the caller.
    pub fn write(&mut self, event: &Event, out: &mut BytesMut) {
        if let Event::Start { model, .. } = event {
            if let Some(model) = model {
                self.model.clone_from(model);
            }
            return self.begin(out);
        }
        if let Event::ServiceTier(tier) = event {
            self.tier = Some(tier.clone());
            return self.put_base();
        }
        self.begin(out);
        match event {
            Event::BlockStart(at, kind) if at.choice == 0 => self.start(*at, kind, out),
            Event::TextDelta(at, text) | Event::RefusalDelta(at, text) => {
                if let Some(Target::Part { item, part }) = self.target(*at) {
                    self.output.text(item, part, text, out);
                }
            }
            Event::ThinkingDelta(at, text) => self.think(*at, text, out),
            Event::SignatureDelta(at, signature) => self.sign(*at, signature),
            Event::ArgumentsDelta(at, text) => {
                if let Some(Target::Call { item }) = self.target(*at) {
                    self.output.arguments(item, text, out);
                }
            }
            Event::Citation(at, citation) => {
                if let Some(Target::Part { item, part }) = self.target(*at) {
                    self.output.annotation(item, part, citation, out);
                }
            }
            Event::BlockStop(at) => self.stop(*at, out),
            Event::Logprobs(0, logprobs) => self.logprobs(logprobs),
            Event::Finish { choice: 0, reason, .. } => self.finish = Some(*reason),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Error(error) => write_failure(&mut self.output, &self.base, error, out),
            Event::End => self.end(out),
            Event::Start { .. }
            | Event::BlockStart(..)
            | Event::Logprobs(..)
            | Event::Finish { .. }
            | Event::ServiceTier(_)
            | Event::Unread(_) => {}
        }
    }

    /// Returns the whole answer, once every event but the end was written.
    pub(super) fn into_body(mut self) -> Bytes {
        let mut nowhere = BytesMut::new();
        self.output.end_all(self.ending(), &mut nowhere);
        self.put_base();
        let mut json = Writer::default();
        let standing = self.standing();
        write_response(&mut json, &self.base, &self.output, &standing);
        json.into_bytes()
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.put_base();
        for kind in ["response.created", "response.in_progress"] {
            self.whole(kind, &Standing::default(), out);
        }
    }

    fn put_base(&mut self) {
        let stamp = AnswerStamp { id: &self.id, created: self.created, model: &self.model };
        self.base = base(&stamp, None, self.tier.as_deref());
    }

    fn end(&mut self, out: &mut BytesMut) {
        self.output.end_all(self.ending(), out);
        let (finish, usage) = (self.finish.or(Some(FinishReason::Other)), self.usage);
        let standing = Standing { finish, error: None, usage: usage.as_ref() };
        self.whole(standing.event(), &standing, out);
    }

    fn standing(&self) -> Standing<'_> {
        Standing {
            finish: self.finish.or(Some(FinishReason::Other)),
            error: None,
            usage: self.usage.as_ref(),
        }
    }

    /// Returns how items end that end with the answer.
    fn ending(&self) -> Status {
        Status::after(self.finish.unwrap_or(FinishReason::Other))
    }

    /// Writes an event that holds the response.
    fn whole(&mut self, kind: &str, standing: &Standing<'_>, out: &mut BytesMut) {
        let items = std::mem::take(&mut self.output);
        self.output.next = items.next;
        let base = &self.base;
        self.output.event(out, kind, |json| {
            json.key("response");
            write_response(json, base, &items, standing);
        });
        let next = self.output.next;
        self.output = items;
        self.output.next = next;
    }

    fn target(&self, at: At) -> Option<Target> {
        self.blocks.iter().rev().find(|(block, _)| *block == at).map(|(_, target)| *target)
    }

    fn start(&mut self, at: At, kind: &BlockKind, out: &mut BytesMut) {
        let part = match kind {
            BlockKind::Text => PartKind::Text,
            BlockKind::Refusal => PartKind::Refusal,
            BlockKind::Thinking
            | BlockKind::RedactedThinking(_)
            | BlockKind::ToolUse { .. }
            | BlockKind::Opaque(..) => return self.start_item(at, kind, out),
        };
        let item = match self.message {
            Some(item) => item,
            None => self.output.begin(self.item_id("msg"), State::Message(Vec::new()), out),
        };
        self.message = Some(item);
        let part = self.output.begin_part(item, part, out);
        self.last_text = Some((item, part));
        self.blocks.push((at, Target::Part { item, part }));
    }

    /// Begins a block that is an item of its own; a message before it ends.
    fn start_item(&mut self, at: At, kind: &BlockKind, out: &mut BytesMut) {
        if let Some(message) = self.message.take() {
            self.output.end(message, Status::Completed, out);
        }
        match kind {
            BlockKind::ToolUse { id, name, signature } => {
                let state = State::Call {
                    call_id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    signature: signature.clone(),
                    said: false,
                };
                let item = self.output.begin(self.item_id("fc"), state, out);
                self.blocks.push((at, Target::Call { item }));
            }
            BlockKind::Thinking => {
                let state = State::Reasoning { parts: Vec::new(), encrypted: None };
                let item = self.output.begin(self.item_id("rs"), state, out);
                self.blocks.push((at, Target::Thought { item, part: None }));
            }
            BlockKind::RedactedThinking(data) => {
                let state = State::Reasoning { parts: Vec::new(), encrypted: Some(data.clone()) };
                let item = self.output.begin(self.item_id("rs"), state, out);
                self.blocks.push((at, Target::Thought { item, part: None }));
            }
            BlockKind::Opaque(Origin::OpenAi, raw) => {
                let state = State::Done(raw.as_str().to_owned());
                let item = self.output.begin(String::new(), state, out);
                let index = item as u64;
                self.output.event(out, "response.output_item.done", |json| {
                    json.member_number("output_index", index);
                    json.member_raw("item", raw.as_str());
                });
            }
            // What only another provider knows has no place here.
            BlockKind::Opaque(..) | BlockKind::Text | BlockKind::Refusal => {}
        }
    }

    fn item_id(&self, kind: &str) -> String {
        let stem = self.id.strip_prefix("resp_").unwrap_or(&self.id);
        format!("{kind}_{stem}_{}", self.output.items.len())
    }

    fn think(&mut self, at: At, text: &str, out: &mut BytesMut) {
        let Some((_, Target::Thought { item, part })) =
            self.blocks.iter_mut().rev().find(|(block, _)| *block == at)
        else {
            return;
        };
        if text.is_empty() {
            return;
        }
        let number = match part {
            Some(number) => *number,
            None => self.output.begin_part(*item, PartKind::Summary, out),
        };
        *part = Some(number);
        self.output.text(*item, number, text, out);
    }

    fn sign(&mut self, at: At, more: &Signature) {
        let Some(Target::Thought { item, .. }) = self.target(at) else { return };
        let Some(item) = self.output.items.get_mut(item) else { return };
        if let State::Reasoning { encrypted, .. } = &mut item.state {
            match encrypted {
                Some(signature) => signature.data.push_str(&more.data),
                None => *encrypted = Some(more.clone()),
            }
        }
    }

    fn stop(&mut self, at: At, out: &mut BytesMut) {
        let Some(target) = self.target(at) else { return };
        self.blocks.retain(|(block, _)| *block != at);
        match target {
            Target::Part { item, part } => self.output.end_part(item, part, out),
            Target::Call { item } | Target::Thought { item, .. } => {
                self.output.end(item, Status::Completed, out);
            }
        }
    }

    /// Keeps log probabilities, which chat writes as an object with a list, for the end of their part.
    fn logprobs(&mut self, logprobs: &RawJson) {
        let Some((item, part)) = self.last_text else { return };
        let Some(parts) = self.output.items.get_mut(item).and_then(super::output::Item::parts) else {
            return;
        };
        let Some(part) = parts.get_mut(part) else { return };
        if let Ok(node) = Node::read(logprobs.as_str()) {
            let tokens = node.get("content").map(Node::items).unwrap_or_default();
            part.logprobs.extend(tokens.iter().map(|token| token.raw.to_owned()));
        }
    }
}
