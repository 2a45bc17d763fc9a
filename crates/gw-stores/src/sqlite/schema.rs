//! The file: its pragmas, and how it is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::migrations;
use crate::{Durability, StoreError, sql::Db};

/// How long a statement waits for another program's lock before it fails.
const BUSY: Duration = Duration::from_millis(100);

/// The WAL file is cut back to this size, in bytes, once it has been copied into the database.
const WAL_BYTES_KEPT: i64 = 16 << 20;

/// The size of a new file's pages. A record takes about 1 KB and every page costs four system calls on its way into
/// the file, so a page should hold several.
const PAGE_BYTES: i64 = 16 << 10;

/// What a connection keeps of the file in memory, in KiB: records are appended, so the hot pages are few, and the
/// system keeps the file besides.
const CACHE_KIB: i64 = 512;

/// Opens the file for the one writer, and brings its tables up to date.
pub(crate) fn open_to_write(path: &Path, durability: Durability) -> Result<Db, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| opening(&name(path), error))?;
    let version = version(&name(path), &connection)?;
    prepare(&connection, durability).map_err(|error| opening(&name(path), error))?;
    let db = Db::Sqlite(connection);
    migrations::run(&name(path), &db, version)?;
    Ok(db)
}

/// Opens the file for a few changes beside the writer; brings its tables up to date only where it is `alone`.
pub(crate) fn open_to_change(path: &Path, alone: bool) -> Result<Db, StoreError> {
    /// A change waits longer than the writer's next try.
    const BUSY: Duration = Duration::from_secs(5);
    if alone {
        return open_to_write(path, Durability::Power);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| opening(&name(path), error))?;
    let found = version(&name(path), &connection)?;
    if found != migrations::VERSION {
        return Err(StoreError::Older { ledger: name(path), found, known: migrations::VERSION });
    }
    connection.busy_timeout(BUSY).map_err(|error| opening(&name(path), error))?;
    bound_cache(&connection).map_err(|error| opening(&name(path), error))?;
    Ok(Db::Sqlite(connection))
}

/// Opens the file for reads beside the writer.
pub(crate) fn open_to_read(path: &Path) -> Result<Db, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| opening(&name(path), error))?;
    connection.busy_timeout(BUSY).map_err(|error| opening(&name(path), error))?;
    bound_cache(&connection).map_err(|error| opening(&name(path), error))?;
    Ok(Db::Sqlite(connection))
}

/// Returns the file's version, 0 for a new file.
///
/// # Errors
/// The file cannot be read, is no ledger, or is of a newer version.
pub(crate) fn version(ledger: &str, connection: &Connection) -> Result<i64, StoreError> {
    let read = || -> rusqlite::Result<(i64, i64)> {
        connection.busy_timeout(BUSY)?;
        let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((version, tables))
    };
    match read().map_err(|error| opening(ledger, error))? {
        (0, tables) if tables > 0 => Err(StoreError::NotALedger { ledger: ledger.to_owned() }),
        (found, _) if found > migrations::VERSION => {
            Err(StoreError::Newer { ledger: ledger.to_owned(), found, known: migrations::VERSION })
        }
        (version, _) => Ok(version),
    }
}

/// Sets the pragmas.
///
/// WAL lets reads go on beside the writer. With `synchronous = NORMAL` no commit waits for a disk, and what is committed
/// survives the process; a loss of power may cost the last commits, but not the file: checkpoints are synced. With `FULL`
/// every commit is synced.
fn prepare(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::None | Durability::Process => "normal",
        Durability::Power => "full",
    };
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    bound_cache(connection)?;
    // Keys and values of sums are small and hot.
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// A negative size is in KiB, a positive one in pages.
fn bound_cache(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -CACHE_KIB)
}

pub(super) fn opening(ledger: &str, error: rusqlite::Error) -> StoreError {
    StoreError::opening(ledger, error)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
