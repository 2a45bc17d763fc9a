//! Chance and identifiers come in through seams, so that two gateways built alike behave alike.

use std::sync::atomic::{AtomicU64, Ordering};

/// The source of chance.
///
/// # Contract
/// Every call returns 64 bits that look uniform and independent; it never blocks and never fails.
pub trait Random: Send + Sync + std::fmt::Debug {
    /// Returns 64 random bits.
    fn next_u64(&self) -> u64;

    /// Returns a number in `0..bound` (0 if `bound` is 0), by Lemire's multiplication; the bias is below `bound / 2^64`.
    fn below(&self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }
}

/// The source of identifiers.
///
/// # Contract
/// No value is returned twice in the life of the gateway's records.
pub trait IdSource: Send + Sync + std::fmt::Debug {
    /// Returns 128 bits that were never returned before.
    fn next_id(&self) -> u128;
}

/// A repeatable source of chance: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// Returns a source that yields the same sequence for the same seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A repeatable source of identifiers: 1, 2, 3, ...
#[derive(Debug, Default)]
pub struct SequentialIds(AtomicU64);

impl IdSource for SequentialIds {
    fn next_id(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::{IdSource, Random, SeededRandom, SequentialIds};

    #[test]
    fn splitmix64_matches_the_published_sequence() {
        let random = SeededRandom::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_stays_below() {
        let random = SeededRandom::new(7);
        assert!((0..1_000).all(|_| random.below(3) < 3));
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn ids_count_up() {
        let ids = SequentialIds::default();
        assert_eq!((ids.next_id(), ids.next_id()), (1, 2));
    }
}
