//! AWS event streams (`application/vnd.amazon.eventstream`), decoded from bytes and encoded.
//!
//! A frame is a prelude (length of the frame, length of its headers, CRC32 of both), typed headers, a payload, and the
//! CRC32 of all before it; every number is big-endian. Both checksums are verified, so that a byte that was lost or
//! changed on the way is an error and never content. The format is described in the documentation of Amazon Transcribe
//! and implemented by the Smithy reference code.

mod header;

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};

pub use self::header::{HeaderValue, Headers};

/// The longest frame that is read, in bytes, all parts together; a longer one is an error before it is held.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest headers of a frame that are read, in bytes.
pub const HEADERS_BYTES_MAX: usize = 128 * 1024;

/// Two lengths and their checksum.
const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// A frame without headers and payload.
const FRAME_BYTES_MIN: usize = PRELUDE_BYTES + CHECKSUM_BYTES;

/// Says why bytes are no event stream. Nothing can be read after it: the next frame cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The checksum of the lengths is wrong, so the lengths mean nothing.
    #[error("the checksum of a frame's prelude is wrong")]
    PreludeChecksum,
    /// The checksum of the frame is wrong.
    #[error("the checksum of a frame is wrong")]
    FrameChecksum,
    /// The lengths contradict each other.
    #[error("the lengths of a frame contradict each other")]
    Lengths,
    /// The frame is longer than [`FRAME_BYTES_MAX`], or its headers than [`HEADERS_BYTES_MAX`].
    #[error("a frame is longer than 16 MiB, or its headers than 128 KiB")]
    TooLong,
    /// The headers do not fill the length that the prelude says, or are of no known type.
    #[error("the headers of a frame cannot be read")]
    Headers,
}

/// One frame, borrowed from the decoder. Its checksums and headers are known to be right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the frame carries.
    pub payload: &'a [u8],
    headers: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the headers in the order of the wire.
    pub fn headers(&self) -> Headers<'a> {
        Headers::new(self.headers)
    }

    /// Returns the first header of the name, such as `:event-type`. Takes time in the number of headers.
    pub fn header(&self, name: &str) -> Option<HeaderValue<'a>> {
        self.headers().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns the first header of the name if it is text.
    pub fn text_header(&self, name: &str) -> Option<&'a str> {
        match self.header(name) {
            Some(HeaderValue::Text(text)) => Some(text),
            Some(_) | None => None,
        }
    }
}

impl std::fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame")
            .field("payload", &format_args!("[{} bytes redacted]", self.payload.len()))
            .finish_non_exhaustive()
    }
}

