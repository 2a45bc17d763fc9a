//! What a request will use, before a provider has said what it used.

use gw_limits::{InputEstimate, MilliTokens, OutputScale, Worth};
use gw_types::{Deployment, Money, Pricing, RequestFacts, TextClasses, TokenCount, Usage};

use crate::policy::TokenFacts;

/// Thousandths of a token that a byte is on average, in English text and code: for what was not counted by kind.
const MILLI_PER_BYTE: u64 = 250;
/// Bytes that hardly any token exceeds on average: below this a prompt is certainly not longer than it looks.
const BYTES_PER_TOKEN_AT_MOST: u64 = 8;
/// A total that no provider can have counted where nobody says how large its context window is.
const WINDOW_MAX: TokenCount = TokenCount::new(100_000_000);

/// Returns the input tokens by kinds of characters and the deployment's template, before any calibration.
pub(crate) fn raw_input(facts: &RequestFacts, tokens: &TokenFacts) -> MilliTokens {
    let counted = facts.text_classes != TextClasses::default();
    let text = if counted {
        tokens.vocabulary.tokens(&facts.text_classes)
    } else {
        MilliTokens::new(facts.text_bytes.saturating_mul(MILLI_PER_BYTE))
    };
    let tools = facts.tool_bytes.saturating_mul(MILLI_PER_BYTE);
    MilliTokens::new(text.get().saturating_add(tools))
        .plus(template(facts, tokens))
        .plus(image_tokens(facts, tokens))
}

/// Returns the input tokens that no byte-level tokenizer can pass, images included.
pub(crate) fn input_bound(facts: &RequestFacts, tokens: &TokenFacts) -> TokenCount {
    text_bound(facts, tokens).saturating_add(image_tokens(facts, tokens))
}

/// UTF-8 bytes of all text, plus the bytes of tool definitions, plus the template: each token covers at least one byte.
fn text_bound(facts: &RequestFacts, tokens: &TokenFacts) -> TokenCount {
    let bytes = facts.text_bytes.saturating_add(facts.tool_bytes);
    TokenCount::new(bytes).saturating_add(template(facts, tokens))
}

fn template(facts: &RequestFacts, tokens: &TokenFacts) -> TokenCount {
    times(tokens.per_message, facts.messages).saturating_add(tokens.per_request)
}

fn image_tokens(facts: &RequestFacts, tokens: &TokenFacts) -> TokenCount {
    times(tokens.per_image, facts.images)
}

/// Returns a number of input tokens that the request certainly has, for context windows.
pub fn input_at_least(facts: &RequestFacts) -> TokenCount {
    TokenCount::new(facts.text_bytes / BYTES_PER_TOKEN_AT_MOST)
}

/// Returns the input tokens that routes match by as long as nothing is known of the deployment's own count.
pub fn input_estimate(facts: &RequestFacts) -> TokenCount {
    raw_input(facts, &TokenFacts::default()).rounded_up()
}

/// Returns whether what a provider reports of the request can teach anything about text.
pub(crate) const fn is_text_alone(facts: &RequestFacts) -> bool {
    facts.images == 0 && !facts.audio
}

/// Returns the most that the request can cost at the deployment if the output bound is honoured.
pub(crate) fn worst_case(
    facts: &RequestFacts,
    tokens: &TokenFacts,
    bound: TokenCount,
    deployment: &Deployment,
) -> Money {
    cost(facts, tokens, text_bound(facts, tokens), bound, deployment)
}

/// Returns what the request may cost at the deployment: the most, and what it will hardly ever pass, where enough
/// answers have shown that.
pub(crate) fn worth(
    facts: &RequestFacts,
    tokens: &TokenFacts,
    input: InputEstimate,
    bound: TokenCount,
    deployment: &Deployment,
) -> Worth {
    let most = worst_case(facts, tokens, bound, deployment);
    if !input.calibrated || !is_text_alone(facts) {
        return Worth::from(most);
    }
    Worth { bound: most, calibrated: cost(facts, tokens, input.high, bound, deployment).min(most) }
}

fn cost(
    facts: &RequestFacts,
    tokens: &TokenFacts,
    text: TokenCount,
    bound: TokenCount,
    deployment: &Deployment,
) -> Money {
    let price = match &deployment.pricing {
        Pricing::PerToken(price) => price,
        Pricing::Free | Pricing::Unpriced => return Money::ZERO,
    };
    let (input, output) = price.dearest();
    let image_price = price.image_input.unwrap_or(0).max(input);
    let product = |tokens: TokenCount, price: u64| u128::from(tokens.get()) * u128::from(price);
    Money::from_pico(
        product(text, input)
            .saturating_add(product(image_tokens(facts, tokens), image_price))
            .saturating_add(product(times(bound, facts.choices.max(1)), output)),
    )
}

