//! The pricing cases that users reported, with exact amounts in micro-USD.

use super::{Price, PriceTier, TierScope};
use crate::{TokenCount, Usage};

const M: u64 = 1_000_000;

fn usage(input: u64, cached_input: u64, cache_write: u64, output: u64) -> Usage {
    Usage {
        input: TokenCount::new(input),
        cached_input: TokenCount::new(cached_input),
        cache_write: TokenCount::new(cache_write),
        output: TokenCount::new(output),
        ..Usage::default()
    }
}

fn check(price: &Price, usage: &Usage, micros: u64) {
    assert_eq!(price.cost(usage).unwrap().money.micros_rounded_up(), micros);
}

#[test]
fn prompt_cache_tokens_are_priced_once() {
    let price =
        Price { cache_write: Some(3_750_000), cached_input: Some(300_000), ..Price::new(3 * M, 15 * M) };
    check(&price, &usage(10, 2_000, 1_000, 100), 5_880);
    check(&price, &usage(1_010, 2_000, 0, 100), 5_130);
    check(&price, &usage(0, 150, 0, 100), 1_545);
}

#[test]
fn long_context_tier_covers_every_token_class() {
    let tier = PriceTier {
        threshold: TokenCount::new(200_000),
        inclusive: false,
        scope: TierScope::WholeRequest,
        input: 6 * M,
        output: 22_500_000,
        cached_input: None,
        cache_write: None,
        cache_write_long: None,
        reasoning: None,
    };
    let price = Price {
        cached_input: Some(300_000),
        cache_write: Some(3_750_000),
        tier: Some(tier),
        ..Price::new(3 * M, 15 * M)
    };
    check(&price, &usage(5_000, 190_000, 10_000, 1_000), 241_500);
    check(&price, &usage(5_000, 190_000, 5_000, 1_000), 105_750);
}

#[test]
fn marginal_tier_prices_only_what_is_above() {
    let tier = PriceTier {
        threshold: TokenCount::new(100),
        inclusive: false,
        scope: TierScope::Marginal,
        input: 2 * M,
        output: 0,
        cached_input: None,
        cache_write: None,
        cache_write_long: None,
        reasoning: None,
    };
    let price = Price { tier: Some(tier), ..Price::new(M, M) };
    check(&price, &usage(150, 0, 0, 0), 200);
    check(&price, &usage(100, 0, 0, 0), 100);
}

#[test]
fn reasoning_tokens_neither_lost_nor_doubled() {
    let usage = Usage { reasoning: TokenCount::new(50), ..usage(200, 0, 0, 1_000) };
    check(&Price::new(M, 4 * M), &usage, 4_400);
}

#[test]
fn audio_tokens_are_not_free_and_not_text() {
    let usage =
        Usage { audio_input: TokenCount::new(100), audio_output: TokenCount::new(34), ..usage(15, 0, 0, 13) };
    let text_only = Price::new(600_000, 2_400_000);
    let with_audio = Price { audio_input: Some(10 * M), audio_output: Some(20 * M), ..text_only.clone() };
    assert_eq!(with_audio.cost(&usage).unwrap().money.pico(), 1_720_200_000);
    let fallback = text_only.cost(&usage).unwrap();
    assert_eq!((fallback.money.pico(), fallback.by_fallback), (181_800_000, true));
    assert_eq!(text_only.require(true, false).unwrap_err().class, "audio_input");
    assert!(with_audio.require(true, false).is_ok());
}

#[test]
fn dearest_bounds_every_class() {
    let price = Price { cache_write: Some(9 * M), reasoning: Some(7 * M), ..Price::new(3 * M, 5 * M) };
    assert_eq!(price.dearest(), (9 * M, 7 * M));
    assert_eq!(Price::new(3 * M, 5 * M).dearest(), (3 * M, 5 * M));
}