/// Cuts a stream of bytes into frames.
///
/// Every byte is checksummed once. A frame that lies in one chunk is not copied; one that spans chunks is copied once.
/// No more is held than has arrived, whatever length a frame claims.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::event_stream::{Decoder, HeaderValue, encode};
///
/// let frame = encode(&[(":event-type", HeaderValue::Text("messageStop"))], b"{}");
/// let mut decoder = Decoder::new();
/// decoder.push(frame.slice(..9));
/// assert_eq!(decoder.next_frame(), None);
/// decoder.push(frame.slice(9..));
/// let frame = decoder.next_frame().unwrap().unwrap();
/// assert_eq!((frame.text_header(":event-type"), frame.payload), (Some("messageStop"), &b"{}"[..]));
/// ```
#[derive(Default)]
pub struct Decoder {
    chunk: Bytes,
    /// The next unread byte of `chunk`.
    at: usize,
    /// The beginning of a frame that spans chunks, or the whole of it while it is handed out.
    held: Vec<u8>,
    /// The lengths of the frame that `held` begins, once its prelude is whole and checked.
    lengths: Option<Lengths>,
    /// Whether `held` was handed out with the last frame.
    handed_out: bool,
    failed: bool,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("unread", &(self.chunk.len() - self.at))
            .field("held", &self.held.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// The lengths that a prelude says, in bytes.
#[derive(Clone, Copy)]
struct Lengths {
    frame: usize,
    headers: usize,
}

impl Decoder {
    /// Returns a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next chunk. Frames of the chunk before that were not taken yet are kept, at the cost of a copy.
    pub fn push(&mut self, chunk: Bytes) {
        if self.at < self.chunk.len() {
            let mut joined = BytesMut::with_capacity(self.chunk.len() - self.at + chunk.len());
            joined.extend_from_slice(&self.chunk[self.at..]);
            joined.extend_from_slice(&chunk);
            self.chunk = joined.freeze();
        } else {
            self.chunk = chunk;
        }
        self.at = 0;
    }

    /// Returns the next whole frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// A [`FrameFault`], once; afterwards there are no frames.
    pub fn next_frame(&mut self) -> Option<Result<Frame<'_>, FrameFault>> {
        if std::mem::take(&mut self.handed_out) {
            self.held.clear();
            self.lengths = None;
        }
        if self.failed {
            return None;
        }
        let taken = if self.held.is_empty() { self.take_from_chunk() } else { Ok(None) };
        let found = match taken {
            Ok(Some(range)) => Ok(Some((&self.chunk[range.0..range.1], range.2))),
            Ok(None) => self.take_from_held().map(|lengths| lengths.map(|lengths| (&self.held[..], lengths))),
            Err(fault) => Err(fault),
        };
        match found.and_then(|found| found.map(|(bytes, lengths)| checked(bytes, lengths)).transpose()) {
            Ok(frame) => frame.map(Ok),
            Err(fault) => {
                self.failed = true;
                Some(Err(fault))
            }
        }
    }

    /// Returns whether the stream may end here: every frame that began is whole.
    pub fn is_between_frames(&self) -> bool {
        !self.failed && self.at == self.chunk.len() && (self.handed_out || self.held.is_empty())
    }

    /// Returns where the next frame stands in the chunk, if it lies in it as a whole.
    fn take_from_chunk(&mut self) -> Result<Option<(usize, usize, Lengths)>, FrameFault> {
        let rest = &self.chunk[self.at..];
        let Some(prelude) = rest.first_chunk::<PRELUDE_BYTES>() else { return Ok(None) };
        let lengths = Lengths::read(prelude)?;
        if rest.len() < lengths.frame {
            return Ok(None);
        }
        let start = self.at;
        self.at += lengths.frame;
        Ok(Some((start, self.at, lengths)))
    }

    /// Moves bytes of the chunk to those held, until they are one whole frame; returns its lengths then.
    fn take_from_held(&mut self) -> Result<Option<Lengths>, FrameFault> {
        if self.lengths.is_none() {
            self.hold(PRELUDE_BYTES);
            let Some(prelude) = self.held.first_chunk::<PRELUDE_BYTES>() else { return Ok(None) };
            self.lengths = Some(Lengths::read(prelude)?);
        }
        let Some(lengths) = self.lengths else { return Ok(None) };
        self.hold(lengths.frame);
        self.handed_out = self.held.len() == lengths.frame;
        Ok(self.handed_out.then_some(lengths))
    }

    /// Takes bytes of the chunk until `bytes` of them are held, or the chunk is used up.
    fn hold(&mut self, bytes: usize) {
        let wanted = bytes.saturating_sub(self.held.len()).min(self.chunk.len() - self.at);
        self.held.extend_from_slice(&self.chunk[self.at..self.at + wanted]);
        self.at += wanted;
    }
}

impl Lengths {
    /// Reads and checks a prelude.
    fn read(prelude: &[u8; PRELUDE_BYTES]) -> Result<Self, FrameFault> {
        let number = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&prelude[at..at + 4]);
            u32::from_be_bytes(bytes)
        };
        if crc32fast::hash(&prelude[..8]) != number(8) {
            return Err(FrameFault::PreludeChecksum);
        }
        let (frame, headers) = (number(0) as usize, number(4) as usize);
        if frame > FRAME_BYTES_MAX || headers > HEADERS_BYTES_MAX {
            return Err(FrameFault::TooLong);
        }
        if frame < FRAME_BYTES_MIN + headers {
            return Err(FrameFault::Lengths);
        }
        Ok(Self { frame, headers })
    }
}

/// Returns the frame that `bytes` are, if its checksum and its headers are right.
fn checked(bytes: &[u8], lengths: Lengths) -> Result<Frame<'_>, FrameFault> {
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if crc32fast::hash(content).to_be_bytes() != checksum {
        return Err(FrameFault::FrameChecksum);
    }
    let (headers, payload) = content[PRELUDE_BYTES..].split_at(lengths.headers);
    if !header::are_sound(headers) {
        return Err(FrameFault::Headers);
    }
    Ok(Frame { payload, headers })
}

/// Returns one frame, for whoever plays a provider.
///
/// Header names are cut at 255 bytes and values at 65,535, which is what the format can say.
pub fn encode(headers: &[(&str, HeaderValue<'_>)], payload: &[u8]) -> Bytes {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        header::write(name, *value, &mut encoded);
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = Vec::with_capacity(FRAME_BYTES_MIN + encoded.len() + payload.len());
    frame.extend_from_slice(&length(FRAME_BYTES_MIN + encoded.len() + payload.len()));
    frame.extend_from_slice(&length(encoded.len()));
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&encoded);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    Bytes::from(frame)
}
