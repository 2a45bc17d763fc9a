//! A ledger in a PostgreSQL database, which several gateways may share.
//!
//! The tables stand in the schema `gw`, each row with the number of its *node*. A node is one chain with one writer: a
//! gateway takes the first that nobody holds, or makes a new one, and holds it by an advisory lock that ends with its
//! connection. The schema `gw_node` shows one node's rows, those of the session's `gw.node`, as the tables of a SQLite
//! ledger, so that the same statements run on both.

mod client;
mod migrations;
mod node;
pub(crate) mod numeric;
mod tls;
mod trouble;
mod url;
mod value;

pub(crate) use self::{
    client::Client,
    migrations::{VERSION, check, run, version},
    node::{Node, nodes},
    trouble::Trouble,
    value::RawBytes,
};
pub use self::{
    tls::{PostgresTls, TlsFuture, TlsIo},
    url::{NotPostgres, PostgresUrl},
};
