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

mod edit;
mod json;

/// OpenAI's chat completions: requests, answers, streams and errors.
pub mod openai;
/// What a provider's answer says about trying again.
pub mod retry;
/// Server-sent events, decoded from bytes.
pub mod sse;
