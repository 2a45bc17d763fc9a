//! Who makes the call.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    Map,
    state::{End, Shared},
};
use crate::CacheKey;

/// The one call of a flight. Dropping it ends the flight: no participant waits for a call that nobody makes.
#[derive(Debug)]
pub struct Upstream<T, E> {
    shared: Arc<Shared<T, E>>,
    map: Arc<Map<T, E>>,
    key: CacheKey,
}

/// Every participant has left; the call is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("every participant has left")]
pub struct Abandoned;

impl<T, E> Upstream<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>, map: Arc<Map<T, E>>, key: CacheKey) -> Self {
        Self { shared, map, key }
    }

    /// Adds a part of the answer, which weighs so many bytes.
    ///
    /// Never waits: what the buffer cannot hold is lost to those who are behind. Ask [`Upstream::ready`] first, so that
    /// the fastest loses nothing.
    pub fn push(&mut self, item: T, bytes: usize) {
        let waiting = self.shared.lock().push(item, bytes);
        wake(waiting);
    }

    /// Waits until the fastest participant has room for one more part.
    ///
    /// # Errors
    /// [`Abandoned`] where no participant is left; the flight has then ended, and whoever comes leads a new one.
    pub async fn ready(&mut self) -> Result<(), Abandoned> {
        poll_fn(|context| self.poll_ready(context)).await
    }

    /// Polls for what [`Upstream::ready`] waits for.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Abandoned>> {
        let mut state = self.shared.lock();
        if state.is_abandoned() {
            // Ended under the same lock that joining looks under: nobody takes over what is closed.
            state.finish(End::Lost);
            drop(state);
            return Poll::Ready(Err(Abandoned));
        }
        if state.has_room() {
            return Poll::Ready(Ok(()));
        }
        state.wait_upstream(context.waker(), true);
        Poll::Pending
    }

    /// Waits until every participant has left, beside whatever the provider sends; never ready before.
    ///
    /// The flight has then ended.
    pub async fn abandoned(&mut self) -> Abandoned {
        poll_fn(|context| self.poll_abandoned(context)).await
    }

    /// Polls for what [`Upstream::abandoned`] waits for.
    pub fn poll_abandoned(&mut self, context: &mut Context<'_>) -> Poll<Abandoned> {
        let mut state = self.shared.lock();
        if state.is_abandoned() {
            state.finish(End::Lost);
            return Poll::Ready(Abandoned);
        }
        state.wait_upstream(context.waker(), false);
        Poll::Pending
    }

    /// Ends the flight: the answer is complete. An answer for the cache is stored before, so that whoever comes next
    /// finds it.
    pub fn complete(self) {
        self.end(End::Complete);
    }

    /// Ends the flight: the call has failed.
    pub fn fail(self, error: E) {
        self.end(End::Failed(error));
    }

    fn end(&self, end: End<E>) {
        let waiting = self.shared.lock().finish(end);
        // Out of the map before anybody is told to join again.
        let mut map = self.map.lock();
        if map.get(&self.key).is_some_and(|shared| Arc::ptr_eq(shared, &self.shared)) {
            map.remove(&self.key);
        }
        drop(map);
        wake(waiting);
    }
}

impl<T, E> Drop for Upstream<T, E> {
    fn drop(&mut self) {
        self.end(End::Lost);
    }
}

fn wake(waiting: Vec<Waker>) {
    waiting.into_iter().for_each(Waker::wake);
}
