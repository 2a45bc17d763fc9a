//! The wait for a slot, as a future.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use gw_errors::GatewayError;
use gw_types::Sleep;

use super::{Phase, Pool, late, shed};
use crate::Slot;

/// A wait for a slot; see [`Subject::acquire`].
///
/// Written by hand because it must own a place in a queue: dropping it at any moment gives the place back, and a slot
/// that was on its way to it goes on to the next in the queue.
///
/// [`Subject::acquire`]: crate::Subject::acquire
#[must_use = "dropping it ends the wait"]
pub struct Waiting(State);

enum State {
    Ready(Option<Slot>),
    Queued { pool: Arc<Pool>, waiter: u64, deadline: Sleep },
}

impl Waiting {
    pub(super) const fn ready(slot: Slot) -> Self {
        Self(State::Ready(Some(slot)))
    }

    pub(super) const fn queued(pool: Arc<Pool>, waiter: u64, deadline: Sleep) -> Self {
        Self(State::Queued { pool, waiter, deadline })
    }

    /// Returns whether the slot was there at once.
    pub const fn is_ready(&self) -> bool {
        matches!(self.0, State::Ready(_))
    }
}

impl Future for Waiting {
    type Output = Result<Slot, GatewayError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (pool, waiter, deadline) = match &mut self.0 {
            State::Ready(slot) => {
                return slot.take().map_or_else(|| Poll::Ready(Err(late())), |slot| Poll::Ready(Ok(slot)));
            }
            State::Queued { pool, waiter, deadline } => (pool, *waiter, deadline),
        };
        // The deadline first, so that its timer is set before anybody can be told to wait.
        let passed = deadline.as_mut().poll(cx).is_ready();
        if !passed && pool.still_waits(waiter, cx) {
            return Poll::Pending;
        }
        let end = pool.leave(waiter).map(|left| left.phase);
        self.0 = State::Ready(None);
        Poll::Ready(match end {
            Some(Phase::Served(slot)) => Ok(slot),
            Some(Phase::Shed) => Err(shed()),
            Some(Phase::Queued(_) | Phase::Late) | None => Err(late()),
        })
    }
}

impl Pool {
    /// Returns whether the turn has not come, and remembers whom to wake when it does.
    fn still_waits(&self, waiter: u64, cx: &Context<'_>) -> bool {
        match self.queue.lock().waiters.get_mut(&waiter).map(|waiter| &mut waiter.phase) {
            Some(Phase::Queued(Some(waker))) => waker.clone_from(cx.waker()),
            Some(Phase::Queued(waker)) => *waker = Some(cx.waker().clone()),
            Some(Phase::Served(_) | Phase::Late | Phase::Shed) | None => return false,
        }
        true
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let State::Queued { pool, waiter, .. } = &self.0 {
            // A slot among what comes back is dropped here, outside the lock, and finds the next in the queue.
            drop(pool.leave(*waiter));
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("ready", &self.is_ready()).finish_non_exhaustive()
    }
}
