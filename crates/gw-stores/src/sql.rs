//! The two databases behind one way of asking: the ledger's statements are written once and run on both.
//!
//! A statement names its values `?1`, `?2`, ...; PostgreSQL gets `$1`, `$2`, .... No other question mark stands in one.

mod row;
mod value;

pub(crate) use self::{row::Row, value::Value};
#[cfg(feature = "postgres")]
use crate::postgres::{Client, Trouble};

/// An open database.
#[derive(Debug)]
pub(crate) enum Db {
    /// A SQLite file.
    Sqlite(rusqlite::Connection),
    /// A connection to a PostgreSQL server, seen as one node of the ledger.
    #[cfg(feature = "postgres")]
    Postgres(Box<Client>),
}

/// Says why a statement has no result. Holds no value of a row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlError {
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL refused, or did not answer.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] Trouble),
    /// There is no such row.
    #[error("a row that the ledger always has is not there")]
    NoRow,
    /// Somebody else has written to the chain: going on would break it.
    #[error("the chain has another end than this process has written")]
    ForeignEnd,
}

/// Several statements that are done whole or not at all; undone on drop.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    db: &'a Db,
    is_open: bool,
}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// Reads, in one view of the database, or writes by the one writer.
    Deferred,
    /// Writes beside others.
    Immediate,
    /// Reads alone, in one view of the database.
    View,
}

impl SqlError {
    /// Returns whether the connection is gone, and another may be made.
    pub(crate) const fn is_lost(&self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(trouble) => trouble.is_lost(),
            Self::Sqlite(_) | Self::NoRow | Self::ForeignEnd => false,
        }
    }
}

// === impl Db ===

