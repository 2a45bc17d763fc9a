//! The bytes of a value that spans chunks.

use bytes::{Bytes, BytesMut};

use super::VALUE_BYTES_MAX;

/// A chunk that is being read, and the beginning of a value that came before it.
#[derive(Default)]
pub(super) struct Buffer {
    chunk: Bytes,
    /// The next unread byte of `chunk`.
    at: usize,
    /// Where the value that is being read begins in `chunk`; what of it came before stands in `held`.
    start: usize,
    held: Vec<u8>,
    /// Whether `held` was handed out with the last value.
    handed_out: bool,
}

impl Buffer {
    /// Adds the next chunk; `inside` says whether a value is being read, whose beginning is kept then.
    pub(super) fn push(&mut self, chunk: Bytes, inside: bool) {
        self.forget_handed_out();
        if self.at < self.chunk.len() {
            // What was not read yet moves to the front, which only happens to callers that do not read to the end.
            let from = if inside { self.start } else { self.at };
            let mut joined = BytesMut::with_capacity(self.chunk.len() - from + chunk.len());
            joined.extend_from_slice(&self.chunk[from..]);
            joined.extend_from_slice(&chunk);
            self.at -= from;
            self.chunk = joined.freeze();
        } else {
            if inside {
                self.held.extend_from_slice(&self.chunk[self.start..]);
            }
            self.at = 0;
            self.chunk = chunk;
        }
        self.start = 0;
    }

    /// Returns what is not read yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.chunk[self.at..]
    }

    /// Reads over so many bytes.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Begins a value at the next byte; what came before it is forgotten.
    pub(super) fn begin(&mut self) {
        self.held.clear();
        self.start = self.at;
    }

    /// Returns the bytes of the value so far.
    pub(super) fn len(&self) -> usize {
        self.held.len() + (self.at - self.start)
    }

    /// Returns whether the value so far is longer than a value may be.
    pub(super) fn is_too_long(&self) -> bool {
        self.len() > VALUE_BYTES_MAX
    }

    /// Ends the value before the next byte and returns it: a slice of the chunk where it lies in it.
    pub(super) fn take(&mut self) -> &[u8] {
        let place = self.start..self.at;
        self.start = self.at;
        if self.held.is_empty() {
            return &self.chunk[place];
        }
        self.held.extend_from_slice(&self.chunk[place]);
        self.handed_out = true;
        &self.held
    }

    /// Returns whether the value so far is blanks.
    pub(super) fn is_blank(&self) -> bool {
        let blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
        blank(&self.held) && blank(&self.chunk[self.start..self.at])
    }

    /// Returns how many bytes wait to be read, for `Debug`.
    pub(super) fn unread(&self) -> usize {
        self.chunk.len() - self.at
    }

    /// Gives memory back after a failure.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets the value that was handed out last.
    pub(super) fn forget_handed_out(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.held.clear();
        }
    }
}
