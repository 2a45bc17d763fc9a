//! How long one bucket takes to decide, on a clock that moves by a microsecond a call.

use std::num::NonZeroU64;

use divan::{Bencher, counter::ItemsCount};
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
