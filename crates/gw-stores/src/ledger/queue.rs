//! The queue between the requests and the writer.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{
    journal::{Segment, header},
    keys::Noting,
    writer::Task,
};
use crate::{encode::Batch, places::Places};

/// How long the writer lets records gather after the first.
///
/// Waking a thread costs a request several microseconds, and a transaction costs the same for one record as for
/// fifty; so a request wakes the writer at most once in this time. It bounds what `kill -9` can take. `flush`, every read
/// and everybody who waits for a receipt cut it short.
const GATHER: Duration = Duration::from_millis(20);

/// The same where a journal keeps the records meanwhile, and longer batches cost nobody anything.
const GATHER_IN_JOURNAL: Duration = Duration::from_millis(100);

/// Tasks of the writer that wait at once; more are refused.
const TASKS_MAX: usize = 16;

/// Notes of idempotency keys that wait at once; more are refused.
const NOTES_MAX: usize = 65_536;

/// Records on their way to the writer, at most as many as there are places.
///
/// A place is in use from [`Queue::take_place`] until the writer has stored the record, so `push` never has to wait.
#[derive(Debug)]
pub(super) struct Queue {
    places: Places,
    failing: AtomicBool,
    /// Records that the writer does not wait beyond.
    batch: usize,
    /// How long the writer waits for something to do before it looks after its database; `None`: for ever.
    idle: Option<Duration>,
    state: Mutex<State>,
    /// Wakes the writer for records.
    filled: Condvar,
    /// Wakes the writer from the pause after a failure.
    closing: Condvar,
}

/// Encoded records, and the journal's segment that holds the same records, if there is a journal.
///
/// Two of these take turns: requests fill one while the writer stores the other.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) batch: Batch,
    pub(super) segment: Option<Segment>,
}

#[derive(Debug, Default)]
struct State {
    filling: Buffer,
    /// Records ever pushed.
    pushed: u64,
    waiting: Waiting,
    hurry: bool,
    closed: bool,
    tasks: Vec<Task>,
    notes: Vec<Noting>,
}

impl State {
    fn has_nothing(&self) -> bool {
        self.filling.batch.is_empty() && self.tasks.is_empty() && self.notes.is_empty()
    }
}

/// What the writer has to do.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) buffer: Buffer,
    pub(super) tasks: Vec<Task>,
    pub(super) notes: Vec<Noting>,
    /// Whether there is nothing to do, and never will be again.
    pub(super) is_over: bool,
}

/// What the writer waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiting {
    #[default]
    Nothing,
    OneRecord,
    FullBatch,
}

/// Says when the caller of a push may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The record outlives the process already, or need not.
    Kept,
    /// Once so many records are stored.
    After(u64),
}

/// What a pusher asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To be stored some time.
    Whenever,
    /// To outlive the process.
    Journal,
    /// To be committed and synced.
    Commit,
}

