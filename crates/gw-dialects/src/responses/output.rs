//! The output of an answer as it grows: items and their parts, and the events that begin and end them.

use bytes::BytesMut;
use gw_types::{FinishReason, Usage};

use crate::{
    json::Writer,
    neutral::{Citation, Origin, Signature},
    openai::request::google_signature,
};

/// The most bytes of finished items that are kept for the last event; more are left out of it.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

impl Status {
    /// Returns how an answer stands that ended so, and the items that ended with it.
    ///
    /// A reason that the format has no word for must not pass for a whole answer: it is incomplete, without details.
    pub(super) const fn after(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Refusal => Self::Completed,
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::Other => Self::Incomplete,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// What a part of an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// Text of a message.
    Text,
    /// A message's refusal.
    Refusal,
    /// Reasoning, in summary.
    Summary,
    /// Reasoning itself.
    Reasoning,
}

/// One part of an item. Prints its kind, not its words.
pub(super) struct Part {
    pub(super) kind: PartKind,
    pub(super) text: String,
    /// Annotations and log probabilities, as JSON.
    pub(super) annotations: Vec<String>,
    pub(super) logprobs: Vec<String>,
    pub(super) is_open: bool,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Part({:?}, [redacted])", self.kind)
    }
}

impl Part {
    pub(super) fn new(kind: PartKind) -> Self {
        Self { kind, text: String::new(), annotations: Vec::new(), logprobs: Vec::new(), is_open: true }
    }

    fn write(&self, json: &mut Writer) {
        let (kind, field) = match self.kind {
            PartKind::Text => ("output_text", "text"),
            PartKind::Refusal => ("refusal", "refusal"),
            PartKind::Summary => ("summary_text", "text"),
            PartKind::Reasoning => ("reasoning_text", "text"),
        };
        json.object(|json| {
            json.member_string("type", kind);
            json.member_string(field, &self.text);
            if self.kind == PartKind::Text {
                raw_list(json, "annotations", &self.annotations);
                raw_list(json, "logprobs", &self.logprobs);
            }
        });
    }
}

fn raw_list(json: &mut Writer, name: &str, values: &[String]) {
    json.member_array(name, |json| values.iter().for_each(|value| json.raw(value)));
}

/// What an item is. Prints as redacted.
pub(super) enum State {
    Message(Vec<Part>),
    Call {
        call_id: String,
        name: String,
        arguments: String,
        signature: Option<Signature>,
        said: bool,
    },
    Reasoning {
        parts: Vec<Part>,
        encrypted: Option<Signature>,
    },
    /// Finished, or one that gw does not know: the item as JSON.
    Done(String),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State([redacted])")
    }
}

/// One item of the output.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    /// Its place in the output.
    pub(super) index: u64,
    pub(super) state: State,
}

impl Item {
    pub(super) fn write(&self, json: &mut Writer, status: Status) {
        match &self.state {
            State::Done(raw) => json.raw(raw),
            State::Message(parts) => json.object(|json| {
                json.member_string("id", &self.id);
                json.member_string("type", "message");
                json.member_string("status", status.as_str());
                json.member_string("role", "assistant");
                json.member_array("content", |json| parts.iter().for_each(|part| part.write(json)));
            }),
            State::Call { call_id, name, arguments, signature, .. } => json.object(|json| {
                json.member_string("id", &self.id);
                json.member_string("type", "function_call");
                json.member_string("status", status.as_str());
                json.member_string("call_id", call_id);
                json.member_string("name", name);
                json.member_string("arguments", arguments);
                if let Some(signature) = signature {
                    google_signature(json, signature);
                }
            }),
            State::Reasoning { parts, encrypted } => json.object(|json| {
                let of = |kind| parts.iter().filter(move |part| part.kind == kind);
                json.member_string("id", &self.id);
                json.member_string("type", "reasoning");
                json.member_array("summary", |json| of(PartKind::Summary).for_each(|part| part.write(json)));
                if of(PartKind::Reasoning).next().is_some() {
                    let write = |json: &mut Writer| of(PartKind::Reasoning).for_each(|part| part.write(json));
                    json.member_array("content", write);
                }
                if let Some(encrypted) = encrypted {
                    json.member_string("encrypted_content", &encrypted.to_wire(Origin::OpenAi));
                }
                json.member_string("status", status.as_str());
            }),
        }
    }

    pub(super) fn parts(&mut self) -> Option<&mut Vec<Part>> {
        match &mut self.state {
            State::Message(parts) | State::Reasoning { parts, .. } => Some(parts),
            State::Call { .. } | State::Done(_) => None,
        }
    }
}

/// The output so far, and the number of the next event.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) next: u64,
    pub(super) items: Vec<Item>,
    kept_bytes: usize,
}

