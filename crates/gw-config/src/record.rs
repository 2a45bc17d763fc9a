//! One record of the configuration's ledger, for `gw explain`.

use gw_stores::LedgerFile;
use gw_types::{AccountingRecord, RequestId};

use crate::{Config, Diagnostics, file::Store, parts};

impl Config {
    /// Returns the record with the id. Reads the ledger's file beside a gateway that may be writing to it.
    ///
    /// # Errors
    /// The ledger cannot be read, or the configuration keeps its records nowhere.
    pub fn record(&self, id: &RequestId) -> Result<Option<AccountingRecord>, Diagnostics> {
        let store = &self.file.ledger.store;
        let refuse = |message: String, expected: &str| {
            self.diagnose(vec![parts::fault(store.span, "ledger.store", message, expected)])
        };
        let Store::Sqlite(path) = &store.value else {
            let expected = "records can be read here from a SQLite ledger only";
            return Err(refuse("the records are in no file".to_owned(), expected));
        };
        let path = self.folder.join(path);
        let file = LedgerFile::open(&path).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            refuse(format!("{error}{cause}"), "name the configuration of the gateway that wrote it")
        })?;
        let found =
            file.record(id).map_err(|error| refuse(error.to_string(), "try again once it can be read"))?;
        Ok(found.map(|stored| stored.record))
    }
}