impl Queue {
    /// Returns an empty queue that fills the buffer first; its writer looks after its database while it is idle.
    pub(super) fn new(places: usize, batch: usize, first: Buffer, idle: Option<Duration>) -> Self {
        Self {
            places: Places::new(places),
            failing: AtomicBool::new(false),
            batch,
            idle,
            state: Mutex::new(State { filling: first, ..State::default() }),
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

    pub(super) fn fill(&self) -> gw_types::LedgerQueue {
        self.places.queue()
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Takes a lone encoded record; returns what to wait for.
    pub(super) fn push(&self, encoded: &mut Batch, wish: Wish) -> Pushed {
        let (wake, pushed) = {
            let mut state = self.state.lock();
            state.pushed += 1;
            let number = state.pushed;
            let kept = match wish {
                Wish::Whenever => true,
                Wish::Journal => self.journal(&mut state, encoded, number),
                Wish::Commit => false,
            };
            state.hurry |= !kept;
            state.filling.batch.append(encoded);
            let enough = match state.waiting {
                Waiting::Nothing => false,
                Waiting::OneRecord => true,
                Waiting::FullBatch => !kept || state.filling.batch.len() >= self.batch,
            };
            if enough {
                state.waiting = Waiting::Nothing;
            }
            (enough, if kept { Pushed::Kept } else { Pushed::After(number) })
        };
        if wake {
            self.filled.notify_one();
        }
        pushed
    }

    /// Appends to the journal under the lock, so that its order is the queue's. Returns whether that went well.
    fn journal(&self, state: &mut State, encoded: &mut Batch, number: u64) -> bool {
        let Some(segment) = &mut state.filling.segment else { return false };
        let framed = encoded.framed(|canonical| header(number, canonical));
        match segment.append(framed) {
            Ok(()) => true,
            Err(error) => {
                // Nobody is admitted until the writer has stored something again.
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(%error, "the ledger's journal cannot be written");
                }
                false
            }
        }
    }

    /// Asks the writer not to wait for more; returns how many records were ever pushed.
    pub(super) fn hurry(&self) -> u64 {
        let mut state = self.state.lock();
        if !state.filling.batch.is_empty() {
            state.hurry = true;
            self.filled.notify_one();
        }
        state.pushed
    }

    /// Gives the writer something to do between two batches, after what was pushed so far; returns whether it will.
    pub(super) fn ask(&self, task: Task) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.tasks.len() >= TASKS_MAX {
            return false;
        }
        state.tasks.push(task);
        state.hurry = true;
        self.filled.notify_one();
        true
    }

    /// Gives the writer a note of an idempotency key, behind those so far; returns whether it will store it.
    pub(super) fn note(&self, noting: Noting) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.notes.len() >= NOTES_MAX {
            return false;
        }
        state.notes.push(noting);
        state.hurry = true;
        self.filled.notify_one();
        true
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
        self.closing.notify_one();
    }

    // === The writer's side ===

    /// Waits for something to do, and takes all there is: the empty buffer is filled from now on, and the full one comes
    /// back. Comes back empty-handed after the idle time, and for good once the queue is closed and empty.
    pub(super) fn take(&self, empty: Buffer) -> Taken {
        let mut state = self.state.lock();
        let mut idle = false;
        while state.has_nothing() && !state.closed && !idle {
            state.waiting = Waiting::OneRecord;
            match self.idle {
                None => self.filled.wait(&mut state),
                Some(most) => idle = self.filled.wait_for(&mut state, most).timed_out(),
            }
        }
        let is_over = state.has_nothing() && state.closed;
        let is_idle = state.has_nothing();
        if state.filling.batch.len() < self.batch && !state.hurry && !state.closed && !is_idle {
            // A wake-up without reason makes a smaller batch, and nothing worse.
            state.waiting = Waiting::FullBatch;
            let gather = if state.filling.segment.is_some() { GATHER_IN_JOURNAL } else { GATHER };
            self.filled.wait_for(&mut state, gather);
        }
        state.waiting = Waiting::Nothing;
        state.hurry = false;
        Taken {
            buffer: std::mem::replace(&mut state.filling, empty),
            tasks: std::mem::take(&mut state.tasks),
            notes: std::mem::take(&mut state.notes),
            is_over,
        }
    }

    /// Takes the buffer that is being filled, for good.
    pub(super) fn take_last(&self) -> Buffer {
        std::mem::take(&mut self.state.lock().filling)
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

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;

    use super::{Buffer, Pushed, Queue, Segment, Wish};
    use crate::encode::with_encoded;

    #[test]
    fn a_journal_that_cannot_be_written_makes_callers_wait_and_refuses_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let full = Segment::always_full(folder.path());
        let queue = Queue::new(4, 4, Buffer { segment: Some(full), ..Buffer::default() }, None);
        let push = |wish| with_encoded(&sample_record(1), |encoded| queue.push(encoded, wish));
        assert!(queue.take_place());
        assert_eq!(push(Wish::Whenever), Pushed::Kept);
        assert_eq!(push(Wish::Journal), Pushed::After(2));
        assert!(!queue.take_place());
        // The record waits in memory all the same, and nobody waits for more.
        let taken = queue.take(Buffer::default());
        assert_eq!(taken.buffer.batch.len(), 2);
    }
}
