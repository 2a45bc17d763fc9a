//! HTTP ingress and administration of the gw model gateway.
//!
//! [`Server`] takes requests on two listeners. The data plane speaks the clients' wire format: who asks is settled before
//! a byte of the body is read, every bound and every time of the intake holds, and each answer carries its evidence. The
//! admin plane shows records, limits, deployments and [`Metrics`]. A shutdown drains.
//!
//! What a request may do, where it goes and what it costs is decided below, in `gw-exec`; what bytes mean is read in
//! `gw-dialects`. The crate has no configuration of its own and opens no connection to a provider.
//!
//! ```no_run
//! use std::sync::Arc;
//! use gw_server::{Listeners, Server, ServerParts};
//!
//! async fn serve(parts: ServerParts, stop: impl Future<Output = ()>) -> std::io::Result<()> {
//!     let listeners = Listeners::bind(&parts.settings).await?;
//!     Server::new(parts).run(listeners, stop).await;
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]

mod addresses;
mod admin;
mod answer;
mod app;
mod body;
mod client_io;
mod connection;
mod context;
mod cors;
mod credentials;
mod data;
mod events;
mod evidence;
mod gate;
mod lifecycle;
mod line;
mod log_line;
mod metrics;
mod paths;
mod refusal;
mod reloads;
mod retry;
mod self_wakes;
mod server;
mod service;
mod socket;
mod stamp;
mod stream_task;
mod telemetry;
mod timer;
mod tokens;
mod wakes;
mod wire;

pub use self::{
    metrics::{Metrics, MetricsLedger},
    reloads::Reloads,
    server::{Listeners, Server, ServerParts},
    telemetry::{Telemetry, Telling},
    tokens::Tokens,
};
