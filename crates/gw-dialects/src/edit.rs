//! Edits of a text by byte range: everything outside the ranges stays as it is.

use std::{borrow::Cow, ops::Range};

use smallvec::SmallVec;

/// A list of edits of one text.
#[derive(Debug, Default)]
pub(crate) struct Edits<'a> {
    edits: SmallVec<[(Range<usize>, Cow<'a, str>); 4]>,
}

impl<'a> Edits<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Puts `text` in the place of a range. Ranges of one list must not overlap.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<Cow<'a, str>>) {
        self.edits.push((range, text.into()));
    }

    /// Puts `text` before the byte at `at`.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<Cow<'a, str>>) {
        self.replace(at..at, text);
    }

    /// Takes a member out of an object or array, with the comma that belongs to it.
    pub(crate) fn remove_member(&mut self, text: &str, member: Range<usize>) {
        let bytes = text.as_bytes();
        let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        let after = member.end + bytes[member.end..].iter().take_while(|byte| blank(byte)).count();
        if bytes.get(after) == Some(&b',') {
            self.replace(member.start..after + 1, "");
            return;
        }
        let blanks = bytes[..member.start].iter().rev().take_while(|byte| blank(byte)).count();
        let before = member.start - blanks;
        let comma = before > 0 && bytes[before - 1] == b',';
        self.replace(if comma { before - 1 } else { member.start }..member.end, "");
    }

    /// Appends the edited text to `out`, which grows once, by exactly what is needed and `reserve` bytes more.
    pub(crate) fn apply(mut self, text: &[u8], out: &mut Vec<u8>, reserve: usize) {
        self.edits.sort_by_key(|(range, _)| range.start);
        let removed: usize = self.edits.iter().map(|(range, _)| range.len()).sum();
        let added: usize = self.edits.iter().map(|(_, text)| text.len()).sum();
        out.reserve(text.len() + added + reserve - removed);
        let mut kept = 0;
        for (range, replacement) in &self.edits {
            out.extend_from_slice(&text[kept..range.start]);
            out.extend_from_slice(replacement.as_bytes());
            kept = range.end;
        }
        out.extend_from_slice(&text[kept..]);
    }
}

#[cfg(test)]
mod tests {
    use super::Edits;

    #[track_caller]
    fn check(text: &str, member: &str, expected: &str) {
        let start = text.find(member).unwrap();
        let mut edits = Edits::default();
        edits.remove_member(text, start..start + member.len());
        let mut edited = Vec::new();
        edits.apply(text.as_bytes(), &mut edited, 0);
        assert_eq!(std::str::from_utf8(&edited), Ok(expected));
    }

    #[test]
    fn members_leave_with_their_comma() {
        check(r#"{"a":1,"b":2}"#, r#""a":1"#, r#"{"b":2}"#);
        check(r#"{"a":1 , "b":2}"#, r#""b":2"#, r#"{"a":1 }"#);
        check(r#"{ "a":1 }"#, r#""a":1"#, "{  }");
    }

    #[test]
    fn edits_apply_in_order_of_place() {
        let mut edits = Edits::default();
        edits.replace(4..5, "four");
        edits.insert(0, "<");
        edits.replace(1..2, "");
        let mut edited = b"[".to_vec();
        edits.apply(b"01234", &mut edited, 1);
        assert_eq!(edited, b"[<023four");
    }
}
