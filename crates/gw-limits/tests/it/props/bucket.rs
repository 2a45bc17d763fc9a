//! I5 for any rate, capacity and clock, the largest included.

use std::num::NonZeroU64;

use gw_limits::{Bucket, Denied, Rate};
use gw_types::MonoTime;
use proptest::{collection::vec, prelude::*};

use super::{STEPS_MAX, config};

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u64),
    GiveBack(u64),
    Debit(u64),
    Forward(u64),
    Back(u64),
    Read,
}

/// Small numbers, so that histories meet limits, and all others, so that products are wide.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..20, 2 => 0..1_000_000_000_000_u64, 1 => any::<u64>()]
}

fn nonzero() -> impl Strategy<Value = NonZeroU64> {
    amount().prop_map(|n| NonZeroU64::new(n.max(1)).unwrap())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => amount().prop_map(Step::Take),
        1 => amount().prop_map(Step::GiveBack),
        1 => amount().prop_map(Step::Debit),
        3 => amount().prop_map(Step::Forward),
        1 => amount().prop_map(Step::Back),
        1 => Just(Step::Read),
    ]
}

/// What happened at an instant that was the latest then.
#[derive(Clone, Copy, Debug)]
struct Event {
    minted: u128,
    granted: u128,
    given_back: u128,
}

/// Granted in any [s, t] <= capacity + M(t) - M(s) + what was given back after s.
fn assert_bounded(events: &[Event], capacity: u128) {
    for (from, first) in events.iter().enumerate() {
        let (mut granted, mut given_back) = (0_u128, 0_u128);
        for (at, event) in events[from..].iter().enumerate() {
            granted += event.granted;
            given_back += if at == 0 { 0 } else { event.given_back };
            assert!(granted <= capacity + (event.minted - first.minted) + given_back, "{events:?}");
        }
    }
}

fn assert_tight(bucket: &Bucket, n: u64, ready: MonoTime) {
    if ready.nanos() < u64::MAX {
        assert_eq!(bucket.clone().try_take(n, ready), Ok(()));
    }
    let before = MonoTime::from_nanos(ready.nanos() - 1);
    assert_eq!(bucket.clone().try_take(n, before), Err(Denied::NotUntil(ready)));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn i05_granted_is_bounded_and_refusals_are_tight(
        p in nonzero(), q in nonzero(), capacity in nonzero(), steps in vec(step(), 1..STEPS_MAX)
    ) {
        let mut bucket = Bucket::new(Rate::new(p, q), capacity, MonoTime::ZERO);
        // Hears only of what changes it: reads and refusals in between must make no difference.
        let mut quiet = bucket.clone();
        // `latest` is what the bucket was told, which the clock may have stepped back from.
        let (mut clock, mut latest, mut in_debt) = (0_u64, 0_u64, false);
        let mut events = Vec::with_capacity(steps.len());
        for step in steps {
            let now = MonoTime::from_nanos(clock);
            let mut event = Event { minted: 0, granted: 0, given_back: 0 };
            if matches!(step, Step::Take(_) | Step::Debit(_) | Step::Read) {
                latest = latest.max(clock);
            }
            match step {
                Step::Take(n) => match bucket.try_take(n, now) {
                    Ok(()) => {
                        quiet.try_take(n, MonoTime::from_nanos(latest)).unwrap();
                        event.granted = u128::from(n);
                    }
                    Err(Denied::NotUntil(ready)) => assert_tight(&bucket, n, ready),
                    Err(Denied::NeverPossible) => prop_assert!(n > capacity.get()),
                },
                Step::GiveBack(n) => {
                    bucket.give_back(n);
                    quiet.give_back(n);
                    event.given_back = u128::from(n);
                }
                Step::Debit(n) => {
                    let before = bucket.snapshot(now).remaining;
                    bucket.debit(n, now);
                    quiet.debit(n, MonoTime::from_nanos(latest));
                    prop_assert_eq!(bucket.snapshot(now).remaining, before.saturating_sub(n));
                    in_debt |= n > before;
                }
                Step::Forward(by) => clock = clock.saturating_add(by),
                Step::Back(by) => clock = clock.saturating_sub(by),
                Step::Read => {
                    let read = bucket.snapshot(now);
                    prop_assert!(read.remaining <= read.limit);
                    prop_assert!(in_debt || bucket.clone().try_take(read.remaining, now).is_ok());
                }
            }
            event.minted = u128::from(latest) * u128::from(p.get()) / u128::from(q.get());
            events.push(event);
        }
        assert_bounded(&events, u128::from(capacity.get()));
        let end = MonoTime::from_nanos(latest.max(clock));
        prop_assert_eq!(bucket.snapshot(end), quiet.snapshot(end));
    }
}
