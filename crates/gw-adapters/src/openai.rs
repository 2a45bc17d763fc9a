//! OpenAI chat over HTTP: OpenAI itself, Azure, and the compatible servers, as one adapter and small differences.

mod adapter;
mod answer;
mod differences;
mod stream;

pub(crate) use self::{
    adapter::{ChatAdapter, ChatAdapterParts, prepare_chat},
    differences::{chat_path, output_field},
};
