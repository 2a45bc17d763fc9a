//! Nodes: one chain and one writer each, among the gateways that share a database.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::{Client, Trouble};
use crate::sql::Value;

/// Nodes of one ledger at most: gateways that write at the same time.
const NODES_MAX: i64 = 1_024;

/// The first half of the advisory locks' names: `gw`, for the ledger's nodes.
const LOCKS: i64 = 0x6777;

/// Looks, 10 ms apart, whether the session before has ended once it was told to.
const ENDS_MAX: u32 = 100;

/// The node that a connection sees, by its number from 1 on; clones share it. 0: none.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    number: Arc<AtomicI64>,
    hold: Hold,
}

/// What a connection does to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// It only reads, or writes what belongs to no node.
    Nothing,
    /// It holds its node, or another where that is taken.
    Any,
    /// It holds its node, or is refused.
    Own,
}

/// A session of the server, told from a later one with the same number by when it began.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    pid: i64,
    began: String,
}

impl Node {
    /// Returns the first that nobody holds, to be held.
    pub(crate) fn any() -> Self {
        Self { number: Arc::default(), hold: Hold::Any }
    }

    /// Returns one to be read; 0: none.
    pub(crate) fn read(number: i64) -> Self {
        Self { number: Arc::new(number.into()), hold: Hold::Nothing }
    }

    /// Returns one to be held.
    pub(crate) fn own(number: i64) -> Self {
        Self { number: Arc::new(number.into()), hold: Hold::Own }
    }

    /// Returns the same one to be read, whichever it will be.
    pub(crate) fn reader(&self) -> Self {
        Self { hold: Hold::Nothing, ..self.clone() }
    }

    pub(crate) fn number(&self) -> i64 {
        self.number.load(Ordering::Relaxed)
    }

    fn set(&self, number: i64) {
        self.number.store(number, Ordering::Relaxed);
    }
}

/// Returns the numbers of all nodes, in order.
pub(crate) fn nodes(client: &Client) -> Result<Vec<i64>, Trouble> {
    let rows = client.all("SELECT node FROM gw.chain ORDER BY node", &[])?;
    rows.iter().map(|row| row.try_get(0).map_err(Trouble::from)).collect()
}

impl Client {
    /// Takes the node that this connection is to hold.
    pub(super) fn take_node(&self) -> Result<(), Trouble> {
        let own = self.node.number();
        match self.node.hold {
            Hold::Nothing => return Ok(()),
            Hold::Own if !self.take_again(own)? => return Err(Trouble::NodeInUse(own)),
            Hold::Any if own == 0 || !self.take_again(own)? => self.node.set(self.take_any()?),
            Hold::Own | Hold::Any => {}
        }
        let own =
            "SELECT pid::bigint, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let row = self.first(own, &[])?;
        let backend =
            row.and_then(|row| Some(Backend { pid: row.try_get(0).ok()?, began: row.try_get(1).ok()? }));
        *self.before.borrow_mut() = backend;
        Ok(())
    }

    /// Sees the rows of the node from now on.
    pub(crate) fn see_node(&self) -> Result<(), Trouble> {
        self.see(self.node.number())
    }

    /// Sees the rows of a node until the next [`Client::see_node`].
    pub(crate) fn see(&self, number: i64) -> Result<(), Trouble> {
        let number = number.to_string();
        self.first("SELECT set_config('gw.node', ?1, false)", &[Value::Text(&number)]).map(drop)
    }

    /// Gives back what the connection holds, so that the next gateway goes on with the same chain.
    pub(super) fn give_node_back(&self) {
        if self.node.hold != Hold::Nothing {
            // The end of the connection gives it back as well, a little later.
            let _gone = self.batch("SELECT pg_advisory_unlock_all()");
        }
    }

    /// Takes a node that this process has held, or that it was told to: also from its own session before, of which the
    /// server does not know yet that nobody is at its other end.
    fn take_again(&self, number: i64) -> Result<bool, Trouble> {
        if self.try_lock(number)? {
            return Ok(true);
        }
        let before = self.before.borrow().clone();
        let Some(Backend { pid, began }) = before else { return Ok(false) };
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid = ?1::bigint AND backend_start::text = ?2";
        if self.first(end, &[Value::Int(pid), Value::Text(&began)])?.is_none() {
            return self.try_lock(number);
        }
        for _ in 0..ENDS_MAX {
            if self.try_lock(number)? {
                return Ok(true);
            }
            self.first("SELECT pg_sleep(0.01)", &[])?;
        }
        Ok(false)
    }

    fn take_any(&self) -> Result<i64, Trouble> {
        for number in 1..=NODES_MAX {
            if self.try_lock(number)? {
                return Ok(number);
            }
        }
        Err(Trouble::NoNode(NODES_MAX))
    }

    fn try_lock(&self, number: i64) -> Result<bool, Trouble> {
        let lock = "SELECT pg_try_advisory_lock(?1::bigint::int, ?2::bigint::int)";
        let row = self.first(lock, &[Value::Int(LOCKS), Value::Int(number)])?;
        Ok(row.is_some_and(|row| row.try_get(0).unwrap_or(false)))
    }
}
