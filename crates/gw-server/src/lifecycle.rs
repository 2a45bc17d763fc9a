//! From serving to closed: the phases of a drain, and how many requests are in flight.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

/// How far a shutdown has come. Phases only move forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Every request is served.
    Serving,
    /// `/readyz` says 503 so that balancers look elsewhere; every request is still served.
    Grace,
    /// New requests are refused; those in flight go on.
    Refusing,
    /// What is in flight ends with an error now; connections close.
    Closing,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Serving, Self::Grace, Self::Refusing, Self::Closing];
}

/// The phase of the server, and the count that a drain waits for.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: AtomicU8,
    in_flight: AtomicUsize,
    idle: Notify,
    closing: watch::Sender<bool>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(0),
            in_flight: AtomicUsize::new(0),
            idle: Notify::new(),
            closing: watch::Sender::new(false),
        }
    }
}

impl Lifecycle {
    /// Returns the phase. One relaxed load: every poll of a stream reads it.
    pub(crate) fn phase(&self) -> Phase {
        let index = usize::from(self.phase.load(Ordering::Relaxed));
        Phase::ALL.get(index).copied().unwrap_or(Phase::Closing)
    }

    /// Moves to a later phase; does nothing for an earlier one.
    pub(crate) fn advance(&self, phase: Phase) {
        let index = Phase::ALL.iter().position(|one| *one == phase).unwrap_or_default();
        self.phase.fetch_max(u8::try_from(index).unwrap_or(u8::MAX), Ordering::SeqCst);
        if phase == Phase::Closing {
            self.closing.send_replace(true);
        }
        self.idle.notify_waiters();
    }

    /// Waits until the phase is [`Phase::Closing`].
    pub(crate) async fn closing(&self) {
        // The sender lives as long as `self`, so the wait ends with the phase and with nothing else.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Returns how many requests are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Counts a request in.
    pub(crate) fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a request out.
    pub(crate) fn leave(&self) {
        if self.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 && self.phase() >= Phase::Refusing {
            self.idle.notify_waiters();
        }
    }

    /// Waits until nothing is in flight. Meaningful from [`Phase::Refusing`] on.
    pub(crate) async fn idle(&self) {
        loop {
            // Registered before the count is read: a request that leaves in between wakes it.
            let notified = self.idle.notified();
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lifecycle, Phase};

    #[test]
    fn phases_only_move_forward() {
        let lifecycle = Lifecycle::default();
        assert_eq!(lifecycle.phase(), Phase::Serving);
        lifecycle.advance(Phase::Refusing);
        lifecycle.advance(Phase::Grace);
        assert_eq!(lifecycle.phase(), Phase::Refusing);
    }

    #[tokio::test]
    async fn a_drain_waits_for_the_last_request() {
        let lifecycle = Lifecycle::default();
        lifecycle.advance(Phase::Refusing);
        lifecycle.enter();
        lifecycle.enter();
        let (done, ()) = tokio::join!(
            async {
                lifecycle.idle().await;
                lifecycle.in_flight()
            },
            async {
                lifecycle.leave();
                tokio::task::yield_now().await;
                assert_eq!(lifecycle.in_flight(), 1);
                lifecycle.leave();
            }
        );
        assert_eq!(done, 0);
    }

    #[tokio::test]
    async fn closing_is_seen_by_whoever_asks_later() {
        let lifecycle = Lifecycle::default();
        lifecycle.advance(Phase::Closing);
        lifecycle.closing().await;
        assert_eq!(lifecycle.phase(), Phase::Closing);
    }
}
