//! The bucket against a model that counts nanosecond by nanosecond, over every small case.

use std::{num::NonZeroU64, time::Duration};

use gw_types::MonoTime;

use super::{Bucket, Denied, Rate};

/// Ticks one nanosecond at a time and mints a token whenever `q` parts are together: no division.
#[derive(Clone, Debug)]
struct TickModel {
    p: u64,
    q: u64,
    capacity: i64,
    /// Negative in debt.
    level: i64,
    parts: u64,
    now: u64,
}

impl TickModel {
    fn advance_to(&mut self, now: u64) {
        while self.now < now {
            self.now += 1;
            self.parts += self.p;
            while self.parts >= self.q {
                self.parts -= self.q;
                self.level = self.capacity.min(self.level + 1);
            }
        }
    }

    /// The first instant at which `n` are there.
    fn ready_at(&self, n: i64) -> u64 {
        let mut ahead = self.clone();
        while ahead.level < n {
            ahead.advance_to(ahead.now + 1);
        }
        ahead.now
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u64),
    GiveBack(u64),
    Debit(u64),
    Clock(i64),
    Limit(u64, u64),
}

const STEPS: [Step; 14] = [
    Step::Take(0),
    Step::Take(1),
    Step::Take(2),
    Step::Take(3),
    Step::GiveBack(1),
    Step::GiveBack(3),
    Step::Debit(1),
    Step::Debit(4),
    Step::Clock(1),
    Step::Clock(2),
    Step::Clock(7),
    Step::Clock(-3),
    Step::Limit(1, 3),
    Step::Limit(3, 1),
];

/// Steps in one sequence; every sequence of this length over [`STEPS`] is run, for every rate and capacity.
const DEPTH: usize = 4;
const SMALL: std::ops::RangeInclusive<u64> = 1..=3;

fn nonzero(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap()
}

fn rate(p: u64, q: u64) -> Rate {
    Rate::new(nonzero(p), nonzero(q))
}

/// Runs a step on both and returns the clock after it.
fn step(bucket: &mut Bucket, model: &mut TickModel, clock: u64, step: Step) -> u64 {
    let now = MonoTime::from_nanos(clock);
    model.advance_to(clock);
    match step {
        Step::Take(n) => take(bucket, model, n, now),
        Step::GiveBack(n) => {
            bucket.give_back(n);
            model.level = model.capacity.min(model.level + n.cast_signed());
        }
        Step::Debit(n) => {
            bucket.debit(n, now);
            model.level -= n.cast_signed();
        }
        Step::Clock(by) => return clock.saturating_add_signed(by),
        Step::Limit(p, capacity) => {
            bucket.set_rate(rate(p, model.q), nonzero(capacity), now);
            let capacity = capacity.cast_signed();
            if (p, capacity) != (model.p, model.capacity) {
                *model = TickModel { p, capacity, level: capacity.min(model.level), parts: 0, ..*model };
            }
        }
    }
    clock
}

fn take(bucket: &mut Bucket, model: &mut TickModel, n: u64, now: MonoTime) {
    let wanted = n.cast_signed();
    let expected = if wanted > model.capacity {
        Err(Denied::NeverPossible)
    } else if wanted > model.level {
        Err(Denied::NotUntil(MonoTime::from_nanos(model.ready_at(wanted))))
    } else {
        model.level -= wanted;
        Ok(())
    };
    assert_eq!(bucket.try_take(n, now), expected);
}

fn agree(bucket: &mut Bucket, model: &TickModel, clock: u64) {
    let read = bucket.snapshot(MonoTime::from_nanos(clock));
    let full_at = model.ready_at(model.capacity);
    let reset_after = Duration::from_nanos(if model.level == model.capacity { 0 } else { full_at - clock });
    let expected = (model.capacity.cast_unsigned(), model.level.max(0).cast_unsigned(), reset_after);
    assert_eq!((read.limit, read.remaining, read.reset_after), expected);
}

fn every_sequence(bucket: &Bucket, model: &TickModel, clock: u64, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    let mut sequences = 0;
    for next in STEPS {
        let (mut bucket, mut model) = (bucket.clone(), model.clone());
        let clock = step(&mut bucket, &mut model, clock, next);
        model.advance_to(clock);
        agree(&mut bucket, &model, clock);
        sequences += every_sequence(&bucket, &model, clock, depth - 1);
    }
    sequences
}

#[test]
fn i05_every_small_bucket_equals_the_tick_by_tick_model() {
    let mut sequences = 0;
    for (p, q, capacity) in SMALL.flat_map(|p| SMALL.flat_map(move |q| SMALL.map(move |c| (p, q, c)))) {
        // Not at zero, so that there is room for the clock to step back before the epoch.
        let clock = 2;
        let bucket = Bucket::new(rate(p, q), nonzero(capacity), MonoTime::from_nanos(clock));
        let capacity = capacity.cast_signed();
        let model = TickModel { p, q, capacity, level: capacity, parts: 0, now: clock };
        sequences += every_sequence(&bucket, &model, clock, DEPTH);
    }
    assert_eq!(sequences, 27 * 14_u64.pow(4));
}

#[test]
fn a_debit_of_a_full_bucket_counts_even_after_a_long_rest() {
    let mut bucket = Bucket::new(Rate::per_minute(nonzero(10)), nonzero(10), MonoTime::ZERO);
    let later = MonoTime::from_nanos(3_600_000_000_000);
    assert_eq!(bucket.try_take(5, MonoTime::ZERO), Ok(()));
    bucket.debit(3, later);
    assert_eq!(bucket.snapshot(later).remaining, 7);
}

#[test]
fn the_largest_numbers_neither_wrap_nor_panic() {
    let (most, end) = (nonzero(u64::MAX), MonoTime::from_nanos(u64::MAX));
    let mut bucket = Bucket::new(Rate::new(most, nonzero(1)), most, MonoTime::ZERO);
    assert_eq!(bucket.try_take(u64::MAX, end), Ok(()));
    assert_eq!(bucket.try_take(1, end), Err(Denied::NotUntil(end)));
    bucket.debit(u64::MAX, end);
    bucket.debit(u64::MAX, end);
    assert_eq!(bucket.snapshot(end).remaining, 0);
    bucket.set_rate(Rate::new(nonzero(1), most), nonzero(1), end);
    assert_eq!(bucket.try_take(1, end), Err(Denied::NotUntil(end)));
    assert_eq!(bucket.try_take(2, end), Err(Denied::NeverPossible));
}

#[test]
fn raising_a_limit_gives_no_tokens_at_once_and_lowering_it_takes_only_what_does_not_fit() {
    let check = |level: u64, from: u64, to: u64, expected: u64| {
        let mut bucket = Bucket::new(Rate::per_minute(nonzero(from)), nonzero(from), MonoTime::ZERO);
        bucket.try_take(from - level, MonoTime::ZERO).unwrap();
        bucket.set_rate(Rate::per_minute(nonzero(to)), nonzero(to), MonoTime::ZERO);
        assert_eq!(bucket.snapshot(MonoTime::ZERO).remaining, expected);
    };
    check(0, 100, 200, 0);
    check(30, 100, 200, 30);
    check(30, 100, 50, 30);
    check(80, 100, 50, 50);
}
