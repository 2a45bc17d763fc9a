//! What is wrong with a configuration: every fault, each with its place and what to write instead.

mod render;

use std::ops::Range;

use serde_json::json;

use crate::source::{Source, Span};

/// Says whether a finding refuses the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, unless the user is strict.
    Warning,
}

impl Severity {
    /// Returns the name, as reports hold it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One fault of a configuration.
///
/// Holds no secret: whatever may be a credential was overwritten in the text that it quotes.
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostic {
    file: String,
    place: Option<Excerpt>,
    path: String,
    message: String,
    expected: String,
    severity: Severity,
    code: Option<&'static str>,
    /// A request that shows it, for programs; for people it stands in the message.
    witness: Option<serde_json::Value>,
}

/// Where a fault is, and the line that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    line: usize,
    column: usize,
    text: String,
    marked: Range<usize>,
}

impl Diagnostic {
    /// The longest line shown, in bytes; a longer one is named but not shown.
    const LINE_BYTES_MAX: usize = 512;

    pub(crate) fn at(source: &Source, span: Span, path: &str, message: String, expected: String) -> Self {
        let marked = source.first_line_of(span);
        let place = source.place(marked.start);
        let line = source.line_of(marked.start);
        let text = source.shown(line.clone()).to_owned();
        let end = marked.end.min(line.end).max(marked.start) - line.start;
        let excerpt =
            Excerpt { line: place.line, column: place.column, text, marked: marked.start - line.start..end };
        Self {
            file: source.name().to_owned(),
            place: Some(excerpt),
            path: path.to_owned(),
            message,
            expected,
            severity: Severity::Error,
            code: None,
            witness: None,
        }
    }

    /// Returns the fault with a request that shows it.
    pub(crate) fn shown_by(self, witness: Option<serde_json::Value>) -> Self {
        Self { witness, ..self }
    }

    /// Returns the fault as a finding of the analysis.
    pub(crate) fn found_by(self, severity: Severity, code: &'static str) -> Self {
        Self { severity, code: Some(code), ..self }
    }

    pub(crate) fn of_file(file: &str, message: String, expected: String) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            path: String::new(),
            message,
            expected,
            severity: Severity::Error,
            code: None,
            witness: None,
        }
    }

    /// Returns the name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line, counted from 1; `None` if the fault is the file's own.
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// Returns the column in characters, counted from 1; `None` if the fault is the file's own.
    pub fn column(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.column)
    }

    /// Returns the setting's path, such as `routes[0].match.models`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns what is wrong: lower case, no full stop.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to write instead.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns whether it refuses the start.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns a name that stays, for programs, of what was found about the routes; `None` for every other fault.
    pub fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// Returns the offending text, credentials overwritten.
    pub fn found(&self) -> &str {
        self.place.as_ref().and_then(|place| place.text.get(place.marked.clone())).unwrap_or_default()
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "file": self.file,
            "line": self.line(),
            "column": self.column(),
            "severity": self.severity.as_str(),
            "code": self.code,
            "path": self.path,
            "message": self.message,
            "found": self.found(),
            "expected": self.expected,
            "witness": self.witness,
        })
    }
}

impl std::fmt::Debug for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Diagnostic {
    /// Writes one line: `gw.toml:3:5: message; what to write instead`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{}:{}:{}: ", self.file, place.line, place.column)?,
            None => write!(f, "{}: ", self.file)?,
        }
        f.write_str(&self.message)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, "; {}", self.expected) }
    }
}

/// Every fault of a configuration, in the order of their places. As an error it holds at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub(crate) fn new(mut faults: Vec<Diagnostic>) -> Self {
        faults.sort_by(|a, b| (a.line(), a.column(), &a.message).cmp(&(b.line(), b.column(), &b.message)));
        faults.dedup();
        Self(faults)
    }

    /// Returns the faults in the order of their places.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Returns whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the same with every warning made an error.
    pub(crate) fn strict(mut self) -> Self {
        self.0.iter_mut().for_each(|fault| fault.severity = Severity::Error);
        self
    }

    /// Returns the report for people: every fault with its line, and a last line with their number.
    ///
    /// `color` asks for terminal escapes; without it the text is plain.
    pub fn render(&self, color: bool) -> String {
        render::report(&self.0, color)
    }

    /// Returns the report for programs: `{"errors": [{"file", "line", "column", "severity", "code", "path", "message",
    /// "found", "expected", "witness"}]}`; the witness is a request that shows what was found about the routes.
    pub fn to_json(&self) -> String {
        json!({ "errors": self.to_values() }).to_string()
    }

    /// Returns the items of [`Diagnostics::to_json`].
    pub fn to_values(&self) -> Vec<serde_json::Value> {
        self.0.iter().map(Diagnostic::to_json).collect()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl std::fmt::Display for Diagnostics {
    /// Writes one line a fault.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::{Diagnostic, Diagnostics};
    use crate::source::{Source, Span};

    fn sample() -> Diagnostics {
        let source = Source::new("gw.toml", "version = 1\n[server]\nlisen = 7\n".to_owned());
        let at = |range: std::ops::Range<usize>, message: &str| {
            Diagnostic::at(&source, Span::from(range), "server.x", message.to_owned(), "write `y`".to_owned())
        };
        Diagnostics::new(vec![at(29..30, "second"), at(21..26, "first"), at(29..30, "second")])
    }

    #[test]
    fn faults_are_sorted_and_single() {
        assert_eq!(sample().to_string(), "gw.toml:3:1: first; write `y`\ngw.toml:3:9: second; write `y`");
    }

    #[test]
    fn the_report_shows_line_mark_and_remedy() {
        let expected = "error: first\n --> gw.toml:3:1\n  |\n3 | lisen = 7\n  | ^^^^^ write `y`\n\n\
                        error: second\n --> gw.toml:3:9\n  |\n3 | lisen = 7\n  |         ^ write `y`\n\n\
                        2 errors in gw.toml\n";
        assert_eq!(sample().render(false), expected);
        assert!(sample().render(true).contains("\u{1b}["));
    }

    #[test]
    fn programs_get_json() {
        let json: serde_json::Value = serde_json::from_str(&sample().to_json()).unwrap();
        assert_eq!(json["errors"][0]["found"], "lisen");
        assert_eq!(
            (json["errors"][1]["line"].as_u64(), json["errors"][1]["column"].as_u64()),
            (Some(3), Some(9))
        );
    }
}
