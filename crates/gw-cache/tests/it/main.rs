//! The caches from outside: invariants, reported faults, and sequences against a model.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod invariants;
mod props;
mod semantic;
mod support;
