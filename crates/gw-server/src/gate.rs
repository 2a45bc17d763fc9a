//! Futures that are polled when something has happened to them, and not whenever their task is.
//!
//! A connection's task polls its request at every turn: when the client's socket stirs, when a body's channel moves, twice
//! in a row while the HTTP library looks for more to write. Each such poll would go through the whole pipeline down to
//! the provider's socket, to find that nothing has come.

use std::task::{Context, Poll};

use crate::wakes::Wakes;

/// Stands before one future, or one stream: open for the first poll, after a wake, and after everything that was ready.
#[derive(Debug)]
pub(crate) struct Gate(Wakes);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Wakes::new())
    }

    /// Polls, unless the last poll waits for something that has not happened yet.
    pub(crate) fn poll<T>(
        &self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Self(wakes) = self;
        wakes.listen(cx);
        if !wakes.begin_if_woken() {
            return Poll::Pending;
        }
        let polled = poll(&mut wakes.context());
        if polled.is_ready() {
            wakes.set_woken();
        } else if !wakes.end() {
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// Has the next poll go through: its task was woken for a reason that the future looks at by itself.
    pub(crate) fn open(&self) {
        self.0.set_woken();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use futures_test::task::new_count_waker;

    use super::Gate;

    #[test]
    fn what_waits_is_polled_again_once_it_was_woken() {
        let (task, woken) = new_count_waker();
        let cx = Context::from_waker(&task);
        let gate = Gate::new();
        let (mut polls, mut kept) = (0, None::<Waker>);
        let mut poll = |wake: bool| {
            let polled = gate.poll(&cx, |cx| {
                polls += 1;
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            assert!(polled.is_pending());
            if wake {
                kept.as_ref().unwrap().wake_by_ref();
            }
            polls
        };
        assert_eq!([false, false, true].map(&mut poll), [1, 1, 1]);
        assert_eq!(woken.get(), 1);
        assert_eq!([false, false].map(&mut poll), [2, 2]);
        gate.open();
        assert_eq!(gate.poll(&cx, |_| Poll::Ready(7)), Poll::Ready(7));
        assert_eq!(woken.get(), 1, "who opens it has the task's turn already");
    }

    #[test]
    fn what_was_ready_is_asked_again_without_a_wake() {
        let gate = Gate::new();
        let cx = Context::from_waker(Waker::noop());
        for number in 1..=3 {
            assert_eq!(gate.poll(&cx, |_| Poll::Ready(number)), Poll::Ready(number));
        }
    }

    #[test]
    fn a_wake_during_the_poll_is_not_lost() {
        let (task, woken) = new_count_waker();
        let cx = Context::from_waker(&task);
        let gate = Gate::new();
        let wakes_itself = |cx: &mut Context<'_>| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        };
        assert!(gate.poll(&cx, wakes_itself).is_pending());
        assert_eq!(woken.get(), 1);
        assert_eq!(gate.poll(&cx, |_| Poll::Ready(())), Poll::Ready(()));
    }
}
