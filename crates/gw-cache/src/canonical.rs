//! The canonical form of a request: equal for bodies that say the same, different for all others.

mod fields;
mod number;
mod text;

#[cfg(test)]
mod tests;

use gw_types::Operation;

use self::fields::{defaults, irrelevant};

/// The deepest nesting that is read; deeper bodies are not cached.
const DEPTH_MAX: u32 = 100;

/// How many bytes may be moved to sort the members of nested objects, as a multiple of the body.
///
/// Each level of objects moves what is below it once; no real request comes near. It keeps a hostile body of many
/// levels from costing [`DEPTH_MAX`] copies of itself.
const MOVED_BODIES_MAX: usize = 16;

/// The canonical members of a JSON object.
///
/// Without the fields that cannot change the answer and without defaults that are spelled out. Sorted by key, the last of equal keys kept, no blanks, numbers by value (`0`, `-0.0` and `0e7` are one), strings by
/// the characters that they denote (`"\u0041"` is `"A"`), and never by what they mean: text is not normalised. Each
/// member of an object and each element of an array ends with a comma, which makes members movable as they are; the
/// form is meant for hashing only.
#[derive(Debug)]
pub(crate) struct Canonical {
    text: Vec<u8>,
    members: Vec<Member>,
}

/// A member of an object in the canonical text: `"key":value,`.
#[derive(Clone, Copy, Debug)]
struct Member {
    start: usize,
    /// One past the closing quote of the key.
    key_end: usize,
    end: usize,
}

/// Returns whether two texts say the same as answers: byte for byte but for the blanks around them, and as JSON values
/// where both are JSON objects, whatever the order of their keys and the spelling of their numbers.
pub fn says_the_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    // Inside of another object, so that no member is taken for one of a request.
    let canonical =
        |text: &str| Canonical::read(format!("{{\"it\":{text}}}").as_bytes(), Operation::CountTokens);
    one == other
        || one.starts_with('{')
            && other.starts_with('{')
            && match (canonical(one), canonical(other)) {
                (Some(one), Some(other)) => one.members().eq(other.members()),
                (None | Some(_), None | Some(_)) => false,
            }
}

impl Canonical {
    /// Reads a body; `None` if it is not one JSON object, or is nested too deeply, or has a number whose exponent
    /// needs more than 63 bits.
    ///
    /// Costs one pass over the body, and n log n comparisons for the n members of an object that is not sorted.
    pub(crate) fn read(body: &[u8], operation: Operation) -> Option<Self> {
        let body = std::str::from_utf8(body).ok()?.as_bytes();
        let mut reader = Reader {
            body,
            at: 0,
            // A comma more for each container than the body has; most bodies have fewer than one in 16 bytes.
            text: Vec::with_capacity(body.len() + body.len() / 16 + 16),
            members: Vec::with_capacity(32),
            moved: Vec::new(),
            moves_left: body.len().saturating_mul(MOVED_BODIES_MAX),
        };
        reader.blanks();
        reader.expect(b'{')?;
        reader.members(1)?;
        reader.blanks();
        if reader.at != body.len() {
            return None;
        }
        let Reader { text, mut members, .. } = reader;
        sort(&text, &mut members);
        last_of_equals(&text, &mut members, 0);
        members.retain(|member| {
            !irrelevant(operation).contains(&member.key(&text))
                && !defaults(operation).contains(&&text[member.start..member.end])
        });
        Some(Self { text, members })
    }

    /// Returns the canonical members, in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(|member| &self.text[member.start..member.end])
    }
}

impl Member {
    /// Returns the key without its quotes.
    fn key(self, text: &[u8]) -> &[u8] {
        &text[self.start + 1..self.key_end - 1]
    }
}

fn is_sorted(text: &[u8], members: &[Member]) -> bool {
    members.windows(2).all(|pair| pair[0].key(text) < pair[1].key(text))
}

/// Stable, so that the last of equal keys stays last.
fn sort(text: &[u8], members: &mut [Member]) {
    members.sort_by(|one, other| one.key(text).cmp(other.key(text)));
}

/// Keeps the last of equal keys among the sorted members after `base`.
fn last_of_equals(text: &[u8], members: &mut Vec<Member>, base: usize) {
    let mut kept = base;
    for at in base..members.len() {
        if kept > base && members[kept - 1].key(text) == members[at].key(text) {
            kept -= 1;
        }
        members[kept] = members[at];
        kept += 1;
    }
    members.truncate(kept);
}

/// Reads a body and writes its canonical text. Every method returns `None` at the first byte that is no JSON.
struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    text: Vec<u8>,
    /// The members of all objects that are open, innermost last.
    members: Vec<Member>,
    /// Room to sort in.
    moved: Vec<u8>,
    moves_left: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        self.expect(b'{')?;
        self.text.push(b'{');
        let base = self.members.len();
        self.members(depth + 1)?;
        if !is_sorted(&self.text, &self.members[base..]) {
            self.reorder(base)?;
        }
        self.members.truncate(base);
        self.text.push(b'}');
        Some(())
    }

    /// Reads the members of an object up to and with its closing brace.
    fn members(&mut self, depth: u32) -> Option<()> {
        self.blanks();
        if self.take(b'}') {
            return Some(());
        }
        loop {
            self.blanks();
            let start = self.text.len();
            self.string()?;
            let key_end = self.text.len();
            self.blanks();
            self.expect(b':')?;
            self.text.push(b':');
            self.blanks();
            self.value(depth)?;
            self.text.push(b',');
            self.members.push(Member { start, key_end, end: self.text.len() });
            self.blanks();
            if self.take(b'}') {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    /// Puts the members after `base`, which are the tail of the text, in order.
    fn reorder(&mut self, base: usize) -> Option<()> {
        let Self { text, members, moved, moves_left, .. } = self;
        let start = members[base].start;
        *moves_left = moves_left.checked_sub(text.len() - start)?;
        sort(text, &mut members[base..]);
        last_of_equals(text, members, base);
        moved.clear();
        moved.reserve(text.len() - start);
        for member in &members[base..] {
            moved.extend_from_slice(&text[member.start..member.end]);
        }
        text.truncate(start);
        text.extend_from_slice(moved);
        Some(())
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        self.expect(b'[')?;
        self.text.push(b'[');
        self.blanks();
        if !self.take(b']') {
            loop {
                self.blanks();
                self.value(depth + 1)?;
                self.text.push(b',');
                self.blanks();
                if self.take(b']') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        self.text.push(b']');
        Some(())
    }

    fn literal(&mut self, word: &[u8]) -> Option<()> {
        if !self.body[self.at..].starts_with(word) {
            return None;
        }
        self.text.extend_from_slice(word);
        self.at += word.len();
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}
