//! The embedder that needs no model: words, pairs of words and pieces of words.

use std::num::NonZeroU16;

use async_trait::async_trait;
use blake2::{Blake2b, Digest, digest::consts::U8};
use gw_errors::GatewayError;

use super::{Embedder, unit};

/// Embeds text by its words, its pairs of neighbouring words and its runs of four characters: the signed hashing trick
/// (Weinberger et al., ICML'09), on BLAKE2b.
///
/// A run counts three times a word or a pair, and what is of the commonest words half: lengths of words then stand in
/// for their weight, and `how do I` makes nothing near. Each, in lower case, is one of [`HashingEmbedder::FEATURES`] signed features by its 8-byte digest; each
/// feature stands at eight signed places of the vector (a sparse random projection: Achlioptas 2003; Kane and Nelson
/// 2014), which keeps cosines to about one over the root of the dimensions. The signs make collisions cancel in
/// expectation. Runs of characters let forms of a word meet (`card`, `cards`), pairs see the order of words. It
/// measures spelling, not meaning: "is held" and "is not held" are neighbours, which is why the semantic cache has
/// guards beside the threshold.
///
/// Sums are integers up to the last step, so the vector is the same on every machine. Costs one digest for each word,
/// pair and character. No state, no error, never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashingEmbedder {
    dimensions: NonZeroU16,
}

impl HashingEmbedder {
    /// Dimensions where a configuration names none.
    pub const DEFAULT_DIMENSIONS: NonZeroU16 = NonZeroU16::new(384).unwrap();
    /// Features that words, pairs and runs are hashed to, before they are projected.
    pub const FEATURES: u16 = 4_096;

    /// Places of the vector that a feature stands at.
    const PLACES: u64 = 8;
    /// What a pair counts, where a word counts 2, and a common one 1.
    const PAIR_WEIGHT: i64 = 2;
    /// What a run counts for each that its word does.
    const RUN_WEIGHT: i64 = 3;

    /// Returns an embedder of so many dimensions.
    pub const fn new(dimensions: NonZeroU16) -> Self {
        Self { dimensions }
    }

    /// Returns the vector of the text, of length 1; of length 0 for text without words.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut sums = vec![0_i64; usize::from(self.dimensions.get())];
        let lower = text.to_lowercase();
        let mut before: Option<&str> = None;
        let mut padded = String::new();
        for word in lower.split_whitespace() {
            let weight = if COMMON.binary_search(&word).is_ok() { 1 } else { 2 };
            self.add(&mut sums, weight, b'w', [word, ""]);
            if let Some(before) = before {
                self.add(&mut sums, Self::PAIR_WEIGHT, b'b', [before, word]);
            }
            before = Some(word);
            padded.clear();
            padded.extend([" ", word, " "]);
            runs(&padded).for_each(|run| self.add(&mut sums, Self::RUN_WEIGHT * weight, b'c', [run, ""]));
        }
        unit(&sums)
    }

    /// Adds a feature. The kind and a zero byte between the parts keep equal bytes of two kinds apart.
    fn add(&self, sums: &mut [i64], weight: i64, kind: u8, [one, other]: [&str; 2]) {
        let mut hasher = Blake2b::<U8>::new();
        for part in [&[kind], one.as_bytes(), &[0], other.as_bytes()] {
            hasher.update(part);
        }
        let digest: [u8; 8] = hasher.finalize().into();
        let [a, b, c, d, sign, ..] = digest;
        let feature = u64::from(u32::from_be_bytes([a, b, c, d]) % u32::from(Self::FEATURES));
        for place in 0..Self::PLACES {
            let bits = mix(feature * Self::PLACES + place);
            let at = (bits >> 1) % u64::from(self.dimensions.get());
            let sign = (bits & 1) ^ u64::from(sign & 1);
            sums[usize::try_from(at).unwrap_or(0)] += if sign == 0 { weight } else { -weight };
        }
    }
}

/// Returns the runs of a word between two blanks, which mark its ends; a word too short for one is its own run.
fn runs(padded: &str) -> impl Iterator<Item = &str> {
    const CHARACTERS: usize = 4;
    let starts = || padded.char_indices().map(|(at, _)| at);
    let ends = starts().skip(CHARACTERS).chain([padded.len()]);
    starts().zip(ends).map(|(start, end)| &padded[start..end])
}

/// The words of English that stand in most questions whatever they ask, sorted by bytes.
#[rustfmt::skip] // One word a line would be a page.
const COMMON: &[&str] = &[
    "a", "am", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do",
    "does", "for", "from", "get", "has", "have", "how", "i", "i'm", "i've", "if", "in", "is", "it", "it's",
    "me", "my", "need", "of", "on", "or", "our", "please", "should", "so", "tell", "that", "the", "there",
    "this", "to", "want", "was", "we", "what", "what's", "when", "where", "why", "will", "with", "would",
    "you", "your",
];

/// The output function of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
    use std::num::NonZeroU16;

    use super::HashingEmbedder;

    fn cosine(one: &str, other: &str) -> f32 {
        let embedder = HashingEmbedder::default();
        embedder.vector(one).iter().zip(embedder.vector(other)).map(|(one, other)| one * other).sum()
    }

    #[test]
    fn text_without_words_is_the_zero_vector() {
        for text in ["", " \t\n"] {
            assert_eq!(HashingEmbedder::default().vector(text), vec![0.0; 384]);
        }
    }

    #[test]
    fn vectors_have_length_one_whatever_the_text() {
        for text in ["a", "a a a b", "The payment is held.", "ÄÖ ß 日本"] {
            let square = cosine(text, text);
            assert!((square - 1.0).abs() < 1e-5, "{text}: {square}");
        }
        assert_eq!(HashingEmbedder::new(NonZeroU16::MIN).vector("held").len(), 1);
    }

    #[test]
    fn forms_of_a_word_and_the_order_of_words_count() {
        assert!(cosine("blocking", "blocked") > 0.3);
        let swapped = cosine("does the dog bite the man", "does the man bite the dog");
        assert!((0.6..0.995).contains(&swapped), "{swapped}");
        assert!(cosine("blocked account", "exchange rates") < 0.25);
        assert!((cosine("Blocked  ACCOUNT", "blocked account") - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_vector_is_the_same_everywhere() {
        // By another implementation.
        let vector = HashingEmbedder::new(NonZeroU16::new(8).unwrap()).vector("held");
        let milli: Vec<i32> = vector.iter().map(|x| (x * 1_000.0) as i32).collect();
        assert_eq!(milli, [-188, 0, 251, -62, -692, -314, 251, 503]);
    }
}
