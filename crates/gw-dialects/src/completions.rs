//! OpenAI's legacy completions: a prompt in, text out, between callers and providers that both speak it.
//!
//! There is no translation into or out of this format: it has no turns, no roles and no tools. What can be shared with chat
//! is: framing and ending of streams, errors ([`crate::openai::classify`], [`crate::openai::error_body`],
//! [`crate::openai::error_event`]) and the final marker ([`crate::openai::done_event`]).

mod codec;
mod facts;
mod stream;
mod write;

use bytes::Bytes;
use gw_types::{AnswerFacts, GatewayError, NormalizedRequest, OutputField, TokenCount};

pub use self::{
    codec::CompletionsCodec,
    facts::read_request,
    stream::StreamDecoder,
    write::{completion_body, completion_events, length_event},
};
use crate::openai::{ChatEdits, content::Part, decode::read_choices, rewrite_chat};

/// What changes in a request on its way to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionsEdits<'a> {
    /// The model as the provider knows it.
    pub model: &'a str,
    /// The output bound to send as `max_tokens`; `None` leaves what the caller wrote.
    pub output_bound: Option<TokenCount>,
    /// Whether to ask for the usage chunk of a stream.
    pub ask_usage: bool,
}

/// Returns the body to send: the caller's own, without a copy, if nothing changes; else one copy with the edits spliced in.
///
/// The request's facts must have been read from its body by [`read_request`].
pub fn rewrite(request: &NormalizedRequest, edits: &CompletionsEdits<'_>) -> Bytes {
    let CompletionsEdits { model, output_bound, ask_usage } = *edits;
    rewrite_chat(request, &ChatEdits { model, output_bound, output_field: OutputField::MaxTokens, ask_usage })
}

/// Reads the facts of a 2xx answer's body.
///
/// # Errors
/// As [`crate::openai::read_answer`]: an error object is classified, anything else without a choice is `MalformedResponse`.
pub fn read_answer(raw: &Bytes) -> Result<AnswerFacts, GatewayError> {
    read_choices(raw, Part::Text)
}
