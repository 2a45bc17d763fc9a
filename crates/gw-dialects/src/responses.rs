//! OpenAI's responses, as OpenAI, Azure, xAI and DeepSeek speak it.
//!
//! Between callers and providers that both speak it a request goes through with model name and output bound changed, an
//! answer as it came, and of a stream only the framing is gw's own. To and from other formats everything goes through
//! [`crate::neutral`]. gw keeps no conversations: `ProviderState` says what a request wants a provider to know.
//!
//! Errors before the first event are those of chat: [`crate::openai::classify`] and [`crate::openai::error_body`]. A stream
//! that has begun is ended by `StreamEnding`, because its last event repeats the answer.

mod answer;
pub(crate) mod codec;
mod decode;
mod encode;
mod ending;
mod events;
mod facts;
mod output;
mod prompt;
pub(crate) mod reply;
mod request;
mod stream;
mod writer;

pub(crate) use self::answer::as_chat;
pub use self::{
    answer::read_message,
    codec::{ResponsesCodec, completion_body, completion_events},
    decode::read_answer,
    encode::{ResponsesEdits, rewrite},
    ending::StreamEnding,
    events::StreamReader,
    facts::{ProviderState, ResponsesRequest, read_request},
    prompt::read_prompt,
    reply::write_message,
    request::write_prompt,
    stream::StreamDecoder,
    writer::StreamWriter,
};
