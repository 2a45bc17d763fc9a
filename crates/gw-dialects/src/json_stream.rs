//! Streams of JSON values without events: one value a line (NDJSON), or the items of one array that grows.
//!
//! Framing is done on bytes and says where a value begins and ends, not whether it is JSON: that is the reader's
//! business once the value is whole.

mod array;
mod buffer;
mod lines;

#[cfg(test)]
mod tests;

pub use self::{array::ArrayDecoder, lines::LineDecoder};

/// The most bytes of one value that are held; a longer one is an error.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Says why bytes are no stream of JSON values. Nothing can be read after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// A value is longer than [`VALUE_BYTES_MAX`].
    #[error("a value of the stream is longer than 8 MiB")]
    TooLong,
    /// Brackets, commas or strings stand where none can, or something follows the end of the array.
    #[error("the stream is not an array of JSON values")]
    Misplaced,
}
