//! Anthropic's messages, as Anthropic and those who serve its models speak them.
//!
//! Of values, gw changes a closed list and nothing else (invariant I19): the model name, the output bound, and reasoning
//! of other providers, which is taken out of the history. Framing is gw's own.

mod answer;
mod classify;
mod codec;
mod decode;
mod encode;
mod ending;
mod error;
mod events;
mod facts;
mod finish;
mod models;
mod prompt;
mod reply;
mod request;
mod stream;
mod unread;
mod usage;
mod writer;

pub use self::{
    answer::read_message,
    classify::classify,
    codec::{MessagesCodec, completion_body, completion_events},
    decode::{read_answer, read_token_count, token_count_body},
    encode::{MessagesEdits, rewrite_messages},
    ending::StreamEnding,
    error::{error_body, error_event},
    events::StreamReader,
    facts::{read_count_tokens, read_messages},
    models::{model_body, models_body},
    prompt::read_prompt,
    reply::write_message,
    request::write_prompt,
    stream::StreamDecoder,
    writer::StreamWriter,
};
