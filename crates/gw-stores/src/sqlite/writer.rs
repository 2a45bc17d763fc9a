//! The writer's thread: batches into transactions.

use std::{sync::Arc, time::Duration};

use gw_types::AccountingRecord;
use rusqlite::Connection;
use tokio::sync::watch;

use super::{queue::Queue, rows::RowWriter};

/// The first pause after a failed write; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Tries after the ledger was closed, until what is left is given up.
const LAST_TRIES: u32 = 5;

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
    connection: Connection,
    rows: RowWriter,
    progress: watch::Sender<Progress>,
}

impl Writer {
    pub(super) fn new(queue: Arc<Queue>, connection: Connection, progress: watch::Sender<Progress>) -> Self {
        Self { queue, connection, rows: RowWriter::default(), progress }
    }

    pub(super) fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            self.queue.take_batch(&mut batch);
            if batch.is_empty() {
                return;
            }
            self.store(&batch);
            let count = batch.len();
            batch.clear();
            self.queue.give_places_back(count);
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            self.progress.send_modify(|now| now.stored = now.stored.saturating_add(count));
        }
    }

    /// Stores a batch whole, however long that takes; gives up only after the ledger was closed.
    fn store(&mut self, batch: &[Box<AccountingRecord>]) {
        let mut pause = PAUSE_MIN;
        let mut tries_left = LAST_TRIES;
        while let Err(error) = self.rows.write(&mut self.connection, batch) {
            if !self.queue.is_failing() {
                tracing::error!(%error, records = batch.len(), "the ledger cannot be written; trying again");
                self.set_failing(true);
            }
            let closed = self.queue.pause(pause);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
            if closed && tries_left == 0 {
                tracing::error!(%error, records = batch.len(), "the ledger was closed with records not stored");
                return;
            }
            tries_left -= u32::from(closed);
        }
        if self.queue.is_failing() {
            tracing::info!("the ledger can be written again");
            self.set_failing(false);
        }
    }

    fn set_failing(&self, failing: bool) {
        self.queue.set_failing(failing);
        self.progress.send_modify(|now| now.failing = failing);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a writer no record can be kept, so no request may be admitted.
        self.queue.set_failing(true);
    }
}
