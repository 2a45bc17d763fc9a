//! Reads a question for its guards.

use blake2::{Blake2b, Digest, digest::consts::U16};

use super::{
    Guard,
    asking::Asking,
    turned, word_digest,
    words::{DATES, FILLERS, FORMATS, LIMITS, NEGATIONS, NUMBERS, OPENERS, OPPOSITES, UNITS},
};

/// The kinds of what must be equal, each with its own list in order.
#[derive(Clone, Copy)]
enum Pin {
    Quoted,
    Amount,
    Identifier,
    Limit,
    Format,
}

/// A question as it is read, token by token.
pub(super) struct Reading {
    /// One list a kind: everything pinned, behind its length.
    pinned: [Vec<u8>; 5],
    words: Vec<String>,
    names: Vec<u64>,
    /// Whether the next word begins a sentence: its capital says nothing.
    starts: bool,
    /// Whether the last token was a number: a unit may follow.
    counted: bool,
    /// Whether the text has no small letter: its capitals say nothing.
    shouts: bool,
}

impl Reading {
    pub(super) fn of(text: &str) -> Self {
        let mut reading = Self {
            pinned: Default::default(),
            words: Vec::new(),
            names: Vec::new(),
            starts: true,
            counted: false,
            shouts: !text.contains(char::is_lowercase),
        };
        let main_first = main_clause_first(text);
        let mut rest = main_first.as_str();
        let mut before = None;
        while let Some((at, opening)) = quotation(rest, before) {
            reading.plain(&rest[..at]);
            let (quoted, after) = quoted(&rest[at..], opening);
            reading.pin(Pin::Quoted, quoted);
            (rest, before) = (after, Some(opening));
        }
        reading.plain(rest);
        reading
    }

    pub(super) fn into_guard(mut self) -> Guard {
        let mut pinned = Blake2b::<U16>::new();
        for list in &self.pinned {
            pinned.update(u64::try_from(list.len()).unwrap_or(u64::MAX).to_le_bytes());
            pinned.update(list);
        }
        if let Some(subject) = self.words.first().filter(|word| !is_in(OPENERS, word)) {
            self.names.push(word_digest(subject));
        }
        self.names.sort_unstable();
        self.names.dedup();
        let words: Vec<u64> = self.words.iter().map(|word| word_digest(word)).collect();
        let mut set = words.clone();
        set.sort_unstable();
        set.dedup();
        Guard {
            pinned: pinned.finalize().into(),
            asking: Asking::of(&self.words),
            ends: self.words.iter().flat_map(|word| ends(word)).collect(),
            names: self.names.into(),
            turned: self.words.iter().flat_map(|word| turned(word)).map(|word| word_digest(&word)).collect(),
            words: words.into(),
            set: set.into(),
        }
    }

    fn pin(&mut self, kind: Pin, text: &str) {
        let list = &mut self.pinned[kind as usize];
        list.extend_from_slice(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        list.extend_from_slice(text.as_bytes());
    }

    /// Reads text outside quotations.
    fn plain(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            line.split_whitespace().for_each(|token| self.token(token));
            self.starts |= line.ends_with('\n');
        }
    }

    fn token(&mut self, token: &str) {
        let core = bare(token);
        if core.contains(char::is_numeric) {
            for part in core.split(is_hyphen).filter(|part| !part.is_empty()) {
                if part.contains(char::is_numeric) { self.number(part) } else { self.word(part) }
            }
            // A sign before a number is no hyphen.
            if core.starts_with(is_hyphen) {
                self.pin(Pin::Amount, "-");
            }
        } else if core.contains(is_symbol) {
            self.pin(Pin::Identifier, core);
            self.words.push(core.to_lowercase());
            self.starts = false;
        } else if FORMATS.binary_search(&core.to_lowercase().as_str()).is_ok() {
            self.word(core);
        } else {
            core.split(is_hyphen).filter(|word| !word.is_empty()).for_each(|word| self.word(word));
        }
        self.starts |= token.ends_with(['.', '?', '!', ':']);
    }

    fn number(&mut self, part: &str) {
        let lower = part.to_lowercase();
        // `7am` and `7 am`, `23kg` and `23 kg` are the same.
        let digits = lower.trim_end_matches(char::is_alphabetic);
        let unit = &lower[digits.len()..];
        if !digits.is_empty() && (UNITS.binary_search(&unit).is_ok() || unit.is_empty()) {
            self.pin(Pin::Amount, digits);
            self.counted = true;
            if !unit.is_empty() {
                self.pin(Pin::Amount, unit);
                self.counted = false;
            }
        } else {
            self.pin(Pin::Amount, part);
            self.counted = true;
        }
        self.words.push(lower);
        self.starts = false;
    }

