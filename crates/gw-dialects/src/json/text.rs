//! A string of a JSON text: where it stands, and what it says.

use std::{borrow::Cow, ops::Range};

use gw_types::{TextClasses, TextCounter};

/// How much is put together before it is counted, in bytes.
const TOGETHER_BYTES: usize = 4_096;
/// The most bytes of one character.
const CHARACTER_BYTES: usize = 4;
/// A piece longer than this is counted where it stands.
const PIECE_BYTES: usize = 1_024;

/// A string of a JSON text, not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    /// What stands between the quotes.
    raw: &'a str,
    /// Where the opening quote stands.
    start: usize,
    escaped: bool,
}

impl<'a> Text<'a> {
    /// Returns the string between the quotes at `start` and before `end`.
    pub(super) fn new(text: &'a str, start: usize, end: usize, escaped: bool) -> Self {
        Self { raw: text.get(start + 1..end - 1).unwrap_or_default(), start, escaped }
    }

    /// Returns what stands between the quotes, escapes as they are: enough to compare with a plain name.
    pub(crate) fn raw(&self) -> &'a str {
        self.raw
    }

    /// Returns whether the string says just this.
    pub(crate) fn is(&self, said: &str) -> bool {
        if self.escaped { self.decoded() == said } else { self.raw == said }
    }

    /// Returns whether the string has escapes.
    pub(crate) fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Returns the byte range, quotes included.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.start + self.raw.len() + 2
    }

    /// Returns the length in UTF-8 bytes of what the string says.
    pub(crate) fn decoded_len(&self) -> u64 {
        if !self.escaped {
            return self.raw.len() as u64;
        }
        let mut rest = self.raw.as_bytes();
        let mut length = 0;
        while let Some(plain) = memchr::memchr(b'\\', rest) {
            let (character, used) = unescape(&rest[plain..]);
            length += (plain + character.len_utf8()) as u64;
            rest = &rest[plain + used..];
        }
        length + rest.len() as u64
    }

    /// Returns the length in UTF-8 bytes of what the string says, and what it is made of.
    ///
    /// One pass. Short pieces between escapes, of which code has one a line, are put together before they are counted:
    /// counting is quick in blocks.
    pub(crate) fn measured(&self) -> (u64, TextClasses) {
        if !self.escaped {
            return (self.raw.len() as u64, TextClasses::of(self.raw));
        }
        let mut counter = TextCounter::default();
        let mut length = 0;
        let mut together = String::with_capacity(self.raw.len().min(TOGETHER_BYTES));
        let mut rest = self.raw;
        loop {
            let escape = memchr::memchr(b'\\', rest.as_bytes());
            let piece = &rest[..escape.unwrap_or(rest.len())];
            length += piece.len();
            if together.len() + piece.len() > TOGETHER_BYTES - CHARACTER_BYTES {
                counter.push(&together);
                together.clear();
            }
            if piece.len() > PIECE_BYTES {
                counter.push(&together);
                together.clear();
                counter.push(piece);
            } else {
                together.push_str(piece);
            }
            let Some(escape) = escape else { break };
            let (character, used) = unescape(&rest.as_bytes()[escape..]);
            together.push(character);
            length += character.len_utf8();
            rest = &rest[escape + used..];
        }
        counter.push(&together);
        (length as u64, counter.finish())
    }

    /// Returns what the string says; a surrogate without its other half reads as U+FFFD.
    pub(crate) fn decoded(&self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut said = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(plain) = memchr::memchr(b'\\', rest.as_bytes()) {
            let (character, used) = unescape(&rest.as_bytes()[plain..]);
            said.push_str(&rest[..plain]);
            said.push(character);
            rest = &rest[plain + used..];
        }
        said.push_str(rest);
        Cow::Owned(said)
    }
}

/// Returns the character of the escape at the start of `bytes`, which the scanner has checked, and the bytes it takes.
fn unescape(bytes: &[u8]) -> (char, usize) {
    let plain = match bytes.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes),
        Some(other) => char::from(*other),
        None => return (char::REPLACEMENT_CHARACTER, bytes.len()),
    };
    (plain, 2)
}

fn unicode(bytes: &[u8]) -> (char, usize) {
    let Some(first) = unit(bytes) else { return (char::REPLACEMENT_CHARACTER, bytes.len()) };
    if let Some(character) = char::from_u32(first) {
        return (character, 6);
    }
    let second = bytes.get(6..).and_then(unit);
    match second {
        Some(low @ 0xDC00..=0xDFFF) if first < 0xDC00 => {
            let code = 0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        Some(_) | None => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Returns the UTF-16 unit of a `\uXXXX` at the start of `bytes`.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}
