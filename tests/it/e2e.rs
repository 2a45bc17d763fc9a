//! The real program over real sockets.

mod admin;
mod answers;
mod audit;
mod cache;
mod cancel;
mod commands;
mod dialects;
mod drain;
mod failures;
mod ledger;
mod limits;
mod network;
mod reload;
mod replay;
mod routing;
mod shared;
mod tenants;
mod without_a_file;
