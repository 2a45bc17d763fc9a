//! Whole-gateway tests: the invariants, the traced request, the real program over sockets, reported faults,
//! recorded exchanges of providers.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
mod cases;
mod docs;
mod e2e;
mod embedders;
mod fuzz;
mod invariants;
mod schemas;
mod seeds;
mod sim;
mod support;
mod trace;
mod verified;
mod wire;
