//! A ledger that keeps the latest records in memory.

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, GatewayError, Ledger, Receipt, RecordQuery, RequestId, SpendDetail, SpendRow,
    StoredRecord, UtcTime,
};
use parking_lot::Mutex;

use crate::{ledger::PAGE_RECORDS_MAX, places::Places, sums::SpendSums};

/// Requests in flight at once, unless [`MemoryLedger::with_places`] says otherwise.
const PLACES: usize = 65_536;

/// Keeps the latest records in memory, for `store = "none"` and for tests.
///
/// A record that does not fit pushes out the oldest. [`Ledger::spend_since`] sums over the records that are still
/// held: after a restart, or once records have been pushed out, it says less than was spent.
#[derive(Debug)]
pub struct MemoryLedger {
    places: Places,
    ring: Mutex<Ring>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Ring {
    seq: u64,
    records: VecDeque<StoredRecord>,
}

impl MemoryLedger {
    /// Returns an empty ledger that holds at most `capacity` records (at least 1).
    pub fn new(capacity: usize) -> Arc<Self> {
        Self::with_places(capacity, PLACES)
    }

    /// Returns an empty ledger that also bounds the places taken at once.
    pub fn with_places(capacity: usize, places: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Places::new(places),
            ring: Mutex::new(Ring::default()),
            capacity: capacity.max(1),
        })
    }

    fn spend(&self, since: UtcTime) -> SpendSums {
        let mut sums = SpendSums::default();
        let ring = self.ring.lock();
        let wanted = ring.records.iter().filter(|stored| stored.record.started >= since);
        wanted.for_each(|stored| sums.add_record(&stored.record));
        sums
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    fn take_place(&self) -> bool {
        self.places.take()
    }

    fn give_place_back(&self) {
        self.places.give_back(1);
    }

    fn queue(&self) -> Option<gw_types::LedgerQueue> {
        Some(self.places.queue())
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        let pushed_out = {
            let mut ring = self.ring.lock();
            ring.seq += 1;
            let seq = ring.seq;
            let full = ring.records.len() == self.capacity;
            let pushed_out = if full { ring.records.pop_front() } else { None };
            ring.records.push_back(StoredRecord { seq, record: *record });
            pushed_out
        };
        // Freed outside the lock.
        drop(pushed_out);
        self.places.give_back(1);
        Receipt::Queued
    }

    async fn records(&self, query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        let limit = query.limit.clamp(1, PAGE_RECORDS_MAX) as usize;
        let wanted = |stored: &&StoredRecord| {
            query.before.is_none_or(|before| stored.seq < before)
                && query.tenant.as_ref().is_none_or(|tenant| stored.record.tenant == *tenant)
        };
        Ok(self.ring.lock().records.iter().rev().filter(wanted).take(limit).cloned().collect())
    }

    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        Ok(self.ring.lock().records.iter().rev().find(|stored| stored.record.id == *id).cloned())
    }

    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        Ok(self.spend(since).rows().unwrap_or_default())
    }

    async fn spend_details_since(&self, since: UtcTime) -> Result<Vec<SpendDetail>, GatewayError> {
        Ok(self.spend(since).details().unwrap_or_default())
    }

    async fn flush(&self) {}
}
