//! OpenAI's chat completions, as OpenAI, Azure and the many compatible servers speak it.
//!
//! Of values, gw changes a closed list and nothing else (invariant I19): the model name, the output bound,
//! `include_usage` and the usage chunk that comes of it, and in streams these repairs of malformed chunks: `"error": null`
//! is taken out, chunks without `choices` are dropped, `"choices": null` beside usage becomes `[]`, and the indexes, ids
//! and names of tool-call fragments are put right. Framing is gw's own.

mod chunk;
mod classify;
mod codec;
mod completion;
mod content;
mod decode;
mod encode;
mod error;
mod facts;
mod finish;
mod messages;
mod models;
mod question;
mod refusal;
mod repair;
mod said;
mod stream;
mod template;
mod usage;
mod wire;

pub use self::{
    classify::{ErrorHead, classify},
    codec::ChatCodec,
    completion::{AnswerStamp, completion_body, completion_events, done_event, length_event},
    decode::read_answer,
    encode::{ChatEdits, rewrite_chat},
    error::{error_body, error_event},
    facts::read_chat,
    models::{model_body, models_body},
    stream::{StreamDecoder, StreamOptions},
};
