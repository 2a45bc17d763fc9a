//! Strings by the characters that they denote.

use super::Reader;

const HEX: &[u8; 16] = b"0123456789abcdef";

impl Reader<'_> {
    /// Reads a string and writes it with the shortest escapes; runs without an escape are copied whole.
    pub(super) fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        self.text.push(b'"');
        loop {
            let rest = &self.body[self.at..];
            let run = &rest[..memchr::memchr2(b'"', b'\\', rest)?];
            // Without an early exit, so that the compiler makes vector code of it.
            if run.iter().fold(false, |found, &byte| found | (byte < 0x20)) {
                return None;
            }
            self.text.extend_from_slice(run);
            self.at += run.len();
            if self.take(b'"') {
                self.text.push(b'"');
                return Some(());
            }
            self.at += 1;
            self.escape()?;
        }
    }

    /// Reads what follows a backslash.
    fn escape(&mut self) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => self.text.extend_from_slice(&[b'\\', kind]),
            b'/' => self.text.push(b'/'),
            b'u' => self.unicode_escape()?,
            _ => return None,
        }
        Some(())
    }

    /// Reads what follows `\u`: one unit of UTF-16, or two that make one character.
    fn unicode_escape(&mut self) -> Option<()> {
        let unit = self.hex4()?;
        let after = self.at;
        if (0xd800..0xdc00).contains(&unit) && self.take(b'\\') && self.take(b'u') {
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                self.character(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
                return Some(());
            }
        }
        // Half a pair: kept as its own escape, which no character shares. What follows is read on its own.
        self.at = after;
        self.character(unit);
        Some(())
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.body.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |sum, &digit| Some(sum * 16 + char::from(digit).to_digit(16)?))
    }

    fn character(&mut self, code: u32) {
        let short = match code {
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0x22 => b'"',
            0x5c => b'\\',
            _ => 0,
        };
        match char::from_u32(code) {
            _ if short != 0 => self.text.extend_from_slice(&[b'\\', short]),
            Some(character) if code >= 0x20 => {
                self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Some(_) | None => {
                self.text.extend_from_slice(b"\\u");
                let digit = |shift: u32| HEX[((code >> shift) & 0xf) as usize];
                self.text.extend_from_slice(&[digit(12), digit(8), digit(4), digit(0)]);
            }
        }
    }
}
