//! The crate's behaviour over real sockets on loopback, against small scripted servers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod connections;
mod credentials;
mod failures;
mod fetch;
mod frames;
mod goaway;
mod http2;
mod network;
mod providers;
mod proxies;
mod recorded;
mod requests;
mod scripted;
mod server;
mod setup;
mod streams;
mod tls;
mod translated;
