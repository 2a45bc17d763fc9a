//! Requests and answers in neutral parts: what every translation goes through.
//!
//! A wire format reads its bytes into these types and writes them out of them, so that n formats need n readers and n
//! writers and not n times n translations. JSON that gw does not look into (schemas, unknown fields) stays as it was
//! written. Everything that holds a caller's or a model's words prints as redacted.
//!
//! Turns alternate: neighbours of one role are merged, and tool results stand in the user turn that answers the calls.
//! Opaque state of a provider (signatures, encrypted reasoning, server tools) carries its `Origin` and is written back
//! to that origin only.

mod answer_loss;
mod block;
mod event;
mod harmless;
mod json;
mod loss;
mod message;
mod place;
mod prompt;
mod setting;
mod signature;
mod tier;
mod unread;

pub use self::{
    answer_loss::AnswerLoss,
    block::{
        Audio, Block, CacheMark, Citation, Content, Document, DocumentSource, Image, MediaSource, Opaque,
        Text, Thinking, ToolResult, ToolUse,
    },
    event::{At, BlockKind, Event},
    json::RawJson,
    loss::LossReport,
    message::{AnswerStamp, Message, MessageChoice, derived_finish},
    place::Place,
    prompt::{
        ANSWER_TOOL, Effort, Format, Instruction, InstructionRole, Prompt, Reasoning, Role, Sampling,
        SchemaFormat, Summary, Tool, ToolChoice, ToolKind, Turn, Unknown, WriteOptions,
    },
    setting::Setting,
    signature::{Origin, Signature},
};
pub(crate) use self::{
    signature::TAG,
    tier::{TierReport, tier_for},
    unread::UnreadFields,
};

/// Prints types that hold a caller's or a model's words as `Name([redacted])`.
macro_rules! redacted {
    ($($name:ident),+ $(,)?) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "([redacted])"))
            }
        }
    )+};
}

use redacted;
