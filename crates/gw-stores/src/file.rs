//! A ledger as an auditor sees it: read only, while gateways write to it or while none does.

mod export;
mod receipt;
mod report;
mod verify;

use gw_types::{GatewayError, RequestId, StoredRecord, UtcTime};

pub use self::{
    export::{ExportError, ExportFormat},
    receipt::{BrokenReceipt, RecordReceipt},
    report::{GroupBy, Period, ReportRow},
    verify::{ChainFault, Expected, Verified},
};
use crate::{
    CheckpointKey, LedgerStore, Retained, StoreError,
    ledger::{self, Unreadable},
    sql::{Db, SqlError},
};

/// Reads a ledger: verifies, exports and reports.
///
/// A SQLite ledger is one chain, node 0. A PostgreSQL ledger has a chain for each of its nodes, from 1 on: as many as
/// there ever were gateways at the same time.
///
/// Records that a process that died has left in a journal are not seen; the next gateway that opens the file stores them.
#[derive(Debug)]
pub struct LedgerFile {
    db: Db,
    name: String,
}

/// What was deleted by age from the chains of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetainedNodes {
    /// The nodes of which something was deleted, or would be.
    pub nodes: Vec<(i64, Retained)>,
    /// The nodes that were left alone because a gateway holds them.
    pub in_use: Vec<i64>,
}

impl LedgerFile {
    /// Opens a ledger that is there.
    ///
    /// # Errors
    /// [`StoreError`]: not openable, not a ledger, or of another version than this gw writes.
    pub fn open(store: impl Into<LedgerStore>) -> Result<Self, StoreError> {
        let store = store.into();
        Ok(Self { db: store.open_to_audit()?, name: store.name() })
    }

    /// Returns the numbers of the chains, in order.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the ledger cannot be read.
    pub fn nodes(&self) -> Result<Vec<i64>, StoreError> {
        self.db.nodes().map_err(|error| self.failed(error))
    }

    /// Deletes the records that started before an instant, from every chain that no process has open; see
    /// [`crate::SqlLedger::retain`]. Signs the new ends where there is a key.
    ///
    /// # Errors
    /// [`StoreError`]: a file that is in use, not openable or not writable.
    pub fn retain(
        store: impl Into<LedgerStore>,
        before: UtcTime,
        key: Option<&CheckpointKey>,
    ) -> Result<RetainedNodes, StoreError> {
        let store = store.into();
        let is_one = matches!(store, LedgerStore::Sqlite(_));
        let nodes = if is_one { vec![0] } else { Self::open(&store)?.nodes()? };
        let mut retained = RetainedNodes::default();
        for node in nodes {
            let writable = match store.open_node_to_write(node) {
                Err(StoreError::InUse { .. }) if !is_one => {
                    retained.in_use.push(node);
                    continue;
                }
                other => other?,
            };
            let deleted = ledger::retain(&store.name(), writable, before, key.cloned())?;
            retained.nodes.extend(deleted.map(|deleted| (node, deleted)));
        }
        Ok(retained)
    }

    /// Returns what [`Self::retain`] would delete, and deletes nothing.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the ledger cannot be read.
    pub fn retainable(&self, before: UtcTime) -> Result<RetainedNodes, StoreError> {
        let mut retained = RetainedNodes::default();
        for node in self.nodes()? {
            let old = self.db.at_node(node, |db| ledger::retainable(db, before));
            let old = old.map_err(|error: SqlError| self.failed(error))?;
            retained.nodes.extend(old.map(|old| (node, old)));
        }
        Ok(retained)
    }

    /// Returns the proof that a record stands in a chain, up to the next signed checkpoint. `None`: there is no such
    /// record, or no signed checkpoint after it yet.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the ledger cannot be read.
    pub fn receipt(&self, id: &RequestId) -> Result<Option<RecordReceipt>, StoreError> {
        let found = ledger::anywhere(&self.db, |_, db| Ok(RecordReceipt::find(db, id)?));
        found.map_err(|error| self.unreadable(error))
    }

    /// Returns the record with the id.
    ///
    /// # Errors
    /// `Overloaded` if the ledger cannot be read now, `Internal` if the row cannot.
    pub fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        Ok(ledger::anywhere(&self.db, |_, db| ledger::record(db, id))?)
    }

    fn failed(&self, error: SqlError) -> StoreError {
        StoreError::opening(&*self.name, error)
    }

    fn unreadable(&self, error: Unreadable) -> StoreError {
        match error {
            Unreadable::Now => {
                StoreError::Open { ledger: self.name.clone(), source: "the ledger cannot be read now".into() }
            }
            Unreadable::Row => StoreError::Unreadable { ledger: self.name.clone(), seq: None },
        }
    }
}
