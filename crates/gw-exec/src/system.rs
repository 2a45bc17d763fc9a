//! The seams of time, chance and ids, filled by the operating system. Nothing else in the workspace reads them.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime},
};

use gw_types::{Clock, IdSource, MonoTime, Random, SeededRandom, Sleep, UtcTime};

/// The operating system's clocks, with tokio's timer. Must sleep inside a tokio runtime with time enabled.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file implements the seam")]
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file implements the seam")]
    fn now(&self) -> MonoTime {
        let since = Instant::now().saturating_duration_since(self.start);
        MonoTime::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this file implements the seam")]
    fn utc(&self) -> UtcTime {
        let micros = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        UtcTime::from_micros(micros)
    }

    fn sleep_until(&self, at: MonoTime) -> Sleep {
        Box::pin(tokio::time::sleep_until((self.start + Duration::from_nanos(at.nanos())).into()))
    }
}

/// Chance from the operating system, stretched by SplitMix64 so that a draw costs nanoseconds.
#[derive(Debug)]
pub struct SystemRandom(SeededRandom);

impl SystemRandom {
    /// Returns a source seeded by the operating system.
    ///
    /// # Errors
    /// The operating system's error, if it has no entropy to give.
    pub fn new() -> Result<Self, getrandom::Error> {
        Ok(Self(SeededRandom::new(getrandom::u64()?)))
    }
}

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        self.0.next_u64()
    }
}

/// Ids that sort by time: 48 bits of milliseconds, 80 bits that begin at chance and count up, as UUID version 7 orders.
#[derive(Debug)]
pub struct SystemIds {
    clock: SystemClock,
    low: AtomicU64,
    high: u16,
}

impl SystemIds {
    /// Returns a source whose counter begins at a random place.
    ///
    /// # Errors
    /// The operating system's error, if it has no entropy to give.
    pub fn new() -> Result<Self, getrandom::Error> {
        let high = u16::try_from(getrandom::u32()? >> 16).unwrap_or_default();
        Ok(Self { clock: SystemClock::default(), low: AtomicU64::new(getrandom::u64()?), high })
    }
}

impl IdSource for SystemIds {
    fn next_id(&self) -> u128 {
        let millis = u128::try_from(self.clock.utc().micros() / 1_000).unwrap_or(0) & ((1 << 48) - 1);
        // An odd step visits all 2^64 values before one returns, and neighbours do not look alike.
        let low = self.low.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        millis << 80 | u128::from(self.high) << 64 | u128::from(low)
    }
}

#[cfg(test)]
mod tests {
    use gw_types::IdSource;

    use super::SystemIds;

    #[test]
    fn ids_differ() {
        let ids = SystemIds::new().expect("entropy");
        let mut seen: Vec<u128> = (0..1_000).map(|_| ids.next_id()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1_000);
    }
}
