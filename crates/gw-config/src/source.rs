//! The text of a configuration and the places in it.

use std::ops::Range;

use serde::{Serialize, Serializer};

/// A half-open range of bytes of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// Returns whether the two have a byte, or an edge, in common.
    pub(crate) const fn touches(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A value and where it stands, so that a fault found later can still point at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> Located<T> {
    pub(crate) const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

impl<T: Serialize> Serialize for Located<T> {
    /// Writes the value alone: where it stands is no part of what is configured.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(to)
    }
}

/// A configuration's text: its name, its lines, and a copy that may be shown.
#[derive(Clone)]
pub(crate) struct Source {
    name: String,
    /// The text with everything that may be a credential overwritten, byte for byte as long as the text.
    shown: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Returns the source; `shown` is the text as it may be printed.
    pub(crate) fn new(name: &str, shown: String) -> Self {
        let line_starts =
            std::iter::once(0).chain(shown.match_indices('\n').map(|(at, _)| at + 1)).collect::<Vec<_>>();
        Self { name: name.to_owned(), shown, line_starts }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the place of a byte.
    pub(crate) fn place(&self, at: usize) -> Place {
        let at = self.boundary(at);
        let line = self.line_starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let before = self.shown.get(start..at).unwrap_or_default();
        Place { line: line + 1, column: before.chars().filter(|c| *c != '\u{feff}').count() + 1 }
    }

    /// Returns the span cut to its first line and to whole characters.
    pub(crate) fn first_line_of(&self, span: Span) -> Range<usize> {
        let start = self.boundary(span.start);
        let end = self.boundary(span.end.max(start));
        let text = self.shown.get(start..end).unwrap_or_default();
        let kept = text.find(['\n', '\r']).unwrap_or(text.len());
        start..start + kept
    }

    /// Returns the bytes of the line that holds a byte, without its end.
    pub(crate) fn line_of(&self, at: usize) -> Range<usize> {
        let line = self.place(at).line - 1;
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let end = self.line_starts.get(line + 1).map_or(self.shown.len(), |next| next - 1).max(start);
        let text = self.shown.get(start..end).unwrap_or_default();
        start..end - usize::from(text.ends_with('\r'))
    }

    /// Returns the whole text as it may be shown.
    pub(crate) fn whole(&self) -> &str {
        &self.shown
    }

    /// Returns text that may be shown.
    pub(crate) fn shown(&self, range: Range<usize>) -> &str {
        self.shown.get(range).unwrap_or_default()
    }

    fn boundary(&self, at: usize) -> usize {
        let at = at.min(self.shown.len());
        (0..=at).rev().find(|one| self.shown.is_char_boundary(*one)).unwrap_or(0)
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({}, {} bytes)", self.name, self.shown.len())
    }
}

/// Line and column of a character, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[cfg(test)]
mod tests {
    use super::{Place, Source, Span};

    #[test]
    fn places_count_lines_and_characters() {
        let source = Source::new("gw.toml", "a = 1\né = \"x\ny\"\n".to_owned());
        assert_eq!(source.place(0), Place { line: 1, column: 1 });
        assert_eq!(source.place(8), Place { line: 2, column: 2 });
        assert_eq!(
            source.place(7),
            Place { line: 2, column: 1 },
            "a byte inside a character is that character"
        );
        assert_eq!(source.place(999), Place { line: 4, column: 1 });
        assert_eq!(source.shown(source.first_line_of(Span::from(11..15))), "\"x");
        assert_eq!(source.shown(source.line_of(9)), "é = \"x");
        let windows = Source::new("gw.toml", "a = 1\r\n\r\nb".to_owned());
        assert_eq!([0, 7, 9].map(|at| windows.shown(windows.line_of(at))), ["a = 1", "", "b"]);
    }
}
