//! Wire formats of model providers and their clients, as pure functions on bytes.
//!
//! Reads of a body only what a decision needs, edits it by byte range, and hands everything else through as it came. The
//! crate has no socket, no clock and no state beyond the stream that a decoder is fed; which deployment is called, and
//! how often, is decided elsewhere.
//!
//! ```
//! use bytes::Bytes;
//! use gw_dialects::openai;
//!
//! let body = Bytes::from_static(br#"{"model":"fast","messages":[{"role":"user","content":"Hi"}],"x":1e400}"#);
//! let facts = openai::read_chat(&body).unwrap();
//! assert_eq!((&*facts.model, facts.messages, facts.text_bytes), ("fast", 1, 2));
//! ```

#![forbid(unsafe_code)]

mod edit;
mod event_reader;
mod failure;
mod json;
mod members;
mod relay;

/// Anthropic's messages: requests, answers, streams and errors.
pub mod anthropic;
/// Amazon Bedrock's `Converse`.
pub mod bedrock;
/// Puts a streamed answer together.
pub mod collect;
/// OpenAI's legacy completions: requests, answers, streams.
pub mod completions;
/// OpenAI's embeddings: requests and answers.
pub mod embeddings;
/// AWS event streams, decoded from bytes and encoded.
pub mod event_stream;
/// Gemini's `generateContent`, at the Gemini API and at Vertex AI.
pub mod gemini;
/// Streams of JSON values: one a line, or the items of one array.
pub mod json_stream;
/// A request's metadata.
pub mod metadata;
/// Requests and answers in neutral parts.
pub mod neutral;
/// Ollama's own chat: requests, answers, streams.
pub mod ollama;
/// OpenAI's chat completions: requests, answers, streams and errors.
pub mod openai;
/// OpenAI's responses: requests, answers, streams.
pub mod responses;
/// What a provider's answer says about trying again.
pub mod retry;
/// Server-sent events, decoded from bytes.
pub mod sse;
/// Translations between wire formats.
pub mod translate;
/// Servers that speak OpenAI's formats with differences of their own.
pub mod vendors;

pub use self::json::Writer as JsonWriter;
