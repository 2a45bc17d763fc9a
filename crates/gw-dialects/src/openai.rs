//! OpenAI's chat completions, as OpenAI, Azure and the many compatible servers speak it.
//!
//! Of values, gw changes a closed list and nothing else (invariant I19): the model name, the output bound,
//! `include_usage` and the usage chunk that comes of it, and in streams these repairs of malformed chunks: `"error": null`
//! is taken out, chunks without `choices` are dropped, `"choices": null` beside usage becomes `[]`, and the indexes, ids
//! and names of tool-call fragments are put right. Framing is gw's own.

pub(crate) mod answer;
mod chunk;
pub(crate) mod classify;
pub(crate) mod codec;
pub(crate) mod completion;
pub(crate) mod content;
pub(crate) mod decode;
pub(crate) mod encode;
mod error;
mod events;
pub(crate) mod facts;
pub(crate) mod fields;
pub(crate) mod finish;
mod messages;
mod models;
pub(crate) mod prompt;
pub(crate) mod question;
pub(crate) mod refusal;
mod repair;
mod reply;
pub(crate) mod request;
mod said;
mod stream;
mod template;
pub(crate) mod thoughts;
mod unread;
pub(crate) mod usage;
pub(crate) mod wire;
mod writer;

pub use crate::neutral::AnswerStamp;

pub use self::{
    answer::read_message,
    classify::{ErrorHead, classify},
    codec::ChatCodec,
    completion::{completion_body, completion_events, done_event, length_event},
    decode::read_answer,
    encode::{ChatEdits, rewrite_chat},
    error::{error_body, error_event},
    events::StreamReader,
    facts::read_chat,
    models::{model_body, models_body},
    prompt::read_prompt,
    reply::write_message,
    request::write_prompt,
    stream::{StreamDecoder, StreamOptions},
    writer::StreamWriter,
};
