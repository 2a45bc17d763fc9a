//! Money as an exact integer.

use serde::{Deserialize, Serialize};

/// An exact amount in pico-USD (10^-12 USD).
///
/// A price is pico-USD per token, so a cost is a sum of products of integers and nothing is rounded on the way. The
/// range is 3.4 * 10^26 USD; sums saturate there, which no real amount reaches.
///
/// ```
/// use gw_types::Money;
///
/// let cost = Money::from_pico(1_500_001);
/// assert_eq!(cost.micros_rounded_up(), 2);
/// assert_eq!(cost.to_string(), "$0.000001500001");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(u128);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    const PICO_PER_MICRO: u128 = 1_000_000;
    const PICO_PER_USD: u128 = 1_000_000_000_000;

    /// Returns an amount of pico-USD.
    pub const fn from_pico(pico: u128) -> Self {
        Self(pico)
    }

    /// Returns an amount of micro-USD.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros as u128 * Self::PICO_PER_MICRO)
    }

    /// Returns the amount in pico-USD.
    pub const fn pico(self) -> u128 {
        self.0
    }

    /// Returns the amount in micro-USD, rounded up once; saturates at `u64::MAX`.
    pub fn micros_rounded_up(self) -> u64 {
        u64::try_from(self.0.div_ceil(Self::PICO_PER_MICRO)).unwrap_or(u64::MAX)
    }

    /// Returns whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the sum, or `None` above the range.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Returns the sum, at most the largest amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, pico) = (self.0 / Self::PICO_PER_USD, self.0 % Self::PICO_PER_USD);
        let digits = format!("{pico:012}");
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() { write!(f, "${whole}") } else { write!(f, "${whole}.{digits}") }
    }
}
