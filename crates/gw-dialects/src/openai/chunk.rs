//! One chunk of a streamed answer, read in one pass.

use std::ops::Range;

use super::{
    content::{Choices, Part, filled},
    usage::WireUsage,
};
use crate::json::{Fault, Kind, Reader, Text};

/// What one chunk holds.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) choices: Choices<'a>,
    pub(super) choices_field: ChoicesField,
    pub(super) usage: Option<WireUsage>,
    pub(super) error: ErrorField,
    pub(super) model: Option<Text<'a>>,
    /// Where the padding stands that some servers add against guessing by length, quotes included.
    pub(super) padding: Option<Range<usize>>,
}

/// How `choices` stands in a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ChoicesField {
    #[default]
    Absent,
    /// `null` at this place.
    Null(Range<usize>),
    Array,
}

/// How `error` stands in a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ErrorField {
    #[default]
    Absent,
    /// `null`; the member at this place.
    Null(Range<usize>),
    Present,
}

impl<'a> Chunk<'a> {
    /// Reads a chunk whose choices hold their content in the field of `part`.
    pub(super) fn read(text: &'a str, part: Part) -> Result<Self, Fault> {
        let mut chunk = Self::default();
        let mut reader = Reader::new(text);
        reader.object::<Fault>(|reader, key| chunk.field(reader, key, part))?;
        reader.end()?;
        Ok(chunk)
    }

    fn field(&mut self, reader: &mut Reader<'a>, key: Text<'a>, part: Part) -> Result<(), Fault> {
        match key.raw() {
            "choices" => match reader.kind()? {
                Kind::Array => {
                    self.choices_field = ChoicesField::Array;
                    self.choices.read(reader, part)
                }
                Kind::Null => {
                    self.choices_field = ChoicesField::Null(reader.skip()?);
                    Ok(())
                }
                Kind::Object | Kind::String | Kind::Number | Kind::Bool => {
                    Err(Fault { at: reader.at(), what: "`choices` is no array" })
                }
            },
            "usage" => {
                self.usage = WireUsage::read(reader)?.or(self.usage);
                Ok(())
            }
            "x_groq" => self.groq(reader),
            "error" => {
                let null = reader.kind()? == Kind::Null;
                let end = reader.skip()?.end;
                self.error = if null { ErrorField::Null(key.span().start..end) } else { ErrorField::Present };
                Ok(())
            }
            "object" => {
                // vLLM and Mistral: the error's fields stand on top.
                if filled(reader)?.is_some_and(|object| object.raw().eq_ignore_ascii_case("error")) {
                    self.error = ErrorField::Present;
                }
                Ok(())
            }
            "model" => {
                self.model = filled(reader)?;
                Ok(())
            }
            // OpenAI and Azure; Mistral.
            "obfuscation" | "p" if reader.kind()? == Kind::String => {
                self.padding = Some(reader.skip()?);
                Ok(())
            }
            _ => reader.skip().map(drop),
        }
    }

    /// Reads Groq's own field, in which older answers carry the usage.
    fn groq(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| {
            if key.raw() == "usage" {
                self.usage = self.usage.or(WireUsage::read(reader)?);
                Ok(())
            } else {
                reader.skip().map(drop)
            }
        })
    }
}
