//! OpenAI's embeddings, as OpenAI, Azure and the compatible servers speak it.
//!
//! A request goes through with its model name changed, an answer as it came. The one exception: a provider that only
//! gives floats is asked for floats, and its vectors are written as base64 where the caller asked for that, because the
//! official clients ask for base64 by default. Errors are those of chat: [`crate::openai::classify`] and
//! [`crate::openai::error_body`].

mod convert;
mod decode;
mod encode;
mod facts;

pub(crate) use self::facts::Inputs;
pub use self::{
    convert::in_encoding,
    decode::{EmbeddingsAnswer, read_answer},
    encode::{EmbeddingsEdits, rewrite},
    facts::{Encoding, read_request, wanted_encoding},
};
