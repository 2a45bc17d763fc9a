//! The real program over real sockets.

mod admin;
mod answers;
mod audit;
mod cache;
mod cancel;
mod cluster;
mod commands;
mod dialects;
mod drain;
mod failures;
mod generate;
mod idempotency;
mod keys;
mod ledger;
mod limits;
mod network;
mod operations;
mod postgres;
mod reload;
mod replay;
mod routing;
mod schema;
mod shared;
mod tenants;
mod translated;
mod without_a_file;
