//! The real program over real sockets.

mod admin;
mod answers;
mod cancel;
mod commands;
mod drain;
mod failures;
mod ledger;
mod network;
mod tenants;
mod without_a_file;
