//! The exact token bucket: GCRA in token space, with a counter of minted tokens.

#[cfg(test)]
mod tests;

use std::num::NonZeroU64;

use gw_types::MonoTime;

use crate::BucketSnapshot;

const NANOS_PER_MINUTE: NonZeroU64 = NonZeroU64::new(60_000_000_000).expect("a minute is not zero");
const NANOS_PER_THOUSAND_SECONDS: NonZeroU64 =
    NonZeroU64::new(1_000_000_000_000).expect("a thousand seconds are not zero");

/// How fast a bucket fills: `p` tokens every `q` nanoseconds, as a ratio of integers.
///
/// A ratio, because a whole number of nanoseconds per token cannot say 7 tokens a second nor more than 10^9 a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    tokens: NonZeroU64,
    period_ns: NonZeroU64,
}

impl Rate {
    /// Returns `tokens` every `period_ns` nanoseconds.
    pub const fn new(tokens: NonZeroU64, period_ns: NonZeroU64) -> Self {
        Self { tokens, period_ns }
    }

    /// Returns so many thousandths of a token a second: 2500 are five in two seconds.
    pub const fn milli_per_second(milli: NonZeroU64) -> Self {
        Self::new(milli, NANOS_PER_THOUSAND_SECONDS)
    }

    /// Returns `tokens` a minute.
    pub const fn per_minute(tokens: NonZeroU64) -> Self {
        Self::new(tokens, NANOS_PER_MINUTE)
    }
}

/// Says why a bucket gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Enough tokens are there at this instant, and not a nanosecond earlier, if nobody else takes any.
    NotUntil(MonoTime),
    /// More was asked for than the bucket can ever hold.
    NeverPossible,
}

/// A token bucket that never drifts.
///
/// With `p` tokens every `q` nanoseconds since the epoch `t0`, `M(t) = floor((t - t0) * p / q)` tokens are minted by
/// `t`. The bucket keeps one position `C`; `M(t) + capacity - max(C, M(t))` tokens are available, so it cannot overfill,
/// and reading it any number of times in between changes nothing. A position above `M(t) + capacity` is debt: takes
/// wait until it is repaid. Granted, less given back, in any interval `[s, t]` is at most `capacity + M(t) - M(s)`.
///
/// An instant before the last one seen counts as that one. Every operation is O(1); products are 128 bits wide.
/// Source: GCRA (ITU-T I.371) in the minted-counter form.
///
/// ```
/// use std::num::NonZeroU64;
/// use gw_limits::{Bucket, Denied, Rate};
/// use gw_types::MonoTime;
///
/// let seven = NonZeroU64::new(7).unwrap();
/// let second = NonZeroU64::new(1_000_000_000).unwrap();
/// let mut bucket = Bucket::new(Rate::new(seven, second), seven, MonoTime::ZERO);
/// assert!(bucket.try_take(7, MonoTime::ZERO).is_ok());
/// // One seventh of a second is 142,857,142.857... ns.
/// let first = MonoTime::from_nanos(142_857_143);
/// assert_eq!(bucket.try_take(1, MonoTime::ZERO), Err(Denied::NotUntil(first)));
/// assert!(bucket.try_take(1, first).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    capacity: NonZeroU64,
    /// `t0`: when nothing was minted.
    epoch: MonoTime,
    /// The latest instant that any operation named.
    seen: MonoTime,
    /// `C`, counted from the epoch. Wider than the 64 bits that suffice for sane rates, so that none can wrap it.
    position: u128,
}

/// Where a bucket's position will stand if a take goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next(u128);

impl Bucket {
    /// Returns a full bucket.
    pub const fn new(rate: Rate, capacity: NonZeroU64, now: MonoTime) -> Self {
        Self { rate, capacity, epoch: now, seen: now, position: 0 }
    }

    /// Takes `n` tokens, or none.
    ///
    /// # Errors
    /// [`Denied`] says when `n` tokens will be there, or that they never will.
    pub fn try_take(&mut self, n: u64, now: MonoTime) -> Result<(), Denied> {
        self.check(n, now).map(|next| self.consume(next))
    }

