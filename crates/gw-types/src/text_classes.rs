//! What a text is made of, as far as tokenizers care: counted in one pass, without a tokenizer.

#[cfg(test)]
mod tests;

/// How many of each kind of unit a text has. Texts add up field by field; counts saturate.
///
/// ```
/// use gw_types::TextClasses;
///
/// let text = TextClasses::of("one two three");
/// assert_eq!((text.words, text.letters), (3, 11));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextClasses {
    /// Runs of letters that have an ASCII letter.
    pub words: u32,
    /// ASCII letters.
    pub letters: u32,
    /// Upper-case letters among the ASCII letters.
    pub upper: u32,
    /// Groups of up to three ASCII digits.
    pub digit_groups: u32,
    /// Latin letters beyond ASCII.
    pub latin: u32,
    /// Cyrillic and Greek letters.
    pub cyrillic_greek: u32,
    /// Chinese, Japanese and Korean characters.
    pub cjk: u32,
    /// ASCII punctuation.
    pub punctuation: u32,
    /// Runs of two or more blanks.
    pub blank_runs: u32,
    /// All other characters but single blanks.
    pub other: u32,
}

impl TextClasses {
    /// Counts a text. O(n), no allocation.
    pub fn of(text: &str) -> Self {
        let mut counter = TextCounter::default();
        counter.push(text);
        counter.finish()
    }

    /// Returns the counts, in the order of the fields.
    pub const fn counts(&self) -> [u32; 10] {
        [
            self.words,
            self.letters,
            self.upper,
            self.digit_groups,
            self.latin,
            self.cyrillic_greek,
            self.cjk,
            self.punctuation,
            self.blank_runs,
            self.other,
        ]
    }
}

impl std::ops::Add for TextClasses {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            words: self.words.saturating_add(other.words),
            letters: self.letters.saturating_add(other.letters),
            upper: self.upper.saturating_add(other.upper),
            digit_groups: self.digit_groups.saturating_add(other.digit_groups),
            latin: self.latin.saturating_add(other.latin),
            cyrillic_greek: self.cyrillic_greek.saturating_add(other.cyrillic_greek),
            cjk: self.cjk.saturating_add(other.cjk),
            punctuation: self.punctuation.saturating_add(other.punctuation),
            blank_runs: self.blank_runs.saturating_add(other.blank_runs),
            other: self.other.saturating_add(other.other),
        }
    }
}

/// Counts a text that comes in pieces, such as a JSON string between its escapes: however it is cut, the counts are
/// those of the whole.
///
/// Blocks of ASCII, which most text is, are counted in loops without a branch that compilers turn into vector code: a
/// tenth of the time that looking at every character for itself takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextCounter {
    counted: Counts,
    in_word: bool,
    /// Digits of the group that the text ends in, 1 to 3; 0: it ends in none.
    digits: u8,
    /// Blanks that the text ends in, at most 2.
    blanks: u8,
}

/// The counts while they grow: too wide for any text to fill.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    words: u64,
    letters: u64,
    upper: u64,
    digit_groups: u64,
    latin: u64,
    cyrillic_greek: u64,
    cjk: u64,
    punctuation: u64,
    blank_runs: u64,
    other: u64,
}

/// Bytes of a block: fewer than a byte can count.
const BLOCK: usize = 64;
/// Bytes before a block that decide what its first ones begin.
const BEFORE: usize = 3;
/// Bytes for which a whole block is not worth it.
const SHORT: usize = 8;
/// A byte of no class.
const NOTHING: u8 = 0x80;

impl TextCounter {
    /// Goes on with a piece.
    pub fn push(&mut self, piece: &str) {
        let mut rest = piece.as_bytes();
        while let Some(first) = rest.first() {
            if !first.is_ascii() {
                let Some(wide) = piece.get(piece.len() - rest.len()..).and_then(|rest| rest.chars().next())
                else {
                    return;
                };
                self.wide(wide);
                rest = &rest[wide.len_utf8()..];
                continue;
            }
            let block = &rest[..rest.len().min(BLOCK)];
            let ascii = match block.is_ascii() {
                true => block.len(),
                false => block.iter().take_while(|byte| byte.is_ascii()).count(),
            };
            let (run, after) = rest.split_at(ascii);
            if ascii < SHORT {
                self.ascii(run);
            } else {
                self.block(run);
            }
            rest = after;
        }
    }

