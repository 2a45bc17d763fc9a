//! Prices, and the one function that turns usage into money.

use serde::{Deserialize, Serialize};

use crate::{Money, TokenCount, Usage};

/// Says how a deployment's calls are paid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pricing {
    /// By the token.
    PerToken(Box<Price>),
    /// Costs nothing, and says so.
    Free,
    /// Unknown: answers are recorded at zero, and a tenant with a budget cannot use it.
    Unpriced,
}

impl Pricing {
    /// Returns what the usage costs.
    ///
    /// # Errors
    /// [`MissingPrice`] if the usage holds a class that has no price.
    pub fn cost(&self, usage: &Usage) -> Result<Cost, MissingPrice> {
        match self {
            Self::PerToken(price) => price.cost(usage),
            Self::Free | Self::Unpriced => Ok(Cost { money: Money::ZERO, by_fallback: false }),
        }
    }

    /// Returns whether a tenant with a budget may use the deployment.
    pub const fn fits_a_budget(&self) -> bool {
        match self {
            Self::PerToken(_) | Self::Free => true,
            Self::Unpriced => false,
        }
    }
}

/// What a usage costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The exact amount.
    pub money: Money,
    /// Whether an audio or image class had no price of its own and took the text price.
    pub by_fallback: bool,
}

/// Names a class of tokens without a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no price for {class}")]
pub struct MissingPrice {
    /// The class, as the configuration names its price.
    pub class: &'static str,
}

/// Prices in micro-USD per million tokens, which is pico-USD per token.
///
/// A class without a price of its own takes another's, as the fields say; a missing price is never zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Text input.
    pub input: u64,
    /// Text output.
    pub output: u64,
    /// Input read from a prompt cache; absent: as input.
    #[serde(default)]
    pub cached_input: Option<u64>,
    /// Input written to a prompt cache, short lifetime; absent: twice the input.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// Input written to a prompt cache, long lifetime; absent: as `cache_write`, at least twice the input.
    #[serde(default)]
    pub cache_write_long: Option<u64>,
    /// Reasoning output; absent: as output.
    #[serde(default)]
    pub reasoning: Option<u64>,
    /// Audio input; absent: not usable under a budget.
    #[serde(default)]
    pub audio_input: Option<u64>,
    /// Audio output; absent: not usable under a budget.
    #[serde(default)]
    pub audio_output: Option<u64>,
    /// Image input counted apart from text; absent: not usable under a budget.
    #[serde(default)]
    pub image_input: Option<u64>,
    /// Other prices above a number of input tokens.
    #[serde(default)]
    pub tier: Option<PriceTier>,
}

/// Prices for long prompts.
///
/// The classes that are absent here scale with the tier's input and output price as the base price's do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTier {
    /// Number of input tokens, all input classes together.
    pub threshold: TokenCount,
    /// Whether a prompt of exactly `threshold` tokens is in the tier.
    pub inclusive: bool,
    /// What the tier prices.
    pub scope: TierScope,
    /// Text input.
    pub input: u64,
    /// Text output.
    pub output: u64,
    /// Input read from a prompt cache; absent: the base ratio of cached input to input.
    #[serde(default)]
    pub cached_input: Option<u64>,
    /// Input written to a prompt cache; absent: the base ratio of cache write to input.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// As `cache_write`, long lifetime; absent: the base ratio.
    #[serde(default)]
    pub cache_write_long: Option<u64>,
    /// Reasoning output; absent: the base ratio of reasoning to output.
    #[serde(default)]
    pub reasoning: Option<u64>,
}

/// Says what a long-context tier prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierScope {
    /// Every token of a request whose input passes the threshold.
    WholeRequest,
    /// Only the uncached input above the threshold; output keeps the base price.
    Marginal,
}

