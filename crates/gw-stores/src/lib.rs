//! Where the records of the gw model gateway are kept.
//!
//! [`SqliteLedger`] keeps them in one file, written by one thread in batches, so that a request pays for a push onto
//! a queue and nothing else; [`MemoryLedger`] keeps the latest few for `store = "none"` and for tests. Both are
//! [`gw_types::Ledger`]s.
//!
//! The crate decides nothing about requests, and it neither seals records nor shares them between machines.
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

mod error;
mod memory;
mod places;
mod sqlite;

pub use self::{
    error::StoreError,
    memory::MemoryLedger,
    sqlite::{SqliteConfig, SqliteLedger},
};
