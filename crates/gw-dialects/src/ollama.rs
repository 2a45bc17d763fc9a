//! Ollama's own `/api/chat`, as local servers and its cloud speak it.
//!
//! Streams are one JSON object a line, and the line that says `done` is the last. Arguments are objects, images stand beside
//! the text as base64, settings stand in `options`, and a format is a word or a JSON schema. An answer that calls tools ends
//! with `stop`. Errors are a string, in an answer of their own or in a line of a stream.

mod decode;
mod encode;
mod stream;

pub use self::{decode::read_message, encode::write_prompt, stream::StreamReader};
