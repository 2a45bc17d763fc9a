//! A ledger that stalls, fills up and survives the gateway.

use std::{future::Future, pin::Pin, sync::Arc, task::Poll};

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, Clock, GatewayError, KeyNote, KeyState, Ledger, ManualClock, MonoTime, Receipt,
    RecordQuery, RequestId, Sleep, SpendRow, StoredRecord, UtcTime,
};
use parking_lot::Mutex;

/// Places in the queue unless a script says otherwise.
const PLACES: u32 = 1_000;

/// Keeps every record of a run.
#[derive(Debug)]
pub(crate) struct Records {
    clock: ManualClock,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    records: Vec<AccountingRecord>,
    /// What was said of idempotency keys, oldest first, and when it is stored.
    notes: Vec<(MonoTime, KeyNote)>,
    capacity: u32,
    taken: u32,
    stalled_until: MonoTime,
    /// What is written now is lost: the process was killed.
    is_cut: bool,
}

impl Records {
    pub(crate) fn new(clock: &ManualClock) -> Arc<Self> {
        let inner = Inner { capacity: PLACES, ..Inner::default() };
        Arc::new(Self { clock: clock.clone(), inner: Arc::new(Mutex::new(inner)) })
    }

    pub(crate) fn stall_until(&self, until: MonoTime) {
        let mut inner = self.inner.lock();
        inner.stalled_until = inner.stalled_until.max(until);
    }

    pub(crate) fn set_capacity(&self, places: u32) {
        self.inner.lock().capacity = places;
    }

    /// Loses whatever is written until the ledger is opened again.
    pub(crate) fn cut(&self, is_cut: bool) {
        let mut inner = self.inner.lock();
        inner.is_cut = is_cut;
        if is_cut {
            let now = self.clock.now();
            inner.notes.retain(|(stored, _)| *stored <= now);
        }
    }

    /// Returns what is known of the keys that were first used since then: of each key the newest note that was stored.
    pub(crate) fn keys_since(&self, since: UtcTime) -> Vec<KeyNote> {
        let inner = self.inner.lock();
        let mut known: Vec<KeyNote> = Vec::new();
        for (_, note) in &inner.notes {
            known.retain(|other| (&other.tenant, &other.key) != (&note.tenant, &note.key));
            known.push(note.clone());
        }
        known.retain(|note| note.since >= since && note.state != KeyState::Released);
        known
    }

    /// Returns when what was written last is stored.
    pub(crate) fn stalled_until(&self) -> MonoTime {
        self.inner.lock().stalled_until
    }

    /// Returns whether what is written now is not stored yet.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled_until() > self.clock.now()
    }

    /// Returns how many places are taken.
    pub(crate) fn taken(&self) -> u32 {
        self.inner.lock().taken
    }

    /// Looks at the records, oldest first.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[AccountingRecord]) -> T) -> T {
        look(&self.inner.lock().records)
    }
}

impl Records {
    /// Returns when what is written now is stored.
    fn stored(&self, inner: &Inner) -> Receipt {
        if inner.stalled_until <= self.clock.now() {
            return Receipt::Queued;
        }
        let stored = Stored { clock: self.clock.clone(), inner: Arc::clone(&self.inner), sleep: None };
        Receipt::Pending(Box::pin(stored))
    }
}

#[async_trait]
impl Ledger for Records {
    fn take_place(&self) -> bool {
        let mut inner = self.inner.lock();
        let is_free = inner.taken < inner.capacity;
        inner.taken += u32::from(is_free);
        is_free
    }

    fn give_place_back(&self) {
        self.inner.lock().taken -= 1;
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        let mut inner = self.inner.lock();
        inner.taken -= 1;
        if inner.is_cut {
            return Receipt::Queued;
        }
        inner.records.push(*record);
        self.stored(&inner)
    }

    fn note_key(&self, note: KeyNote) -> Receipt {
        let mut inner = self.inner.lock();
        if inner.is_cut {
            return Receipt::Queued;
        }
        let stored = inner.stalled_until.max(self.clock.now());
        inner.notes.push((stored, note));
        self.stored(&inner)
    }

    async fn records(&self, _query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        Ok(Vec::new())
    }

    async fn record(&self, _id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        Ok(None)
    }

    async fn spend_since(&self, _since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        Ok(Vec::new())
    }

    async fn flush(&self) {}
}

/// Ready once the ledger stalls no more.
struct Stored {
    clock: ManualClock,
    inner: Arc<Mutex<Inner>>,
    sleep: Option<Sleep>,
}

impl Future for Stored {
    type Output = Result<(), GatewayError>;

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let until = this.inner.lock().stalled_until;
            if until <= this.clock.now() {
                return Poll::Ready(Ok(()));
            }
            let sleep = this.sleep.get_or_insert_with(|| this.clock.sleep_until(until));
            std::task::ready!(Pin::new(sleep).poll(cx));
            this.sleep = None;
        }
    }
}
