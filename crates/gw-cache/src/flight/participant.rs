//! Who waits for an answer.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use super::state::{End, Read, Shared};

/// What a participant is given next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<T, E> {
    /// The next part of the answer.
    Item(T),
    /// The answer is complete.
    Complete,
    /// The call has failed, and this request with it.
    Failed(E),
    /// The call was given up, and this request has sent content of it.
    Lost,
    /// The others are further ahead than the buffer reaches.
    TooSlow,
    /// Join anew: the call has failed before this request has sent anything, or could not be followed.
    Again,
}

/// A request's place in a flight. Dropping it leaves.
#[derive(Debug)]
pub struct Participant<T, E> {
    shared: Arc<Shared<T, E>>,
    reader: u64,
    leads: bool,
    /// Whether the caller has sent content, so that there is no way back.
    committed: bool,
}

impl<T, E> Participant<T, E> {
    pub(super) fn lead(shared: &Arc<Shared<T, E>>) -> Self {
        let reader = shared.lock().enter();
        Self { shared: Arc::clone(shared), reader, leads: true, committed: false }
    }

    /// Enters a flight that has not ended.
    pub(super) fn follow(shared: &Arc<Shared<T, E>>) -> Option<Self> {
        let mut state = shared.lock();
        if state.has_ended() {
            return None;
        }
        let reader = state.enter();
        Some(Self { shared: Arc::clone(shared), reader, leads: false, committed: false })
    }

    /// Returns whether this request's call it is.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// Says that content was sent to the caller: from now on a failure is this request's too. To be said before the
    /// first content goes out.
    pub fn commit(&mut self) {
        self.committed = true;
    }
}

impl<T, E> Participant<T, E> {
    /// Has nobody woken until the next poll, which must follow: for who drives the call and reads it in one turn, and would
    /// only wake itself.
    pub fn hush(&mut self) {
        self.shared.lock().forget_waker(self.reader);
    }
}

impl<T: Clone, E: Clone> Participant<T, E> {
    /// Returns the next part of the answer, or how it ends; waits for it.
    ///
    /// Cancelling loses nothing: the item is taken when the future is ready.
    pub async fn next(&mut self) -> Next<T, E> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls for the next part. After anything but an item the participant has nothing more to give.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Next<T, E>> {
        let mut state = self.shared.lock();
        let stays = self.leads || self.committed;
        if !stays && matches!(state.end(), Some(End::Failed(_) | End::Lost)) {
            // What was read so far is thrown away with the call.
            return Poll::Ready(Next::Again);
        }
        let is_late = state.is_late(self.reader);
        let (read, upstream) = state.read(self.reader);
        let next = match read {
            Read::Item(item) => Next::Item(item),
            Read::Nothing => {
                state.wait_reader(self.reader, context.waker());
                return Poll::Pending;
            }
            Read::End(_) if is_late => Next::Again,
            Read::End(End::Complete) => Next::Complete,
            Read::End(End::Failed(error)) => Next::Failed(error),
            Read::End(End::Lost) => Next::Lost,
            Read::Behind => Next::TooSlow,
        };
        drop(state);
        upstream.into_iter().for_each(std::task::Waker::wake);
        Poll::Ready(next)
    }
}

impl<T, E> Drop for Participant<T, E> {
    fn drop(&mut self) {
        let upstream = self.shared.lock().leave(self.reader);
        upstream.into_iter().for_each(std::task::Waker::wake);
    }
}
