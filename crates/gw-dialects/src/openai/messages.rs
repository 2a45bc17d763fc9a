//! Reads of the conversation its size and what kinds of content it holds.

use gw_types::TextClasses;

use super::refusal::{Refusal, field_name, optional_string};
use crate::json::{Kind, Reader, Text};

/// What the messages of a request hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) messages: u32,
    /// UTF-8 bytes of all text, decoded, plus the bytes of every field that gw does not know: never less than the text
    /// that a provider can read out of the messages, images, audio and files aside.
    pub(super) text_bytes: u64,
    /// What that text is made of.
    pub(super) text_classes: TextClasses,
    pub(super) images: u32,
    pub(super) audio: bool,
    pub(super) documents: bool,
}

/// Reads the value of `messages`.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Contents, Refusal> {
    let start = reader.at();
    if reader.kind()? != Kind::Array {
        return Err(Refusal::new(reader.at(), "expected an array of messages"));
    }
    let mut contents = Contents::default();
    reader.array::<Refusal>(|reader, index| {
        contents.messages = contents.messages.saturating_add(1);
        contents.message(reader).map_err(|refusal| refusal.within_item(index))
    })?;
    if contents.messages == 0 {
        return Err(Refusal::new(start, "expected at least one message"));
    }
    Ok(contents)
}

impl Contents {
    fn message(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if reader.kind()? != Kind::Object {
            return Err(Refusal::new(reader.at(), "expected an object"));
        }
        let start = reader.at();
        let mut has_role = false;
        reader.object::<Refusal>(|reader, key| {
            let name = field_name(key)?;
            match name {
                "role" => {
                    if reader.kind()? != Kind::String {
                        return Err(Refusal::new(reader.at(), "expected a string").within(name));
                    }
                    reader.string()?;
                    has_role = true;
                }
                "content" => self.content(reader).map_err(|refusal| refusal.within(name))?,
                "audio" => {
                    self.audio |= reader.kind()? != Kind::Null;
                    reader.skip()?;
                }
                _ => self.other(reader)?,
            }
            Ok(())
        })?;
        if has_role {
            Ok(())
        } else {
            Err(Refusal::new(start, "the field `role` of a message is missing").within("role"))
        }
    }

    fn text(&mut self, text: Text<'_>) {
        let (bytes, classes) = text.measured();
        self.text_bytes += bytes;
        self.text_classes = self.text_classes + classes;
    }

    fn content(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?;
                self.text(text);
            }
            Kind::Null => {
                reader.null()?;
            }
            Kind::Array => reader.array::<Refusal>(|reader, index| {
                self.part(reader).map_err(|refusal| refusal.within_item(index))
            })?,
            Kind::Object | Kind::Number | Kind::Bool => {
                return Err(Refusal::new(reader.at(), "expected a string, an array of parts or null"));
            }
        }
        Ok(())
    }

    /// Reads one part; what it is shows in its fields, whatever its `type` says.
    fn part(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if reader.kind()? != Kind::Object {
            return Err(Refusal::new(reader.at(), "expected an object"));
        }
        reader.object::<Refusal>(|reader, key| {
            let name = field_name(key)?;
            match name {
                "type" => {
                    optional_string(reader).map_err(|refusal| refusal.within(name))?;
                }
                "text" | "refusal" => {
                    let text = optional_string(reader).map_err(|refusal| refusal.within(name))?;
                    text.into_iter().for_each(|text| self.text(text));
                }
                "image_url" => {
                    self.images = self.images.saturating_add(1);
                    reader.skip()?;
                }
                "input_audio" => {
                    self.audio = true;
                    reader.skip()?;
                }
                "file" => {
                    self.documents = true;
                    reader.skip()?;
                }
                _ => self.other(reader)?,
            }
            Ok(())
        })
    }

    /// Counts a field that gw does not know: what a provider may read out of it is no longer than it stands here.
    fn other(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?;
                self.text(text);
            }
            Kind::Object | Kind::Array => {
                let range = reader.skip()?;
                self.text_bytes += range.len() as u64;
                self.text_classes = self.text_classes + TextClasses::of(reader.slice(range));
            }
            Kind::Number | Kind::Bool | Kind::Null => {
                reader.skip()?;
            }
        }
        Ok(())
    }
}