impl Db {
    /// Runs a statement; returns how many rows it has changed.
    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, SqlError> {
        match self {
            Self::Sqlite(connection) => {
                let changed = connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))?;
                Ok(u64::try_from(changed).unwrap_or(u64::MAX))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => Ok(client.execute(sql, values)?),
        }
    }

    /// Runs statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), SqlError> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => Ok(client.batch(sql)?),
        }
    }

    /// Reads the first row, which must be there.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        self.optional(sql, values, read)?.ok_or(SqlError::NoRow)
    }

    /// Reads the first row, if there is one.
    pub(crate) fn optional<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T, SqlError>,
    ) -> Result<Option<T>, SqlError> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => {
                client.first(sql, values)?.map(|row| read(&Row::Postgres(&row))).transpose()
            }
        }
    }

    /// Shows every row until `show` returns `false`. Streams: some tens of rows are in memory at once. `show` may ask the
    /// database in its turn.
    pub(crate) fn each<E: From<SqlError>>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut show: impl FnMut(&Row<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql).map_err(SqlError::from)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values)).map_err(SqlError::from)?;
                while let Some(row) = rows.next().map_err(SqlError::from)?
                    && show(&Row::Sqlite(row))?
                {}
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => {
                // A cursor lives in a transaction.
                let view = if client.is_in_transaction() { None } else { Some(self.view()?) };
                let cursor = client.open_cursor(sql, values).map_err(SqlError::from)?;
                'rows: loop {
                    let rows = client.fetch(&cursor).map_err(SqlError::from)?;
                    if rows.is_empty() {
                        break;
                    }
                    for row in &rows {
                        if !show(&Row::Postgres(row))? {
                            break 'rows;
                        }
                    }
                }
                client.close_cursor(cursor).map_err(SqlError::from)?;
                view.map_or(Ok(()), Transaction::commit).map_err(E::from)
            }
        }
    }

    /// Begins a transaction of the one writer.
    pub(crate) fn transaction(&self) -> Result<Transaction<'_>, SqlError> {
        self.begin(Begin::Deferred)
    }

    /// Begins a transaction beside other writers.
    pub(crate) fn immediate(&self) -> Result<Transaction<'_>, SqlError> {
        self.begin(Begin::Immediate)
    }

    /// Begins a transaction in which all statements see the same state.
    pub(crate) fn view(&self) -> Result<Transaction<'_>, SqlError> {
        self.begin(Begin::View)
    }

    fn begin(&self, begin: Begin) -> Result<Transaction<'_>, SqlError> {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(match begin {
                Begin::Deferred | Begin::View => "BEGIN",
                Begin::Immediate => "BEGIN IMMEDIATE",
            })?,
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => client.begin(match begin {
                Begin::Deferred | Begin::Immediate => "BEGIN",
                Begin::View => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            })?,
        }
        Ok(Transaction { db: self, is_open: true })
    }

    /// Returns 16 bytes that no other ledger has.
    pub(crate) fn new_ledger(&self) -> Result<[u8; 16], SqlError> {
        let random = match self {
            Self::Sqlite(_) => "SELECT randomblob(16)",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "SELECT uuid_send(gen_random_uuid())",
        };
        self.one(random, &[], |row| Ok(row.bytes(0)?.try_into().unwrap_or_default()))
    }

    /// Makes sure that there is a connection; asks PostgreSQL where one was lost. Returns a number that every new
    /// connection raises.
    pub(crate) fn renew(&self) -> Result<u64, SqlError> {
        match self {
            Self::Sqlite(_) => Ok(0),
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => Ok(client.renew()?),
        }
    }

    /// Returns how many connections were made so far.
    pub(crate) fn connections(&self) -> u64 {
        match self {
            Self::Sqlite(_) => 0,
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => client.connections(),
        }
    }

    /// Returns the number of the node whose rows are seen; a file is node 0.
    pub(crate) fn node(&self) -> i64 {
        match self {
            Self::Sqlite(_) => 0,
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => client.node.number(),
        }
    }

    /// Returns the numbers of all nodes, the one that is seen first.
    pub(crate) fn nodes(&self) -> Result<Vec<i64>, SqlError> {
        match self {
            Self::Sqlite(_) => Ok(vec![0]),
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => {
                let mut nodes = crate::postgres::nodes(client)?;
                nodes.sort_by_key(|node| (*node != client.node.number(), *node));
                Ok(nodes)
            }
        }
    }

    /// Asks while the rows of another node are seen.
    pub(crate) fn at_node<T, E: From<SqlError>>(
        &self,
        node: i64,
        ask: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Self::Sqlite(_) => {
                debug_assert_eq!(node, 0, "a file is one chain");
                ask(self)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => {
                if node == client.node.number() {
                    return ask(self);
                }
                client.see(node).map_err(SqlError::from)?;
                let answer = ask(self);
                // A connection that cannot see its own node again may not go on.
                if client.see_node().is_err() {
                    client.lose();
                }
                answer
            }
        }
    }

    /// Returns whether the database is on another machine, or may be.
    pub(crate) const fn is_remote(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
        }
    }

    /// Gives up a connection that can be made again.
    pub(crate) fn lose(&self) {
        match self {
            Self::Sqlite(_) => {}
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => client.lose(),
        }
    }

    /// Makes sure, before a read, that there is a connection and that it sees what its writer writes to.
    pub(crate) fn revive(&self) -> Result<(), SqlError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(client) => Ok(client.revive()?),
        }
    }
}

// === impl Transaction ===

impl Transaction<'_> {
    /// Makes it all lasting.
    pub(crate) fn commit(mut self) -> Result<(), SqlError> {
        match self.db {
            Db::Sqlite(connection) => connection.execute_batch("COMMIT")?,
            #[cfg(feature = "postgres")]
            Db::Postgres(client) => client.commit()?,
        }
        self.is_open = false;
        Ok(())
    }
}

impl std::ops::Deref for Transaction<'_> {
    type Target = Db;

    fn deref(&self) -> &Db {
        self.db
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        match self.db {
            Db::Sqlite(connection) => {
                // Some errors end the transaction by themselves.
                if !connection.is_autocommit()
                    && let Err(error) = connection.execute_batch("ROLLBACK")
                {
                    tracing::error!(%error, "a transaction of the ledger cannot be undone");
                }
            }
            #[cfg(feature = "postgres")]
            Db::Postgres(client) => client.roll_back(),
        }
    }
}
