//! The embedder that counts words.

use std::num::NonZeroU16;

use async_trait::async_trait;
use blake2::{Blake2b, Digest, digest::consts::U8};
use gw_errors::GatewayError;

use super::{Embedder, HashingEmbedder, unit};

/// Embeds text by the words in it: the signed hashing trick (Weinberger et al., ICML'09), on BLAKE2b.
///
/// Each word, lower-cased and cut at blanks, adds +1 or -1 at one place of the vector; both follow from the word's
/// 8-byte digest. The signs make collisions cancel in expectation, so that the cosine stays an unbiased estimate of
/// the share of common words. A word in another form (`card`, `cards`) is another word; [`HashingEmbedder`], the
/// default, sees what they share.
///
/// Costs one digest a word. No state, no error, never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordEmbedder {
    dimensions: NonZeroU16,
}

impl WordEmbedder {
    /// Returns an embedder of so many dimensions.
    pub const fn new(dimensions: NonZeroU16) -> Self {
        Self { dimensions }
    }

    /// Returns the vector of the text, of length 1; of length 0 for text without words.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut counts = vec![0_i64; usize::from(self.dimensions.get())];
        for word in text.to_lowercase().split_whitespace() {
            let digest: [u8; 8] = Blake2b::<U8>::digest(word.as_bytes()).into();
            let [a, b, c, d, sign, ..] = digest;
            let at = u32::from_be_bytes([a, b, c, d]) % u32::from(self.dimensions.get());
            counts[at as usize] += if sign.is_multiple_of(2) { 1 } else { -1 };
        }
        unit(&counts)
    }
}

impl Default for WordEmbedder {
    fn default() -> Self {
        Self::new(HashingEmbedder::DEFAULT_DIMENSIONS)
    }
}

#[async_trait]
impl Embedder for WordEmbedder {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, GatewayError> {
        Ok(self.vector(text))
    }
}

#[cfg(test)]
mod tests {
    use std::{f32::consts::FRAC_1_SQRT_2, num::NonZeroU16};

    use super::WordEmbedder;

    fn check(text: &str, expected: &[(usize, f32)]) {
        let vector = WordEmbedder::new(NonZeroU16::new(64).unwrap()).vector(text);
        let mut wanted = vec![0.0; 64];
        expected.iter().for_each(|&(at, value)| wanted[at] = value);
        assert_eq!(vector, wanted, "{text}");
    }

    #[test]
    fn words_go_where_their_digest_says() {
        check("held", &[(60, 1.0)]);
        check("Held HELD", &[(60, 1.0)]);
        check("the payment is held", &[(44, 0.5), (59, -0.5), (60, 0.5), (62, -0.5)]);
        check("a b", &[(35, -FRAC_1_SQRT_2), (57, -FRAC_1_SQRT_2)]);
    }

    #[test]
    fn text_without_words_is_the_zero_vector() {
        check("", &[]);
        check(" \t\n", &[]);
    }

    #[test]
    fn vectors_have_length_one_whatever_the_text() {
        for text in ["a", "a a a b", "The payment is held.", "ÄÖ ß 日本"] {
            let square: f32 = WordEmbedder::default().vector(text).iter().map(|x| x * x).sum();
            assert!((square - 1.0).abs() < 1e-6, "{text}: {square}");
        }
    }
}
