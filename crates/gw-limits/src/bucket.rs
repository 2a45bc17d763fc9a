//! The exact token bucket: GCRA in token space, in whole tokens and parts of one.

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
/// At `p` tokens every `q` nanoseconds each nanosecond mints `p` parts, and `q` parts are a token. The bucket keeps how
/// many tokens are used and not yet minted again, and the parts of the next one: no rounding is ever lost, it cannot
/// overfill, and reading it any number of times in between changes nothing. More used than the capacity is debt: takes
/// wait until it is repaid. With `M(t) = floor((t - t0) * p / q)` tokens minted since the bucket was made, what is
/// granted, less what is given back, in any interval `[s, t]` is at most `capacity + M(t) - M(s)`.
///
/// An instant before the last one seen counts as that one. Every operation is O(1), in 64 bits unless more than 2^64
/// parts are minted between two of them. Source: GCRA (ITU-T I.371).
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
    /// The latest instant that any operation named.
    seen: MonoTime,
    /// Tokens taken and not minted again by then: 0 in a full bucket, above the capacity in debt.
    used: u64,
    /// Parts of the next token that were minted by then, fewer than the rate's period.
    parts: u64,
}

/// How many tokens will be in use if a take goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next(u64);

impl Bucket {
    /// Returns a full bucket.
    pub const fn new(rate: Rate, capacity: NonZeroU64, now: MonoTime) -> Self {
        Self { rate, capacity, seen: now, used: 0, parts: 0 }
    }

    /// Takes `n` tokens, or none.
    ///
    /// # Errors
    /// [`Denied`] says when `n` tokens will be there, or that they never will.
    pub fn try_take(&mut self, n: u64, now: MonoTime) -> Result<(), Denied> {
        self.check(n, now).map(|next| self.consume(next))
    }

    /// Returns `n` tokens that were taken and not used; what does not fit is lost.
    pub const fn give_back(&mut self, n: u64) {
        self.used = self.used.saturating_sub(n);
    }

    /// Takes `n` tokens that were used already, into debt if need be: of 2^64 - 1 tokens at most.
    pub fn debit(&mut self, n: u64, now: MonoTime) {
        self.advance(now);
        self.used = self.used.saturating_add(n);
    }

    /// Returns the most that the bucket holds, in tokens.
    pub const fn capacity(&self) -> u64 {
        self.capacity.get()
    }

    /// Changes rate and capacity; the tokens in the bucket, or the debt, stay, as far as they fit.
    ///
    /// A real change loses the fraction of a token that was being minted. Naming the rate and capacity that hold already
    /// changes nothing.
    pub fn set_rate(&mut self, rate: Rate, capacity: NonZeroU64, now: MonoTime) {
        if rate == self.rate && capacity == self.capacity {
            return;
        }
        self.advance(now);
        // available = old capacity - used; afterwards used = new capacity - available, at least 0.
        let raised = u128::from(self.used) + u128::from(capacity.get());
        let used = raised.saturating_sub(u128::from(self.capacity.get()));
        let used = u64::try_from(used).unwrap_or(u64::MAX);
        *self = Self { rate, capacity, seen: self.seen, used, parts: 0 };
    }

    /// Returns limit, remaining tokens and the time until the bucket is full.
    pub fn snapshot(&mut self, now: MonoTime) -> BucketSnapshot {
        self.advance(now);
        let limit = self.capacity.get();
        let full_at = if self.used == 0 { now } else { self.minted_at(u128::from(self.used)) };
        BucketSnapshot {
            limit,
            remaining: limit.saturating_sub(self.used),
            reset_after: full_at.saturating_since(now),
        }
    }

    /// Returns how many tokens a take of `n` leaves in use, and changes nothing but the latest instant seen.
    pub(crate) fn check(&mut self, n: u64, now: MonoTime) -> Result<Next, Denied> {
        self.advance(now);
        let capacity = self.capacity.get();
        if n > capacity {
            return Err(Denied::NeverPossible);
        }
        match self.used.checked_add(n).filter(|next| *next <= capacity) {
            Some(next) => Ok(Next(next)),
            None => Err(Denied::NotUntil(self.minted_at(self.missing(n)))),
        }
    }

    /// Returns the first instant at which `n` tokens, taken one after the other, have come; at least `now`.
    pub(crate) fn all_by(&mut self, n: u64, now: MonoTime) -> MonoTime {
        self.advance(now);
        self.minted_at(self.missing(n))
    }

    /// Carries out a take that was checked under the same lock.
    pub(crate) const fn consume(&mut self, next: Next) {
        self.used = next.0;
    }

    /// How many tokens must still be minted before `n` can be taken.
    fn missing(&self, n: u64) -> u128 {
        (u128::from(self.used) + u128::from(n)).saturating_sub(u128::from(self.capacity.get()))
    }

    /// Mints what came since the latest instant seen.
    fn advance(&mut self, now: MonoTime) {
        let (elapsed, period) = (now.nanos().saturating_sub(self.seen.nanos()), self.rate.period_ns.get());
        self.seen = self.seen.max(now);
        let narrow =
            elapsed.checked_mul(self.rate.tokens.get()).and_then(|parts| parts.checked_add(self.parts));
        let minted = if let Some(parts) = narrow {
            self.parts = parts % period;
            parts / period
        } else {
            // Both factors are below 2^64, so the product, and less than one period on top of it, fit.
            let parts = u128::from(elapsed) * u128::from(self.rate.tokens.get()) + u128::from(self.parts);
            let period = u128::from(period);
            self.parts = u64::try_from(parts % period).unwrap_or_default();
            u64::try_from(parts / period).unwrap_or(u64::MAX)
        };
        self.used = self.used.saturating_sub(minted);
    }

    /// The first instant by which `count` more tokens are minted; the last instant there is if they never are.
    fn minted_at(&self, count: u128) -> MonoTime {
        let parts = count
            .checked_mul(u128::from(self.rate.period_ns.get()))
            .map_or(u128::MAX, |parts| parts.saturating_sub(u128::from(self.parts)));
        let wait = u64::try_from(parts.div_ceil(u128::from(self.rate.tokens.get()))).unwrap_or(u64::MAX);
        MonoTime::from_nanos(self.seen.nanos().saturating_add(wait))
    }
}
