//! The ledger: a queue, one writer's thread and one reader's, over a SQLite file or a PostgreSQL database.

mod blocks;
mod chain;
mod journal;
mod keys;
mod queue;
mod reader;
mod reads;
mod retention;
mod rows;
mod writer;

use std::{path::PathBuf, sync::Arc, thread::JoinHandle, time::Duration};

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, ErrorKind, GatewayError, KeyNote, Ledger, Receipt, RecordQuery, RequestId, SpendDetail,
    SpendRow, StoredRecord, UtcTime,
};
use tokio::sync::{oneshot, watch};

pub use self::retention::Retained;
pub(crate) use self::{
    blocks::{Block, BlockLine, COLUMNS as BLOCK_COLUMNS, block_of, each_block, hash_before, tag_of},
    chain::{Chain, Tip},
    reads::{PAGE_RECORDS_MAX, Unreadable, each_sum, record},
    retention::{Summary, is_note, newest_summary, retainable},
    rows::{SUM_COLUMNS, sum},
};
use self::{
    journal::Segment,
    keys::Noting,
    queue::{Buffer, Pushed, Queue, Wish},
    reader::Reader,
    writer::{Progress, Task, Writer},
};
use crate::{
    CheckpointKey, LedgerStore, RecordReceipt, StoreError,
    encode::{Batch, with_encoded},
    sql::{Db, SqlError},
    sqlite::FileLock,
    store::Writable,
};

/// What a stored record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Records are queued for about 20 ms, which `kill -9` can take.
    None,
    /// A record survives the death of the process (`kill -9`). Beside a SQLite file it is written to a journal at once,
    /// before `append` returns, and to the database in the next batch, so that the loss of power may take it; to a
    /// PostgreSQL server it is committed before its receipt resolves.
    #[default]
    Process,
    /// A record survives the loss of power once its receipt has resolved: a group of records is committed and synced
    /// together.
    Power,
}

/// How often a server is asked whether it is there while nothing else is asked.
const IDLE: Duration = Duration::from_secs(1);

/// How a [`SqlLedger`] queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlConfig {
    /// Places in the queue, 1 to 1,048,576. A place is taken from a request's admission until its record is stored,
    /// so this also bounds the requests in flight.
    pub queue: usize,
    /// Records in one transaction at most, 1 to 65,536.
    pub batch: usize,
    /// What a stored record survives.
    pub durability: Durability,
}

impl SqlConfig {
    const QUEUE_MAX: usize = 1 << 20;
    const BATCH_MAX: usize = 1 << 16;

    /// Returns what is asked for each record.
    const fn wish(self, beside: Option<&PathBuf>) -> Wish {
        match (self.durability, beside) {
            (Durability::None, _) => Wish::Whenever,
            (Durability::Process, Some(_)) => Wish::Journal,
            // What a server has committed survives this process and the server's power.
            (Durability::Process, None) | (Durability::Power, _) => Wish::Commit,
        }
    }

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

impl Default for SqlConfig {
    /// Returns 4,096 places, batches of at most 512 records, and records that survive the process.
    fn default() -> Self {
        Self { queue: 4_096, batch: 512, durability: Durability::Process }
    }
}

/// Keeps the records in a SQLite file or a PostgreSQL database, written by one thread in batches, and seals them in a
/// chain. Several gateways may share a database: each writes a chain of its own (see the crate's `postgres`).
///
/// `append` encodes the record, and beside a file with [`Durability::Process`] writes it to the journal; storing happens
/// on the writer's thread, beside a file up to a tenth of a second later. A file is in WAL mode.
///
/// When the database cannot be written (disk full, locked by a tool, server gone), nothing is dropped: the writer keeps
/// its batch and tries again, and until it succeeds [`Ledger::take_place`] returns `false`, so that no request is
/// admitted whose record could not be kept. A server is asked every second whether it is there.
///
/// A read sees every record that was appended before it, unless the database cannot be written just now. Lists of records
/// are this gateway's own chain; single records, receipts and sums are looked for in all of them.
///
/// Dropping the ledger stores what is queued and waits for it: a few milliseconds, where the database cannot be written
/// some seconds.
#[derive(Debug)]
pub struct SqlLedger {
    queue: Arc<Queue>,
    progress: watch::Receiver<Progress>,
    wish: Wish,
    writer: Option<JoinHandle<()>>,
    reader: Reader,
    /// Held for as long as a file is open; released by the system even when the process is killed.
    _lock: Option<FileLock>,
}

impl SqlLedger {
    /// Opens the ledger, and makes it if there is none; the folder of a file must exist, and so must a database. Stores
    /// what the journal of a process that died still holds. May wait for a server for some seconds.
    ///
    /// Beside a file a lock file of the same name with `.lock` at the end stays; the journal's two files, `.journal-a`
    /// and `.journal-b`, are there while the ledger is open.
    ///
    /// # Errors
    /// [`StoreError`]: out of range, in use by another process, from a newer version, not a ledger, or not openable.
    pub fn open(store: impl Into<LedgerStore>, config: SqlConfig) -> Result<Arc<Self>, StoreError> {
        Self::start(&store.into(), config, None)
    }

