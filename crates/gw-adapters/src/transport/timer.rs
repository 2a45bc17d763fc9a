//! One timer a connection, armed late.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

/// Watches the current limit of a connection.
///
/// A limit is set by writing an instant; the runtime's timer is touched only while waiting, and is not moved when the
/// limit moves *later*: it fires once at the old instant and is set anew then. So an answer of a thousand chunks
/// costs a thousand clock reads and, as a rule, no timer registration at all.
#[derive(Debug)]
pub(crate) struct LazyTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    at: Instant,
}

impl LazyTimer {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { sleep: None, at: after(limit) }
    }

    /// Starts a limit from now.
    pub(crate) fn set(&mut self, limit: Duration) {
        self.at = after(limit);
    }

    /// Returns whether the limit has passed; otherwise the task is woken when it may have.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> bool {
        let at = self.at;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        while sleep.as_mut().poll(cx) == Poll::Ready(()) {
            if sleep.deadline() >= at {
                return true;
            }
            sleep.as_mut().reset(at);
        }
        false
    }
}

fn after(limit: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(limit).unwrap_or_else(|| now + FAR)
}

/// Stands for a limit that no instant can hold.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll, time::Duration};

    use tokio::time::Instant;

    use super::LazyTimer;

    async fn passed_after(timer: &mut LazyTimer) -> Duration {
        let start = Instant::now();
        poll_fn(|cx| if timer.poll_passed(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
        start.elapsed()
    }

    async fn has_passed(timer: &mut LazyTimer) -> bool {
        poll_fn(|cx| Poll::Ready(timer.poll_passed(cx))).await
    }

    #[tokio::test(start_paused = true)]
    async fn later_and_earlier_limits_both_hold() {
        let mut timer = LazyTimer::new(Duration::from_secs(1));
        assert!(!has_passed(&mut timer).await);
        timer.set(Duration::from_secs(5));
        assert_eq!(passed_after(&mut timer).await.as_secs(), 5);
        timer.set(Duration::from_secs(9));
        assert!(!has_passed(&mut timer).await);
        timer.set(Duration::from_secs(2));
        assert_eq!(passed_after(&mut timer).await.as_secs(), 2);
        timer.set(Duration::MAX);
        assert!(!has_passed(&mut timer).await);
    }
}
