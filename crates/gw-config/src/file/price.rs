//! `price` of a deployment: by the token, free, or unpriced; never nothing.

use std::ops::RangeInclusive;

use gw_types::{Price, PriceTier, Pricing, TierScope, TokenCount};

use crate::reader::{Node, Section};

/// Micro-USD per million tokens: up to a million USD per million tokens.
const PRICES: RangeInclusive<i64> = 0..=1_000_000_000_000;

const SCOPES: [(&str, TierScope); 2] =
    [("whole_request", TierScope::WholeRequest), ("marginal", TierScope::Marginal)];

/// Reads a price.
pub(super) fn read(node: &Node<'_>) -> Option<Pricing> {
    const WORDS: [(&str, bool); 2] = [("free", true), ("unpriced", false)];
    if node.raw_text().is_some() {
        let free = node.choice("price", &WORDS)?;
        return Some(if free { Pricing::Free } else { Pricing::Unpriced });
    }
    if !node.is_table() {
        let remedy = "write `{ input = 2_000_000, output = 8_000_000 }`, `\"free\"` or `\"unpriced\"`";
        node.fault(format!("`{}` is no price", node.path()), remedy);
        return None;
    }
    let mut section = node.section()?;
    let input = required(&mut section, "input");
    let output = required(&mut section, "output");
    let mut price = Price::new(input.unwrap_or_default(), output.unwrap_or_default());
    price.cached_input = section.count("cached_input", PRICES);
    price.cache_write = section.count("cache_write", PRICES);
    price.cache_write_long = section.count("cache_write_long", PRICES);
    price.reasoning = section.count("reasoning", PRICES);
    price.audio_input = section.count("audio_input", PRICES);
    price.audio_output = section.count("audio_output", PRICES);
    price.image_input = section.count("image_input", PRICES);
    price.tier = section.optional("tier").and_then(|node| tier(&node));
    section.finish();
    if (input, output) == (Some(0), Some(0)) {
        node.fault(format!("`{}` is zero", node.path()), "write `\"free\"` if it costs nothing");
        return None;
    }
    input.and(output).map(|_| Pricing::PerToken(Box::new(price)))
}

/// Reads a long-context tier. Where it begins and what it prices must be said: guessing either misprices.
fn tier(node: &Node<'_>) -> Option<PriceTier> {
    let mut section = node.section()?;
    let threshold = section
        .required("threshold", "200_000")
        .and_then(|node| node.whole(1..=1_000_000_000))
        .and_then(|tokens| u64::try_from(tokens).ok());
    let inclusive = section.required("inclusive", "false").and_then(|node| node.flag());
    let scope = section.required("scope", "\"whole_request\"").and_then(|node| node.choice("scope", &SCOPES));
    let input = required(&mut section, "input");
    let output = required(&mut section, "output");
    let cached_input = section.count("cached_input", PRICES);
    let cache_write = section.count("cache_write", PRICES);
    let cache_write_long = section.count("cache_write_long", PRICES);
    let reasoning = section.count("reasoning", PRICES);
    section.finish();
    Some(PriceTier {
        threshold: TokenCount::new(threshold?),
        inclusive: inclusive?,
        scope: scope?,
        input: input?,
        output: output?,
        cached_input,
        cache_write,
        cache_write_long,
        reasoning,
    })
}

fn required(section: &mut Section<'_>, key: &'static str) -> Option<u64> {
    let value = section.required(key, "2_000_000")?.whole(PRICES)?;
    u64::try_from(value).ok()
}
