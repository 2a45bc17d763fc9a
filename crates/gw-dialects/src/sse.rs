//! Server-sent events, decoded from bytes.
//!
//! The grammar is the one of the HTML standard, section 9.2.6: three line endings, comments, an optional space after the
//! colon, data over several lines, a byte order mark at the very start. Framing is done on bytes, so a character cut by a
//! chunk boundary is never seen; text is the reader's business once an event is whole.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;

/// The most bytes of one event, or of one line, that are held; a longer one is an error.
pub const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
const DATA_LINE: &[u8] = b"data: ";
const NAME_LINE: &[u8] = b"event: ";

/// Says that a stream holds an event longer than [`EVENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than 8 MiB")]
pub struct EventTooLong;

/// One event, borrowed from the decoder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The data, its lines joined by LF.
    pub data: &'a [u8],
    /// The event's name; empty where it has none.
    pub name: &'a [u8],
    /// Where the event stands in the chunk pushed last, as `(start, end)`, if it is exactly `data: `, one line, LF, LF.
    /// Such an event can be relayed as it came.
    pub canonical: Option<(usize, usize)>,
    /// Where it stands, likewise, if it is exactly `event: `, a name, LF, `data: `, one line, LF, LF.
    pub named: Option<(usize, usize)>,
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("data", &format_args!("[{} bytes redacted]", self.data.len()))
            .field("canonical", &self.canonical)
            .field("named", &self.named)
            .finish_non_exhaustive()
    }
}

/// Cuts a stream of bytes into events.
///
/// Every byte is looked at once. An event that lies in one chunk is not copied; one that spans chunks is copied once.
/// Fields other than `data` and `event` mean nothing to the dialects here and are passed over.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::sse::Decoder;
///
/// let mut decoder = Decoder::new();
/// decoder.push(Bytes::from_static(b": hello\r\ndata: a\r\nda"));
/// assert_eq!(decoder.next_event(), None);
/// decoder.push(Bytes::from_static(b"ta:b\r\n\r\n"));
/// assert_eq!(decoder.next_event().unwrap().unwrap().data, b"a\nb");
/// ```
#[derive(Default)]
pub struct Decoder {
    chunk: Bytes,
    /// The next unread byte of `chunk`.
    at: usize,
    /// Bytes of a byte order mark seen at the start of the stream.
    mark: usize,
    /// Whether the start of the stream is past.
    started: bool,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    /// The beginning of a line that spans chunks.
    line: Vec<u8>,
    /// Where the data stands in `chunk`, while it is one line of the current chunk.
    data_in_chunk: Option<Range<usize>>,
    /// The data otherwise.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    /// Whether `data` and `name` were handed out with the last event.
    handed_out: bool,
    failed: bool,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("unread", &(self.chunk.len() - self.at))
            .field("held", &self.held())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// What a line means.
enum Line {
    Field,
    Blank,
}

impl Decoder {
    /// Returns a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next chunk. Events of the chunk before that were not taken yet are kept, at the cost of a copy.
    pub fn push(&mut self, chunk: Bytes) {
        if self.at < self.chunk.len() {
            let mut joined = self.chunk[self.at..].to_vec();
            joined.extend_from_slice(&chunk);
            self.keep_data();
            self.chunk = Bytes::from(joined);
        } else {
            self.keep_data();
            self.chunk = chunk;
        }
        self.at = 0;
    }

    /// Returns the next whole event, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`EventTooLong`], once; afterwards there are no events.
    pub fn next_event(&mut self) -> Option<Result<Event<'_>, EventTooLong>> {
        self.forget_handed_out();
        if self.failed {
            return None;
        }
        self.pass_mark();
        self.pass_line_feed();
        if self.is_between_events()
            && let Some(end) = self.canonical_end()
        {
            let start = self.at;
            self.at = end;
            let data = &self.chunk[start + DATA_LINE.len()..end - 2];
            return Some(Ok(Event { data, name: b"", canonical: Some((start, end)), named: None }));
        }
        if self.is_between_events()
            && let Some((name, data)) = self.named_parts()
        {
            let start = self.at;
            let end = data.end + 2;
            self.at = end;
            let (name, data) = (&self.chunk[name], &self.chunk[data]);
            return Some(Ok(Event { data, name, canonical: None, named: Some((start, end)) }));
        }
        while let Some(line) = self.take_line() {
            if let Line::Blank = line {
                if self.has_data {
                    return Some(Ok(self.hand_out()));
                }
                // An event without data is none, and its name is forgotten.
                self.name.clear();
            }
            if self.held() > EVENT_BYTES_MAX {
                break;
            }
        }
        if self.held() > EVENT_BYTES_MAX {
            self.failed = true;
            self.line = Vec::new();
            self.data = Vec::new();
            return Some(Err(EventTooLong));
        }
        None
    }

