//! What a choice holds, whether it stands whole in an answer (`message`) or in pieces in a stream (`delta`).

use std::ops::Range;

use gw_types::FinishReason;
use smallvec::SmallVec;

use super::finish;
use crate::json::{Fault, Kind, Reader, Text};

/// Choices told apart in one answer. More are read as one.
pub(super) const CHOICES_MAX: u32 = 128;

/// Names the field of a choice that holds its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// A piece of a streamed answer.
    #[default]
    Delta,
    /// A whole answer.
    Message,
    /// A legacy completion's text, whole or in pieces.
    Text,
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Message => "message",
            Self::Text => "text",
        }
    }
}

/// What the choices of one document hold.
#[derive(Debug, Default)]
pub(super) struct Choices<'a> {
    /// Number of choices.
    pub(super) count: u32,
    /// UTF-8 bytes of text, reasoning, refusals, transcripts and tool arguments, decoded.
    pub(super) content_bytes: u64,
    /// Number of texts among these, empty ones too, and where the last one stands, quotes included.
    pub(super) texts: u32,
    pub(super) last_text: Range<usize>,
    /// Whether there is any of that, or a tool call begins.
    pub(super) has_content: bool,
    /// Whether a choice holds sound.
    pub(super) sound: bool,
    /// Whether a choice holds a refusal.
    pub(super) refusal: bool,
    /// Whether the message that is being read holds a refusal.
    refused: bool,
    /// Whether a choice says that the provider failed.
    pub(super) error: bool,
    /// Whether a choice calls a tool.
    pub(super) tool_calls: bool,
    /// Why the choices ended, where they did.
    pub(super) finish: Option<FinishReason>,
    /// One bit for the index of every choice seen, and of every one that ended.
    pub(super) seen: u128,
    pub(super) ended: u128,
    /// Tool-call fragments, in order.
    pub(super) calls: SmallVec<[CallFragment<'a>; 1]>,
}

