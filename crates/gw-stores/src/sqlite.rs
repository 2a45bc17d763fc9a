//! A ledger in one SQLite file.

mod lock;
mod queue;
mod reader;
mod rows;
mod schema;
mod writer;

use std::{path::Path, sync::Arc, thread::JoinHandle};

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, GatewayError, Ledger, Receipt, RecordQuery, RequestId, SpendRow, StoredRecord, UtcTime,
};
use tokio::sync::watch;

use self::{
    lock::FileLock,
    queue::Queue,
    reader::Reader,
    writer::{Progress, Writer},
};
pub(crate) use self::{reader::PAGE_RECORDS_MAX, rows::Spend};
use crate::StoreError;

/// How a [`SqliteLedger`] queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteConfig {
    /// Places in the queue, 1 to 1,048,576. A place is taken from a request's admission until its record is stored,
    /// so this also bounds the requests in flight.
    pub queue: usize,
    /// Records in one transaction at most, 1 to 65,536.
    pub batch: usize,
}

impl SqliteConfig {
    const QUEUE_MAX: usize = 1 << 20;
    const BATCH_MAX: usize = 1 << 16;

    fn check(self) -> Result<(), StoreError> {
        for (field, found, max) in
            [("queue", self.queue, Self::QUEUE_MAX), ("batch", self.batch, Self::BATCH_MAX)]
        {
            if !(1..=max).contains(&found) {
                return Err(StoreError::OutOfRange { field, found, max });
            }
        }
        Ok(())
    }
}

impl Default for SqliteConfig {
    /// Returns 4,096 places and batches of at most 512 records.
    fn default() -> Self {
        Self { queue: 4_096, batch: 512 }
    }
}

/// Keeps the records in one SQLite file, written by one thread in batches.
///
/// `append` moves the record onto a queue; serialising and storing happen on the writer's thread, a few milliseconds
/// later. A stored record survives the death of the process (`kill -9`), not the loss of power: the file is in WAL
/// mode and is never synced by gw itself.
///
/// When the file cannot be written (disk full, locked by a tool), nothing is dropped: the writer keeps its batch and
/// tries again, and until it succeeds [`Ledger::take_place`] returns `false`, so that no request is admitted whose
/// record could not be kept.
///
/// A read sees every record that was appended before it, unless the file cannot be written just now.
///
/// Dropping the ledger stores what is queued and waits for it: a few milliseconds, at most about six seconds where
/// the file cannot be written.
#[derive(Debug)]
pub struct SqliteLedger {
    queue: Arc<Queue>,
    progress: watch::Receiver<Progress>,
    writer: Option<JoinHandle<()>>,
    reader: Reader,
    /// Held for as long as the file is open; released by the system even when the process is killed.
    _lock: FileLock,
}

impl SqliteLedger {
    /// Opens the file, and makes it if there is none; its folder must exist.
    ///
    /// A lock file of the same name with `.lock` at the end stays beside it.
    ///
    /// # Errors
    /// [`StoreError`]: out of range, in use by another process, from a newer version, not a ledger, or not openable.
    pub fn open(path: &Path, config: SqliteConfig) -> Result<Arc<Self>, StoreError> {
        config.check()?;
        let path = &lock::canonical(path)?;
        let lock = FileLock::take(path)?;
        let write = schema::open_to_write(path)?;
        let reader = Reader::start(path)?;
        let queue = Arc::new(Queue::new(config.queue, config.batch));
        let (sender, progress) = watch::channel(Progress::default());
        let writer = Writer::new(Arc::clone(&queue), write, sender);
        let writer = std::thread::Builder::new()
            .name("gw-ledger-write".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| StoreError::Open { path: path.clone(), source: source.into() })?;
        Ok(Arc::new(Self { queue, progress, writer: Some(writer), reader, _lock: lock }))
    }

    /// Returns whether the last write failed and is being tried again.
    pub fn is_failing(&self) -> bool {
        self.queue.is_failing()
    }

    /// Waits until the records appended so far are stored; not while the file cannot be written.
    async fn settle(&self) {
        let appended = self.queue.hurry();
        let mut progress = self.progress.clone();
        // An error says that the writer is gone; then there is nothing to wait for.
        let _ended = progress.wait_for(|now| now.stored >= appended || now.failing).await;
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    fn take_place(&self) -> bool {
        self.queue.take_place()
    }

    fn give_place_back(&self) {
        self.queue.give_places_back(1);
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        self.queue.push(record);
        Receipt::Queued
    }

    async fn records(&self, query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        self.settle().await;
        self.reader.ask(move |connection| reader::records(connection, &query)).await
    }

    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        self.settle().await;
        let id = id.clone();
        self.reader.ask(move |connection| reader::record(connection, &id)).await
    }

    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        self.settle().await;
        self.reader.ask(move |connection| reader::spend_since(connection, since)).await
    }

    async fn flush(&self) {
        let appended = self.queue.hurry();
        let mut progress = self.progress.clone();
        let _ended = progress.wait_for(|now| now.stored >= appended).await;
    }
}

impl Drop for SqliteLedger {
    fn drop(&mut self) {
        // The reader goes first: the last connection to close tidies the WAL file away, and only the writer's may.
        self.reader.stop();
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so on its own thread; there is nobody to pass it on to.
            let _ended = writer.join();
        }
    }
}

#[cfg(test)]
mod tests;
