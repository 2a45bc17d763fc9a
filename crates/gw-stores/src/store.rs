//! Where a ledger is, and how it is opened.

use std::{
    fmt,
    path::{Path, PathBuf},
};

#[cfg(feature = "postgres")]
use crate::postgres::{self, Client, Node, PostgresTls, PostgresUrl, Trouble};
use crate::{Durability, StoreError, sql::Db, sqlite};

/// Where a ledger is. Shows no password.
#[derive(Clone, Debug)]
pub enum LedgerStore {
    /// In a SQLite file of one gateway.
    Sqlite(PathBuf),
    /// In a PostgreSQL database that several gateways may share.
    #[cfg(feature = "postgres")]
    Postgres {
        /// The database.
        url: PostgresUrl,
        /// Encrypts the connections; absent: none can be encrypted, and an address that asks for it is refused.
        tls: Option<std::sync::Arc<dyn PostgresTls>>,
    },
}

/// A ledger that is open for its one writer, or for the one of its node.
#[derive(Debug)]
pub(crate) struct Writable {
    pub(crate) db: Db,
    /// What keeps other processes out where the database does not do it.
    pub(crate) lock: Option<sqlite::FileLock>,
    /// The file beside which a journal stands; a server needs none: what was not committed was promised to nobody.
    pub(crate) beside: Option<PathBuf>,
}

impl LedgerStore {
    /// Returns the ledger's name for messages: the path or the address.
    pub(crate) fn name(&self) -> String {
        self.to_string()
    }

    /// Opens the ledger to write to it, and makes it if there is none.
    pub(crate) fn open_to_write(&self, durability: Durability) -> Result<Writable, StoreError> {
        match self {
            Self::Sqlite(path) => {
                let path = sqlite::canonical(path)?;
                let lock = sqlite::FileLock::take(&path)?;
                let db = sqlite::open_to_write(&path, durability)?;
                Ok(Writable { db, lock: Some(lock), beside: Some(path) })
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => {
                // The tables first: a node is one of their rows.
                drop(self.open_to_change()?);
                let db = self.connect(Node::any())?;
                Ok(Writable { db, lock: None, beside: None })
            }
        }
    }

    /// Opens a node that no gateway holds to write to it; of a file, the file.
    pub(crate) fn open_node_to_write(&self, node: i64) -> Result<Writable, StoreError> {
        match self {
            Self::Sqlite(_) => {
                debug_assert_eq!(node, 0, "a file is one chain");
                self.open_to_write(Durability::Power)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => {
                let db = self.connect(Node::own(node))?;
                Ok(Writable { db, lock: None, beside: None })
            }
        }
    }

    /// Opens what a writer writes to for reads beside it.
    pub(crate) fn open_beside(&self, writer: &Db) -> Result<Db, StoreError> {
        match (self, writer) {
            #[cfg(feature = "postgres")]
            (Self::Postgres { .. }, Db::Postgres(writer)) => self.connect(writer.node.reader()),
            #[cfg(feature = "postgres")]
            (Self::Postgres { .. }, Db::Sqlite(_)) => self.open_to_read(),
            (Self::Sqlite(path), _) => sqlite::open_to_read(path),
        }
    }

    /// Opens a ledger that is there, and of this program's version, to read it. No node is seen yet.
    pub(crate) fn open_to_audit(&self) -> Result<Db, StoreError> {
        let db = self.open_to_read()?;
        let (found, known) = match &db {
            Db::Sqlite(connection) => (sqlite::version(&self.name(), connection)?, sqlite::VERSION),
            #[cfg(feature = "postgres")]
            Db::Postgres(client) => (postgres::version(&self.name(), client)?, postgres::VERSION),
        };
        if found != known {
            return Err(StoreError::Older { ledger: self.name(), found, known });
        }
        match &db {
            Db::Sqlite(_) => sqlite::check_migrations(&self.name(), &db)?,
            #[cfg(feature = "postgres")]
            Db::Postgres(client) => postgres::check(&self.name(), client)?,
        }
        Ok(db)
    }

    /// Opens a ledger that is there for a short look.
    pub(crate) fn open_to_read(&self) -> Result<Db, StoreError> {
        match self {
            Self::Sqlite(path) => sqlite::open_to_read(path),
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => self.connect(Node::read(0)),
        }
    }

    /// Opens the ledger for a few changes of what belongs to no chain, also beside a writer; makes it if there is none.
    pub(crate) fn open_to_change(&self) -> Result<(Db, Option<sqlite::FileLock>), StoreError> {
        match self {
            Self::Sqlite(path) => {
                let path = sqlite::canonical(path)?;
                let lock = match sqlite::FileLock::take(&path) {
                    Ok(lock) => Some(lock),
                    Err(StoreError::InUse { .. }) => None,
                    Err(error) => return Err(error),
                };
                Ok((sqlite::open_to_change(&path, lock.is_some())?, lock))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => {
                let db = self.connect(Node::read(0))?;
                if let Db::Postgres(client) = &db {
                    postgres::run(&self.name(), client)?;
                }
                Ok((db, None))
            }
        }
    }

    #[cfg(feature = "postgres")]
    fn connect(&self, node: Node) -> Result<Db, StoreError> {
        let Self::Postgres { url, tls } = self else { return self.open_to_read() };
        match Client::open(url.clone(), tls.clone(), node) {
            Ok(client) => Ok(Db::Postgres(Box::new(client))),
            Err(Trouble::NodeInUse(_)) => Err(StoreError::InUse { ledger: self.name() }),
            Err(error) => Err(StoreError::opening(self.name(), error)),
        }
    }
}

impl fmt::Display for LedgerStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            #[cfg(feature = "postgres")]
            Self::Postgres { url, .. } => url.fmt(f),
        }
    }
}

impl From<&Path> for LedgerStore {
    fn from(path: &Path) -> Self {
        Self::Sqlite(path.to_owned())
    }
}

impl From<&PathBuf> for LedgerStore {
    fn from(path: &PathBuf) -> Self {
        Self::Sqlite(path.clone())
    }
}

impl From<&Self> for LedgerStore {
    fn from(store: &Self) -> Self {
        store.clone()
    }
}
