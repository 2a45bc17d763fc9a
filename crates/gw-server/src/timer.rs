//! A deadline that moves more often than it fires.

use std::task::{Context, Poll, ready};

use gw_types::{Clock, MonoTime, Sleep};

/// A timer that is armed only where somebody waits, and armed again only where it has fired or fires too late.
///
/// A connection moves its deadline with every request; a sleeper per move would cost a place in the runtime's wheel
/// each time. One that fires early is asked again for the deadline of that moment.
#[derive(Default)]
pub(crate) struct Timer {
    armed: Option<(MonoTime, Sleep)>,
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("at", &self.armed.as_ref().map(|(at, _)| at)).finish()
    }
}

impl Timer {
    /// Is ready once `at` has passed; else the task is woken then, or before.
    pub(crate) fn poll(&mut self, clock: &dyn Clock, at: MonoTime, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.armed {
                Some((due, sleep)) if *due <= at => {
                    ready!(sleep.as_mut().poll(cx));
                    let due = *due;
                    self.armed = None;
                    if due == at {
                        return Poll::Ready(());
                    }
                }
                Some(_) | None => self.armed = Some((at, clock.sleep_until(at))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use gw_types::{ManualClock, MonoTime};

    use super::Timer;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn fires_at_the_deadline_of_the_moment() {
        let clock = ManualClock::default();
        let mut timer = Timer::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(timer.poll(&clock, at(5), &mut cx), Poll::Pending);
        // Later: the sleeper in place is kept. Earlier: it is replaced.
        assert_eq!(timer.poll(&clock, at(9), &mut cx), Poll::Pending);
        assert_eq!(clock.sleepers(), 1);
        assert_eq!(timer.poll(&clock, at(3), &mut cx), Poll::Pending);
        assert_eq!(clock.sleepers(), 1);
        clock.advance(Duration::from_secs(3));
        assert_eq!(timer.poll(&clock, at(9), &mut cx), Poll::Pending);
        clock.advance(Duration::from_secs(5));
        assert_eq!(timer.poll(&clock, at(9), &mut cx), Poll::Pending);
        clock.advance(Duration::from_secs(1));
        assert_eq!(timer.poll(&clock, at(9), &mut cx), Poll::Ready(()));
    }
}