impl Output {
    /// Writes one event.
    pub(super) fn event(&mut self, out: &mut BytesMut, kind: &str, members: impl FnOnce(&mut Writer)) {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\ndata: ");
        let number = self.next;
        self.next += 1;
        Writer::within(out, |json| {
            json.object(|json| {
                json.member_string("type", kind);
                json.member_number("sequence_number", number);
                members(json);
            });
        });
        out.extend_from_slice(b"\n\n");
    }

    /// Begins an item; returns where it stands in the list.
    pub(super) fn begin(&mut self, id: String, state: State, out: &mut BytesMut) -> usize {
        let at = self.items.len();
        let item = Item { id, index: at as u64, state };
        self.event(out, "response.output_item.added", |json| {
            json.member_number("output_index", item.index);
            json.key("item");
            item.write(json, Status::InProgress);
        });
        self.items.push(item);
        at
    }

    /// Begins a part of an item; returns its place.
    pub(super) fn begin_part(&mut self, at: usize, kind: PartKind, out: &mut BytesMut) -> usize {
        let Some(parts) = self.items.get_mut(at).and_then(Item::parts) else { return 0 };
        let place = parts.iter().filter(|part| part.kind.counts_with(kind)).count();
        parts.push(Part::new(kind));
        let number = parts.len() - 1;
        let (id, index) = self.place_of(at);
        let part = Part::new(kind);
        let name = if kind == PartKind::Summary {
            "response.reasoning_summary_part.added"
        } else {
            "response.content_part.added"
        };
        self.event(out, name, |json| {
            json.member_string("item_id", &id);
            json.member_number("output_index", index);
            json.member_number(kind.index_name(), place);
            json.key("part");
            part.write(json);
        });
        number
    }

    /// Adds text to a part.
    pub(super) fn text(&mut self, at: usize, number: usize, text: &str, out: &mut BytesMut) {
        let Some(parts) = self.items.get_mut(at).and_then(Item::parts) else { return };
        let Some(part) = parts.get_mut(number).filter(|_| !text.is_empty()) else { return };
        part.text.push_str(text);
        let kind = part.kind;
        let place = parts[..number].iter().filter(|part| part.kind.counts_with(kind)).count();
        let (id, index) = self.place_of(at);
        let name = match kind {
            PartKind::Text => "response.output_text.delta",
            PartKind::Refusal => "response.refusal.delta",
            PartKind::Summary => "response.reasoning_summary_text.delta",
            PartKind::Reasoning => "response.reasoning_text.delta",
        };
        self.event(out, name, |json| {
            json.member_string("item_id", &id);
            json.member_number("output_index", index);
            json.member_number(kind.index_name(), place);
            json.member_string("delta", text);
            if kind == PartKind::Text {
                json.member_array("logprobs", |_| {});
            }
        });
    }

    /// Adds arguments to a call.
    pub(super) fn arguments(&mut self, at: usize, text: &str, out: &mut BytesMut) {
        let Some(Item { state: State::Call { arguments, .. }, .. }) = self.items.get_mut(at) else { return };
        if text.is_empty() {
            return;
        }
        arguments.push_str(text);
        let (id, index) = self.place_of(at);
        self.event(out, "response.function_call_arguments.delta", |json| {
            json.member_string("item_id", &id);
            json.member_number("output_index", index);
            json.member_string("delta", text);
        });
    }

    /// Adds what the text of a part is taken from.
    pub(super) fn annotation(&mut self, at: usize, number: usize, citation: &Citation, out: &mut BytesMut) {
        let Some(url) = &citation.url else { return };
        let Some(parts) = self.items.get_mut(at).and_then(Item::parts) else { return };
        let Some(part) = parts.get_mut(number) else { return };
        let (start, end) = citation.span.unwrap_or((0, part.text.chars().count() as u64));
        let mut json = Writer::default();
        json.object(|json| {
            json.member_string("type", "url_citation");
            json.member_string("url", url);
            json.member_string("title", citation.title.as_deref().unwrap_or_default());
            json.member_number("start_index", start);
            json.member_number("end_index", end);
        });
        let annotation = String::from_utf8_lossy(&json.into_bytes()).into_owned();
        part.annotations.push(annotation.clone());
        let place = part.annotations.len() - 1;
        let (id, index) = self.place_of(at);
        self.event(out, "response.output_text.annotation.added", |json| {
            json.member_string("item_id", &id);
            json.member_number("output_index", index);
            json.member_number("content_index", number);
            json.member_number("annotation_index", place);
            json.member_raw("annotation", &annotation);
        });
    }