/// Returns so many times a count.
pub(crate) fn times(tokens: TokenCount, times: u32) -> TokenCount {
    TokenCount::new(tokens.get().saturating_mul(u64::from(times)))
}

/// Returns the usage of an answer whose provider did not say what it used, or nothing that could be believed.
pub(crate) fn cut_usage(input: TokenCount, output: TokenCount) -> Usage {
    Usage { input, output, estimated: true, ..Usage::default() }
}

/// Returns whether a report can be true: no provider counts more than its context window and the output bound hold.
pub(crate) fn is_plausible(usage: &Usage, deployment: &Deployment, bound: TokenCount) -> bool {
    let window = deployment.context_window.unwrap_or(WINDOW_MAX);
    !usage.implausible && usage.total() <= window.saturating_add(bound)
}

/// The content of a stream that was relayed so far, in the terms of its count.
///
/// Most providers send one token a piece. Others send many at once, which shows in the bytes: where they stand for
/// clearly more tokens than there are pieces, they are what counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relayed {
    pub(crate) pieces: u64,
    pub(crate) bytes: u64,
    /// The pieces and bytes there were when the provider last reported its usage.
    reported: (u64, u64),
}

impl Relayed {
    pub(crate) const fn push(&mut self, pieces: u32, bytes: u32) {
        self.pieces = self.pieces.saturating_add(pieces as u64);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Says that the provider has reported its usage, of everything so far.
    pub(crate) const fn report(&mut self) {
        self.reported = (self.pieces, self.bytes);
    }

    /// Returns what has come behind the last report, as everything does behind the one that Anthropic begins with.
    pub(crate) const fn behind_report(&self) -> Self {
        let (pieces, bytes) = self.reported;
        Self { pieces: self.pieces - pieces, bytes: self.bytes - bytes, reported: (0, 0) }
    }

    /// Returns the usage of a stream that may have gone on behind its last report, with what came then counted up to a cap.
    pub(crate) fn corrected(&self, usage: Usage, scale: OutputScale, cap: Option<TokenCount>) -> Usage {
        let behind = self.behind_report();
        if behind.pieces == 0 {
            return usage;
        }
        let room = cap.map_or(TokenCount::new(u64::MAX), |cap| cap.saturating_sub(usage.output_total()));
        let counted = behind.tokens(scale).min(room);
        Usage { output: usage.output.saturating_add(counted), estimated: true, ..usage }
    }

    /// Returns the tokens that the content is likely to be.
    pub(crate) fn tokens(&self, scale: OutputScale) -> TokenCount {
        let by_bytes = scale.tokens(self.bytes);
        let is_noise = by_bytes.get().saturating_mul(4) < self.pieces.saturating_mul(scale.noise_quarters());
        if is_noise { TokenCount::new(self.pieces) } else { by_bytes }
    }

    /// Returns a number of tokens that the content certainly is.
    pub(crate) fn tokens_at_least(&self, scale: OutputScale) -> TokenCount {
        scale.tokens_at_least(self.bytes).max(TokenCount::new(self.pieces))
    }
}

#[cfg(test)]
mod tests {
    use gw_limits::OutputScale;
    use gw_types::{TokenCount, Usage};

    use super::Relayed;

    #[track_caller]
    fn check(pieces: &[(u32, u32)], likely: u64, at_least: u64) {
        let scale = OutputScale::default();
        let mut relayed = Relayed::default();
        pieces.iter().for_each(|(pieces, bytes)| relayed.push(*pieces, *bytes));
        assert_eq!((relayed.tokens(scale).get(), relayed.tokens_at_least(scale).get()), (likely, at_least));
    }

    #[test]
    fn what_came_behind_a_report_is_counted() {
        let scale = OutputScale::default();
        let usage = Usage { output: TokenCount::new(1), reasoning: TokenCount::new(2), ..Usage::default() };
        let mut relayed = Relayed::default();
        relayed.push(3, 12);
        relayed.report();
        assert_eq!(relayed.corrected(usage, scale, None), usage);
        relayed.push(5, 20);
        let check = |cap: Option<u64>, output: u64| {
            let corrected = relayed.corrected(usage, scale, cap.map(TokenCount::new));
            assert!(corrected.estimated);
            assert_eq!(corrected.output_total().get(), output, "{cap:?}");
        };
        check(None, 8);
        check(Some(6), 6);
        check(Some(2), 3);
    }

    #[test]
    fn a_piece_is_a_token_unless_the_bytes_stand_for_twice_as_many() {
        check(&[], 0, 0);
        check(&[(1, 4); 5], 5, 5);
        check(&[(1, 7); 5], 5, 5);
        check(&[(1, 0); 5], 5, 5);
        check(&[(5, 48)], 12, 6);
        check(&[(1, 14)], 4, 1);
        check(&[(1, 400), (1, 3), (1, 400)], 201, 100);
    }
}
