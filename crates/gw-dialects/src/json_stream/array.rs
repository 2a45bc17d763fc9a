//! The items of one array that grows.

use bytes::Bytes;

use super::{ValueFault, buffer::Buffer};

/// Levels of arrays and objects inside an item; one more is misplaced.
const DEPTH_MAX: u32 = 100;

/// Cuts a stream of bytes that is one JSON array into its items, as they become whole.
///
/// A stream that does not begin with `[` is taken for one value alone: a provider that fails may answer with an object
/// where an array was due. Every byte is looked at once, and an item that lies in one chunk is not copied.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::json_stream::ArrayDecoder;
///
/// let mut decoder = ArrayDecoder::new();
/// decoder.push(Bytes::from_static(b"[{\"a\":1},\r\n{\"b\":\"]"));
/// assert_eq!(decoder.next_value(), Some(Ok(&b"{\"a\":1}"[..])));
/// assert_eq!(decoder.next_value(), None);
/// decoder.push(Bytes::from_static(b"\"}]"));
/// assert_eq!(decoder.next_value(), Some(Ok(&b"{\"b\":\"]\"}"[..])));
/// assert!(decoder.next_value().is_none() && decoder.is_complete());
/// ```
#[derive(Default)]
pub struct ArrayDecoder {
    buffer: Buffer,
    place: Place,
    /// Open brackets of the value that is being read.
    depth: u32,
    /// Whether the stream is an array, and not one value alone.
    in_array: bool,
    failed: bool,
}

/// What is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nothing yet but blanks.
    #[default]
    Start,
    /// Between `[` or a comma and an item; `first` where the array may still be empty.
    BeforeItem { first: bool },
    /// Inside a value, outside of strings.
    Value,
    /// Inside a string.
    Text,
    /// After a backslash in a string.
    Escape,
    /// After an item.
    AfterItem,
    /// After the array, or after the value that stands alone.
    End,
}

/// What a byte brought about.
enum Step {
    Next,
    /// The value ended with this byte.
    Ended,
    /// The value ended before this byte, which is to be read again.
    EndedBefore,
    Misplaced,
}

impl std::fmt::Debug for ArrayDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayDecoder")
            .field("unread", &self.buffer.unread())
            .field("place", &self.place)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl ArrayDecoder {
    /// Returns a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next chunk. Items of the chunk before that were not taken yet are kept, at the cost of a copy.
    pub fn push(&mut self, chunk: Bytes) {
        if !self.failed {
            self.buffer.push(chunk, self.is_inside());
        }
    }

    /// Returns the next whole item, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// A [`ValueFault`], once; afterwards there are no items.
    pub fn next_value(&mut self) -> Option<Result<&[u8], ValueFault>> {
        if self.failed {
            return None;
        }
        self.buffer.forget_handed_out();
        match self.find_item() {
            Ok(true) => Some(Ok(self.buffer.take())),
            Ok(false) => None,
            Err(fault) => {
                self.failed = true;
                self.buffer.clear();
                Some(Err(fault))
            }
        }
    }

    /// Returns whether the array, or the value that stands alone, has ended.
    pub fn is_complete(&self) -> bool {
        !self.failed && self.place == Place::End
    }

    fn is_inside(&self) -> bool {
        matches!(self.place, Place::Value | Place::Text | Place::Escape)
    }

    /// Reads up to the end of the next item; returns whether there is one.
    fn find_item(&mut self) -> Result<bool, ValueFault> {
        loop {
            if self.place == Place::Text {
                let rest = self.buffer.rest();
                let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                self.buffer.pass(plain);
            }
            if self.is_inside() && self.buffer.is_too_long() {
                return Err(ValueFault::TooLong);
            }
            let Some(byte) = self.buffer.rest().first().copied() else { return Ok(false) };
            match self.step(byte) {
                Step::Next => self.buffer.pass(1),
                Step::Ended => {
                    self.buffer.pass(1);
                    return Ok(true);
                }
                Step::EndedBefore => return Ok(true),
                Step::Misplaced => return Err(ValueFault::Misplaced),
            }
        }
    }

    fn step(&mut self, byte: u8) -> Step {
        match self.place {
            Place::Start if byte == b'[' => {
                self.in_array = true;
                self.place = Place::BeforeItem { first: true };
                Step::Next
            }
            Place::BeforeItem { first: true } if byte == b']' => {
                self.place = Place::End;
                Step::Next
            }
            Place::Start | Place::BeforeItem { .. } => self.before_item(byte),
            Place::Value => self.in_value(byte),
            Place::Text => self.in_text(byte),
            Place::Escape => {
                self.place = Place::Text;
                Step::Next
            }
            Place::AfterItem => self.after_item(byte),
            Place::End => {
                if is_blank(byte) {
                    Step::Next
                } else {
                    Step::Misplaced
                }
            }
        }
    }

    fn before_item(&mut self, byte: u8) -> Step {
        if is_blank(byte) {
            return Step::Next;
        }
        self.buffer.begin();
        self.depth = 0;
        self.place = Place::Value;
        match byte {
            b',' | b']' | b'}' | b':' => Step::Misplaced,
            _ => self.in_value(byte),
        }
    }

    fn in_value(&mut self, byte: u8) -> Step {
        match byte {
            b'"' => {
                self.place = Place::Text;
                Step::Next
            }
            b'{' | b'[' if self.depth < DEPTH_MAX => {
                self.depth += 1;
                Step::Next
            }
            b'{' | b'[' => Step::Misplaced,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                if self.depth == 0 { self.ends() } else { Step::Next }
            }
            // Outside of brackets a value is a bare word, which ends where the next thing begins.
            b',' | b']' if self.depth == 0 => {
                self.ends();
                Step::EndedBefore
            }
            blank if self.depth == 0 && is_blank(blank) => {
                self.ends();
                Step::EndedBefore
            }
            b'}' => Step::Misplaced,
            _ => Step::Next,
        }
    }

    fn in_text(&mut self, byte: u8) -> Step {
        match byte {
            b'\\' => {
                self.place = Place::Escape;
                Step::Next
            }
            b'"' if self.depth == 0 => self.ends(),
            b'"' => {
                self.place = Place::Value;
                Step::Next
            }
            _ => Step::Next,
        }
    }

    fn after_item(&mut self, byte: u8) -> Step {
        match byte {
            b',' => self.place = Place::BeforeItem { first: false },
            b']' => self.place = Place::End,
            blank if is_blank(blank) => {}
            _ => return Step::Misplaced,
        }
        Step::Next
    }

    fn ends(&mut self) -> Step {
        self.place = if self.in_array { Place::AfterItem } else { Place::End };
        Step::Ended
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
