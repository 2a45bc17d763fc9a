//! One connection, asked from a thread that waits for the answer.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::Future,
    sync::Arc,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::JoinHandle,
};
use tokio_postgres::{Row, Statement, types::ToSql};

use super::{
    Trouble,
    node::{Backend, Node},
    tls::{Maker, PostgresTls},
    url::PostgresUrl,
};
use crate::sql::Value;

/// How long one statement may take before its connection is given up.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a connection may take from the first packet to its first answer.
const CONNECT: Duration = Duration::from_secs(10);
/// Statements that are kept prepared.
const STATEMENTS_MAX: usize = 64;

/// What every session begins with. The names of the ledger's own schemas alone are looked up; a statement that the
/// program has given up is given up by the server too, and so is a transaction that nobody goes on with.
const SETUP: &str = "
    SET search_path = gw_node, gw, pg_catalog;
    SET gw.node = '0';
    SET statement_timeout = '10s';
    SET lock_timeout = '5s';
    SET idle_in_transaction_session_timeout = '60s';
    SET client_min_messages = 'warning';
    SET timezone = 'UTC'";

/// A connection that is made anew where it was lost.
///
/// Has a runtime of its own, which works while somebody waits for an answer, so that the ledger's threads need none.
#[derive(Debug)]
pub(crate) struct Client {
    runtime: Option<Runtime>,
    url: PostgresUrl,
    tls: Maker,
    /// Whose rows are seen.
    pub(crate) node: Node,
    session: RefCell<Option<Session>>,
    /// How many connections were made.
    connections: Cell<u64>,
    /// The one before: what it holds must go before its node is taken again.
    pub(super) before: RefCell<Option<Backend>>,
}

