//! Time comes in through a seam: monotonic for deadlines, wall for records and calendar windows.

mod rfc3339;

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A future that is ready once an instant has passed.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// The source of time.
///
/// # Contract
/// `now` never steps back. `utc` may, at any time and by any amount. `sleep_until` is ready at or after the instant,
/// at once if it has passed; dropping the future cancels it. Reading is cheap, but a request reads it once a step and
/// passes the instant down.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the monotonic time.
    fn now(&self) -> MonoTime;

    /// Returns the wall time.
    fn utc(&self) -> UtcTime;

    /// Returns a future that is ready once `at` has passed.
    fn sleep_until(&self, at: MonoTime) -> Sleep;
}

/// A monotonic instant, in nanoseconds since the clock's own start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MonoTime(u64);

impl MonoTime {
    /// The clock's start.
    pub const ZERO: Self = Self(0);

    /// Returns the instant so many nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the instant `duration` later, at most the last one (584 years).
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns the time from `earlier` to `self`, zero if `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A wall-clock instant, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UtcTime(i64);

impl UtcTime {
    /// Returns the instant so many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the instant `duration` later.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

/// A clock that moves only when told to, and drives its own sleepers. Clones share it.
///
/// ```
/// use std::time::Duration;
/// use gw_types::{Clock, ManualClock, UtcTime};
///
/// let clock = ManualClock::new(UtcTime::from_micros(1_893_456_000_000_000));
/// clock.advance(Duration::from_secs(2));
/// clock.step_utc(Duration::from_secs(3_600), true);
/// assert_eq!(clock.now().nanos(), 2_000_000_000);
/// assert_eq!(clock.utc().seconds(), 1_893_456_002 - 3_600);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<ManualState>>);

#[derive(Debug, Default)]
struct ManualState {
    now: MonoTime,
    utc: UtcTime,
    next_sleeper: u64,
    sleepers: BTreeMap<(MonoTime, u64), Waker>,
}

impl ManualClock {
    /// Returns a clock at monotonic zero and the given wall time.
    pub fn new(utc: UtcTime) -> Self {
        Self(Arc::new(Mutex::new(ManualState { utc, ..ManualState::default() })))
    }

    /// Moves both times forward and wakes the sleepers whose instant has passed, earliest first.
    pub fn advance(&self, by: Duration) {
        let woken = {
            let mut state = self.0.lock();
            state.now = state.now.saturating_add(by);
            state.utc = state.utc.saturating_add(by);
            let first_after = (MonoTime(state.now.0.saturating_add(1)), 0);
            let still = state.sleepers.split_off(&first_after);
            std::mem::replace(&mut state.sleepers, still)
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// Moves to the instant of the earliest sleeper; returns it, or `None` if nobody sleeps.
    pub fn advance_to_next_sleeper(&self) -> Option<MonoTime> {
        let (at, now) = {
            let state = self.0.lock();
            (state.sleepers.keys().next()?.0, state.now)
        };
        self.advance(at.saturating_since(now));
        Some(at)
    }

    /// Steps the wall time alone, back or forward.
    pub fn step_utc(&self, by: Duration, back: bool) {
        let mut state = self.0.lock();
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        state.utc = UtcTime(state.utc.0.saturating_add(if back { -micros } else { micros }));
    }

    /// Returns how many futures sleep.
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> MonoTime {
        self.0.lock().now
    }

    fn utc(&self) -> UtcTime {
        self.0.lock().utc
    }

    fn sleep_until(&self, at: MonoTime) -> Sleep {
        Box::pin(ManualSleep { clock: self.clone(), at, id: None })
    }
}

#[derive(Debug)]
struct ManualSleep {
    clock: ManualClock,
    at: MonoTime,
    id: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = Arc::clone(&self.clock.0);
        let mut state = shared.lock();
        if state.now >= self.at {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            state.next_sleeper += 1;
            state.next_sleeper
        });
        state.sleepers.insert((self.at, id), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.0.lock().sleepers.remove(&(self.at, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Poll},
        time::Duration,
    };

    use futures_test::task::new_count_waker;

    use super::{Clock, ManualClock, MonoTime};

    #[test]
    fn sleepers_wake_at_their_instant_and_leave_on_drop() {
        let clock = ManualClock::default();
        let (waker, count) = new_count_waker();
        let mut cx = Context::from_waker(&waker);
        let mut sleep = clock.sleep_until(MonoTime::from_nanos(10));
        assert_eq!(sleep.as_mut().poll(&mut cx), Poll::Pending);
        clock.advance(Duration::from_nanos(9));
        assert_eq!((count.get(), clock.sleepers()), (0, 1));
        assert_eq!(clock.advance_to_next_sleeper(), Some(MonoTime::from_nanos(10)));
        assert_eq!(count.get(), 1);
        assert_eq!(sleep.as_mut().poll(&mut cx), Poll::Ready(()));
        let mut other = clock.sleep_until(MonoTime::from_nanos(99));
        assert_eq!(other.as_mut().poll(&mut cx), Poll::Pending);
        drop(other);
        assert_eq!(clock.sleepers(), 0);
    }
}
