//! The pipeline over mocked adapters in virtual time: order of steps, calls made and not made, what is left behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod attempts;
mod batch;
mod books;
mod cases;
mod credentials;
mod figures;
mod health;
mod hedging;
mod lanes;
mod provider;
mod queue;
mod recovery;
mod refusals;
mod scopes;
mod settlement;
mod shared_limits;
mod sharing;
mod storing;
mod strategies;
mod streams;
mod support;
mod usage;