    /// Returns `n` tokens that were taken and not used; what does not fit is lost.
    pub fn give_back(&mut self, n: u64) {
        self.position = self.position.saturating_sub(u128::from(n));
    }

    /// Takes `n` tokens that were used already, into debt if need be.
    pub fn debit(&mut self, n: u64, now: MonoTime) {
        // From the floor, not from a position that the refill has passed: else a full bucket would swallow the debit.
        let floor = self.minted(now);
        self.position = self.position.max(floor).saturating_add(u128::from(n));
    }

    /// Returns the most that the bucket holds, in tokens.
    pub const fn capacity(&self) -> u64 {
        self.capacity.get()
    }

    /// Changes rate and capacity; the tokens in the bucket, or the debt, stay, as far as they fit.
    ///
    /// A real change begins a new epoch, which loses the fraction of a token that was being minted. Naming the rate
    /// and capacity that hold already changes nothing.
    pub fn set_rate(&mut self, rate: Rate, capacity: NonZeroU64, now: MonoTime) {
        if rate == self.rate && capacity == self.capacity {
            return;
        }
        let floor = self.minted(now);
        let used = self.position.saturating_sub(floor);
        // available = old capacity - used; the new position is new capacity - available, at least 0.
        let raised = used.saturating_add(u128::from(capacity.get()));
        let position = raised.saturating_sub(u128::from(self.capacity.get()));
        *self = Self { rate, capacity, epoch: self.seen, seen: self.seen, position };
    }

    /// Returns limit, remaining tokens and the time until the bucket is full.
    pub fn snapshot(&mut self, now: MonoTime) -> BucketSnapshot {
        let used = self.position.saturating_sub(self.minted(now));
        let limit = self.capacity.get();
        let remaining = u64::try_from(used).map_or(0, |used| limit.saturating_sub(used));
        let full_at = if used == 0 { now } else { self.minted_at(self.position) };
        BucketSnapshot { limit, remaining, reset_after: full_at.saturating_since(now) }
    }

    /// Returns where the position will stand after a take of `n`, and changes nothing but the latest instant seen.
    pub(crate) fn check(&mut self, n: u64, now: MonoTime) -> Result<Next, Denied> {
        let (floor, capacity) = (self.minted(now), u128::from(self.capacity.get()));
        if u128::from(n) > capacity {
            return Err(Denied::NeverPossible);
        }
        let next = self.position.max(floor).saturating_add(u128::from(n));
        if next > floor + capacity {
            return Err(Denied::NotUntil(self.minted_at(next - capacity)));
        }
        Ok(Next(next))
    }

    /// Returns the first instant at which `n` tokens, taken one after the other, have come; at least `now`.
    pub(crate) fn all_by(&mut self, n: u64, now: MonoTime) -> MonoTime {
        let floor = self.minted(now);
        let next = self.position.max(floor).saturating_add(u128::from(n));
        self.minted_at(next.saturating_sub(u128::from(self.capacity.get()))).max(self.seen)
    }

    /// Carries out a take that was checked under the same lock.
    pub(crate) fn consume(&mut self, next: Next) {
        self.position = next.0;
    }

    /// `M(max(now, seen))`.
    fn minted(&mut self, now: MonoTime) -> u128 {
        self.seen = self.seen.max(now);
        let elapsed = u128::from(self.seen.nanos() - self.epoch.nanos());
        // Both factors are below 2^64, so the product, and one capacity on top of it, fit.
        elapsed * u128::from(self.rate.tokens.get()) / u128::from(self.rate.period_ns.get())
    }

    /// The first instant by which `count` tokens are minted; the last instant there is if they never are.
    fn minted_at(&self, count: u128) -> MonoTime {
        let elapsed = count
            .checked_mul(u128::from(self.rate.period_ns.get()))
            .map_or(u128::MAX, |product| product.div_ceil(u128::from(self.rate.tokens.get())));
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        MonoTime::from_nanos(self.epoch.nanos().saturating_add(elapsed))
    }
}
