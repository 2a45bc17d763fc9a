//! Where the records of the gw model gateway are kept.
//!
//! [`SqlLedger`] keeps them in a SQLite file or a PostgreSQL database, written by one thread in batches, and seals them in a hash chain, signed from
//! time to time by a [`CheckpointKey`]; [`MemoryLedger`] keeps the latest few for `store = "none"` and for tests. Both
//! are [`gw_types::Ledger`]s. [`RedisLimits`] keeps the limits that replicas share. [`LedgerFile`] is the auditor's side: it verifies, exports and reports.
//!
//! The crate decides nothing about requests.
//!
//! ```
//! use gw_stores::MemoryLedger;
//! use gw_types::{Ledger, LedgerPlace};
//!
//! let ledger = MemoryLedger::new(1_000);
//! let place = LedgerPlace::take(ledger.clone()).unwrap();
//! drop(place); // Not used: given back.
//! assert!(ledger.take_place());
//! ```

mod checkpoint;
mod encode;
mod error;
mod file;
mod hashing;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod home;
mod key_book;
mod ledger;
mod memory;
mod places;
#[cfg(feature = "postgres")]
mod postgres;
mod redis;
mod sql;
mod sqlite;
mod store;
mod sums;

#[cfg(feature = "postgres")]
pub use self::postgres::{NotPostgres, PostgresTls, PostgresUrl, TlsFuture, TlsIo};
pub use self::{
    checkpoint::{Checkpoint, CheckpointKey, CheckpointSigner, NotAKey},
    error::StoreError,
    file::{
        BrokenReceipt, ChainFault, Expected, ExportError, ExportFormat, GroupBy, LedgerFile, Period,
        RecordReceipt, ReportRow, RetainedNodes, Verified,
    },
    key_book::{KeyBook, KeyRow},
    ledger::{Durability, Retained, SqlConfig, SqlLedger},
    memory::MemoryLedger,
    redis::{NotRedis, RedisLimits},
    store::LedgerStore,
    sums::Sums,
};
