//! A ledger in one SQLite file.

mod lock;
mod migrations;
mod schema;

pub(crate) use self::{
    lock::{FileLock, canonical},
    migrations::{VERSION, check as check_migrations},
    schema::{open_to_change, open_to_read, open_to_write, version},
};
