//! Tokens, in classes that do not overlap.

use serde::{Deserialize, Serialize};

/// A number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenCount(u64);

impl TokenCount {
    /// No token.
    pub const ZERO: Self = Self(0);

    /// Returns a count.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// Returns the count as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns whether there is no token.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the sum, at most the largest count.
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

impl std::fmt::Display for TokenCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What one call used, in disjoint classes: no token is counted twice.
///
/// Adapters normalise what providers report (some include cached tokens in the input, some reasoning in the output,
/// some not) into these classes; [`crate::Price::cost`] prices them and nothing else does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Text input that was neither read from nor written to a prompt cache.
    pub input: TokenCount,
    /// Input read from a prompt cache.
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub cached_input: TokenCount,
    /// Input written to a prompt cache with the short lifetime (5 minutes, or the only one there is).
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub cache_write: TokenCount,
    /// Input written to a prompt cache with the long lifetime (1 hour).
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub cache_write_long: TokenCount,
    /// Visible text output, reasoning excluded.
    pub output: TokenCount,
    /// Reasoning output.
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub reasoning: TokenCount,
    /// Audio input.
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub audio_input: TokenCount,
    /// Audio output.
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub audio_output: TokenCount,
    /// Image input, where a provider counts it apart from text.
    #[serde(skip_serializing_if = "TokenCount::is_zero")]
    pub image_input: TokenCount,
    /// Whether any of the figures is gw's estimate and not the provider's report.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether the provider's figures contradicted each other and were brought into range.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inconsistent: bool,
    /// Whether the provider reported what cannot be true (a negative count, more than the context window holds), so that
    /// the figures are gw's estimate instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub implausible: bool,
}

impl Usage {
    /// Returns all input classes together.
    pub fn input_total(&self) -> TokenCount {
        [self.cached_input, self.cache_write, self.cache_write_long, self.audio_input, self.image_input]
            .into_iter()
            .fold(self.input, TokenCount::saturating_add)
    }

    /// Returns all output classes together.
    pub fn output_total(&self) -> TokenCount {
        self.output.saturating_add(self.reasoning).saturating_add(self.audio_output)
    }

    /// Returns all classes together.
    pub fn total(&self) -> TokenCount {
        self.input_total().saturating_add(self.output_total())
    }
}