    /// Ends a part, if it has not ended.
    pub(super) fn end_part(&mut self, at: usize, number: usize, out: &mut BytesMut) {
        let Some(parts) = self.items.get_mut(at).and_then(Item::parts) else { return };
        let Some(part) = parts.get_mut(number).filter(|part| part.is_open) else { return };
        part.is_open = false;
        let kind = part.kind;
        let text = part.text.clone();
        let logprobs = part.logprobs.clone();
        let mut written = Writer::default();
        part.write(&mut written);
        let written = String::from_utf8_lossy(&written.into_bytes()).into_owned();
        let place = parts[..number].iter().filter(|part| part.kind.counts_with(kind)).count();
        let (id, index) = self.place_of(at);
        let (said, ended, field) = match kind {
            PartKind::Text => ("response.output_text.done", "response.content_part.done", "text"),
            PartKind::Refusal => ("response.refusal.done", "response.content_part.done", "refusal"),
            PartKind::Summary => {
                ("response.reasoning_summary_text.done", "response.reasoning_summary_part.done", "text")
            }
            PartKind::Reasoning => ("response.reasoning_text.done", "response.content_part.done", "text"),
        };
        let place_of = |json: &mut Writer| {
            json.member_string("item_id", &id);
            json.member_number("output_index", index);
            json.member_number(kind.index_name(), place);
        };
        self.event(out, said, |json| {
            place_of(json);
            json.member_string(field, &text);
            if kind == PartKind::Text {
                raw_list(json, "logprobs", &logprobs);
            }
        });
        self.event(out, ended, |json| {
            place_of(json);
            json.member_raw("part", &written);
        });
    }

    /// Ends an item with all its parts, if it has not ended.
    pub(super) fn end(&mut self, at: usize, status: Status, out: &mut BytesMut) {
        let Some(item) = self.items.get_mut(at) else { return };
        match &mut item.state {
            State::Done(_) => return,
            State::Message(parts) | State::Reasoning { parts, .. } => {
                for number in 0..parts.len() {
                    self.end_part(at, number, out);
                }
            }
            State::Call { name, arguments, said, .. } => {
                if !std::mem::replace(said, true) {
                    let (name, arguments) = (name.clone(), arguments.clone());
                    let (id, index) = self.place_of(at);
                    self.event(out, "response.function_call_arguments.done", |json| {
                        json.member_string("item_id", &id);
                        json.member_number("output_index", index);
                        json.member_string("name", &name);
                        json.member_string("arguments", &arguments);
                    });
                }
            }
        }
        let item = &self.items[at];
        let index = item.index;
        let mut written = Writer::default();
        item.write(&mut written, status);
        let written = String::from_utf8_lossy(&written.into_bytes()).into_owned();
        self.event(out, "response.output_item.done", |json| {
            json.member_number("output_index", index);
            json.member_raw("item", &written);
        });
        self.keep(at, written);
    }

    /// Ends everything that has not ended.
    pub(super) fn end_all(&mut self, status: Status, out: &mut BytesMut) {
        for at in 0..self.items.len() {
            self.end(at, status, out);
        }
    }

    /// Keeps a finished item for the last event.
    pub(super) fn keep(&mut self, at: usize, written: String) {
        self.kept_bytes = self.kept_bytes.saturating_add(written.len());
        let kept = if self.kept_bytes <= KEPT_BYTES_MAX { written } else { String::new() };
        if let Some(item) = self.items.get_mut(at) {
            item.state = State::Done(kept);
        }
    }

    /// Writes the items as a list.
    pub(super) fn write(&self, json: &mut Writer) {
        let kept =
            self.items.iter().filter(|item| !matches!(&item.state, State::Done(raw) if raw.is_empty()));
        json.array(|json| kept.for_each(|item| item.write(json, Status::Incomplete)));
    }

    fn place_of(&self, at: usize) -> (String, u64) {
        self.items.get(at).map(|item| (item.id.clone(), item.index)).unwrap_or_default()
    }
}

impl PartKind {
    /// Returns whether parts of both kinds are numbered in one list.
    const fn counts_with(self, other: Self) -> bool {
        matches!(self, Self::Summary) == matches!(other, Self::Summary)
    }

    const fn index_name(self) -> &'static str {
        match self {
            Self::Summary => "summary_index",
            Self::Text | Self::Refusal | Self::Reasoning => "content_index",
        }
    }
}

/// Writes usage in OpenAI's convention: cached input is part of the input, reasoning of the output.
pub(super) fn write_usage(json: &mut Writer, usage: &Usage) {
    json.object(|json| {
        json.member_number("input_tokens", usage.input_total());
        json.member_object("input_tokens_details", |json| {
            json.member_number("cached_tokens", usage.cached_input);
            json.member_number(
                "cache_write_tokens",
                usage.cache_write.saturating_add(usage.cache_write_long),
            );
        });
        json.member_number("output_tokens", usage.output_total());
        json.member_object("output_tokens_details", |json| {
            json.member_number("reasoning_tokens", usage.reasoning);
        });
        json.member_number("total_tokens", usage.total());
    });
}
