//! A ledger in one SQLite file.

mod blocks;
mod chain;
mod journal;
mod keys;
mod lock;
mod migrations;
mod queue;
mod reader;
mod reads;
mod retention;
mod rows;
mod schema;
mod writer;

use std::{path::Path, sync::Arc, thread::JoinHandle};

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, ErrorKind, GatewayError, KeyNote, Ledger, Receipt, RecordQuery, RequestId, SpendDetail,
    SpendRow, StoredRecord, UtcTime,
};
use tokio::sync::{oneshot, watch};

pub use self::retention::Retained;
pub(crate) use self::{
    blocks::{Block, BlockLine, COLUMNS as BLOCK_COLUMNS, block_of, each_block, hash_before, tag_of},
    chain::Tip,
    lock::{FileLock, canonical},
    migrations::{VERSION, check as check_migrations},
    reads::{PAGE_RECORDS_MAX, Unreadable, each_sum, record},
    retention::{Summary, is_note, newest_summary, retainable},
    rows::{SUM_COLUMNS, column, count, hash, sum},
    schema::{open_to_change, open_to_read, opening, version},
};
use self::{
    chain::Chain,
    journal::Segment,
    keys::Noting,
    queue::{Buffer, Pushed, Queue, Wish},
    reader::Reader,
    writer::{Progress, Task, Writer},
};
use crate::{
    CheckpointKey, RecordReceipt, StoreError,
    encode::{Batch, with_encoded},
};

/// What a stored record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Records are queued for about 20 ms, which `kill -9` can take.
    None,
    /// A record survives the death of the process (`kill -9`) once `append` has returned, not the loss of power: it is
    /// written to a journal beside the database at once, and to the database in the next batch.
    #[default]
    Process,
    /// A record survives the loss of power once its receipt has resolved: a group of records is committed and synced
    /// together.
    Power,
}

/// How a [`SqliteLedger`] queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteConfig {
    /// Places in the queue, 1 to 1,048,576. A place is taken from a request's admission until its record is stored,
    /// so this also bounds the requests in flight.
    pub queue: usize,
    /// Records in one transaction at most, 1 to 65,536.
    pub batch: usize,
    /// What a stored record survives.
    pub durability: Durability,
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
    /// Returns 4,096 places, batches of at most 512 records, and records that survive the process.
    fn default() -> Self {
        Self { queue: 4_096, batch: 512, durability: Durability::Process }
    }
}

/// Keeps the records in one SQLite file, written by one thread in batches, and seals them in a chain.
///
/// `append` encodes the record, and with [`Durability::Process`] writes it to the journal; storing happens on the
/// writer's thread, up to a tenth of a second later. The file is in WAL mode.
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
    wish: Wish,
    writer: Option<JoinHandle<()>>,
    reader: Reader,
    /// Held for as long as the file is open; released by the system even when the process is killed.
    _lock: FileLock,
}

impl SqliteLedger {
    /// Opens the file, and makes it if there is none; its folder must exist. Stores what the journal of a process that
    /// died still holds.
    ///
    /// A lock file of the same name with `.lock` at the end stays beside it; the journal's two files, `.journal-a` and
    /// `.journal-b`, are there while the ledger is open.
    ///
    /// # Errors
    /// [`StoreError`]: out of range, in use by another process, from a newer version, not a ledger, or not openable.
    pub fn open(path: &Path, config: SqliteConfig) -> Result<Arc<Self>, StoreError> {
        Self::start(path, config, None)
    }

