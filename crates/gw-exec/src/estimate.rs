//! What a request will use, before a provider has said what it used.

use gw_types::{Deployment, Money, Pricing, RequestFacts, TokenCount, Usage};

/// Bytes that a token covers on average in English text and code.
const BYTES_PER_TOKEN: u64 = 4;
/// Bytes that hardly any token exceeds on average: below this an answer is certainly not longer than it looks.
const BYTES_PER_TOKEN_AT_MOST: u64 = 8;
/// Tokens of a conversation's frame, a message and the reply's opening.
const TOKENS_PER_MESSAGE: u64 = 4;
const TOKENS_PER_REQUEST: u64 = 3;
/// An upper bound of the tokens of one image: 1.5 times the largest formula known (1,536 patches times 2.46).
const TOKENS_PER_IMAGE: u64 = 5_668;

/// Returns the likely input tokens, for token windows and for usage that nobody reported.
pub(crate) fn input(facts: &RequestFacts) -> TokenCount {
    TokenCount::new(
        facts.text_bytes.div_ceil(BYTES_PER_TOKEN)
            + facts.tool_bytes.div_ceil(BYTES_PER_TOKEN)
            + u64::from(facts.messages) * TOKENS_PER_MESSAGE
            + TOKENS_PER_REQUEST,
    )
}

/// Returns a number of input tokens that the request certainly has, for context windows.
pub(crate) fn input_at_least(facts: &RequestFacts) -> TokenCount {
    TokenCount::new(facts.text_bytes / BYTES_PER_TOKEN_AT_MOST)
}

/// Returns the output tokens that the relayed content stands for.
pub(crate) fn output(content_frames: u64, content_bytes: u64) -> TokenCount {
    TokenCount::new(content_frames.max(content_bytes.div_ceil(BYTES_PER_TOKEN)))
}

/// Returns a number of output tokens that the relayed content certainly has, for the cap of a stream.
pub(crate) fn output_at_least(content_frames: u64, content_bytes: u64) -> TokenCount {
    TokenCount::new(content_frames.max(content_bytes / BYTES_PER_TOKEN_AT_MOST))
}

/// Returns the most that the request can cost at the deployment if the output bound is honoured.
pub(crate) fn worst_case(facts: &RequestFacts, bound: TokenCount, deployment: &Deployment) -> Money {
    let price = match &deployment.pricing {
        Pricing::PerToken(price) => price,
        Pricing::Free | Pricing::Unpriced => return Money::ZERO,
    };
    let (input, output) = price.dearest();
    let images = u128::from(facts.images) * u128::from(TOKENS_PER_IMAGE);
    let image_price = u128::from(price.image_input.unwrap_or(0).max(input));
    let text = u128::from(facts.input_tokens_bound().get());
    let answers = u128::from(bound.get()) * u128::from(facts.choices.max(1));
    Money::from_pico(
        (text * u128::from(input))
            .saturating_add(images * image_price)
            .saturating_add(answers * u128::from(output)),
    )
}

/// Returns the usage of an answer that was cut before its provider said what it used.
pub(crate) fn cut_usage(input: TokenCount, output: TokenCount) -> Usage {
    Usage { input, output, estimated: true, ..Usage::default() }
}
