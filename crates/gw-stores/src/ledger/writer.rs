//! The writer's thread: batches into transactions.

use std::{ops::Range, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    chain::{Chain, Tip, is_stored, stored_tip},
    journal::Segment,
    keys,
    queue::{Buffer, Queue, Taken},
};
use crate::{
    encode::Batch,
    sql::{Db, SqlError},
};

/// The first pause after a failed write; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Tries after the ledger was closed, until what is left is given up.
const LAST_TRIES: u32 = 5;

/// Something that the writer does between two batches.
pub(super) struct Task(Box<Order>);

type Order = dyn FnOnce(&mut Chain, &Db) + Send;

/// How far the writer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Records ever dealt with, in the order of their appends.
    pub(super) stored: u64,
    /// Whether the last write failed and is being tried again.
    pub(super) failing: bool,
}

/// Stores what the queue holds, until it is closed and empty.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    db: Db,
    chain: Chain,
    /// Records in one transaction at most.
    batch: usize,
    progress: watch::Sender<Progress>,
    /// The connection that the chain was read on, and its node.
    connection: (u64, i64),
    /// Whether records were given up, which happens only after the ledger was closed.
    lost: bool,
}

// === impl Task ===

impl Task {
    pub(super) fn new(task: impl FnOnce(&mut Chain, &Db) + Send + 'static) -> Self {
        Self(Box::new(task))
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Task")
    }
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(
        queue: Arc<Queue>,
        db: Db,
        chain: Chain,
        batch: usize,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let connection = (db.connections(), db.node());
        Self { queue, db, chain, batch, progress, connection, lost: false }
    }

    /// Runs until the queue is closed and empty; takes turns between the queue's buffer and the spare one.
    pub(super) fn run(mut self, mut spare: Buffer) {
        loop {
            let Taken { mut buffer, tasks, notes, is_over } = self.queue.take(spare);
            if is_over {
                spare = buffer;
                break;
            }
            if self.db.is_remote() && (buffer.batch.is_empty() || !notes.is_empty()) {
                self.look_after();
            }
            // First: requests wait for these before they call anyone.
            keys::store(&self.db, notes);
            self.store_all(&buffer.batch);
            if let Some(segment) = buffer.segment.as_mut().filter(|_| !self.lost) {
                segment.empty();
            }
            buffer.batch.clear();
            self.keep_up();
            for Task(task) in tasks {
                task(&mut self.chain, &self.db);
            }
            spare = buffer;
        }
        self.end();
        // What could not be stored stays in the journal for the next open.
        if !self.lost {
            [spare.segment, self.queue.take_last().segment].into_iter().flatten().for_each(Segment::remove);
        }
    }

    /// Stores a batch in transactions of bounded size.
    fn store_all(&mut self, batch: &Batch) {
        let mut from = 0;
        while from < batch.len() {
            let to = batch.len().min(from + self.batch);
            self.lost |= !self.store(batch, from..to);
            let count = to - from;
            self.queue.give_places_back(count);
            // Whoever waits for a record that was given up learns it from the writer's end.
            if !self.lost {
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                self.progress.send_modify(|now| now.stored = now.stored.saturating_add(count));
            }
            from = to;
        }
    }

    /// Stores records, however long that takes; gives up only after the ledger was closed, and returns whether it has not.
    fn store(&mut self, batch: &Batch, range: Range<usize>) -> bool {
        let mut pause = PAUSE_MIN;
        let mut tries_left = LAST_TRIES;
        let mut is_first = true;
        while let Err(error) = self.try_store(batch, range.clone()) {
            // A connection that was lost while nobody needed it is made anew without a word.
            if std::mem::take(&mut is_first) && error.is_lost() {
                continue;
            }
            if matches!(error, SqlError::ForeignEnd) {
                self.db.lose();
            }
            self.set_ill(&error, range.len());
            let closed = self.queue.pause(pause);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
            if closed && tries_left == 0 {
                tracing::error!(%error, records = range.len(), "the ledger was closed with records not stored");
                return false;
            }
            tries_left -= u32::from(closed);
        }
        self.set_well();
        true
    }