/// One element of `tool_calls`, and where its parts stand.
#[derive(Debug, Default)]
pub(super) struct CallFragment<'a> {
    /// The choice it belongs to.
    pub(super) choice: u32,
    /// One past the opening brace.
    pub(super) start: usize,
    /// The index, if it is a whole number, and where its value stands, whatever it is.
    pub(super) index: Option<u64>,
    pub(super) index_value: Option<Range<usize>>,
    /// The id and the name, if they are not empty, and the whole members.
    pub(super) id: Option<(Text<'a>, Range<usize>)>,
    pub(super) name: Option<(Text<'a>, Range<usize>)>,
}

/// One choice while it is read.
#[derive(Default)]
struct Choice {
    index: Option<u64>,
    refusal: bool,
    finish: Option<FinishReason>,
}

impl<'a> Choices<'a> {
    /// Reads an array of choices whose content stands in the field of `part`.
    pub(super) fn read(&mut self, reader: &mut Reader<'a>, part: Part) -> Result<(), Fault> {
        reader.array::<Fault>(|reader, position| {
            self.count = self.count.saturating_add(1);
            if reader.kind()? != Kind::Object {
                return Err(Fault { at: reader.at(), what: "a choice is no object" });
            }
            let first_call = self.calls.len();
            let mut choice = Choice::default();
            reader.object::<Fault>(|reader, key| match key.raw() {
                "index" => {
                    choice.index = whole(reader)?;
                    Ok(())
                }
                "finish_reason" => {
                    if let Some(reason) = filled(reader)? {
                        choice.finish = Some(finish::read(&reason.decoded()));
                    }
                    Ok(())
                }
                "text" if part == Part::Text => self.text(reader),
                "error" => {
                    self.error |= reader.kind()? == Kind::Object;
                    reader.skip().map(drop)
                }
                name if name == part.as_str() => self.part(reader, &mut choice),
                _ => reader.skip().map(drop),
            })?;
            self.close(&choice, position, first_call);
            Ok(())
        })
    }

    fn close(&mut self, choice: &Choice, position: usize, first_call: usize) {
        let index = choice.index.unwrap_or(position as u64).min(u64::from(CHOICES_MAX) - 1);
        let index = u32::try_from(index).unwrap_or(CHOICES_MAX - 1);
        for call in &mut self.calls[first_call..] {
            call.choice = index;
        }
        self.seen |= 1 << index;
        self.refusal |= choice.refusal;
        if let Some(reason) = choice.finish {
            self.ended |= 1 << index;
            // OpenAI ends a refusal with `stop`, which must not pass for an answer.
            let refused = choice.refusal && reason == FinishReason::Stop;
            let reason = if refused { FinishReason::Refusal } else { reason };
            self.finish = Some(finish::combine(self.finish, reason));
        }
    }

    fn part(&mut self, reader: &mut Reader<'a>, choice: &mut Choice) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        let refused = std::mem::take(&mut self.refused);
        reader.object::<Fault>(|reader, key| match key.raw() {
            "content" | "reasoning_content" | "reasoning" => self.text(reader),
            "refusal" => self.refusal(reader),
            "tool_calls" => self.tool_calls(reader),
            "function_call" => self.function(reader, &mut CallFragment::default()),
            "audio" => self.audio(reader),
            _ => reader.skip().map(drop),
        })?;
        choice.refusal |= std::mem::replace(&mut self.refused, refused);
        Ok(())
    }

    fn refusal(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        let before = self.content_bytes;
        self.text(reader)?;
        self.refused |= self.content_bytes > before;
        // Counted twice: a chunk with one text means that text alone, and a refusal means more.
        self.texts = self.texts.saturating_add(1);
        Ok(())
    }

    /// Reads text: a string, or Mistral's array of parts with text in `text`, or in `thinking` as parts again.
    fn text(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?;
                self.add(text);
                Ok(())
            }
            Kind::Array => reader.array::<Fault>(|reader, _| match reader.kind()? {
                Kind::String => self.text(reader),
                Kind::Array | Kind::Number | Kind::Bool | Kind::Null => reader.skip().map(drop),
                Kind::Object => reader.object::<Fault>(|reader, key| match key.raw() {
                    "text" | "thinking" => self.text(reader),
                    "refusal" => self.refusal(reader),
                    _ => reader.skip().map(drop),
                }),
            }),
            Kind::Object | Kind::Number | Kind::Bool | Kind::Null => reader.skip().map(drop),
        }
    }

    fn add(&mut self, text: Text<'_>) {
        let bytes = text.decoded_len();
        self.content_bytes = self.content_bytes.saturating_add(bytes);
        self.has_content |= bytes > 0;
        self.texts = self.texts.saturating_add(1);
        self.last_text = text.span();
    }

    fn audio(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| match key.raw() {
            "transcript" => self.text(reader),
            "data" => {
                // Sound is content, but no text.
                self.sound |= filled(reader)?.is_some();
                self.has_content |= self.sound;
                Ok(())
            }
            _ => reader.skip().map(drop),
        })
    }

    fn tool_calls(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Array {
            return reader.skip().map(drop);
        }
        reader.array::<Fault>(|reader, _| {
            if reader.kind()? != Kind::Object {
                return reader.skip().map(drop);
            }
            self.tool_calls = true;
            let mut call = CallFragment { start: reader.at() + 1, ..CallFragment::default() };
            reader.object::<Fault>(|reader, key| match key.raw() {
                "index" => {
                    reader.kind()?;
                    let start = reader.at();
                    call.index = whole(reader)?;
                    call.index_value = Some(start..reader.at());
                    Ok(())
                }
                "id" => {
                    call.id = filled(reader)?.map(|id| (id, key.span().start..reader.at()));
                    Ok(())
                }
                "function" => self.function(reader, &mut call),
                _ => reader.skip().map(drop),
            })?;
            // A caller that has seen a call begin is bound to this answer, whether or not arguments have come.
            self.has_content |= call.id.is_some() || call.name.is_some();
            self.calls.push(call);
            Ok(())
        })
    }

    fn function(&mut self, reader: &mut Reader<'a>, call: &mut CallFragment<'a>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        self.tool_calls = true;
        reader.object::<Fault>(|reader, key| match key.raw() {
            "name" => {
                call.name = filled(reader)?.map(|name| (name, key.span().start..reader.at()));
                self.has_content |= call.name.is_some();
                Ok(())
            }
            "arguments" => self.arguments(reader),
            _ => reader.skip().map(drop),
        })
    }

    /// Reads arguments: JSON text in a string, or from some servers the object itself.
    fn arguments(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?;
                self.add(text);
            }
            Kind::Object => {
                self.content_bytes += reader.skip()?.len() as u64;
                self.has_content = true;
            }
            Kind::Array | Kind::Number | Kind::Bool | Kind::Null => {
                reader.skip()?;
            }
        }
        Ok(())
    }
}

/// Reads a whole number; anything else is none.
fn whole(reader: &mut Reader<'_>) -> Result<Option<u64>, Fault> {
    if reader.kind()? == Kind::Number {
        return Ok(reader.number()?.parse().ok());
    }
    reader.skip()?;
    Ok(None)
}

/// Reads a string that is not empty; anything else is none.
pub(crate) fn filled<'a>(reader: &mut Reader<'a>) -> Result<Option<Text<'a>>, Fault> {
    if reader.kind()? == Kind::String {
        let text = reader.string()?;
        return Ok((!text.raw().is_empty()).then_some(text));
    }
    reader.skip()?;
    Ok(None)
}