    /// Opens the file as [`Self::open`] does, and signs the chain at least every 1,000 records and at the end.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_signed(
        path: &Path,
        config: SqliteConfig,
        key: CheckpointKey,
    ) -> Result<Arc<Self>, StoreError> {
        Self::start(path, config, Some(key))
    }

    fn start(path: &Path, config: SqliteConfig, key: Option<CheckpointKey>) -> Result<Arc<Self>, StoreError> {
        config.check()?;
        let path = &canonical(path)?;
        let Opened { lock, connection, chain } = Opened::open(path, config, key)?;
        let reader = Reader::start(path)?;
        let [first, second] = match config.durability {
            Durability::Process => Segment::open_both(path)?.map(Some),
            Durability::None | Durability::Power => [None, None],
        };
        let first = Buffer { segment: first, ..Buffer::default() };
        let second = Buffer { segment: second, ..Buffer::default() };
        let queue = Arc::new(Queue::new(config.queue, config.batch, first));
        let (sender, progress) = watch::channel(Progress::default());
        let writer = Writer::new(Arc::clone(&queue), connection, chain, config.batch, sender);
        let writer = std::thread::Builder::new()
            .name("gw-ledger-write".to_owned())
            .spawn(move || writer.run(second))
            .map_err(|source| StoreError::Open { path: path.clone(), source: source.into() })?;
        let wish = match config.durability {
            Durability::None => Wish::Whenever,
            Durability::Process => Wish::Journal,
            Durability::Power => Wish::Commit,
        };
        Ok(Arc::new(Self { queue, progress, wish, writer: Some(writer), reader, _lock: lock }))
    }

    /// Returns whether the last write failed and is being tried again.
    pub fn is_failing(&self) -> bool {
        self.queue.is_failing()
    }

    /// Returns the proof that a record stands in the chain: its links up to the next signed checkpoint, which is signed
    /// now if need be. `None`: there is no such record.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now; `Intake` with 404 if the ledger has no key to sign with.
    pub async fn signed_receipt(&self, id: &RequestId) -> Result<Option<RecordReceipt>, GatewayError> {
        self.settle().await;
        let wanted = id.clone();
        let signed = self.reader.ask(move |connection| {
            let Some(seq) = reads::seq_of(connection, &wanted)? else { return Ok(None) };
            reads::is_signed(connection, seq).map(Some)
        });
        match signed.await? {
            None => return Ok(None),
            Some(true) => {}
            Some(false) => self.sign().await?,
        }
        let id = id.clone();
        let receipt = self.reader.ask(move |connection| RecordReceipt::read(connection, &id)).await?;
        let no_key = || {
            GatewayError::new(ErrorKind::Intake, "the ledger has no key to sign checkpoints with")
                .with_status(404)
        };
        receipt.map(Some).ok_or_else(no_key)
    }

    /// Deletes the records that started before an instant, from the oldest on and up to the first that did not, and
    /// leaves a sealed summary of them in the chain. The sums of reports and budgets stay.
    ///
    /// Records of a window whose spend is still limited should not be deleted: after a restart such a window counts whole
    /// quarters of an hour. Returns `None` where there was nothing to delete.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be written now.
    pub async fn retain(&self, before: UtcTime) -> Result<Option<Retained>, GatewayError> {
        let retained =
            self.order(move |chain, connection| retention::retain_chain(chain, connection, before)).await?;
        // In steps, so that records are stored between them. What an error leaves is deleted by the next open.
        while retained.is_some() && self.order(|_, connection| retention::delete_some(connection)).await? {}
        Ok(retained)
    }

    /// Signs where the chain stands.
    async fn sign(&self) -> Result<(), GatewayError> {
        self.order(|chain, connection| {
            let transaction = connection.transaction()?;
            chain.checkpoint_into(&transaction)?;
            transaction.commit()?;
            chain.checkpointed();
            Ok(())
        })
        .await
    }

    /// Lets the writer do something, and returns what came of it.
    async fn order<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Chain, &mut rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let refused = || GatewayError::new(ErrorKind::Overloaded, "the ledger cannot be written now");
        let (reply, answer) = oneshot::channel();
        let task = Task::new(move |chain, connection| {
            let _unheard = reply.send(order(chain, connection));
        });
        if !self.queue.ask(task) {
            return Err(refused());
        }
        let done = answer.await.map_err(|_| refused())?;
        done.map_err(|error| {
            tracing::error!(%error, "the ledger cannot be written");
            refused()
        })
    }

    /// Waits until the records appended so far are stored; not while the file cannot be written.
    async fn settle(&self) {
        let appended = self.queue.hurry();
        let mut progress = self.progress.clone();
        // An error says that the writer is gone; then there is nothing to wait for.
        let _ended = progress.wait_for(|now| now.stored >= appended || now.failing).await;
    }
}

/// A file that this process alone writes, with everything stored that an earlier one has left.
#[derive(Debug)]
struct Opened {
    lock: FileLock,
    connection: rusqlite::Connection,
    chain: Chain,
}

impl Opened {
    fn open(path: &Path, config: SqliteConfig, key: Option<CheckpointKey>) -> Result<Self, StoreError> {
        let lock = FileLock::take(path)?;
        let mut connection = schema::open_to_write(path, config.durability)?;
        let mut chain = Chain::read(&connection, key).map_err(|error| opening(path, error))?;
        retention::finish(&connection).map_err(|error| opening(path, error))?;
        store_left_over(path, &mut connection, &mut chain, config.batch)?;
        Ok(Self { lock, connection, chain })
    }
}

/// Deletes old records of a ledger that no process has open, as [`SqliteLedger::retain`] does, and signs its new end.
pub(crate) fn retain(
    path: &Path,
    before: UtcTime,
    key: Option<CheckpointKey>,
) -> Result<Option<Retained>, StoreError> {
    let path = &canonical(path)?;
    let failed = |error| opening(path, error);
    let Opened { lock: _lock, mut connection, mut chain } = Opened::open(path, SqliteConfig::default(), key)?;
    let retained = retention::retain_chain(&mut chain, &mut connection, before).map_err(failed)?;
    retention::finish(&connection).map_err(failed)?;
    chain.checkpoint_into(&connection).map_err(failed)?;
    Ok(retained)
}