/// A connection that stands.
struct Session {
    client: Arc<tokio_postgres::Client>,
    task: JoinHandle<()>,
    statements: HashMap<Box<str>, Statement>,
    in_transaction: bool,
    cursors: usize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The name of a cursor that is open.
#[derive(Debug)]
pub(crate) struct Cursor {
    fetch: String,
    close: String,
}

impl Client {
    /// Connects, and sees the node's rows: takes it where it is one to hold.
    ///
    /// # Errors
    /// No connection, or the node is in use.
    pub(crate) fn open(
        url: PostgresUrl,
        tls: Option<Arc<dyn PostgresTls>>,
        node: Node,
    ) -> Result<Self, Trouble> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Trouble::Lost(error.to_string()))?;
        let client = Self {
            runtime: Some(runtime),
            url,
            tls: Maker(tls),
            node,
            session: RefCell::new(None),
            connections: Cell::new(0),
            before: RefCell::new(None),
        };
        client.renew()?;
        Ok(client)
    }

    /// Makes sure that there is a connection; returns how many were made so far.
    pub(crate) fn renew(&self) -> Result<u64, Trouble> {
        let stands = |session: &Session| !session.client.is_closed();
        if !self.session.borrow().as_ref().is_some_and(stands) {
            self.connect()?;
        }
        Ok(self.connections.get())
    }

    pub(crate) const fn connections(&self) -> u64 {
        self.connections.get()
    }

    /// Asks the server for a sign of life, sees the rows of the node as it is now, and connects anew if need be.
    pub(crate) fn revive(&self) -> Result<(), Trouble> {
        self.renew()?;
        match self.see_node() {
            Err(trouble) if trouble.is_lost() => self.renew().map(drop),
            other => other,
        }
    }

    fn connect(&self) -> Result<(), Trouble> {
        self.lose();
        let (config, tls) = (self.url.config().clone(), self.tls.clone());
        let session = self.wait(CONNECT, async move {
            let (client, connection) = config.connect(tls).await?;
            let task = tokio::spawn(async move {
                // Whoever asks next learns it.
                let _ended = connection.await;
            });
            let session = Session {
                client: Arc::new(client),
                task,
                statements: HashMap::new(),
                in_transaction: false,
                cursors: 0,
            };
            session.client.batch_execute(SETUP).await?;
            Ok(session)
        })?;
        *self.session.borrow_mut() = Some(session);
        let ready = self.take_node().and_then(|()| self.see_node());
        if ready.is_err() {
            self.lose();
        }
        ready?;
        self.connections.set(self.connections.get() + 1);
        Ok(())
    }

    pub(crate) fn lose(&self) {
        drop(self.session.borrow_mut().take());
    }

    // === Statements ===

    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Trouble> {
        let (client, statement) = self.prepared(sql)?;
        self.ask(async { client.execute(&statement, &dynamic(values)).await })
    }

    pub(crate) fn first(&self, sql: &str, values: &[Value<'_>]) -> Result<Option<Row>, Trouble> {
        let (client, statement) = self.prepared(sql)?;
        let rows = self.ask(async { client.query(&statement, &dynamic(values)).await })?;
        Ok(rows.into_iter().next())
    }

    pub(crate) fn all(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Trouble> {
        let (client, statement) = self.prepared(sql)?;
        self.ask(async { client.query(&statement, &dynamic(values)).await })
    }

    /// Runs statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), Trouble> {
        let client = self.standing()?;
        self.ask(async { client.batch_execute(sql).await })
    }

    pub(crate) fn begin(&self, sql: &str) -> Result<(), Trouble> {
        self.batch(sql)?;
        self.set_in_transaction(true);
        Ok(())
    }

    /// Commits. After an error the transaction may none the less have been committed, where the connection was lost.
    pub(crate) fn commit(&self) -> Result<(), Trouble> {
        // The server answers the commit of a transaction that has failed with a rollback and no error; a question before
        // it is refused there.
        self.batch("SELECT 1; COMMIT")?;
        self.set_in_transaction(false);
        Ok(())
    }

    pub(crate) fn roll_back(&self) {
        if !self.is_in_transaction() {
            return;
        }
        self.set_in_transaction(false);
        if self.batch("ROLLBACK").is_err() {
            self.lose();
        }
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        self.session.borrow().as_ref().is_some_and(|session| session.in_transaction)
    }

    fn set_in_transaction(&self, is: bool) {
        if let Some(session) = self.session.borrow_mut().as_mut() {
            session.in_transaction = is;
            session.cursors = 0;
        }
    }

    // === Cursors ===

    /// Opens a cursor inside the transaction.
    pub(crate) fn open_cursor(&self, sql: &str, values: &[Value<'_>]) -> Result<Cursor, Trouble> {
        /// A row of blocks is some 64 KB.
        const ROWS: usize = 32;
        let number = {
            let mut session = self.session.borrow_mut();
            let session = session.as_mut().ok_or_else(gone)?;
            session.cursors += 1;
            session.cursors
        };
        self.execute(&format!("DECLARE gw_{number} NO SCROLL CURSOR FOR {sql}"), values)?;
        Ok(Cursor { fetch: format!("FETCH {ROWS} FROM gw_{number}"), close: format!("CLOSE gw_{number}") })
    }

    pub(crate) fn fetch(&self, cursor: &Cursor) -> Result<Vec<Row>, Trouble> {
        let client = self.standing()?;
        self.ask(async { client.query(&cursor.fetch, &[]).await })
    }

    #[expect(clippy::needless_pass_by_value, reason = "a closed cursor is nobody's")]
    pub(crate) fn close_cursor(&self, cursor: Cursor) -> Result<(), Trouble> {
        self.batch(&cursor.close)?;
        if let Some(session) = self.session.borrow_mut().as_mut() {
            session.cursors = session.cursors.saturating_sub(1);
        }
        Ok(())
    }

    // === Waiting ===

    fn standing(&self) -> Result<Arc<tokio_postgres::Client>, Trouble> {
        self.session.borrow().as_ref().map(|session| Arc::clone(&session.client)).ok_or_else(gone)
    }

    fn prepared(&self, sql: &str) -> Result<(Arc<tokio_postgres::Client>, Statement), Trouble> {
        let client = self.standing()?;
        let known = self.session.borrow().as_ref().and_then(|session| session.statements.get(sql).cloned());
        if let Some(statement) = known {
            return Ok((client, statement));
        }
        let numbered = sql.replace('?', "$");
        let statement = self.ask(async { client.prepare(&numbered).await })?;
        if let Some(session) = self.session.borrow_mut().as_mut() {
            if session.statements.len() >= STATEMENTS_MAX {
                session.statements.clear();
            }
            session.statements.insert(sql.into(), statement.clone());
        }
        Ok((client, statement))
    }

    /// Waits for an answer on the session; gives the session up where it is lost.
    fn ask<T: Send>(
        &self,
        question: impl Future<Output = Result<T, tokio_postgres::Error>> + Send,
    ) -> Result<T, Trouble> {
        let answer = self.wait(ANSWER, question);
        if answer.as_ref().is_err_and(Trouble::is_lost) {
            self.lose();
        }
        answer
    }

    fn wait<T: Send>(
        &self,
        bound: Duration,
        question: impl Future<Output = Result<T, tokio_postgres::Error>> + Send,
    ) -> Result<T, Trouble> {
        let Some(runtime) = &self.runtime else { return Err(gone()) };
        let bounded = async { tokio::time::timeout(bound, question).await };
        // A thread that works for another runtime may not wait on this one.
        let answer = if Handle::try_current().is_ok() {
            std::thread::scope(|scope| scope.spawn(|| runtime.block_on(bounded)).join())
                .map_err(|_| gone())?
        } else {
            runtime.block_on(bounded)
        };
        Ok(answer.map_err(|_| Trouble::Slow { seconds: bound.as_secs() })??)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.give_node_back();
        self.lose();
        if let Some(runtime) = self.runtime.take() {
            // Also where another runtime's thread drops it.
            runtime.shutdown_background();
        }
    }
}

fn gone() -> Trouble {
    Trouble::Lost("the connection was lost".to_owned())
}

fn dynamic<'a>(values: &'a [Value<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}
