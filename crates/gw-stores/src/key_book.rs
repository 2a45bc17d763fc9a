//! The keys of callers that are kept beside the records, so that they change while a gateway runs.
//!
//! A book holds what would stand in the configuration: names, scopes and hashes. It holds no key.

use gw_types::{KeyName, TenantId, UtcTime};

use crate::{
    LedgerStore, StoreError,
    sql::{Db, Row, SqlError, Value},
    sqlite::FileLock,
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

/// The keys in a ledger's database.
///
/// May be changed while a gateway has it open: a change is one short transaction, for which the gateway's writer waits.
#[derive(Debug)]
pub struct KeyBook {
    db: Db,
    name: String,
    /// Held where no gateway has the file open, so that none opens it half-way.
    _lock: Option<FileLock>,
}

impl KeyBook {
    /// Opens the book to change it; makes the ledger if there is none.
    ///
    /// # Errors
    /// [`StoreError`]: not openable, not a ledger, of a newer version, or of an older one while a gateway has it open.
    pub fn open(store: impl Into<LedgerStore>) -> Result<Self, StoreError> {
        let store = store.into();
        let (db, lock) = store.open_to_change()?;
        Ok(Self { db, name: store.name(), _lock: lock })
    }

    /// Returns every key that was not revoked, sorted by tenant and name, and a number that every change raises.
    ///
    /// # Errors
    /// [`StoreError`]: the database cannot be read, or holds a row that is no key.
    pub fn read(store: impl Into<LedgerStore>) -> Result<(i64, Vec<KeyRow>), StoreError> {
        let store = store.into();
        let (db, name) = (store.open_to_read()?, store.name());
        // The number first: what changes between the two is seen the next time.
        let changes = changes(&name, &db)?;
        let rows = all(&name, &db)?;
        Ok((changes, rows.into_iter().filter(|row| row.revoked.is_none()).collect()))
    }

    /// Returns a number that every change raises.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the database cannot be read.
    pub fn changes(store: impl Into<LedgerStore>) -> Result<i64, StoreError> {
        let store = store.into();
        changes(&store.name(), &store.open_to_read()?)
    }

    /// Returns every key, the revoked ones too, sorted by tenant and name.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn rows(&self) -> Result<Vec<KeyRow>, StoreError> {
        all(&self.name, &self.db)
    }

    /// Adds a key; returns whether there was room for its name. A revoked key keeps its name: what it did stands in the
    /// records under it.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be written.
    pub fn add(&mut self, row: &KeyRow) -> Result<bool, StoreError> {
        self.change(|db| {
            let count = db.one("SELECT count(*) FROM keys", &[], |row| row.count(0))?;
            if usize::try_from(count).unwrap_or(usize::MAX) >= KEYS_MAX {
                return Ok(false);
            }
            let insert = "INSERT INTO keys (tenant, name, entry, created) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (tenant, name) DO NOTHING";
            let KeyRow { tenant, name, entry, created, .. } = row;
            let (tenant, name) = (Value::Text(tenant.as_str()), Value::Text(name.as_str()));
            let values = [tenant, name, Value::Text(entry), Value::Int(created.micros())];
            Ok(db.execute(insert, &values)? == 1)
        })
    }

    /// Replaces the entry of a key that was not revoked, if it still is what it was; returns whether it was.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be written.
    pub fn replace(&mut self, row: &KeyRow, entry: &str) -> Result<bool, StoreError> {
        self.change(|db| {
            let update = "UPDATE keys SET entry = ?4 WHERE tenant = ?1 AND name = ?2 AND entry = ?3 AND revoked IS NULL";
            let values = [row.tenant.as_str(), row.name.as_str(), &row.entry, entry].map(Value::Text);
            Ok(db.execute(update, &values)? == 1)
        })
    }

    /// Revokes a key; returns whether there was one that was not revoked.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be written.
    pub fn revoke(&mut self, tenant: &TenantId, name: &KeyName, at: UtcTime) -> Result<bool, StoreError> {
        self.change(|db| {
            let update = "UPDATE keys SET revoked = ?3 WHERE tenant = ?1 AND name = ?2 AND revoked IS NULL";
            let (tenant, name) = (Value::Text(tenant.as_str()), Value::Text(name.as_str()));
            Ok(db.execute(update, &[tenant, name, Value::Int(at.micros())])? == 1)
        })
    }

    fn change(&mut self, change: impl FnOnce(&Db) -> Result<bool, SqlError>) -> Result<bool, StoreError> {
        let failed = |error| StoreError::opening(&*self.name, error);
        let transaction = self.db.immediate().map_err(failed)?;
        let changed = change(&transaction).map_err(failed)?;
        if changed {
            let count = "UPDATE key_changes SET changes = changes + 1";
            transaction.execute(count, &[]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(changed)
    }
}

fn changes(ledger: &str, db: &Db) -> Result<i64, StoreError> {
    let changes = db.one("SELECT changes FROM key_changes", &[], |row| row.int(0));
    changes.map_err(|error| StoreError::opening(ledger, error))
}

fn all(ledger: &str, db: &Db) -> Result<Vec<KeyRow>, StoreError> {
    let sql = "SELECT tenant, name, entry, created, revoked FROM keys ORDER BY tenant, name";
    let (mut found, mut is_read) = (Vec::new(), true);
    db.each(sql, &[], |row| {
        let key = key_row(row)?;
        is_read = key.is_some();
        found.extend(key);
        Ok::<_, SqlError>(is_read)
    })
    .map_err(|error| StoreError::opening(ledger, error))?;
    if is_read { Ok(found) } else { Err(StoreError::Unreadable { ledger: ledger.to_owned(), seq: None }) }
}

/// Reads a key; `None` if the row is none.
fn key_row(row: &Row<'_>) -> Result<Option<KeyRow>, SqlError> {
    let (Ok(tenant), Ok(name)) = (TenantId::new(row.text(0)?), KeyName::new(row.text(1)?)) else {
        return Ok(None);
    };
    Ok(Some(KeyRow {
        tenant,
        name,
        entry: row.text(2)?.to_owned(),
        created: UtcTime::from_micros(row.int(3)?),
        revoked: row.optional_int(4)?.map(UtcTime::from_micros),
    }))
}

#[cfg(test)]
mod tests {
    use gw_types::{KeyName, TenantId, UtcTime};

    use super::{KeyBook, KeyRow};
    use crate::{SqlConfig, SqlLedger};

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
        let ledger = SqlLedger::open(&path, SqlConfig::default()).unwrap();
        let before = KeyBook::changes(&path).unwrap();
        let mut book = KeyBook::open(&path).unwrap();
        assert!(book.add(&row("two", "{}")).unwrap());
        assert!(!book.add(&row("two", "{ }")).unwrap(), "a name is taken once");
        assert!(book.replace(&row("two", "{}"), "{ x = 1 }").unwrap());
        assert!(!book.replace(&row("two", "{}"), "{ x = 2 }").unwrap(), "it is another one meanwhile");
        assert!(book.revoke(&row("one", "").tenant, &row("one", "").name, UtcTime::from_micros(9)).unwrap());
        assert!(!book.revoke(&row("one", "").tenant, &row("one", "").name, UtcTime::from_micros(9)).unwrap());
        assert_eq!(KeyBook::read(&path).unwrap().1, [row("two", "{ x = 1 }")]);
        assert_eq!(book.rows().unwrap()[0].revoked, Some(UtcTime::from_micros(9)));
        assert_eq!(KeyBook::changes(&path).unwrap(), before + 3);
        drop(ledger);
    }
}