    fn word(&mut self, word: &str) {
        let lower = word.to_lowercase().replace('’', "'");
        let (starts, counted) = (self.starts, self.counted);
        self.counted = false;
        if is_in(FILLERS, &lower) {
            return;
        }
        self.starts = false;
        let stem = lower.strip_suffix("'s").unwrap_or(&lower);
        let single = stem.strip_suffix('s').unwrap_or(stem);
        if lower.ends_with("n't") || is_in(NEGATIONS, stem) {
            self.pin(Pin::Limit, "not");
        } else if is_in(LIMITS, stem) {
            self.pin(Pin::Limit, stem);
        }
        if let Ok(at) = NUMBERS.binary_search_by(|(word, _)| (*word).cmp(stem)) {
            self.pin(Pin::Amount, NUMBERS[at].1);
            self.counted = true;
        } else if is_in(DATES, stem) || is_in(DATES, single) {
            self.pin(Pin::Amount, if is_in(DATES, stem) { stem } else { single });
        } else if counted && (is_in(UNITS, stem) || is_in(UNITS, single)) {
            self.pin(Pin::Amount, if is_in(UNITS, single) { single } else { stem });
        } else if is_in(FORMATS, stem) {
            self.pin(Pin::Format, stem);
        } else if is_mixed(word) && !self.shouts {
            self.pin(Pin::Identifier, word);
        } else if !self.shouts && is_name(word, starts && is_in(OPENERS, stem)) {
            self.names.push(word_digest(stem));
        }
        self.words.push(stem.to_owned());
    }
}

/// Moves what stands before the comma behind it, where the main clause follows: `at the hotel, is there a pool`.
fn main_clause_first(text: &str) -> String {
    let mut parts = text.splitn(2, ", ");
    let (Some(before), Some(after)) = (parts.next(), parts.next()) else { return text.to_owned() };
    let opens = |clause: &str| {
        let words = clause.split_whitespace().map(|word| bare(word).to_lowercase());
        let words: Vec<String> = words.filter(|word| !is_in(FILLERS, word)).take(3).collect();
        Asking::of(&words) != Asking::Said
    };
    if text.contains(['"', '`', '\n']) || opens(before) || !opens(after) {
        return text.to_owned();
    }
    let (end, body) = match after.strip_suffix(['?', '.', '!']) {
        Some(body) => (&after[body.len()..], body),
        None => ("", after),
    };
    let mut first = before.chars();
    let lowered: String = match first.next() {
        Some(initial) if !first.as_str().starts_with(char::is_uppercase) => {
            initial.to_lowercase().chain(first).collect()
        }
        Some(_) | None => before.to_owned(),
    };
    format!("{body} {lowered}{end}")
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

/// Takes brackets and the punctuation of sentences off a token; signs, currencies and other symbols are part of it.
pub(crate) fn bare(token: &str) -> &str {
    token
        .trim_start_matches(['(', '[', '{', '¿', '¡', '\'', '’'])
        .trim_end_matches(['.', ',', ';', ':', '?', '!', '…', ')', ']', '}', '\'', '’'])
}

/// Returns the ends of scales that a word names, in its own form or without the `s` of the plural.
fn ends(word: &str) -> impl Iterator<Item = (u8, u8)> + use<> {
    let named = |form: &str| {
        let from = OPPOSITES.partition_point(|end| end.0 < form);
        &OPPOSITES[from..from + OPPOSITES[from..].partition_point(|end| end.0 == form)]
    };
    let own = named(word);
    let ends = if own.is_empty() { named(word.strip_suffix('s').unwrap_or(word)) } else { own };
    ends.iter().map(|&(_, scale, end)| (scale, end))
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// Returns whether the character makes an identifier, an address, an amount or an operator of a token.
fn is_symbol(character: char) -> bool {
    !character.is_alphanumeric() && !is_hyphen(character) && !matches!(character, '\'' | '’')
}

fn is_hyphen(character: char) -> bool {
    matches!(character, '-' | '–' | '—')
}

/// Returns whether a capital stands behind a small letter: `getUser`.
fn is_mixed(word: &str) -> bool {
    word.chars().zip(word.chars().skip(1)).any(|(one, next)| one.is_lowercase() && next.is_uppercase())
}

/// Returns whether the word is written like a name: a capital inside, or one at its start within a sentence.
fn is_name(word: &str, starts_sentence: bool) -> bool {
    let is_pronoun = word == "I" || word.starts_with("I'") || word.starts_with("I’");
    let mut characters = word.chars();
    let first = characters.next().is_some_and(char::is_uppercase);
    !is_pronoun && (characters.any(char::is_uppercase) || (first && !starts_sentence))
}
