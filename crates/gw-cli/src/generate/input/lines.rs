//! JSON Lines.

use std::io::{self, BufRead};

use super::{Entry, LINE_BYTES_MAX, read_line};

/// The lines that are not blank.
pub(super) struct Lines {
    reader: Box<dyn BufRead + Send>,
    line: u64,
    bytes: u64,
}

impl Lines {
    pub(super) fn new(reader: Box<dyn BufRead + Send>) -> Self {
        Self { reader, line: 0, bytes: 0 }
    }
}

impl Iterator for Lines {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut text = Vec::new();
            let (read, whole) = match read_line(&mut *self.reader, &mut text) {
                Ok((0, _)) => return None,
                Ok(read) => read,
                Err(error) => return Some(Err(error)),
            };
            self.line += 1;
            self.bytes += read;
            // A byte order mark is what some editors begin a file with.
            if self.line == 1 && text.starts_with(b"\xef\xbb\xbf") {
                text.drain(..3);
            }
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let text =
                if whole { Ok(text) } else { Err(format!("the line has more than {LINE_BYTES_MAX} bytes")) };
            return Some(Ok(Entry { line: self.line, bytes: self.bytes, text }));
        }
    }
}
