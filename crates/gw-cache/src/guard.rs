//! The guards of the semantic cache: what must be equal however near two questions are.
//!
//! Cosine similarity measures shared words, not truth: the opposite question is nearer than most paraphrases. So an
//! answer is given again only where the tokens that carry the difference (numbers, identifiers, names, negations,
//! opposites, question words, quoted text, code) are the same ones in the same order, and the words that both
//! questions have stand in the same order. Each difference is a miss: the guards lose hits, never answers.

mod words;

#[cfg(test)]
mod tests;

use blake2::{Blake2b, Digest, digest::consts::U16};

use self::words::{PREFIXES, SUFFIXES, WORDS};
use crate::key::short_digest;

/// What is kept of a question to compare it with another. Holds digests, no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pinned: [u8; 16],
    words: Box<[u64]>,
}

impl Guard {
    /// The shortest word that a negative prefix can turn: `untie`.
    const AFFIXED_BYTES_MIN: usize = 5;

    /// Reads a question.
    pub(crate) fn of(text: &str) -> Self {
        let mut reading = Reading { pinned: Blake2b::new(), words: Vec::new(), sentence_start: true };
        let mut rest = text;
        let mut before = None;
        while let Some((at, opening)) = quotation(rest, before) {
            reading.plain(&rest[..at]);
            let (quoted, after) = quoted(&rest[at..], opening);
            reading.pin(b'q', quoted);
            (rest, before) = (after, Some(opening));
        }
        reading.plain(rest);
        Self { pinned: reading.pinned.finalize().into(), words: reading.words.into() }
    }

    /// Returns whether an answer to one question may be given to the other.
    pub(crate) fn allows(&self, other: &Self) -> bool {
        self.pinned == other.pinned && same_order(&self.words, &other.words)
    }

    /// Returns what the guard weighs, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }
}

/// Returns whether the words that both have stand in the same order, equally often.
fn same_order(one: &[u64], other: &[u64]) -> bool {
    let sorted = |words: &[u64]| {
        let mut sorted = words.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let (of_one, of_other) = (sorted(one), sorted(other));
    let shared = |set: &Vec<u64>, word: &&u64| set.binary_search(word).is_ok();
    one.iter().filter(|word| shared(&of_other, word)).eq(other.iter().filter(|word| shared(&of_one, word)))
}

/// Returns where the first quotation begins, and with what.
fn quotation(text: &str, mut before: Option<char>) -> Option<(usize, char)> {
    text.char_indices().find(|&(_, character)| {
        let begins = closing(character, before).is_some();
        before = Some(character);
        begins
    })
}

/// Returns what closes a quotation that begins with the character, if it begins one here.
fn closing(opening: char, before: Option<char>) -> Option<char> {
    match opening {
        '"' | '`' => Some(opening),
        '“' => Some('”'),
        '„' => Some('“'),
        '«' => Some('»'),
        // An apostrophe stands inside or after a word.
        '\'' | '‘' if before.is_none_or(|before| !before.is_alphanumeric()) => {
            Some(if opening == '‘' { '’' } else { '\'' })
        }
        _ => None,
    }
}

/// Cuts a quotation off; one that is not closed reaches to the end. A fence of backticks closes with as many.
fn quoted(text: &str, opening: char) -> (&str, &str) {
    let fence = text.len() - text.trim_start_matches('`').len();
    if fence > 0 {
        let inner = &text[fence..];
        return match inner.find(&text[..fence]) {
            Some(end) => (&inner[..end], inner[end + fence..].trim_start_matches('`')),
            None => (inner, ""),
        };
    }
    let inner = &text[opening.len_utf8()..];
    let close = closing(opening, None).unwrap_or(opening);
    inner.split_once(close).unwrap_or((inner, ""))
}

/// Collects what must be equal, in order.
struct Reading {
    pinned: Blake2b<U16>,
    words: Vec<u64>,
    sentence_start: bool,
}

impl Reading {
    fn pin(&mut self, kind: u8, text: &str) {
        self.pinned.update([kind]);
        self.pinned.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        self.pinned.update(text.as_bytes());
        self.sentence_start = false;
    }

    /// Reads text outside quotations.
    fn plain(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            line.split_whitespace().for_each(|token| self.token(token));
            self.sentence_start |= line.ends_with('\n');
        }
    }

    fn token(&mut self, token: &str) {
        let core = bare(token);
        if core.contains(|character: char| character.is_numeric() || is_symbol(character)) {
            self.remember(core);
            self.pin(b'i', core);
        } else {
            core.split(is_hyphen).filter(|word| !word.is_empty()).for_each(|word| self.word(word));
        }
        self.sentence_start |= token.ends_with(['.', '?', '!', ':']);
    }

    fn word(&mut self, word: &str) {
        self.remember(word);
        let lower = word.to_lowercase();
        let starts = self.sentence_start;
        self.sentence_start = false;
        if is_negated(&lower) {
            self.pin(b'w', "not");
        } else if is_listed(&lower) || has_negative_affix(&lower) {
            self.pin(b'w', &lower);
        } else if is_name(word, starts) {
            self.pin(b'n', word);
        } else if starts {
            // The first word says what kind of question it is, or is a name whose capital says nothing.
            self.pin(b'w', &lower);
        }
    }

    fn remember(&mut self, word: &str) {
        let digest = short_digest(word.to_lowercase().as_bytes());
        let mut leading = [0; 8];
        leading.copy_from_slice(&digest[..8]);
        self.words.push(u64::from_le_bytes(leading));
    }
}

/// Takes brackets and the punctuation of sentences off a token; signs, currencies and other symbols are part of it.
pub(crate) fn bare(token: &str) -> &str {
    token
        .trim_start_matches(['(', '[', '{', '¿', '¡', '\'', '’'])
        .trim_end_matches(['.', ',', ';', ':', '?', '!', '…', ')', ']', '}', '\'', '’'])
}

/// Returns whether the character makes an identifier, an address, an amount or an operator of a token.
fn is_symbol(character: char) -> bool {
    !character.is_alphanumeric() && !is_hyphen(character) && !matches!(character, '\'' | '’')
}

fn is_hyphen(character: char) -> bool {
    matches!(character, '-' | '–' | '—')
}

fn is_listed(lower: &str) -> bool {
    let stem = lower.strip_suffix("'s").or_else(|| lower.strip_suffix("’s")).unwrap_or(lower);
    WORDS.binary_search(&stem).is_ok()
}

fn is_negated(lower: &str) -> bool {
    lower.ends_with("n't") || lower.ends_with("n’t") || lower == "cannot"
}

fn has_negative_affix(lower: &str) -> bool {
    lower.len() >= Guard::AFFIXED_BYTES_MIN
        && (PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
            || SUFFIXES.iter().any(|suffix| lower.ends_with(suffix)))
}

/// Returns whether the word is written like a name: a capital inside, or one at its start within a sentence.
fn is_name(word: &str, starts_sentence: bool) -> bool {
    let is_pronoun = word == "I" || word.starts_with("I'") || word.starts_with("I’");
    let mut characters = word.chars();
    let first = characters.next().is_some_and(char::is_uppercase);
    !is_pronoun && (characters.any(char::is_uppercase) || (first && !starts_sentence))
}