    /// Goes on with one character.
    pub fn push_char(&mut self, c: char) {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => self.ascii(&[byte]),
            Ok(_) | Err(_) => self.wide(c),
        }
    }

    /// Returns the counts.
    pub fn finish(self) -> TextClasses {
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let counted = self.counted;
        TextClasses {
            words: narrow(counted.words),
            letters: narrow(counted.letters),
            upper: narrow(counted.upper),
            digit_groups: narrow(counted.digit_groups),
            latin: narrow(counted.latin),
            cyrillic_greek: narrow(counted.cyrillic_greek),
            cjk: narrow(counted.cjk),
            punctuation: narrow(counted.punctuation),
            blank_runs: narrow(counted.blank_runs),
            other: narrow(counted.other),
        }
    }

    /// Counts a character beyond ASCII.
    fn wide(&mut self, c: char) {
        let is_blank = c.is_whitespace();
        if is_blank {
            self.counted.blank_runs += u64::from(self.blanks == 1);
        } else {
            *self.counted.class_of(c) += 1;
        }
        // A letter with an accent goes on with the word that it stands in.
        self.in_word &= is_latin(c);
        self.digits = 0;
        self.blanks = if is_blank { (self.blanks + 1).min(2) } else { 0 };
    }

    /// Counts ASCII, byte by byte and without a branch; in local variables, so that they stay in registers.
    fn ascii(&mut self, bytes: &[u8]) {
        let Self { mut in_word, mut digits, mut blanks, .. } = *self;
        let [mut words, mut letters, mut upper, mut groups, mut visible, mut blank_runs, mut other] =
            [0_u64; 7];
        let mut all_digits = 0;
        for byte in bytes {
            let (letter, digit, blank) = (is_letter(*byte), is_digit(*byte), is_blank(*byte));
            let shown = byte.wrapping_sub(b'!') < 94;
            digits = if digit { next_digit(digits) } else { 0 };
            words += u64::from(letter & !in_word);
            letters += u64::from(letter);
            upper += u64::from(byte.wrapping_sub(b'A') < 26);
            groups += u64::from(digits == 1);
            all_digits += u64::from(digit);
            visible += u64::from(shown);
            blank_runs += u64::from(blank & (blanks == 1));
            other += u64::from(!shown & !blank);
            in_word = letter;
            blanks = u8::from(blank) * (1 + u8::from(blanks > 0));
        }
        (self.in_word, self.digits, self.blanks) = (in_word, digits, blanks);
        let counted = &mut self.counted;
        counted.words += words;
        counted.letters += letters;
        counted.upper += upper;
        counted.digit_groups += groups;
        counted.punctuation += visible - letters - all_digits;
        counted.blank_runs += blank_runs;
        counted.other += other;
    }

    /// Counts up to [`BLOCK`] bytes of ASCII, filled up to a length that compilers lay loops out whole for.
    fn block(&mut self, run: &[u8]) {
        let mut block = [NOTHING; BEFORE + BLOCK];
        block[..BEFORE].copy_from_slice(&self.before());
        block[BEFORE..BEFORE + run.len()].copy_from_slice(run);
        let [mut words, mut letters, mut upper, mut visible, mut blanks, mut blank_runs] = [0_u8; 6];
        let [mut digits, mut groups, mut long_groups] = [0_u8; 3];
        for at in BEFORE..BEFORE + BLOCK {
            let [three, two, one, byte] = [block[at - 3], block[at - 2], block[at - 1], block[at]];
            let (letter, blank, digit) = (is_letter(byte), is_blank(byte), is_digit(byte));
            letters += u8::from(letter);
            upper += u8::from(byte.wrapping_sub(b'A') < 26);
            words += u8::from(letter & !is_letter(one));
            digits += u8::from(digit);
            groups += u8::from(digit & !is_digit(one));
            long_groups += u8::from(digit & is_digit(one) & is_digit(two) & is_digit(three));
            visible += u8::from(byte.wrapping_sub(b'!') < 94);
            blanks += u8::from(blank);
            blank_runs += u8::from(blank & is_blank(one) & !is_blank(two));
        }
        let counted = &mut self.counted;
        counted.words += u64::from(words);
        counted.letters += u64::from(letters);
        counted.upper += u64::from(upper);
        counted.punctuation += u64::from(visible - letters - digits);
        counted.blank_runs += u64::from(blank_runs);
        counted.other += run.len() as u64 - u64::from(visible + blanks);
        if long_groups > 0 || (digits > 0 && self.digits > 0) {
            self.digit_groups(run);
        } else {
            counted.digit_groups += u64::from(groups);
            let ending = run.iter().rev().take_while(|byte| is_digit(**byte)).count();
            self.digits = u8::try_from(ending).unwrap_or(0);
        }
        let [.., before, last] = block[..BEFORE + run.len()] else { return };
        self.in_word = is_letter(last);
        self.blanks = u8::from(is_blank(last)) * (1 + u8::from(is_blank(before)));
    }

    /// Returns bytes that might have stood before, as far as they decide what the next ones begin.
    fn before(&self) -> [u8; BEFORE] {
        match (self.in_word, self.digits, self.blanks) {
            (true, ..) => [NOTHING, NOTHING, b'a'],
            (false, 0, 0) => [NOTHING; BEFORE],
            (false, 0, 1) => [NOTHING, NOTHING, b' '],
            (false, 0, _) => [NOTHING, b' ', b' '],
            // Of which group they are counts for itself.
            (false, ..) => [NOTHING, NOTHING, b'0'],
        }
    }

    /// Counts groups of digits where they are longer than three, or go on from before.
    fn digit_groups(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.digits = if is_digit(*byte) { next_digit(self.digits) } else { 0 };
            self.counted.digit_groups += u64::from(self.digits == 1);
        }
    }
}

impl Counts {
    /// The class of a character beyond ASCII that is no blank.
    fn class_of(&mut self, c: char) -> &mut u64 {
        match c {
            _ if is_latin(c) => &mut self.latin,
            '\u{370}'..='\u{52f}' | '\u{1f00}'..='\u{1fff}' => &mut self.cyrillic_greek,
            '\u{1100}'..='\u{11ff}'
            | '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ffef}'
            | '\u{20000}'..='\u{3ffff}' => &mut self.cjk,
            _ => &mut self.other,
        }
    }
}

/// The place of the next digit in its group of three.
const fn next_digit(digits: u8) -> u8 {
    if digits == 3 { 1 } else { digits + 1 }
}

const fn is_digit(byte: u8) -> bool {
    byte.wrapping_sub(b'0') < 10
}

const fn is_letter(byte: u8) -> bool {
    (byte | 0x20).wrapping_sub(b'a') < 26
}

/// The ASCII characters that [`char::is_whitespace`] knows.
const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') < 5
}

const fn is_latin(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}') && !matches!(c, '\u{d7}' | '\u{f7}')
}
