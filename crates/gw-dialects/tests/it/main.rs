//! Tests of the crate's public face: properties, and recorded exchanges.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod altered;
mod answer_losses;
mod bedrock;
mod completions;
mod embeddings;
mod event_stream;
mod fixtures;
mod gemini;
mod json_stream;
mod mutated;
mod odd;
mod order;
mod pairs;
mod props;
mod recorded;
mod requests;
mod responses;
mod responses_neutral;
mod responses_props;
mod round_trips;
mod tiers;
mod translated;
mod vendors;
mod vendors_chat;
