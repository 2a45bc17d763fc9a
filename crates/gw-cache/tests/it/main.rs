//! The caches from outside: invariants, reported faults, and sequences against a model.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod evaluation;
mod invalidation;
mod invariants;
mod props;
mod schema;
mod semantic;
mod support;
