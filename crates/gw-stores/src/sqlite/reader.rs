//! The reader's thread: queries on a connection of its own.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::JoinHandle,
};

use gw_types::{
    AccountingRecord, ErrorKind, GatewayError, KeyName, Money, RecordQuery, RequestId, SpendRow,
    StoredRecord, TenantId, UtcTime,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::sync::oneshot;

use super::{rows::Spend, schema};
use crate::StoreError;

/// Records in one answer at most.
pub(crate) const PAGE_RECORDS_MAX: u32 = 1_000;

/// Queries that wait at once; more are refused as `Overloaded`.
const WAITING_MAX: usize = 64;

type Question = Box<dyn FnOnce(&Connection) + Send>;

/// Asks the reader's thread. A thread of its own, so that the ledger works under any runtime, or under none.
#[derive(Debug)]
pub(super) struct Reader {
    questions: Option<SyncSender<Question>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let connection = schema::open_to_read(path)?;
        let (questions, asked) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("gw-ledger-read".to_owned())
            .spawn(move || answer_all(&connection, &asked))
            .map_err(|source| StoreError::Open { path: path.to_owned(), source: source.into() })?;
        Ok(Self { questions: Some(questions), thread: Some(thread) })
    }

    /// Asks one question; dropping the future leaves its answer unheard.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Unreadable> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let asked: Question = Box::new(move |connection| {
            // Whoever asked may be gone.
            let _unheard = reply.send(question(connection));
        });
        let Some(questions) = &self.questions else { return Err(Unreadable::Now.into()) };
        questions.try_send(asked).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => GatewayError::from(Unreadable::Now),
        })?;
        Ok(answer.await.unwrap_or(Err(Unreadable::Now))?)
    }

    /// Answers what was asked so far, and closes the connection.
    pub(super) fn stop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn answer_all(connection: &Connection, asked: &Receiver<Question>) {
    for question in asked {
        question(connection);
    }
}

/// Says why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The file cannot be read now.
    Now,
    /// A row is not what gw wrote.
    Row,
}

impl From<rusqlite::Error> for Unreadable {
    fn from(error: rusqlite::Error) -> Self {
        tracing::error!(%error, "the ledger cannot be read");
        Self::Now
    }
}

impl From<Unreadable> for GatewayError {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Now => Self::new(ErrorKind::Overloaded, "the ledger cannot be read now"),
            Unreadable::Row => Self::new(ErrorKind::Internal, "the ledger holds a row that cannot be read"),
        }
    }
}

/// Returns a page of records, newest first.
pub(super) fn records(connection: &Connection, query: &RecordQuery) -> Result<Vec<StoredRecord>, Unreadable> {
    const ALL: &str = "SELECT seq, record FROM records WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
    const OF_TENANT: &str =
        "SELECT seq, record FROM records WHERE seq < ?1 AND tenant = ?3 ORDER BY seq DESC LIMIT ?2";
    // `before` is exclusive, so the largest value leaves out no record that SQLite could ever number.
    let before = query.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    let limit = query.limit.clamp(1, PAGE_RECORDS_MAX);
    match &query.tenant {
        None => page(connection.prepare_cached(ALL)?.query(params![before, limit])?),
        Some(tenant) => {
            page(connection.prepare_cached(OF_TENANT)?.query(params![before, limit, tenant.as_str()])?)
        }
    }
}

fn page(mut rows: rusqlite::Rows<'_>) -> Result<Vec<StoredRecord>, Unreadable> {
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        page.push(stored(row)?.ok_or(Unreadable::Row)?);
    }
    Ok(page)
}

/// Returns the record with the id.
pub(super) fn record(connection: &Connection, id: &RequestId) -> Result<Option<StoredRecord>, Unreadable> {
    const BY_ID: &str = "SELECT seq, record FROM records WHERE id = ?1";
    let found = connection.prepare_cached(BY_ID)?.query_row([id.as_str()], stored).optional()?;
    found.map(|stored| stored.ok_or(Unreadable::Row)).transpose()
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Option<StoredRecord>> {
    let seq: i64 = row.get(0)?;
    let json = row.get_ref(1)?.as_str()?;
    // The parser's message may quote the row; it goes no further.
    let record: Option<AccountingRecord> = serde_json::from_str(json).ok();
    Ok(u64::try_from(seq).ok().zip(record).map(|(seq, record)| StoredRecord { seq, record }))
}

/// The rows of a window. Answered from the spend index alone; cost is linear in the records of the window that cost
/// something, some 10^6 a second.
const SPENT: &str = "SELECT tenant, key, spent_pico FROM records WHERE started >= ?1 AND spent_pico <> 0";

/// Returns what each tenant and key has spent, sorted by both.
pub(super) fn spend_since(connection: &Connection, since: UtcTime) -> Result<Vec<SpendRow>, Unreadable> {
    let mut statement = connection.prepare_cached(SPENT)?;
    let mut rows = statement.query([since.micros()])?;
    let mut sums: BTreeMap<String, BTreeMap<String, Money>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let (tenant, key) = (text(0)?, text(1)?);
        let spent = Spend::read(row.get_ref(2)?).ok_or(Unreadable::Row)?;
        // Looked up before it is inserted, so that only a new pair allocates.
        if !sums.contains_key(tenant) {
            sums.insert(tenant.to_owned(), BTreeMap::new());
        }
        let keys = sums.get_mut(tenant).ok_or(Unreadable::Row)?;
        match keys.get_mut(key) {
            Some(sum) => *sum = sum.saturating_add(spent.0),
            None => drop(keys.insert(key.to_owned(), spent.0)),
        }
    }
    sums.iter().flat_map(|(tenant, keys)| keys.iter().map(move |row| (tenant, row))).map(spend_row).collect()
}

fn spend_row((tenant, (key, spent)): (&String, (&String, &Money))) -> Result<SpendRow, Unreadable> {
    let tenant = TenantId::new(tenant).map_err(|_| Unreadable::Row)?;
    let key = KeyName::new(key).map_err(|_| Unreadable::Row)?;
    Ok(SpendRow { tenant, key, spent: *spent })
}

#[cfg(test)]
mod tests {
    use super::{SPENT, schema};

    #[test]
    fn a_window_is_summed_from_the_index_alone() {
        let folder = tempfile::tempdir().unwrap();
        let connection = schema::open_to_write(&folder.path().join("gw.db")).unwrap();
        let plan: String = connection
            .query_row(&format!("EXPLAIN QUERY PLAN {SPENT}"), [0], |row| row.get("detail"))
            .unwrap();
        assert_eq!(plan, "SEARCH records USING COVERING INDEX records_spend (started>?)");
    }
}
