//! Gemini's `generateContent`, as the Gemini API (API key) and Vertex AI (service account) speak it.
//!
//! Bodies are the same at both; paths differ. Gemini has no ids for answers to tools: results are matched by name and
//! order, so gw gives calls ids of its own and puts results back into the order of the calls. What a part's signature
//! says goes back on its part. There is no refusal, no log of who said what, and no terminal event: a stream is complete
//! when its body ends after a finish reason.

mod classify;
mod decode;
mod embed;
mod encode;
mod endpoint;
mod finish;
mod model;
mod schema;
mod stream;
mod tokens;
mod usage;

pub use self::{
    classify::classify,
    decode::read_message,
    embed::{EmbeddingsShape, read_embeddings, write_embeddings},
    encode::write_prompt,
    endpoint::{Endpoint, Method, VertexPlace, gemini_endpoint, vertex_endpoint},
    stream::StreamReader,
    tokens::{read_token_count, write_token_count},
};