    /// Ends the stream: returns the event that lacks its blank line, if there is one.
    ///
    /// The standard drops it. Providers are known to leave out the last line end, so a caller that can tell a whole
    /// event from a cut one may want it.
    pub fn finish(&mut self) -> Option<Event<'_>> {
        self.forget_handed_out();
        if self.failed {
            return None;
        }
        self.keep_data();
        self.failed = true;
        let rest = std::mem::take(&mut self.line);
        self.read_line(&rest, None);
        self.has_data.then(|| self.hand_out())
    }

    fn held(&self) -> usize {
        let in_chunk = self.data_in_chunk.as_ref().map_or(0, ExactSizeIterator::len);
        self.line.len() + self.data.len() + self.name.len() + in_chunk
    }

    /// Returns whether the next chunk begins with the first line of an event, and nothing before it is still to be read.
    pub(crate) fn is_at_event(&mut self) -> bool {
        self.forget_handed_out();
        self.is_between_events() && self.at == self.chunk.len() && !self.after_cr && !self.failed
    }

    fn is_between_events(&self) -> bool {
        !self.has_data && self.line.is_empty() && self.name.is_empty() && self.started
    }

    fn forget_handed_out(&mut self) {
        if self.handed_out {
            self.data.clear();
            self.data_in_chunk = None;
            self.name.clear();
            self.has_data = false;
            self.handed_out = false;
        }
    }

    /// Passes a byte order mark at the start of the stream, which may itself be cut.
    fn pass_mark(&mut self) {
        while !self.started {
            let seen = self.mark;
            let Some(byte) = self.chunk.get(self.at) else { return };
            if *byte != BYTE_ORDER_MARK[seen] {
                // Not a mark after all: what was passed is the beginning of a line.
                self.line.extend_from_slice(&BYTE_ORDER_MARK[..seen]);
                self.started = true;
                return;
            }
            self.at += 1;
            self.mark += 1;
            self.started = self.mark == BYTE_ORDER_MARK.len();
        }
    }

    /// Passes the LF of a CRLF whose CR ended the last line.
    fn pass_line_feed(&mut self) {
        if self.after_cr
            && let Some(byte) = self.chunk.get(self.at)
        {
            self.at += usize::from(*byte == b'\n');
            self.after_cr = false;
        }
    }

    /// Returns one past the event that begins here, if it is canonical and whole.
    fn canonical_end(&self) -> Option<usize> {
        let rest = &self.chunk[self.at..];
        let line = rest.strip_prefix(DATA_LINE)?;
        let end = memchr::memchr2(b'\n', b'\r', line)?;
        let ends = line.get(end..end + 2)? == b"\n\n" && end <= EVENT_BYTES_MAX;
        ends.then_some(self.at + DATA_LINE.len() + end + 2)
    }

    /// Returns where name and data of the event that begins here stand, if it is one line of each and whole.
    fn named_parts(&self) -> Option<(Range<usize>, Range<usize>)> {
        let name_start = self.at + NAME_LINE.len();
        let after_name = self.chunk[self.at..].strip_prefix(NAME_LINE)?;
        let name_end = name_start + memchr::memchr2(b'\n', b'\r', after_name)?;
        let data_start = name_end + 1 + DATA_LINE.len();
        let line = self.chunk[name_end..].strip_prefix(b"\n")?.strip_prefix(DATA_LINE)?;
        let length = memchr::memchr2(b'\n', b'\r', line)?;
        let ends = line.get(length..length + 2)? == b"\n\n" && length <= EVENT_BYTES_MAX;
        let plain = name_end > name_start && self.chunk[name_start] != b' ';
        (ends && plain && name_end - name_start <= EVENT_BYTES_MAX)
            .then_some((name_start..name_end, data_start..data_start + length))
    }

    /// Reads the next line, or keeps what there is of it and returns `None`.
    fn take_line(&mut self) -> Option<Line> {
        self.pass_line_feed();
        let rest = &self.chunk[self.at..];
        let Some(length) = memchr::memchr2(b'\n', b'\r', rest) else {
            self.line.extend_from_slice(rest);
            self.at = self.chunk.len();
            self.keep_data();
            return None;
        };
        let start = self.at;
        self.at += length + 1;
        self.after_cr = rest[length] == b'\r';
        if self.line.is_empty() {
            let chunk = self.chunk.clone();
            return Some(self.read_line(&chunk[start..start + length], Some(start)));
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(&self.chunk[start..start + length]);
        let read = self.read_line(&line, None);
        line.clear();
        self.line = line;
        Some(read)
    }

    /// Reads a whole line; `start` is where it stands in the chunk, if it does.
    fn read_line(&mut self, line: &[u8], start: Option<usize>) -> Line {
        if line.is_empty() {
            return Line::Blank;
        }
        let colon = memchr::memchr(b':', line);
        let (field, after) = match colon {
            Some(colon) => (&line[..colon], colon + 1),
            None => (line, line.len()),
        };
        let value = line[after..].strip_prefix(b" ").unwrap_or(&line[after..]);
        match field {
            b"data" => {
                let place = start.map(|start| start + line.len() - value.len()..start + line.len());
                self.add_data(value, place);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
        Line::Field
    }

    fn add_data(&mut self, value: &[u8], place: Option<Range<usize>>) {
        if !self.has_data && place.is_some() {
            self.data_in_chunk = place;
        } else {
            self.keep_data();
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
        self.has_data = true;
    }

    /// Copies data that stands in the chunk, because the chunk goes or a line is added.
    fn keep_data(&mut self) {
        if let Some(place) = self.data_in_chunk.take() {
            self.data.extend_from_slice(&self.chunk[place]);
        }
    }

    fn hand_out(&mut self) -> Event<'_> {
        self.handed_out = true;
        let data = match &self.data_in_chunk {
            Some(place) => &self.chunk[place.clone()],
            None => &self.data,
        };
        Event { data, name: &self.name, canonical: None, named: None }
    }
}
