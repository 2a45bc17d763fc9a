//! What the participants of a shared call have in common beside its answer.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::Context,
};

use gw_types::{ErrorKind, GatewayError, MonoTime, Outcome};
use parking_lot::Mutex;

use crate::state::State;

/// The work of a call, from its reservation to its record.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A shared call: who drives it, until when, and whether its leader is still there.
pub(crate) struct Call {
    /// Here as long as the leader drives it; a task has it afterwards.
    driver: Mutex<Option<Driver>>,
    leader: Mutex<LeaderState>,
    /// Provider calls made so far.
    attempts: AtomicU32,
    /// The latest deadline of those who follow, in nanoseconds.
    until: AtomicU64,
}

/// How a leader left before its call ended: what its record says, while the cost of the call stays in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) outcome: Outcome,
    pub(crate) error: ErrorKind,
}

/// What the record of a call says of its leader.
#[derive(Debug, Default)]
enum LeaderState {
    #[default]
    There,
    Left(Left),
    /// The record is made: from here on what the leader is told must be what it says.
    Recorded(Recorded),
}

/// The error that stands in the record of a call, if one does.
#[derive(Clone, Debug)]
pub(crate) struct Recorded(pub(super) Option<GatewayError>);

impl Left {
    /// The client went away.
    pub(crate) const CANCELLED: Self = Self { outcome: Outcome::Cancelled, error: ErrorKind::Cancelled };
}

impl Call {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            driver: Mutex::new(None),
            leader: Mutex::default(),
            attempts: AtomicU32::new(0),
            until: AtomicU64::new(0),
        })
    }

    /// Gives the call its work.
    pub(super) fn set(&self, driver: Driver) {
        *self.driver.lock() = Some(driver);
    }

    /// Drives the call a step further, unless a task does.
    pub(super) fn poll(&self, cx: &mut Context<'_>) {
        let mut slot = self.driver.lock();
        if let Some(driver) = slot.as_mut()
            && driver.as_mut().poll(cx).is_ready()
        {
            *slot = None;
        }
    }

    /// Moves the work into a task: from here on the call needs no leader. Outside of a runtime the leader goes on.
    pub(super) fn detach(&self, state: &State) {
        if state.tasks.can_spawn()
            && let Some(driver) = self.driver.lock().take()
        {
            state.tasks.spawn(driver);
        }
    }

    /// Gives up the call if nobody but its leader waits for it.
    pub(super) fn give_up(&self) {
        let driver = self.driver.lock().take();
        // Dropped without the lock: it settles and leaves the record.
        drop(driver);
    }

    /// Lets the call last for one who follows.
    pub(super) fn last_until(&self, deadline: MonoTime) {
        self.until.fetch_max(deadline.nanos(), Ordering::Relaxed);
    }

    /// Returns the latest deadline of those who follow; zero: nobody has.
    pub(crate) fn until(&self) -> MonoTime {
        MonoTime::from_nanos(self.until.load(Ordering::Relaxed))
    }

    /// Notes that the leader has left; the first reason counts.
    ///
    /// # Errors
    /// The record of the call is made already: then the leader must wait for its end.
    pub(super) fn leave(&self, left: Left) -> Result<(), Recorded> {
        let mut leader = self.leader.lock();
        match &*leader {
            LeaderState::There => *leader = LeaderState::Left(left),
            LeaderState::Left(_) => {}
            LeaderState::Recorded(recorded) => return Err(recorded.clone()),
        }
        Ok(())
    }

    /// Returns how the leader left, if it has, for the record that is being made with this error.
    pub(crate) fn record(&self, error: Option<&GatewayError>) -> Option<Left> {
        let mut leader = self.leader.lock();
        match std::mem::replace(&mut *leader, LeaderState::Recorded(Recorded(error.cloned()))) {
            LeaderState::Left(left) => Some(left),
            LeaderState::There | LeaderState::Recorded(_) => None,
        }
    }

    /// Counts a provider call.
    pub(crate) fn attempted(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the provider calls made so far.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("leader", &self.leader)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}
