//! How long one bucket takes to decide, on a clock that moves by a microsecond a call.

use std::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use divan::{Bencher, counter::ItemsCount};
use governor::{Quota, RateLimiter, clock::FakeRelativeClock};
use gw_limits::{Bucket, Rate};
use gw_types::MonoTime;

fn main() {
    divan::main();
}

const TICK_NS: u64 = 1_000;

fn bucket(per_minute: u64) -> Bucket {
    let limit = NonZeroU64::new(per_minute).expect("a positive limit");
    Bucket::new(Rate::per_minute(limit), limit, MonoTime::ZERO)
}

/// Granted every time: the bucket refills a thousand times faster than it is drained.
#[divan::bench]
fn take(bencher: Bencher<'_, '_>) {
    let (mut bucket, mut now) = (bucket(60_000_000_000), 0);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        now += TICK_NS;
        bucket.try_take(divan::black_box(1), MonoTime::from_nanos(now))
    });
}

/// Refused every time, with the instant at which it would not be.
#[divan::bench]
fn refuse(bencher: Bencher<'_, '_>) {
    let (mut bucket, mut now) = (bucket(600), 0);
    bucket.debit(1_000_000_000_000, MonoTime::ZERO);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        now += TICK_NS;
        bucket.try_take(divan::black_box(1), MonoTime::from_nanos(now))
    });
}

/// The `governor` crate's decision, granted every time, for comparison; its clock is moved as ours is.
#[divan::bench]
fn governor_check(bencher: Bencher<'_, '_>) {
    let clock = FakeRelativeClock::default();
    let burst = NonZeroU32::new(1_000_000).expect("a positive limit");
    let quota = Quota::with_period(Duration::from_nanos(1)).expect("a positive period").allow_burst(burst);
    let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        clock.advance(Duration::from_nanos(TICK_NS));
        divan::black_box(&limiter).check().is_ok()
    });
}