    /// Opens the ledger as [`Self::open`] does, and signs the chain at least every 1,000 records and at the end.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_signed(
        store: impl Into<LedgerStore>,
        config: SqlConfig,
        key: CheckpointKey,
    ) -> Result<Arc<Self>, StoreError> {
        Self::start(&store.into(), config, Some(key))
    }

    fn start(
        store: &LedgerStore,
        config: SqlConfig,
        key: Option<CheckpointKey>,
    ) -> Result<Arc<Self>, StoreError> {
        config.check()?;
        let Opened { lock, db, chain, beside } =
            Opened::open(&store.name(), store.open_to_write(config.durability)?, config, key)?;
        let failed =
            |source: std::io::Error| StoreError::Open { ledger: store.name(), source: source.into() };
        let reader = Reader::start(store.open_beside(&db)?).map_err(failed)?;
        let wish = config.wish(beside.as_ref());
        let [first, second] = match &beside {
            Some(path) if wish == Wish::Journal => Segment::open_both(path)?.map(Some),
            Some(_) | None => [None, None],
        };
        let first = Buffer { segment: first, ..Buffer::default() };
        let second = Buffer { segment: second, ..Buffer::default() };
        let idle = db.is_remote().then_some(IDLE);
        let queue = Arc::new(Queue::new(config.queue, config.batch, first, idle));
        let (sender, progress) = watch::channel(Progress::default());
        let writer = Writer::new(Arc::clone(&queue), db, chain, config.batch, sender);
        let writer = std::thread::Builder::new()
            .name("gw-ledger-write".to_owned())
            .spawn(move || writer.run(second))
            .map_err(failed)?;
        Ok(Arc::new(Self { queue, progress, wish, writer: Some(writer), reader, _lock: lock }))
    }

    /// Returns the proof that a record stands in the chain: its links up to the next signed checkpoint, which is signed
    /// now if need be. `None`: there is no such record.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now; `Intake` with 404 if the ledger has no key to sign with.
    pub async fn signed_receipt(&self, id: &RequestId) -> Result<Option<RecordReceipt>, GatewayError> {
        self.settle().await;
        let wanted = id.clone();
        let signed = self.reader.ask(move |db| {
            let Some(seq) = reads::seq_of(db, &wanted)? else { return Ok(None) };
            reads::is_signed(db, seq).map(Some)
        });
        if signed.await? == Some(false) {
            self.sign().await?;
        }
        let id = id.clone();
        let receipt = self.reader.ask(move |db| {
            let own = db.node();
            anywhere(db, |node, db| {
                // `Some(Err(_))`: it is here, and has no checkpoint after it.
                let is_here = reads::seq_of(db, &id)?.is_some();
                let read = || Ok::<_, Unreadable>(RecordReceipt::read(db, &id)?.ok_or(node == own));
                is_here.then(read).transpose()
            })
        });
        let unsigned = |is_own| {
            let message = if is_own {
                "the ledger has no key to sign checkpoints with"
            } else {
                "the gateway that holds the record's chain has not signed it yet"
            };
            GatewayError::new(ErrorKind::Intake, message).with_status(404)
        };
        receipt.await?.map(|found| found.map_err(unsigned)).transpose()
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
        let retained = self.order(move |chain, db| retention::retain_chain(chain, db, before)).await?;
        // In steps, so that records are stored between them. What an error leaves is deleted by the next open.
        while retained.is_some() && self.order(|_, db| retention::delete_some(db)).await? {}
        Ok(retained)
    }

