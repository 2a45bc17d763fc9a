//! The ledger of a configuration as an auditor uses it: read beside a gateway that may be writing to it.

use gw_stores::{CheckpointKey, CheckpointSigner, LedgerFile, LedgerStore, RetainedNodes, StoreError};
use gw_types::{AccountingRecord, RequestId, Secret, UtcTime};

use crate::{Config, Diagnostics, NoEntropy, keys, ledger_store, parts};

/// Where a ledger is, and the key that signs its checkpoints where that is known.
#[derive(Clone, Debug)]
pub struct LedgerSource {
    store: LedgerStore,
    key: Option<CheckpointKey>,
}

impl LedgerSource {
    /// Returns the ledger of a store as `[ledger]` names it: `sqlite:PATH` or `postgres://...`, here also with a password.
    ///
    /// # Errors
    /// What is wrong with the text, as `what is wrong; what to write`.
    pub fn of_store(store: &str) -> Result<Self, String> {
        ledger_store::store_of(store).map(|store| Self { store, key: None })
    }

    /// Returns where the ledger is: a path, or an address without its password.
    pub fn name(&self) -> String {
        self.store.to_string()
    }

    /// Opens the ledger to read it.
    ///
    /// # Errors
    /// [`StoreError`]: not openable, not a ledger, or of another version than this gw writes.
    pub fn open(&self) -> Result<LedgerFile, StoreError> {
        LedgerFile::open(&self.store)
    }

    /// Deletes the records that started before an instant; see [`LedgerFile::retain`].
    ///
    /// # Errors
    /// [`StoreError`]: in use, not openable or not writable.
    pub fn retain(&self, before: UtcTime) -> Result<RetainedNodes, StoreError> {
        LedgerFile::retain(&self.store, before, self.key.as_ref())
    }

    /// Returns who signs the checkpoints, as the configuration says.
    pub fn signer(&self) -> Option<CheckpointSigner> {
        self.key.as_ref().map(CheckpointKey::signer)
    }
}

/// A checkpoint key that was just made. The secret is shown once and kept nowhere.
#[derive(Clone, Debug)]
pub struct NewCheckpointKey {
    /// The secret half, 64 hexadecimal digits: what `ledger.checkpoint_key` names the place of.
    pub secret: Secret,
    /// The public half, for whoever verifies.
    pub signer: CheckpointSigner,
}

impl NewCheckpointKey {
    /// Makes a key from the operating system's entropy.
    ///
    /// # Errors
    /// [`NoEntropy`], if the operating system has none.
    pub fn generate() -> Result<Self, NoEntropy> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| NoEntropy)?;
        let secret = Secret::new(&keys::hex(&seed)).ok_or(NoEntropy)?;
        let key = CheckpointKey::from_secret(secret.expose()).map_err(|_| NoEntropy)?;
        Ok(Self { secret, signer: key.signer() })
    }
}

impl Config {
    /// Returns where the configuration keeps its records, for an auditor.
    ///
    /// # Errors
    /// The records are kept in memory.
    pub fn ledger_source(&self) -> Result<LedgerSource, Diagnostics> {
        let store =
            self.ledger_store().map_err(|(message, expected)| self.refuse_store(message, expected))?;
        let Some(store) = store else {
            let expected = "records can be read here from a SQLite or PostgreSQL ledger only";
            return Err(self.refuse_store("the records are in memory".to_owned(), expected));
        };
        Ok(LedgerSource { store, key: self.checkpoint_key() })
    }

    /// Returns the record with the id. Reads the ledger beside a gateway that may be writing to it.
    ///
    /// # Errors
    /// The ledger cannot be read, or the configuration keeps its records nowhere.
    pub fn record(&self, id: &RequestId) -> Result<Option<AccountingRecord>, Diagnostics> {
        let file = self.ledger_source()?.open().map_err(|error| {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            self.refuse_store(
                format!("{error}{cause}"),
                "name the configuration of the gateway that wrote it",
            )
        })?;
        let found = file
            .record(id)
            .map_err(|error| self.refuse_store(error.to_string(), "try again once it can be read"))?;
        Ok(found.map(|stored| stored.record))
    }

    /// Returns the key that signs checkpoints.
    pub(crate) fn checkpoint_key(&self) -> Option<CheckpointKey> {
        // The text was found to be a key when it was read.
        let found = self.file.ledger.checkpoint_key.as_ref()?;
        CheckpointKey::from_secret(found.value.value.expose()).ok()
    }

    fn refuse_store(&self, message: String, expected: &str) -> Diagnostics {
        let span = self.file.ledger.store.span;
        self.diagnose(vec![parts::fault(span, "ledger.store", message, expected)])
    }
}

#[cfg(test)]
mod tests {
    use gw_stores::CheckpointKey;

    use super::{LedgerSource, NewCheckpointKey};

    #[test]
    fn a_new_checkpoint_key_is_one_and_prints_as_redacted() {
        let new = NewCheckpointKey::generate().unwrap();
        let key = CheckpointKey::from_secret(new.secret.expose()).unwrap();
        assert_eq!(key.signer(), new.signer);
        assert!(!format!("{new:?}").contains(new.secret.expose()));
    }

    #[test]
    fn a_store_is_named_as_in_the_configuration() {
        assert_eq!(LedgerSource::of_store("sqlite:a/gw.db").unwrap().name(), "a/gw.db");
        for wrong in ["", "gw.db", "sqlite:", "none"] {
            assert!(LedgerSource::of_store(wrong).unwrap_err().contains("write `sqlite:PATH`"), "{wrong}");
        }
    }
}
