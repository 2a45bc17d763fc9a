//! The file: its pragmas, its table and its version.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// The version of the table below, kept in the file's `user_version`.
pub(super) const VERSION: i64 = 1;

/// How long a statement waits for another program's lock before it fails.
const BUSY: Duration = Duration::from_millis(100);

/// The WAL file is cut back to this size, in bytes, once it has been copied into the database.
const WAL_BYTES_KEPT: i64 = 16 << 20;

/// The size of a new file's pages. A record takes 1 to 3 KB and every page costs four system calls on its way into
/// the file, so a page should hold several.
const PAGE_BYTES: i64 = 16 << 10;

/// `record` is the whole record as JSON; the other columns are copies of parts of it, for queries.
///
/// `spent_pico` is cost and side costs in pico-USD: an INTEGER up to 9.2 million USD a record, decimal TEXT above, so
/// every amount is exact. gw adds them up outside SQL, where no sum can overflow. The spend index covers its query, so
/// that a start reads a window without touching a record, and leaves out what cost nothing.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        started INTEGER NOT NULL,
        route TEXT,
        serving TEXT,
        outcome TEXT NOT NULL,
        spent_pico ANY NOT NULL,
        record TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS records_tenant ON records (tenant);
    CREATE INDEX IF NOT EXISTS records_spend ON records (started, tenant, key, spent_pico)
        WHERE spent_pico <> 0;
";

/// Opens the file for the one writer, and makes or checks its table.
pub(super) fn open_to_write(path: &Path) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|error| opening(path, error))?;
    let version = version(path, &connection)?;
    if version > VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    prepare(&mut connection).map_err(|error| opening(path, error))?;
    Ok(connection)
}

/// Opens the file for reads beside the writer.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| opening(path, error))?;
    connection.busy_timeout(BUSY).map_err(|error| opening(path, error))?;
    Ok(connection)
}

/// Returns the file's version, 0 for a new file.
fn version(path: &Path, connection: &Connection) -> Result<i64, StoreError> {
    let read = || -> rusqlite::Result<(i64, i64)> {
        connection.busy_timeout(BUSY)?;
        let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((version, tables))
    };
    match read().map_err(|error| opening(path, error))? {
        (0, tables) if tables > 0 => Err(StoreError::NotALedger { path: path.to_owned() }),
        (version, _) => Ok(version),
    }
}

/// Sets the pragmas and makes the table.
///
/// WAL lets reads go on beside the writer. With `synchronous = NORMAL` no commit waits for a disk, and what is committed
/// survives the process; a loss of power may cost the last commits, but not the file: checkpoints are synced.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

fn opening(path: &Path, error: rusqlite::Error) -> StoreError {
    StoreError::Open { path: path.to_owned(), source: error.into() }
}
