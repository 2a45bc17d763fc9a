//! The bucket against the `governor` crate, where both mean the same.
//!
//! They do where the interval of a token is a whole number of nanoseconds and requests come at multiples of it: GCRA
//! as `governor` has it counts an interval from each request, the bucket from its epoch.

use std::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use governor::{Quota, RateLimiter, clock::FakeRelativeClock};
use gw_limits::{Bucket, Denied, Rate};
use gw_types::MonoTime;
use proptest::{collection::vec, prelude::*};

proptest! {
    #[test]
    fn i05_the_bucket_decides_as_governor_does(
        interval in 1_u64..1_000_000_000, burst in 1_u32..20, steps in vec((0_u64..8, 1_u32..24), 1..60)
    ) {
        let clock = FakeRelativeClock::default();
        let quota = Quota::with_period(Duration::from_nanos(interval)).unwrap().allow_burst(NonZeroU32::new(burst).unwrap());
        let other = RateLimiter::direct_with_clock(quota, clock.clone());
        let rate = Rate::new(NonZeroU64::MIN, NonZeroU64::new(interval).unwrap());
        let mut bucket = Bucket::new(rate, NonZeroU64::new(u64::from(burst)).unwrap(), MonoTime::ZERO);
        let mut now = 0;
        for (intervals, n) in steps {
            clock.advance(Duration::from_nanos(intervals * interval));
            now += intervals * interval;
            let expected = match other.check_n(NonZeroU32::new(n).unwrap()) {
                Ok(Ok(())) => Ok(()),
                Ok(Err(until)) => {
                    let wait = until.wait_time_from(governor::clock::Clock::now(&clock));
                    Err(Denied::NotUntil(MonoTime::from_nanos(now).saturating_add(wait)))
                }
                Err(_) => Err(Denied::NeverPossible),
            };
            prop_assert_eq!(bucket.try_take(u64::from(n), MonoTime::from_nanos(now)), expected);
        }
    }
}
