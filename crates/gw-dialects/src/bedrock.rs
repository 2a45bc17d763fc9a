//! Amazon Bedrock's `Converse` and `ConverseStream`.
//!
//! One format for the models of many makers; what only one maker knows goes into `additionalModelRequestFields`, so the
//! writer looks at the model's id. The kind of an error stands in a header, answers are streamed as AWS event streams
//! ([`crate::event_stream`]), and what a stream has used comes after the reason why it ended. Signing a request is the
//! transport's business.

mod citation;
mod classify;
mod decode;
mod encode;
mod endpoint;
mod finish;
mod model;
mod stream;
mod usage;

pub use self::{
    classify::classify, decode::read_message, encode::write_prompt, endpoint::converse_path,
    stream::StreamReader,
};
