//! One value a line.

use bytes::Bytes;

use super::{ValueFault, buffer::Buffer};

/// Cuts a stream of bytes into lines, each one JSON value (NDJSON, also called JSON Lines).
///
/// A line ends with LF or CRLF; blank lines are passed over. Every byte is looked at once, and a line that lies in one
/// chunk is not copied.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::json_stream::LineDecoder;
///
/// let mut decoder = LineDecoder::new();
/// decoder.push(Bytes::from_static(b"{\"a\":1}\r\n\n{\"a\""));
/// assert_eq!(decoder.next_value(), Some(Ok(&b"{\"a\":1}"[..])));
/// assert_eq!(decoder.next_value(), None);
/// decoder.push(Bytes::from_static(b":2}"));
/// assert_eq!(decoder.next_value(), None);
/// assert_eq!(decoder.finish(), Some(&b"{\"a\":2}"[..]));
/// ```
#[derive(Default)]
pub struct LineDecoder {
    buffer: Buffer,
    failed: bool,
}

impl std::fmt::Debug for LineDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineDecoder")
            .field("unread", &self.buffer.unread())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl LineDecoder {
    /// Returns a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next chunk. Lines of the chunk before that were not taken yet are kept, at the cost of a copy.
    pub fn push(&mut self, chunk: Bytes) {
        if !self.failed {
            self.buffer.push(chunk, true);
        }
    }

    /// Returns the next whole line that is not blank, without its end, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`ValueFault::TooLong`], once; afterwards there are no lines.
    pub fn next_value(&mut self) -> Option<Result<&[u8], ValueFault>> {
        self.buffer.forget_handed_out();
        if !self.find_line() {
            return self.failed_now().then_some(Err(ValueFault::TooLong));
        }
        let line = self.buffer.take();
        let end = line.len().saturating_sub(1);
        Some(Ok(line[..end].trim_ascii()))
    }

    /// Ends the stream: returns the last line if it lacks its end and is not blank. It may have been cut.
    pub fn finish(&mut self) -> Option<&[u8]> {
        if self.failed {
            return None;
        }
        self.buffer.forget_handed_out();
        self.failed = true;
        let rest = self.buffer.rest().len();
        self.buffer.pass(rest);
        let line = self.buffer.take().trim_ascii();
        (!line.is_empty()).then_some(line)
    }

    /// Reads up to the end of the next line that is not blank; returns whether there is one.
    fn find_line(&mut self) -> bool {
        if self.failed {
            return false;
        }
        loop {
            let rest = self.buffer.rest();
            let Some(end) = memchr::memchr(b'\n', rest) else {
                let all = rest.len();
                self.buffer.pass(all);
                return false;
            };
            self.buffer.pass(end + 1);
            if self.buffer.is_too_long() {
                return false;
            }
            if !self.buffer.is_blank() {
                return true;
            }
            self.buffer.begin();
        }
    }

    fn failed_now(&mut self) -> bool {
        let fails = !self.failed && self.buffer.is_too_long();
        if fails {
            self.failed = true;
            self.buffer.clear();
        }
        fails
    }
}
