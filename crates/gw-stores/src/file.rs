//! A ledger's file as an auditor sees it: read only, while a gateway writes to it or while none does.

mod export;
mod receipt;
mod report;
mod verify;

use std::path::{Path, PathBuf};

use gw_types::{GatewayError, RequestId, StoredRecord, UtcTime};
use rusqlite::Connection;

pub use self::{
    export::{ExportError, ExportFormat},
    receipt::{BrokenReceipt, RecordReceipt},
    report::{GroupBy, Period, ReportRow},
    verify::{ChainFault, Expected, Verified},
};
use crate::{
    CheckpointKey, Retained, StoreError,
    sqlite::{self, VERSION, check_migrations, open_to_read, opening, version},
};

/// Reads a ledger's file: verifies, exports and reports.
///
/// Records that a process that died has left in the journal are not seen; the next gateway that opens the file stores
/// them.
#[derive(Debug)]
pub struct LedgerFile {
    connection: Connection,
    path: PathBuf,
}

impl LedgerFile {
    /// Opens a file that is there.
    ///
    /// # Errors
    /// [`StoreError`]: not openable, not a ledger, or of another version than this gw writes.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open_to_read(path)?;
        let found = version(path, &connection)?;
        if found != VERSION {
            return Err(StoreError::Older { path: path.to_owned(), found, known: VERSION });
        }
        check_migrations(path, &connection)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Deletes the records that started before an instant, from a ledger that no process has open; see
    /// [`crate::SqliteLedger::retain`]. Signs the new end where there is a key. Returns `None` where there was nothing to
    /// delete.
    ///
    /// # Errors
    /// [`StoreError`]: in use, not openable or not writable.
    pub fn retain(
        path: &Path,
        before: UtcTime,
        key: Option<CheckpointKey>,
    ) -> Result<Option<Retained>, StoreError> {
        sqlite::retain(path, before, key)
    }

    /// Returns what [`Self::retain`] would delete, and deletes nothing.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be read.
    pub fn retainable(&self, before: UtcTime) -> Result<Option<Retained>, StoreError> {
        sqlite::retainable(&self.connection, before).map_err(|error| self.failed(error))
    }

    /// Returns the proof that a record stands in the chain, up to the next signed checkpoint. `None`: there is no such
    /// record, or no signed checkpoint after it yet.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be read.
    pub fn receipt(&self, id: &RequestId) -> Result<Option<RecordReceipt>, StoreError> {
        RecordReceipt::find(&self.connection, id).map_err(|error| self.failed(error))
    }

    /// Returns the record with the id.
    ///
    /// # Errors
    /// `Overloaded` if the file cannot be read now, `Internal` if the row cannot.
    pub fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        Ok(sqlite::record(&self.connection, id)?)
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        opening(&self.path, error)
    }
}
