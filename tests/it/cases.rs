//! Faults that users of such gateways reported, each as a test of its name.

mod attempts;
mod caching;
mod cost;
mod intake;
mod limits;
mod observability;
mod resources;
mod security;
mod streaming;
mod usage;
