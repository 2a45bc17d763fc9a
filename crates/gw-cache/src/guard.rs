//! The guards of the semantic cache: what must be equal however near two questions are.
//!
//! Cosine similarity measures shared words, not truth: the opposite question is nearer than most paraphrases. So an
//! answer is given again only where nothing that carries a difference differs:
//!
//! | guard | what must be equal |
//! | --- | --- |
//! | quotations and code | every byte, in order |
//! | numbers, dates, units | the amounts, in order; `two` is 2 |
//! | identifiers and names | every token with a symbol or digit inside; every name is a word of the other question |
//! | negation and limits | `not`, `without`, `only`, in order; no word meets its negative (`lock`, `unlock`) |
//! | opposites | two ends of one scale (`on`, `off`; `monthly`, `yearly`), in order, where both name one |
//! | kind of question | who, when, where, why, how many, how or what, yes or no by modal verb |
//! | format and language | the formats and languages named, in order |
//! | subject | the first word, where it is not one that questions begin with |
//! | order | where the words are the same, they stand in the same order |
//!
//! Each difference is a miss: the guards lose hits, never answers.

mod asking;
mod reading;
mod words;

#[cfg(test)]
mod tests;

use self::{asking::Asking, reading::Reading, words::PREFIXES};
use crate::{Features, key::short_digest_u64};

pub(crate) use self::reading::bare;

/// What is kept of a question to compare it with another. Holds digests, no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    /// Quotations, code, amounts, identifiers, negations, limits and formats, each kind in order.
    pinned: [u8; 16],
    asking: Asking,
    /// The ends of scales, in order.
    ends: Box<[(u8, u8)]>,
    /// The names and the subject.
    names: Box<[u64]>,
    /// What negative words turn.
    turned: Box<[u64]>,
    /// The digests of the words, in order.
    words: Box<[u64]>,
    /// The same, sorted, each once.
    set: Box<[u64]>,
}

impl Guard {
    /// How many words may be in one question alone where the order of the others still counts.
    const ODD_WORDS_MAX: usize = 2;

    /// Reads a question.
    pub(crate) fn of(text: &str) -> Self {
        Reading::of(text).into_guard()
    }

    /// Returns whether an answer to one question may be given to the other.
    pub(crate) fn allows(&self, other: &Self) -> bool {
        self.pinned == other.pinned
            && self.asking.is_like(other.asking)
            && same_ends(&self.ends, &other.ends)
            && (self.has(&other.names) && other.has(&self.names))
            && (!self.turns(other) && !other.turns(self))
            && self.in_order_with(other)
    }

    /// Returns what the guard weighs, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let digests = self.names.len() + self.turned.len() + self.words.len() + self.set.len();
        size_of::<Self>() + digests * size_of::<u64>() + size_of_val(&*self.ends)
    }

    /// Returns the digests of the words, sorted, each once.
    pub(crate) fn word_set(&self) -> &[u64] {
        &self.set
    }

    /// Returns the features that follow from the words of this question and of an entry's.
    pub(crate) fn compare(&self, entry: &Self, rarity: impl Fn(u64) -> f32) -> Features {
        let (mut shared, mut shared_rarity, mut all_rarity, mut odd) = (0_u16, 0.0, 0.0, 0.0_f32);
        for &word in &self.set {
            let weight = rarity(word);
            all_rarity += weight;
            if entry.has(&[word]) {
                shared = shared.saturating_add(1);
                shared_rarity += weight;
            } else {
                odd = odd.max(weight);
            }
        }
        for &word in entry.set.iter().filter(|&&word| !self.has(&[word])) {
            let weight = rarity(word);
            all_rarity += weight;
            odd = odd.max(weight);
        }
        let count = |set: &[u64]| f32::from(u16::try_from(set.len()).unwrap_or(u16::MAX));
        let (own, others, shared) = (count(&self.set), count(&entry.set), f32::from(shared));
        let share = |part: f32, whole: f32| if whole > 0.0 { part / whole } else { 0.0 };
        let is = |holds: bool| if holds { 1.0 } else { 0.0 };
        Features {
            shared_words: share(shared, own + others - shared),
            shared_rarity: share(shared_rarity, all_rarity),
            new_words: share(own - shared, own),
            odd_word: odd,
            length_ratio: share(own.min(others), own.max(others)),
            same_order: is(self.shared_order(entry)),
            same_asking: is(self.asking == entry.asking),
            ..Features::default()
        }
    }

    fn has(&self, words: &[u64]) -> bool {
        words.iter().all(|word| self.set.binary_search(word).is_ok())
    }

    /// Returns whether a word here is the negative of one there that is not here as well.
    fn turns(&self, other: &Self) -> bool {
        self.turned.iter().any(|word| other.has(&[*word]) && !self.has(&[*word]))
    }

    fn in_order_with(&self, other: &Self) -> bool {
        let odd = |one: &Self, other: &Self| one.set.iter().filter(|word| !other.has(&[**word])).count();
        odd(self, other) + odd(other, self) > Self::ODD_WORDS_MAX || self.shared_order(other)
    }

    /// Returns whether the words that both have stand in the same order, equally often.
    fn shared_order(&self, other: &Self) -> bool {
        let shared = |word: &&u64, set: &Self| set.has(&[**word]);
        let one = self.words.iter().filter(|word| shared(word, other));
        one.eq(other.words.iter().filter(|word| shared(word, self)))
    }
}

/// Returns whether two lists name the same ends, in order, of the scales that both name.
fn same_ends(one: &[(u8, u8)], other: &[(u8, u8)]) -> bool {
    let named = |list: &[(u8, u8)], scale: u8| list.iter().any(|end| end.0 == scale);
    let of_both = |end: &&(u8, u8)| named(one, end.0) && named(other, end.0);
    one.iter().filter(of_both).eq(other.iter().filter(of_both))
}

/// Returns the digest that a word is compared by.
fn word_digest(lower: &str) -> u64 {
    short_digest_u64(lower.as_bytes())
}

/// Returns what a negative word turns, in every way that it can be read: `lock` for `unlock`, `painful` for `painless`.
fn turned(lower: &str) -> impl Iterator<Item = String> {
    const STEM_BYTES_MIN: usize = 3;
    let stems = PREFIXES.iter().filter_map(|prefix| lower.strip_prefix(prefix)).map(str::to_owned);
    let full = lower.strip_suffix("less").map(|stem| format!("{stem}ful"));
    stems.chain(full).filter(|stem| stem.len() >= STEM_BYTES_MIN)
}
