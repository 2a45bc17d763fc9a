//! The server over loopback sockets, in front of the whole gateway. Time is a manual clock: no test waits for real.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod admin;
mod chat;
mod dialects;
mod drain;
mod faults;
mod http2;
mod intake;
mod origins;
mod security;
mod support;
mod timeouts;
