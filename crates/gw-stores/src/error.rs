//! Why a store cannot be opened.

use crate::sql::SqlError;

/// Says why a ledger cannot be opened. Holds paths and numbers, nothing of a record.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The queue or the batch of the configuration is out of range.
    #[error("the ledger's {field} must be 1 to {max}, not {found}")]
    OutOfRange {
        /// The field of the configuration.
        field: &'static str,
        /// What it holds.
        found: usize,
        /// The most it may hold.
        max: usize,
    },
    /// Another process writes to the ledger.
    #[error("the ledger `{ledger}` is in use by another process")]
    InUse {
        /// The ledger: its file, or the address of its database.
        ledger: String,
    },
    /// The ledger was written by a newer version of gw.
    #[error("the ledger `{ledger}` has version {found}, and this gw knows versions up to {known}")]
    Newer {
        /// The ledger: its file, or the address of its database.
        ledger: String,
        /// The version of the file.
        found: i64,
        /// The newest version that this program can read.
        known: i64,
    },
    /// The ledger was written by an older version of gw; opening it for writing brings it up to date.
    #[error(
        "the ledger `{ledger}` has version {found}, and only version {known} can be read; start gw with it once"
    )]
    Older {
        /// The ledger: its file, or the address of its database.
        ledger: String,
        /// The version of the file.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// The file is a database of something else.
    #[error("`{ledger}` is a database, but not a ledger of gw")]
    NotALedger {
        /// The ledger: its file, or the address of its database.
        ledger: String,
    },
    /// A table was made by other statements than this version of gw would make it with.
    #[error("the tables of the ledger `{ledger}` were not made by migration {number} of this gw")]
    Migration {
        /// The ledger: its file, or the address of its database.
        ledger: String,
        /// The migration that differs.
        number: i64,
    },
    /// The ledger holds a row that is no record.
    #[error("the ledger `{ledger}` holds a row that gw has not written{}", row(*seq))]
    Unreadable {
        /// The ledger: its file, or the address of its database.
        ledger: String,
        /// The record's number, where it is one.
        seq: Option<u64>,
    },
    /// The file, or the lock file beside it, cannot be opened or made.
    #[error("cannot open the ledger `{ledger}`")]
    Open {
        /// The ledger: its file, or the address of its database.
        ledger: String,
        /// What the system or the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Says that a ledger cannot be opened or used, and why.
    pub(crate) fn opening(ledger: impl Into<String>, error: impl Into<SqlError>) -> Self {
        Self::Open { ledger: ledger.into(), source: Box::new(error.into()) }
    }
}

fn row(seq: Option<u64>) -> String {
    seq.map_or(String::new(), |seq| format!(": record {seq}"))
}