/// Makes a signed ledger with blocks of so many sample records, and closes it.
#[cfg(test)]
pub(crate) fn make(path: &Path, key: CheckpointKey, blocks: &[u32]) {
    let Opened { lock: _lock, mut connection, mut chain } =
        Opened::open(path, SqliteConfig::default(), Some(key)).unwrap();
    let mut number = 0;
    for records in blocks {
        let mut batch = Batch::default();
        for _ in 0..*records {
            number += 1;
            batch.push(&gw_testkit::sample_record(number));
        }
        let transaction = connection.transaction().unwrap();
        let tip = chain.insert(&transaction, &batch, 0..batch.len()).unwrap();
        transaction.commit().unwrap();
        chain.advance(tip, &batch, 0..batch.len());
    }
    chain.fold(&connection).unwrap();
    chain.checkpoint_into(&connection).unwrap();
}

/// Stores what a process that died has left in the journal, and takes the journal away.
///
/// A record that was stored before the journal could be emptied is told by its id.
fn store_left_over(
    path: &Path,
    connection: &mut rusqlite::Connection,
    chain: &mut Chain,
    batch_max: usize,
) -> Result<(), StoreError> {
    let failed = |error| opening(path, error);
    let left_over = journal::left_over(path)?;
    let mut stored = 0;
    for some in left_over.chunks(batch_max) {
        let mut batch = Batch::default();
        for journaled in some {
            let known = record(connection, &journaled.record.id);
            if known.map_err(|_| StoreError::Unreadable { path: path.to_owned(), seq: None })?.is_none() {
                batch.push(&journaled.record);
            }
        }
        let all = 0..batch.len();
        let transaction = connection.transaction().map_err(failed)?;
        let tip = chain.insert(&transaction, &batch, all.clone()).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        chain.advance(tip, &batch, all);
        stored += batch.len();
    }
    if stored > 0 {
        tracing::info!(records = stored, "stored what the journal of the last process still held");
    }
    journal::remove_left_over(path);
    Ok(())
}

#[async_trait]
impl Ledger for SqliteLedger {
    fn take_place(&self) -> bool {
        self.queue.take_place()
    }

    fn give_place_back(&self) {
        self.queue.give_places_back(1);
    }

    fn queue(&self) -> Option<gw_types::LedgerQueue> {
        Some(self.queue.fill())
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        let pushed = with_encoded(&record, |encoded| self.queue.push(encoded, self.wish));
        match pushed {
            Pushed::Kept => Receipt::Queued,
            Pushed::After(number) => {
                let mut progress = self.progress.clone();
                Receipt::Pending(Box::pin(async move {
                    let stored = progress.wait_for(|now| now.stored >= number).await;
                    stored.map(drop).map_err(|_| {
                        GatewayError::new(
                            ErrorKind::Overloaded,
                            "the ledger was closed with records not stored",
                        )
                    })
                }))
            }
        }
    }

    async fn records(&self, query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        self.settle().await;
        self.reader.ask(move |connection| reads::records(connection, &query)).await
    }

    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        self.settle().await;
        let id = id.clone();
        self.reader.ask(move |connection| record(connection, &id)).await
    }

    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        self.settle().await;
        self.reader
            .ask(move |connection| reads::spend_since(connection, since)?.rows().ok_or(Unreadable::Row))
            .await
    }

    async fn spend_details_since(&self, since: UtcTime) -> Result<Vec<SpendDetail>, GatewayError> {
        self.settle().await;
        self.reader
            .ask(move |connection| reads::spend_since(connection, since)?.details().ok_or(Unreadable::Row))
            .await
    }

    fn note_key(&self, note: KeyNote) -> Receipt {
        let (stored, reply) = oneshot::channel();
        // With `Durability::None` nobody waits for the commit either.
        let waits = self.wish != Wish::Whenever;
        let taken = self.queue.note(Noting { note, stored });
        if taken && !waits {
            return Receipt::Queued;
        }
        Receipt::Pending(Box::pin(async move {
            match reply.await {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => {
                    Err(GatewayError::new(ErrorKind::Overloaded, "the ledger cannot be written now"))
                }
            }
        }))
    }

    async fn key_notes_since(&self, since: UtcTime) -> Result<Vec<KeyNote>, GatewayError> {
        self.reader.ask(move |connection| keys::since(connection, since)).await
    }

    async fn receipt(&self, id: &RequestId) -> Result<Option<String>, GatewayError> {
        let Some(receipt) = self.signed_receipt(id).await? else { return Ok(None) };
        let unwritten = |_| GatewayError::new(ErrorKind::Internal, "the receipt cannot be written as JSON");
        serde_json::to_string(&receipt).map(Some).map_err(unwritten)
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
