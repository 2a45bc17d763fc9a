//! The seam to whatever turns text into a vector, and the embedder that needs no model.

use std::num::NonZeroU16;

use async_trait::async_trait;
use blake2::{Blake2b, Digest, digest::consts::U8};
use gw_errors::GatewayError;

/// Turns text into a vector whose direction stands for what the text says.
///
/// # Contract
/// The same text gives the same vector, and every vector of one embedder has the same number of dimensions. The length
/// of the vector does not matter: the cache brings it to 1. A vector of zeros says that there is nothing to compare,
/// and so does one that is not finite. Dropping the future cancels the work. The caller bounds its time.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Returns the vector of the text.
    ///
    /// # Errors
    /// Any kind of the provider's side of the table, where a provider is asked; the request is then answered as if
    /// there were no semantic cache.
    async fn embed(&self, text: &str) -> Result<Vec<f32>, GatewayError>;
}

const _: fn(&dyn Embedder) = |_object_safe| {};

/// Embeds text by the words in it: the signed hashing trick (Weinberger et al., ICML'09), on BLAKE2b.
///
/// Each word, lower-cased and cut at blanks, adds +1 or -1 at one place of the vector; both follow from the word's
/// 8-byte digest. The signs make collisions cancel in expectation, so that the cosine stays an unbiased estimate of
/// the share of common words. It measures words, not meaning: "is held" and "is not held" are neighbours, which is why
/// the semantic cache has guards beside the threshold.
///
/// Costs one digest a word. No state, no error, never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashingEmbedder {
    dimensions: NonZeroU16,
}

impl HashingEmbedder {
    /// Dimensions where a configuration names none: few collisions among the words of a question, 1.5 KB an entry.
    pub const DEFAULT_DIMENSIONS: NonZeroU16 = NonZeroU16::new(384).unwrap();

    /// Returns an embedder of so many dimensions.
    pub const fn new(dimensions: NonZeroU16) -> Self {
        Self { dimensions }
    }

    /// Returns the vector of the text, of length 1; of length 0 for text without words.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let dimensions = usize::from(self.dimensions.get());
        let mut counts = vec![0_i32; dimensions];
        for word in text.to_lowercase().split_whitespace() {
            let digest: [u8; 8] = Blake2b::<U8>::digest(word.as_bytes()).into();
            let [a, b, c, d, sign, ..] = digest;
            let at = u32::from_be_bytes([a, b, c, d]) % u32::from(self.dimensions.get());
            counts[at as usize] += if sign.is_multiple_of(2) { 1 } else { -1 };
        }
        let square: f64 = counts.iter().map(|&count| f64::from(count) * f64::from(count)).sum();
        let scale = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "a unit vector loses the last bits only")]
        counts.iter().map(|&count| (f64::from(count) * scale) as f32).collect()
    }
}

impl Default for HashingEmbedder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_DIMENSIONS)
    }
}

#[async_trait]
impl Embedder for HashingEmbedder {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, GatewayError> {
        Ok(self.vector(text))
    }
}

#[cfg(test)]
mod tests {
    use std::{f32::consts::FRAC_1_SQRT_2, num::NonZeroU16};

    use super::HashingEmbedder;

    fn check(text: &str, expected: &[(usize, f32)]) {
        let vector = HashingEmbedder::new(NonZeroU16::new(64).unwrap()).vector(text);
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
            let square: f32 = HashingEmbedder::default().vector(text).iter().map(|x| x * x).sum();
            assert!((square - 1.0).abs() < 1e-6, "{text}: {square}");
        }
    }
}
