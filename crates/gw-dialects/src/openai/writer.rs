//! From neutral events to a chat-completions stream.

#[cfg(test)]
mod tests;

use bytes::BytesMut;
use gw_types::Usage;

use super::{error_event, finish, reply, request::google_signature, thoughts};
use crate::{
    json::Writer,
    neutral::{AnswerStamp, At, BlockKind, Citation, Content, Event, Signature, Thinking},
};

/// The longest reasoning that is kept until its signature has come, in bytes. Longer reasoning is shown, but cannot be
/// given back.
const REASONING_BYTES_MAX: usize = 1024 * 1024;

/// Writes one streamed answer as a caller of chat completions reads it, without the final marker.
#[derive(Debug)]
pub struct StreamWriter {
    id: String,
    created: i64,
    model: String,
    /// What every chunk begins with.
    head: Vec<u8>,
    include_usage: bool,
    usage: Option<Usage>,
    tier: Option<&'static str>,
    choices: Vec<Choice>,
}

#[derive(Debug, Default)]
struct Choice {
    begun: bool,
    calls: Vec<At>,
    thoughts: usize,
    /// Reasoning that may still be signed.
    thinking: Option<Thinking>,
    characters: u64,
    /// Where the block of text began, and what it is taken from.
    text_start: u64,
    citations: Vec<Citation>,
}

impl StreamWriter {
    /// Returns a writer at the start of a stream; the usage chunk is for a caller that asked for it.
    pub fn new(stamp: &AnswerStamp<'_>, include_usage: bool) -> Self {
        let mut writer = Self {
            id: stamp.id.to_owned(),
            created: stamp.created,
            model: stamp.model.to_owned(),
            head: Vec::new(),
            include_usage,
            usage: None,
            tier: None,
            choices: Vec::new(),
        };
        writer.put_head();
        writer
    }

    /// Appends what an event brings for the caller.
    pub fn write(&mut self, event: &Event, out: &mut BytesMut) {
        match event {
            Event::Start { model, .. } => {
                if let Some(model) = model {
                    self.model.clone_from(model);
                    self.put_head();
                }
            }
            Event::BlockStart(at, kind) => self.start(*at, kind, out),
            Event::TextDelta(at, text) => {
                self.choice(at.choice, out).characters += text.chars().count() as u64;
                self.delta(at.choice, out, |json| json.member_string("content", text));
            }
            Event::ThinkingDelta(at, text) => {
                if let Some(thinking) = &mut self.choice(at.choice, out).thinking
                    && thinking.text.len() + text.len() <= REASONING_BYTES_MAX
                {
                    thinking.text.push_str(text);
                }
                self.delta(at.choice, out, |json| json.member_string("reasoning_content", text));
            }
            Event::SignatureDelta(at, signature) => self.sign(*at, signature, out),
            Event::ArgumentsDelta(at, text) => self.arguments(*at, text, out),
            Event::RefusalDelta(at, text) => {
                self.delta(at.choice, out, |json| json.member_string("refusal", text));
            }
            Event::Citation(at, citation) => {
                self.choice(at.choice, out).citations.push(citation.clone());
            }
            Event::BlockStop(at) => self.stop(*at, out),
            Event::Logprobs(choice, logprobs) => {
                self.chunk(*choice, out, |_| {}, Some(logprobs.as_str()), None);
            }
            Event::Finish { choice, reason, .. } => {
                self.choice(*choice, out);
                self.chunk(*choice, out, |_| {}, None, Some(finish::write(*reason)));
            }
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::ServiceTier(tier) => {
                self.tier = reply::tier_of(Some(tier));
                self.put_head();
            }
            Event::Unread(_) => {}
            Event::Error(error) => out.extend_from_slice(&error_event(error)),
            Event::End => self.usage_chunk(out),
        }
    }

    fn put_head(&mut self) {
        let mut json = Writer::default();
        json.object(|json| {
            json.member_string("id", &self.id);
            json.member_string("object", "chat.completion.chunk");
            json.member_number("created", self.created);
            json.member_string("model", &self.model);
            if let Some(tier) = self.tier {
                json.member_string("service_tier", tier);
            }
        });
        let head = json.into_bytes();
        self.head.clear();
        self.head.extend_from_slice(b"data: ");
        self.head.extend_from_slice(&head[..head.len() - 1]);
    }

