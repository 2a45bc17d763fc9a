//! Futures that wake themselves while they are polled.
//!
//! Reading a body inside of its connection's own task does that, and so does a call that tells its only reader of the
//! answer. The runtime would put the task behind all others and wake another thread to look for work that is not there;
//! here the future is polled once more instead.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::wakes::Wakes;

/// Polls in one turn of the task, at most: others want their turn too.
const POLLS_MAX: usize = 16;

/// Stands around one future.
pub(crate) struct SelfWakes(Wakes);

impl SelfWakes {
    pub(crate) fn new() -> Self {
        Self(Wakes::new())
    }

    /// Polls the future until it is ready or waits for somebody else.
    pub(crate) fn poll<F: Future>(&self, mut future: Pin<&mut F>, cx: &Context<'_>) -> Poll<F::Output> {
        let Self(wakes) = self;
        wakes.listen(cx);
        for _ in 0..POLLS_MAX {
            wakes.begin();
            let polled = future.as_mut().poll(&mut wakes.context());
            if wakes.end() || polled.is_ready() {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use futures_test::task::new_count_waker;

    use super::{POLLS_MAX, SelfWakes};

    /// Polls a future that wakes itself so many times once; returns how often it was polled, and whether its task was woken.
    fn check(wakes: usize) -> (usize, usize) {
        let (waker, woken) = new_count_waker();
        let mut polls = 0;
        let future = pin!(poll_fn(|cx| {
            polls += 1;
            if polls <= wakes {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        }));
        assert!(SelfWakes::new().poll(future, &Context::from_waker(&waker)).is_pending());
        (polls, woken.get())
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_and_its_task_is_not_woken() {
        assert_eq!(check(0), (1, 0));
        assert_eq!(check(3), (4, 0));
        assert_eq!(check(usize::MAX), (POLLS_MAX, 1));
    }

    #[test]
    fn who_wakes_it_later_wakes_the_task_once() {
        let (waker, woken) = new_count_waker();
        let cx = Context::from_waker(&waker);
        let wakes = SelfWakes::new();
        let (mut kept, mut polls) = (None::<Waker>, 0);
        for turn in 1..=2 {
            let future = pin!(poll_fn(|cx| {
                polls += 1;
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            }));
            assert!(wakes.poll(future, &cx).is_pending());
            let kept = kept.clone().unwrap();
            kept.wake_by_ref();
            kept.wake();
            assert_eq!((polls, woken.get()), (turn, turn));
        }
    }
}