impl Price {
    /// Returns a price for text only.
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cached_input: None,
            cache_write: None,
            cache_write_long: None,
            reasoning: None,
            audio_input: None,
            audio_output: None,
            image_input: None,
            tier: None,
        }
    }

    /// Returns what the usage costs: a sum of products of integers, nothing rounded.
    ///
    /// # Errors
    /// Never for text; audio and image classes without a price are charged at the text price and marked
    /// `by_fallback`. [`Price::require`] refuses them beforehand where a budget applies.
    pub fn cost(&self, usage: &Usage) -> Result<Cost, MissingPrice> {
        let active = self.active(usage);
        let text = product(usage.cached_input, active.cached_input)
            .saturating_add(product(usage.cache_write, active.cache_write))
            .saturating_add(product(usage.cache_write_long, active.cache_write_long))
            .saturating_add(product(usage.output, active.output))
            .saturating_add(product(usage.reasoning, active.reasoning))
            .saturating_add(self.input_cost(usage, &active));
        let (mut media, mut by_fallback) = (Money::ZERO, false);
        for (count, own, text_price) in [
            (usage.audio_input, self.audio_input, active.input),
            (usage.audio_output, self.audio_output, active.output),
            (usage.image_input, self.image_input, active.input),
        ] {
            media = media.saturating_add(product(count, own.unwrap_or(text_price)));
            by_fallback |= own.is_none() && !count.is_zero();
        }
        Ok(Cost { money: text.saturating_add(media), by_fallback })
    }

    /// Checks that the media classes a request will use have prices of their own.
    ///
    /// # Errors
    /// [`MissingPrice`] names the first one missing.
    pub const fn require(&self, audio: bool, image: bool) -> Result<(), MissingPrice> {
        if audio && self.audio_input.is_none() {
            return Err(MissingPrice { class: "audio_input" });
        }
        if audio && self.audio_output.is_none() {
            return Err(MissingPrice { class: "audio_output" });
        }
        if image && self.image_input.is_none() {
            return Err(MissingPrice { class: "image_input" });
        }
        Ok(())
    }

    /// Returns the dearest that any input token and any output token can be, for reservations.
    ///
    /// Cache writes count where they have a price of their own: a deployment that bills them says so.
    pub fn dearest(&self) -> (u64, u64) {
        let own = [self.cache_write, self.cache_write_long].into_iter().flatten();
        let base = own.chain(self.cached_input).fold(self.input, u64::max);
        let base_output = self.output.max(self.reasoning.unwrap_or(0));
        let Some(tier) = &self.tier else { return (base, base_output) };
        let tier_prices = self.tier_prices(tier);
        let written =
            if base > self.input { tier_prices.cache_write.max(tier_prices.cache_write_long) } else { 0 };
        (
            base.max(tier_prices.input).max(tier_prices.cached_input).max(written),
            base_output.max(tier_prices.output).max(tier_prices.reasoning),
        )
    }

    fn input_cost(&self, usage: &Usage, active: &ActivePrices) -> Money {
        match &self.tier {
            Some(tier) if tier.scope == TierScope::Marginal => {
                let above = usage.input_total().saturating_sub(tier.threshold);
                let dear = TokenCount::new(above.get().min(usage.input.get()));
                product(usage.input.saturating_sub(dear), active.input)
                    .saturating_add(product(dear, tier.input))
            }
            Some(_) | None => product(usage.input, active.input),
        }
    }

    fn active(&self, usage: &Usage) -> ActivePrices {
        match &self.tier {
            Some(tier) if tier.scope == TierScope::WholeRequest && tier.reached(usage.input_total()) => {
                self.tier_prices(tier)
            }
            Some(_) | None => self.base(),
        }
    }

    fn base(&self) -> ActivePrices {
        let cache_write = self.cache_write.unwrap_or(self.input.saturating_mul(2));
        ActivePrices {
            input: self.input,
            output: self.output,
            cached_input: self.cached_input.unwrap_or(self.input),
            cache_write,
            cache_write_long: self.cache_write_long.unwrap_or(cache_write.max(self.input.saturating_mul(2))),
            reasoning: self.reasoning.unwrap_or(self.output),
        }
    }

    fn tier_prices(&self, tier: &PriceTier) -> ActivePrices {
        let base = self.base();
        let by_input = |own: Option<u64>, price| own.unwrap_or_else(|| scale(price, tier.input, base.input));
        ActivePrices {
            input: tier.input,
            output: tier.output,
            cached_input: by_input(tier.cached_input, base.cached_input),
            cache_write: by_input(tier.cache_write, base.cache_write),
            cache_write_long: by_input(tier.cache_write_long, base.cache_write_long),
            reasoning: tier.reasoning.unwrap_or_else(|| scale(base.reasoning, tier.output, base.output)),
        }
    }
}

impl PriceTier {
    fn reached(&self, input: TokenCount) -> bool {
        if self.inclusive { input >= self.threshold } else { input > self.threshold }
    }
}

/// The prices of the classes that a tier can change.
#[derive(Clone, Copy)]
struct ActivePrices {
    input: u64,
    output: u64,
    cached_input: u64,
    cache_write: u64,
    cache_write_long: u64,
    reasoning: u64,
}

fn product(count: TokenCount, pico_per_token: u64) -> Money {
    Money::from_pico(u128::from(count.get()) * u128::from(pico_per_token))
}

/// Returns `price * to / from`, rounded up so that a tier never undercharges.
fn scale(price: u64, to: u64, from: u64) -> u64 {
    if from == 0 {
        return price.max(to);
    }
    u64::try_from((u128::from(price) * u128::from(to)).div_ceil(u128::from(from))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