    /// Signs where the chain stands.
    async fn sign(&self) -> Result<(), GatewayError> {
        self.order(|chain, db| {
            let transaction = db.transaction()?;
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
        order: impl FnOnce(&mut Chain, &Db) -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let refused = || GatewayError::new(ErrorKind::Overloaded, "the ledger cannot be written now");
        let (reply, answer) = oneshot::channel();
        let task = Task::new(move |chain, db| {
            let _unheard = reply.send(order(chain, db));
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

/// A chain that this process alone writes, with everything stored that an earlier one has left.
#[derive(Debug)]
pub(crate) struct Opened {
    lock: Option<FileLock>,
    db: Db,
    chain: Chain,
    beside: Option<PathBuf>,
}

impl Opened {
    fn open(
        name: &str,
        writable: Writable,
        config: SqlConfig,
        key: Option<CheckpointKey>,
    ) -> Result<Self, StoreError> {
        let failed = |error| StoreError::opening(name, error);
        let Writable { db, lock, beside } = writable;
        let mut chain = Chain::read(&db, key).map_err(failed)?;
        retention::finish(&db).map_err(failed)?;
        if let Some(path) = &beside {
            store_left_over(path, &db, &mut chain, config.batch)?;
        }
        Ok(Self { lock, db, chain, beside })
    }
}

/// Deletes old records of a chain that no process has open, as [`SqlLedger::retain`] does, and signs its new end.
pub(crate) fn retain(
    name: &str,
    writable: Writable,
    before: UtcTime,
    key: Option<CheckpointKey>,
) -> Result<Option<Retained>, StoreError> {
    let failed = |error| StoreError::opening(name, error);
    let Opened { lock: _lock, db, mut chain, .. } = Opened::open(name, writable, SqlConfig::default(), key)?;
    let retained = retention::retain_chain(&mut chain, &db, before).map_err(failed)?;
    retention::finish(&db).map_err(failed)?;
    chain.checkpoint_into(&db).map_err(failed)?;
    Ok(retained)
}

/// Makes a signed ledger with blocks of so many sample records, and closes it.
#[cfg(test)]
pub(crate) fn make(store: &LedgerStore, key: CheckpointKey, blocks: &[u32]) {
    let config = SqlConfig::default();
    let writable = store.open_to_write(config.durability).unwrap();
    let Opened { lock: _lock, db, mut chain, .. } =
        Opened::open(&store.name(), writable, config, Some(key)).unwrap();
    let mut number = 0;
    for records in blocks {
        let mut batch = Batch::default();
        for _ in 0..*records {
            number += 1;
            batch.push(&gw_testkit::sample_record(number));
        }
        let transaction = db.transaction().unwrap();
        let tip = chain.insert(&transaction, &batch, 0..batch.len()).unwrap();
        transaction.commit().unwrap();
        chain.advance(tip, &batch, 0..batch.len());
    }
    chain.fold(&db).unwrap();
    chain.checkpoint_into(&db).unwrap();
}

/// Stores what a process that died has left in the journal, and takes the journal away.
///
/// A record that was stored before the journal could be emptied is told by its id.
fn store_left_over(
    path: &std::path::Path,
    db: &Db,
    chain: &mut Chain,
    batch_max: usize,
) -> Result<(), StoreError> {
    let ledger = || path.display().to_string();
    let failed = |error| StoreError::opening(ledger(), error);
    let left_over = journal::left_over(path)?;
    let mut stored = 0;
    for some in left_over.chunks(batch_max) {
        let mut batch = Batch::default();
        for journaled in some {
            let known = record(db, &journaled.record.id);
            if known.map_err(|_| StoreError::Unreadable { ledger: ledger(), seq: None })?.is_none() {
                batch.push(&journaled.record);
            }
        }
        let all = 0..batch.len();
        let transaction = db.transaction().map_err(failed)?;
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

/// Looks in every chain, this gateway's own first, until something is found.
pub(crate) fn anywhere<T>(
    db: &Db,
    mut look: impl FnMut(i64, &Db) -> Result<Option<T>, Unreadable>,
) -> Result<Option<T>, Unreadable> {
    for node in db.nodes()? {
        if let Some(found) = db.at_node(node, |db| look(node, db))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[async_trait]
impl Ledger for SqlLedger {
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
        let page = move |db: &Db| {
            let node = query.node.unwrap_or_else(|| db.node());
            db.at_node(node, |db| reads::records(db, &query))
        };
        self.reader.ask(page).await
    }

    async fn nodes(&self) -> Result<Vec<i64>, GatewayError> {
        self.reader.ask(|db| Ok(db.nodes()?)).await
    }

    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        self.settle().await;
        let id = id.clone();
        self.reader.ask(move |db| anywhere(db, |_, db| record(db, &id))).await
    }

    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        self.settle().await;
        self.reader.ask(move |db| reads::spend_since(db, since)?.rows().ok_or(Unreadable::Row)).await
    }

    async fn spend_details_since(&self, since: UtcTime) -> Result<Vec<SpendDetail>, GatewayError> {
        self.settle().await;
        self.reader.ask(move |db| reads::spend_since(db, since)?.details().ok_or(Unreadable::Row)).await
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
        self.reader.ask(move |db| keys::since(db, since)).await
    }

    async fn receipt(&self, id: &RequestId) -> Result<Option<String>, GatewayError> {
        let Some(receipt) = self.signed_receipt(id).await? else { return Ok(None) };
        let unwritten = |_| GatewayError::new(ErrorKind::Internal, "the receipt cannot be written as JSON");
        serde_json::to_string(&receipt).map(Some).map_err(unwritten)
    }

    fn is_failing(&self) -> bool {
        self.queue.is_failing()
    }

    async fn flush(&self) {
        let appended = self.queue.hurry();
        let mut progress = self.progress.clone();
        let _ended = progress.wait_for(|now| now.stored >= appended).await;
    }
}

impl Drop for SqlLedger {
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