    fn start(&mut self, at: At, kind: &BlockKind, out: &mut BytesMut) {
        let choice = self.choice(at.choice, out);
        match kind {
            BlockKind::Text => choice.text_start = choice.characters,
            BlockKind::Thinking => {
                choice.thinking = Some(Thinking { text: String::new(), signature: None });
            }
            BlockKind::RedactedThinking(data) => {
                self.thought(at.choice, &Content::RedactedThinking(data.clone()), out);
            }
            BlockKind::ToolUse { id, name, signature } => {
                let index = choice.calls.len();
                choice.calls.push(at);
                self.delta(at.choice, out, |json| {
                    json.member_array("tool_calls", |json| {
                        json.object(|json| {
                            json.member_number("index", index);
                            json.member_string("id", id);
                            json.member_string("type", "function");
                            json.member_object("function", |json| {
                                json.member_string("name", name);
                                json.member_string("arguments", "");
                            });
                            if let Some(signature) = signature {
                                google_signature(json, signature);
                            }
                        });
                    });
                });
            }
            // A refusal needs no beginning, and what only one provider knows has no place here.
            BlockKind::Refusal | BlockKind::Opaque(..) => {}
        }
    }

    fn arguments(&mut self, at: At, text: &str, out: &mut BytesMut) {
        let Some(index) = self.choice(at.choice, out).calls.iter().position(|call| *call == at) else {
            return;
        };
        self.delta(at.choice, out, |json| {
            json.member_array("tool_calls", |json| {
                json.object(|json| {
                    json.member_number("index", index);
                    json.member_object("function", |json| json.member_string("arguments", text));
                });
            });
        });
    }

    fn sign(&mut self, at: At, more: &Signature, out: &mut BytesMut) {
        if let Some(thinking) = &mut self.choice(at.choice, out).thinking {
            match &mut thinking.signature {
                Some(signature) => signature.data.push_str(&more.data),
                None => thinking.signature = Some(more.clone()),
            }
        }
    }

    fn stop(&mut self, at: At, out: &mut BytesMut) {
        let choice = self.choice(at.choice, out);
        if let Some(thinking) = choice.thinking.take()
            && thinking.signature.is_some()
        {
            self.thought(at.choice, &Content::Thinking(thinking), out);
        }
        let choice = self.choice(at.choice, out);
        let citations = std::mem::take(&mut choice.citations);
        let span = (choice.text_start, choice.characters);
        if citations.iter().any(|citation| citation.url.is_some()) {
            self.delta(at.choice, out, |json| {
                json.member_array("annotations", |json| {
                    for citation in &citations {
                        reply::annotation(json, citation, citation.span.unwrap_or(span));
                    }
                });
            });
        }
    }

    fn thought(&mut self, number: u32, content: &Content, out: &mut BytesMut) {
        let choice = self.choice(number, out);
        let index = choice.thoughts;
        choice.thoughts += 1;
        self.delta(number, out, |json| {
            json.member_array("reasoning_details", |json| thoughts::detail(json, index, content));
        });
    }

    /// Returns a choice, after its first chunk, which says whose words follow.
    fn choice(&mut self, number: u32, out: &mut BytesMut) -> &mut Choice {
        let index = number as usize;
        if self.choices.len() <= index {
            self.choices.resize_with(index + 1, Choice::default);
        }
        if !self.choices[index].begun {
            self.choices[index].begun = true;
            self.delta(number, out, |json| {
                json.member_string("role", "assistant");
                json.member_string("content", "");
            });
        }
        &mut self.choices[index]
    }

    fn delta(&self, number: u32, out: &mut BytesMut, members: impl FnOnce(&mut Writer)) {
        self.chunk(number, out, members, None, None);
    }

    fn chunk(
        &self,
        number: u32,
        out: &mut BytesMut,
        delta: impl FnOnce(&mut Writer),
        logprobs: Option<&str>,
        finish: Option<&str>,
    ) {
        out.extend_from_slice(&self.head);
        Writer::within(out, |json| {
            json.member_array("choices", |json| {
                json.object(|json| {
                    json.member_number("index", number);
                    json.member_object("delta", delta);
                    json.member_raw("logprobs", logprobs.unwrap_or("null"));
                    match finish {
                        Some(reason) => json.member_string("finish_reason", reason),
                        None => json.member_null("finish_reason"),
                    }
                });
            });
        });
        out.extend_from_slice(b"}\n\n");
    }

    fn usage_chunk(&self, out: &mut BytesMut) {
        let Some(usage) = self.usage.as_ref().filter(|_| self.include_usage) else { return };
        out.extend_from_slice(&self.head);
        Writer::within(out, |json| {
            json.member_array("choices", |_| {});
            json.key("usage");
            reply::write_usage(json, usage);
        });
        out.extend_from_slice(b"}\n\n");
    }
}
