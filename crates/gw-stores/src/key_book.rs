//! The keys of callers that are kept beside the records, so that they change while a gateway runs.
//!
//! A book holds what would stand in the configuration: names, scopes and hashes. It holds no key.

use std::path::Path;

use gw_types::{KeyName, TenantId, UtcTime};
use rusqlite::{Connection, params};

use crate::{
    StoreError,
    sqlite::{FileLock, canonical, open_to_change, open_to_read, opening},
};

/// Keys that one book holds at most: all of them are in memory.
const KEYS_MAX: usize = 1 << 20;

/// One key as the book keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The tenant.
    pub tenant: TenantId,
    /// The key's name, one of its kind within the tenant.
    pub name: KeyName,
    /// What would stand in the tenant's list `keys` in `gw.toml`: an inline table.
    pub entry: String,
    /// When it was made.
    pub created: UtcTime,
    /// When it was revoked; `None`: it was not.
    pub revoked: Option<UtcTime>,
}

/// The keys in a ledger's file.
///
/// May be changed while a gateway has the file open: a change is one short transaction, for which the gateway's writer
/// waits.
#[derive(Debug)]
pub struct KeyBook {
    connection: Connection,
    path: std::path::PathBuf,
    /// Held where no gateway has the file open, so that none opens it half-way.
    _lock: Option<FileLock>,
}

impl KeyBook {
    /// Opens the book to change it; makes the ledger if there is none.
    ///
    /// # Errors
    /// [`StoreError`]: not openable, not a ledger, of a newer version, or of an older one while a gateway has it open.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = canonical(path)?;
        let lock = match FileLock::take(&path) {
            Ok(lock) => Some(lock),
            Err(StoreError::InUse { .. }) => None,
            Err(error) => return Err(error),
        };
        let connection = open_to_change(&path, lock.is_some())?;
        Ok(Self { connection, path, _lock: lock })
    }

    /// Returns every key that was not revoked, sorted by tenant and name.
    ///
    /// # Errors
    /// [`StoreError`]: the file cannot be read, or holds a row that is no key.
    pub fn read(path: &Path) -> Result<Vec<KeyRow>, StoreError> {
        let connection = open_to_read(path)?;
        let rows = all(path, &connection)?;
        Ok(rows.into_iter().filter(|row| row.revoked.is_none()).collect())
    }

    /// Returns a number that every change raises.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be read.
    pub fn changes(path: &Path) -> Result<i64, StoreError> {
        let connection = open_to_read(path)?;
        let changes = connection.query_row("SELECT changes FROM key_changes", [], |row| row.get(0));
        changes.map_err(|error| opening(path, error))
    }

    /// Returns every key, the revoked ones too, sorted by tenant and name.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn rows(&self) -> Result<Vec<KeyRow>, StoreError> {
        all(&self.path, &self.connection)
    }

    /// Adds a key; returns whether there was room for its name. A revoked key keeps its name: what it did stands in the
    /// records under it.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be written.
    pub fn add(&mut self, row: &KeyRow) -> Result<bool, StoreError> {
        self.change(|connection| {
            let count: i64 = connection.query_row("SELECT count(*) FROM keys", [], |row| row.get(0))?;
            if usize::try_from(count).unwrap_or(usize::MAX) >= KEYS_MAX {
                return Ok(false);
            }
            let insert = "INSERT OR IGNORE INTO keys (tenant, name, entry, created) VALUES (?1, ?2, ?3, ?4)";
            let KeyRow { tenant, name, entry, created, .. } = row;
            let inserted = connection
                .execute(insert, params![tenant.as_str(), name.as_str(), entry, created.micros()])?;
            Ok(inserted == 1)
        })
    }

    /// Replaces the entry of a key that was not revoked, if it still is what it was; returns whether it was.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be written.
    pub fn replace(&mut self, row: &KeyRow, entry: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            let update = "UPDATE keys SET entry = ?4 WHERE tenant = ?1 AND name = ?2 AND entry = ?3 AND revoked IS NULL";
            let changed = connection
                .execute(update, params![row.tenant.as_str(), row.name.as_str(), row.entry, entry])?;
            Ok(changed == 1)
        })
    }

    /// Revokes a key; returns whether there was one that was not revoked.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be written.
    pub fn revoke(&mut self, tenant: &TenantId, name: &KeyName, at: UtcTime) -> Result<bool, StoreError> {
        self.change(|connection| {
            let update = "UPDATE keys SET revoked = ?3 WHERE tenant = ?1 AND name = ?2 AND revoked IS NULL";
            Ok(connection.execute(update, params![tenant.as_str(), name.as_str(), at.micros()])? == 1)
        })
    }

    fn change(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<bool>,
    ) -> Result<bool, StoreError> {
        let failed = |error| opening(&self.path, error);
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(failed)?;
        let changed = change(&transaction).map_err(failed)?;
        if changed {
            transaction.execute("UPDATE key_changes SET changes = changes + 1", []).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(changed)
    }
}

fn all(path: &Path, connection: &Connection) -> Result<Vec<KeyRow>, StoreError> {
    let failed = |error| opening(path, error);
    let sql = "SELECT tenant, name, entry, created, revoked FROM keys ORDER BY tenant, name";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |at| row.get::<_, String>(at).map_err(failed);
        let unreadable = || StoreError::Unreadable { path: path.to_owned(), seq: None };
        let instant = |micros: i64| UtcTime::from_micros(micros);
        let revoked: Option<i64> = row.get(4).map_err(failed)?;
        found.push(KeyRow {
            tenant: TenantId::new(&text(0)?).map_err(|_| unreadable())?,
            name: KeyName::new(&text(1)?).map_err(|_| unreadable())?,
            entry: text(2)?,
            created: instant(row.get(3).map_err(failed)?),
            revoked: revoked.map(instant),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use gw_types::{KeyName, TenantId, UtcTime};

    use super::{KeyBook, KeyRow};
    use crate::{SqliteConfig, SqliteLedger};

    fn row(name: &str, entry: &str) -> KeyRow {
        KeyRow {
            tenant: TenantId::new("a").unwrap(),
            name: KeyName::new(name).unwrap(),
            entry: entry.to_owned(),
            created: UtcTime::from_micros(1),
            revoked: None,
        }
    }

    #[test]
    fn keys_change_while_a_gateway_has_the_ledger_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gw.db");
        // Made without a gateway, then used beside one.
        assert!(KeyBook::open(&path).unwrap().add(&row("one", "{}")).unwrap());
        let ledger = SqliteLedger::open(&path, SqliteConfig::default()).unwrap();
        let before = KeyBook::changes(&path).unwrap();
        let mut book = KeyBook::open(&path).unwrap();
        assert!(book.add(&row("two", "{}")).unwrap());
        assert!(!book.add(&row("two", "{ }")).unwrap(), "a name is taken once");
        assert!(book.replace(&row("two", "{}"), "{ x = 1 }").unwrap());
        assert!(!book.replace(&row("two", "{}"), "{ x = 2 }").unwrap(), "it is another one meanwhile");
        assert!(book.revoke(&row("one", "").tenant, &row("one", "").name, UtcTime::from_micros(9)).unwrap());
        assert!(!book.revoke(&row("one", "").tenant, &row("one", "").name, UtcTime::from_micros(9)).unwrap());
        assert_eq!(KeyBook::read(&path).unwrap(), [row("two", "{ x = 1 }")]);
        assert_eq!(book.rows().unwrap()[0].revoked, Some(UtcTime::from_micros(9)));
        assert_eq!(KeyBook::changes(&path).unwrap(), before + 3);
        drop(ledger);
    }
}
