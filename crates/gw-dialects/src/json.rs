//! A pull reader over JSON text: validates as it goes, copies nothing, and knows the byte range of every value.
//!
//! `serde_json` gives neither byte ranges of fields in the middle of a document nor a bound on the depth of values that
//! are skipped, and its messages quote the document. This reader has one loop for skipping (no recursion), faults with
//! fixed text and an offset, and agrees with `serde_json` on what is JSON (a property test compares them).

mod place;
mod scan;
mod text;
mod tree;
mod write;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::write::Writer;
pub(crate) use self::{
    place::value_at,
    text::Text,
    tree::{Node, Value, whole},
    write::quoted,
};

/// Levels of arrays and objects that are read; one more is a fault.
pub(crate) const DEPTH_MAX: u32 = 100;

/// Says where and why a text is not JSON as this crate takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The byte offset.
    pub(crate) at: usize,
    /// What is wrong: fixed text.
    pub(crate) what: &'static str,
}

/// Names what a value is, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

/// Walks over one JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Returns a reader in the middle of a text, for a caller that knows what stands there.
    pub(crate) fn starting_at(text: &'a str, at: usize) -> Self {
        Self { text, at, depth: 0 }
    }

    /// Returns the offset of the next unread byte; after [`Reader::kind`], where the next value begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns what stands in a range that was read.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns what the next value is, without reading it.
    pub(crate) fn kind(&mut self) -> Result<Kind, Fault> {
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) | None => Err(self.fault("expected a value")),
        }
    }

    /// Reads an object: calls `each` with every key; `each` must read the value.
    pub(crate) fn object<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self, Text<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{', "expected an object")?;
        if self.closes(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key()?;
            each(self, key)?;
            if self.continues(b'}', "expected `,` or `}`")? {
                continue;
            }
            return Ok(());
        }
    }

    /// Reads an array: calls `each` with every index; `each` must read the item.
    pub(crate) fn array<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[', "expected an array")?;
        if self.closes(b']') {
            return Ok(());
        }
        let mut index = 0;
        loop {
            each(self, index)?;
            if !self.continues(b']', "expected `,` or `]`")? {
                return Ok(());
            }
            index += 1;
        }
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<Text<'a>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a string"));
        }
        let (end, escaped) = scan::string(self.text.as_bytes(), self.at)?;
        let text = Text::new(self.text, self.at, end, escaped);
        self.at = end;
        Ok(text)
    }

    /// Reads a number; returns it as it stands.
    pub(crate) fn number(&mut self) -> Result<&'a str, Fault> {
        if self.kind()? != Kind::Number {
            return Err(self.fault("expected a number"));
        }
        let start = self.at;
        self.at = scan::number(self.text.as_bytes(), start)?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&mut self) -> Result<bool, Fault> {
        let value = self.peek() == Some(b't');
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// Reads the next value if it is `null`; returns whether it was.
    pub(crate) fn null(&mut self) -> Result<bool, Fault> {
        if self.kind()? != Kind::Null {
            return Ok(false);
        }
        self.word("null")?;
        Ok(true)
    }

    /// Reads any value; returns its byte range. Takes one pass and no recursion.
    pub(crate) fn skip(&mut self) -> Result<Range<usize>, Fault> {
        self.peek();
        let start = self.at;
        // One bit a level, the lowest for the innermost: whether the container is an object.
        let mut objects: u128 = 0;
        let outer = self.depth;
        loop {
            match self.kind()? {
                Kind::Object => {
                    self.open(b'{', "expected an object")?;
                    if !self.closes(b'}') {
                        objects = objects << 1 | 1;
                        self.key()?;
                        continue;
                    }
                }
                Kind::Array => {
                    self.open(b'[', "expected an array")?;
                    if !self.closes(b']') {
                        objects <<= 1;
                        continue;
                    }
                }
                Kind::String => self.at = scan::string(self.text.as_bytes(), self.at)?.0,
                Kind::Number => self.at = scan::number(self.text.as_bytes(), self.at)?,
                Kind::Bool => {
                    self.boolean()?;
                }
                Kind::Null => self.word("null")?,
            }
            if !self.next_in(&mut objects, outer)? {
                return Ok(start..self.at);
            }
        }
    }

    /// Accepts blanks up to the end of the text, and nothing else.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("unexpected text after the end of the JSON value")),
        }
    }

    /// Leaves the containers that end here; returns whether another value follows inside one.
    fn next_in(&mut self, objects: &mut u128, outer: u32) -> Result<bool, Fault> {
        while self.depth > outer {
            let in_object = *objects & 1 == 1;
            let (close, what) =
                if in_object { (b'}', "expected `,` or `}`") } else { (b']', "expected `,` or `]`") };
            if self.continues(close, what)? {
                if in_object {
                    self.key()?;
                }
                return Ok(true);
            }
            *objects >>= 1;
        }
        Ok(false)
    }

    fn fault(&self, what: &'static str) -> Fault {
        let what = if self.at >= self.text.len() { "unexpected end" } else { what };
        Fault { at: self.at, what }
    }

    /// Passes blanks; returns the next byte without reading it.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn open(&mut self, bracket: u8, what: &'static str) -> Result<(), Fault> {
        if self.peek() != Some(bracket) {
            return Err(self.fault(what));
        }
        if self.depth >= DEPTH_MAX {
            return Err(self.fault("nested deeper than 100 levels"));
        }
        self.at += 1;
        self.depth += 1;
        Ok(())
    }

    fn closes(&mut self, bracket: u8) -> bool {
        let closes = self.peek() == Some(bracket);
        if closes {
            self.at += 1;
            self.depth -= 1;
        }
        closes
    }

    /// Reads what follows a member: `true` after a comma, `false` after the closing bracket.
    fn continues(&mut self, close: u8, what: &'static str) -> Result<bool, Fault> {
        if self.peek() == Some(b',') {
            self.at += 1;
            return Ok(true);
        }
        if self.closes(close) { Ok(false) } else { Err(self.fault(what)) }
    }

    fn key(&mut self) -> Result<Text<'a>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a field name in quotes"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.fault("expected `:`"));
        }
        self.at += 1;
        Ok(key)
    }

    fn word(&mut self, word: &'static str) -> Result<(), Fault> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.fault("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }
}

/// Returns line and column, both from 1, of an offset; columns count characters.
pub(crate) fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let lines = before.bytes().filter(|byte| *byte == b'\n').count();
    (lines + 1, before[line_start..].chars().count() + 1)
}
