//! Who waits for an equal request's call.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use gw_cache::flight::Next;
use gw_types::{GatewayError, MonoTime, Sleep};

use super::{Part, PartReader};
use crate::{attempts::deadline_passed, reply::Failure, state::State};

/// A request that follows. It has its own deadline, and leaves by being dropped.
pub(crate) struct Follower {
    reader: PartReader,
    state: Arc<State>,
    deadline: MonoTime,
    timer: Sleep,
}

impl Follower {
    pub(super) fn new(reader: PartReader, deadline: MonoTime, state: &Arc<State>) -> Self {
        let timer = state.clock.sleep_until(deadline);
        Self { reader, state: Arc::clone(state), deadline, timer }
    }

    /// Waits for the first part that says something; `None`: join again.
    ///
    /// # Errors
    /// The deadline has passed.
    pub(super) async fn first(&mut self) -> Result<Option<Part>, GatewayError> {
        match poll_fn(|cx| self.poll_next(cx)).await? {
            Next::Item(part) => Ok(Some(part)),
            // Nothing was sent: whatever became of the call, another one may be made.
            Next::Complete | Next::Failed(_) | Next::Lost | Next::TooSlow | Next::Again => Ok(None),
        }
    }

    /// Says that content is about to be sent: a failure of the call is this request's from now on.
    pub(super) fn commit(&mut self) {
        self.reader.commit();
    }

    /// Polls for the next part of the answer.
    ///
    /// # Errors
    /// The deadline has passed.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Next<Part, Failure>, GatewayError>> {
        loop {
            match self.reader.poll_next(cx) {
                Poll::Ready(Next::Item(Part::Call(call))) => {
                    // Before anything else: the leader may be slow, gone, or in a hurry.
                    call.last_until(self.deadline);
                    call.detach(&self.state);
                }
                // The timer is asked only while nothing has come: behind a slow reader something always has.
                Poll::Ready(Next::Item(_)) if self.state.clock.now() > self.deadline => {
                    return Poll::Ready(Err(deadline_passed()));
                }
                Poll::Ready(next) => return Poll::Ready(Ok(next)),
                Poll::Pending => return self.timer.as_mut().poll(cx).map(|()| Err(deadline_passed())),
            }
        }
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
