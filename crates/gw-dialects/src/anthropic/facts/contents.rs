//! Reads of the conversation its size and what kinds of content it holds.

use gw_types::TextClasses;

use crate::{
    json::{Kind, Reader, Text},
    openai::refusal::{Refusal, field_name, optional_string},
};

/// What the messages and the system prompt of a request hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) messages: u32,
    /// UTF-8 bytes of all text, decoded, plus the bytes of every field that gw does not know: never less than the text
    /// that a provider can read out of the request, images and files aside.
    pub(super) text_bytes: u64,
    /// What that text is made of.
    pub(super) text_classes: TextClasses,
    pub(super) images: u32,
    pub(super) documents: bool,
}

impl Contents {
    /// Reads the value of `messages`.
    pub(super) fn messages(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if reader.kind()? != Kind::Array {
            return Err(Refusal::new(reader.at(), "expected an array of messages"));
        }
        let start = reader.at();
        let before = self.messages;
        reader.array::<Refusal>(|reader, index| {
            self.messages = self.messages.saturating_add(1);
            self.message(reader).map_err(|refusal| refusal.within_item(index))
        })?;
        if self.messages == before {
            return Err(Refusal::new(start, "expected at least one message"));
        }
        Ok(())
    }

    /// Reads the system prompt, which counts as a message.
    pub(super) fn system(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        self.messages = self.messages.saturating_add(1);
        self.content(reader)
    }

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
                self.block(reader).map_err(|refusal| refusal.within_item(index))
            })?,
            Kind::Object | Kind::Number | Kind::Bool => {
                return Err(Refusal::new(reader.at(), "expected a string or an array of blocks"));
            }
        }
        Ok(())
    }

    /// Reads one block; the recursion is bounded by the reader's bound on depth.
    fn block(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if reader.kind()? != Kind::Object {
            return Err(Refusal::new(reader.at(), "expected an object"));
        }
        reader.object::<Refusal>(|reader, key| {
            let name = field_name(key)?;
            match name {
                "type" => {
                    let kind = optional_string(reader).map_err(|refusal| refusal.within(name))?;
                    let is = |name| kind.is_some_and(|kind| kind.is(name));
                    self.images = self.images.saturating_add(u32::from(is("image")));
                    self.documents |= is("document");
                }
                "text" | "thinking" => {
                    let text = optional_string(reader).map_err(|refusal| refusal.within(name))?;
                    text.into_iter().for_each(|text| self.text(text));
                }
                "source" => self.source(reader)?,
                "content" => self.nested(reader).map_err(|refusal| refusal.within(name))?,
                "cache_control" => {
                    reader.skip()?;
                }
                _ => self.other(reader)?,
            }
            Ok(())
        })
    }

    /// Reads what a tool brought back, or what a block of one provider's own holds.
    fn nested(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if reader.kind()? == Kind::Object { self.other(reader) } else { self.content(reader) }
    }

    /// Reads where an image or document is: files are no text, documents of plain text and of blocks are.
    fn source(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if reader.kind()? != Kind::Object {
            return self.other(reader);
        }
        let mut data = None;
        let mut is_text = false;
        reader.object::<Refusal>(|reader, key| {
            let name = field_name(key)?;
            match name {
                "type" => {
                    let kind = optional_string(reader).map_err(|refusal| refusal.within(name))?;
                    is_text = kind.is_some_and(|kind| kind.is("text"));
                }
                "data" => data = optional_string(reader).map_err(|refusal| refusal.within(name))?,
                "content" => self.content(reader).map_err(|refusal| refusal.within(name))?,
                _ => self.other(reader)?,
            }
            Ok(())
        })?;
        if let Some(text) = data.filter(|_| is_text) {
            self.text(text);
        }
        Ok(())
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

    fn text(&mut self, text: Text<'_>) {
        let (bytes, classes) = text.measured();
        self.text_bytes += bytes;
        self.text_classes = self.text_classes + classes;
    }
}
