//! Sets of small numbers, as bits.

use smallvec::SmallVec;

/// A set of numbers below a bound that its maker knows. Equal sets of one bound are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Mask(SmallVec<[u64; 2]>);

impl Mask {
    /// Returns the numbers below `bound` that `holds` takes.
    pub(super) fn of(bound: usize, holds: impl Fn(usize) -> bool) -> Self {
        let mut words = SmallVec::from_elem(0, bound.div_ceil(64));
        for number in (0..bound).filter(|number| holds(*number)) {
            words[number / 64] |= 1 << (number % 64);
        }
        Self(words)
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Returns the numbers in both sets.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one & other).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns whether the sets have a number in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }
}