    /// Writes records in one transaction: all of them, or none.
    fn try_store(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), SqlError> {
        if self.is_stored_after_all(|tip| meant(tip, batch, range.clone()))? {
            return Ok(());
        }
        let tip = self.commit(batch, range.clone())?;
        self.chain.advance(tip, batch, range);
        Ok(())
    }

    fn commit(&mut self, batch: &Batch, range: Range<usize>) -> Result<Tip, SqlError> {
        let transaction = self.db.transaction()?;
        let stored = stored_tip(&transaction)?;
        if stored != self.chain.tip() {
            // The last commit was reported as failed and was none the less made, or another program has written.
            let meant = meant(self.chain.tip(), batch, range);
            return if stored == meant { Ok(meant) } else { Err(SqlError::ForeignEnd) };
        }
        let tip = self.chain.insert(&transaction, batch, range)?;
        transaction.commit()?;
        Ok(tip)
    }

    /// Makes sure that there is a connection. On a new one the chain is read again, since nobody knows whether the last
    /// transaction on the old one was committed, and another gateway may have gone on with its node; returns whether the
    /// records that lead to an end are stored.
    fn is_stored_after_all(&mut self, meant: impl FnOnce(Tip) -> Tip) -> Result<bool, SqlError> {
        let connection = self.db.renew()?;
        let (known, node) = self.connection;
        if connection == known {
            return Ok(false);
        }
        let meant = meant(self.chain.tip());
        let is_stored = meant != self.chain.tip() && self.db.at_node(node, |db| is_stored(db, meant))?;
        self.chain.read_again(&self.db)?;
        self.connection = (connection, self.db.node());
        Ok(is_stored)
    }

    /// Asks a database on another machine whether it is there, so that a loss is known before a request meets it.
    fn look_after(&mut self) {
        let alive = self.db.revive().and_then(|()| self.is_stored_after_all(|tip| tip));
        match alive {
            Ok(_) => self.set_well(),
            Err(error) => self.set_ill(&error, 0),
        }
    }

    /// Adds up and signs what is due. What fails here is due again after the next batch.
    fn keep_up(&mut self) {
        let (fold, checkpoint) = (self.chain.is_fold_due(), self.chain.is_checkpoint_due());
        if (fold || checkpoint)
            && let Err(error) = self.sum_up(fold, checkpoint)
        {
            tracing::error!(%error, "the ledger's sums cannot be written; trying again later");
        }
    }

    fn sum_up(&mut self, fold: bool, checkpoint: bool) -> Result<(), SqlError> {
        let transaction = self.db.transaction()?;
        if fold {
            self.chain.fold_into(&transaction)?;
        }
        if checkpoint {
            self.chain.checkpoint_into(&transaction)?;
        }
        transaction.commit()?;
        if fold {
            self.chain.folded();
        }
        if checkpoint {
            self.chain.checkpointed();
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Err(error) = self.sum_up(true, true) {
            tracing::warn!(%error, "the ledger's sums are left to the next start");
        }
    }

    fn set_ill(&self, error: &SqlError, records: usize) {
        if !self.progress.borrow().failing {
            tracing::error!(%error, records, "the ledger cannot be written; trying again");
        }
        self.set_failing(true);
    }

    fn set_well(&self) {
        if self.queue.is_failing() {
            tracing::info!("the ledger can be written again");
            self.set_failing(false);
        }
    }

    fn set_failing(&self, failing: bool) {
        self.queue.set_failing(failing);
        self.progress.send_if_modified(|now| std::mem::replace(&mut now.failing, failing) != failing);
    }
}

/// Returns where the chain stands once the records are stored.
fn meant(tip: Tip, batch: &Batch, range: Range<usize>) -> Tip {
    range.filter_map(|at| batch.record(at)).fold(tip, |tip, encoded| tip.after(encoded.canonical))
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a writer no record can be kept, so no request may be admitted.
        self.queue.set_failing(true);
    }
}
