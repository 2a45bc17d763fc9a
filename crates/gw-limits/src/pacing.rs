//! Requests a second towards a provider: each goes at its instant, in the order in which they came.

use std::{
    future::Future,
    num::NonZeroU64,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use gw_errors::{ErrorKind, GatewayError};
use gw_types::{Clock, MonoTime, Sleep};

use crate::{
    Bucket, Denied, Rate,
    config::names,
    line::{LINE_MAX, Line},
    sync::Mutex,
};

/// A pace that requests keep, in a line without overtaking.
///
/// Only the first of the line takes its place in time, and takes it when it goes. So whoever leaves the line gives its
/// place to the next at once, and what was not used is not lost to anybody else.
#[derive(Debug)]
pub struct Pacer {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bucket: Bucket,
    line: Line,
}

impl Pacer {
    /// Returns a pace of `rate`, of which up to `burst` may go at once after a pause; 1 keeps them apart always.
    pub fn new(rate: Rate, burst: NonZeroU64, now: MonoTime) -> Self {
        Self { state: Mutex::new(State { bucket: Bucket::new(rate, burst, now), line: Line::default() }) }
    }

    /// Changes the pace; the line and what was used of the burst stay.
    pub fn set_rate(&self, rate: Rate, burst: NonZeroU64, now: MonoTime) {
        let first = {
            let mut state = self.state.lock();
            state.bucket.set_rate(rate, burst, now);
            state.line.first_waker()
        };
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Joins the line; the future is ready at the request's instant.
    ///
    /// # Errors
    /// `Overloaded` at once if that instant lies beyond `deadline`, or ten thousand are in the line; `retry_after` is
    /// the time that the line takes.
    pub fn join(
        self: &Arc<Self>,
        clock: &Arc<dyn Clock>,
        deadline: MonoTime,
    ) -> Result<PaceWait, GatewayError> {
        let now = clock.now();
        let mut state = self.state.lock();
        let ahead = u64::try_from(state.line.len()).unwrap_or(u64::MAX);
        let at = state.bucket.all_by(ahead.saturating_add(1), now);
        if at > deadline || state.line.len() >= LINE_MAX {
            drop(state);
            return Err(GatewayError::new(
                ErrorKind::Overloaded,
                "the pace has no place before the request's deadline",
            )
            .with_subject(names::PACE)
            .with_retry_after(at.saturating_since(now)));
        }
        let place = state.line.join();
        drop(state);
        Ok(PaceWait { pacer: Arc::clone(self), clock: Arc::clone(clock), place: Some(place), timer: None })
    }
}

/// A place in a [`Pacer`]'s line; dropping it gives the place to the next.
#[must_use = "dropping it leaves the line"]
pub struct PaceWait {
    pacer: Arc<Pacer>,
    clock: Arc<dyn Clock>,
    /// `None` once it went.
    place: Option<u64>,
    timer: Option<Sleep>,
}

impl Future for PaceWait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(place) = self.place else { return Poll::Ready(()) };
        loop {
            let taken = {
                let now = self.clock.now();
                let mut state = self.pacer.state.lock();
                if !state.line.is_first(place, cx) {
                    return Poll::Pending;
                }
                state.bucket.try_take(1, now)
            };
            let Err(Denied::NotUntil(at)) = taken else { break };
            let mut timer = self.clock.sleep_until(at);
            let passed = timer.as_mut().poll(cx).is_ready();
            self.timer = Some(timer);
            if !passed {
                return Poll::Pending;
            }
        }
        self.leave();
        Poll::Ready(())
    }
}

impl PaceWait {
    fn leave(&mut self) {
        self.timer = None;
        let Some(place) = self.place.take() else { return };
        let next = self.pacer.state.lock().line.leave(place);
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl Drop for PaceWait {
    fn drop(&mut self) {
        self.leave();
    }
}

impl std::fmt::Debug for PaceWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PaceWait").field("place", &self.place).finish_non_exhaustive()
    }
}
