//! The queue between the requests and the writer.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use gw_types::AccountingRecord;
use parking_lot::{Condvar, Mutex};

use crate::places::Places;

/// How long the writer lets records gather after the first.
///
/// Waking a thread costs a request several microseconds, and a transaction costs the same for one record as for
/// fifty; so a request wakes the writer at most once in this time. It bounds what `kill -9` can take. `flush` and
/// every read cut it short.
const GATHER: Duration = Duration::from_millis(20);

/// Records on their way to the writer, at most as many as there are places.
///
/// A place is in use from [`Queue::take_place`] until the writer has stored the record, so `push` never has to wait.
#[derive(Debug)]
pub(super) struct Queue {
    places: Places,
    failing: AtomicBool,
    batch: usize,
    state: Mutex<State>,
    /// Wakes the writer for records.
    filled: Condvar,
    /// Wakes the writer from the pause after a failure.
    closing: Condvar,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<Box<AccountingRecord>>,
    /// Records ever pushed.
    pushed: u64,
    waiting: Waiting,
    hurry: bool,
    closed: bool,
}

/// What the writer waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiting {
    #[default]
    Nothing,
    OneRecord,
    FullBatch,
}

impl Queue {
    pub(super) fn new(places: usize, batch: usize) -> Self {
        Self {
            places: Places::new(places),
            failing: AtomicBool::new(false),
            batch,
            state: Mutex::new(State::default()),
            filled: Condvar::new(),
            closing: Condvar::new(),
        }
    }

    // === The requests' side ===

    pub(super) fn take_place(&self) -> bool {
        !self.is_failing() && self.places.take()
    }

    pub(super) fn give_places_back(&self, count: usize) {
        self.places.give_back(count);
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub(super) fn push(&self, record: Box<AccountingRecord>) {
        let wake = {
            let mut state = self.state.lock();
            state.records.push_back(record);
            state.pushed += 1;
            let enough = match state.waiting {
                Waiting::Nothing => false,
                Waiting::OneRecord => true,
                Waiting::FullBatch => state.records.len() >= self.batch,
            };
            if enough {
                state.waiting = Waiting::Nothing;
            }
            enough
        };
        if wake {
            self.filled.notify_one();
        }
    }

    /// Asks the writer not to wait for more; returns how many records were ever pushed.
    pub(super) fn hurry(&self) -> u64 {
        let mut state = self.state.lock();
        if !state.records.is_empty() {
            state.hurry = true;
            self.filled.notify_one();
        }
        state.pushed
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
        self.closing.notify_one();
    }

    // === The writer's side ===

    /// Waits for records and moves at most a batch of them; leaves `into` empty once the queue is closed and empty.
    #[expect(clippy::vec_box, reason = "records stay where the request put them; a batch moves pointers")]
    pub(super) fn take_batch(&self, into: &mut Vec<Box<AccountingRecord>>) {
        let mut state = self.state.lock();
        while state.records.is_empty() && !state.closed {
            state.waiting = Waiting::OneRecord;
            self.filled.wait(&mut state);
        }
        if state.records.len() < self.batch && !state.hurry && !state.closed {
            // A wake-up without reason makes a smaller batch, and nothing worse.
            state.waiting = Waiting::FullBatch;
            self.filled.wait_for(&mut state, GATHER);
        }
        state.waiting = Waiting::Nothing;
        let count = state.records.len().min(self.batch);
        into.extend(state.records.drain(..count));
        // Whoever asked for haste asked for all of it.
        state.hurry &= !state.records.is_empty();
    }

    pub(super) fn set_failing(&self, failing: bool) {
        self.failing.store(failing, Ordering::Relaxed);
    }

    /// Waits out a pause, or until the queue is closed; returns whether it is.
    pub(super) fn pause(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        self.closing.wait_for(&mut state, pause);
        state.closed
    }
}
