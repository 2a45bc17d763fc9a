//! One writer per file, across processes.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use crate::StoreError;

/// Holds a ledger's lock file.
///
/// The lock is the system's own on the open file, so it ends with the process however that ends, and a file that is
/// left over blocks nobody. It is a file of its own because closing any handle of the database's file would give up
/// the locks that SQLite itself holds on it. It is never deleted: a delete would race with the next process's open.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

impl FileLock {
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let open = |source: std::io::Error| StoreError::Open {
            ledger: path.display().to_string(),
            source: source.into(),
        };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(PathBuf::from(name))
            .map_err(open)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { ledger: path.display().to_string() }),
            Err(TryLockError::Error(source)) => Err(open(source)),
        }
    }
}

/// Returns the one name of the file, so that two links to it meet at one lock.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, StoreError> {
    if let Ok(known) = path.canonicalize() {
        return Ok(known);
    }
    let open = |source: std::io::Error| StoreError::Open {
        ledger: path.display().to_string(),
        source: source.into(),
    };
    let name = path.file_name().ok_or_else(|| open(std::io::ErrorKind::InvalidFilename.into()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    Ok(folder.canonicalize().map_err(open)?.join(name))
}
