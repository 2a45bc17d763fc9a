//! One Rust file, seen three ways: as it is written, without comments and literals, and without its tests.

use crate::finding::Finding;

/// A file and what was learnt about it once.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// Relative to the root of the repository.
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// The same lines with the insides of comments and literals replaced by spaces.
    pub(super) code: Vec<String>,
    /// For each line, whether it belongs to tests.
    in_tests: Vec<bool>,
}

impl<'a> Source<'a> {
    pub(super) fn new(path: &'a str, text: &'a str) -> Self {
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let in_tests = if is_test_file(path) { vec![true; code.len()] } else { test_lines(&code) };
        Self { path, text, code, in_tests }
    }

    /// Returns the lines outside tests with their numbers, as written and as bare code.
    pub(super) fn product_lines(&self) -> impl Iterator<Item = (usize, &'a str, &str)> {
        let lines = self.text.lines().zip(&self.code).zip(&self.in_tests).enumerate();
        lines
            .filter(|(_, (_, in_tests))| !**in_tests)
            .map(|(at, ((text, code), _))| (at + 1, text, code.as_str()))
    }

    pub(super) fn finding(&self, line: usize, offender: &str, rule: &str, allowed: &str) -> Finding {
        Finding {
            place: format!("{}:{line}", self.path),
            offender: offender.to_owned(),
            rule: rule.to_owned(),
            allowed: allowed.to_owned(),
            edit: None,
        }
    }
}

/// Says whether a whole file is test code by its place: `tests.rs`, or anything below a folder of tests or benches.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/');
    let file = parts.next_back();
    file == Some("tests.rs") || parts.any(|folder| folder == "tests" || folder == "benches")
}

/// Marks the lines of every `#[cfg(test)] mod name { ... }`, the attribute included.
///
/// Relies on the format check, which puts the closing brace under the attribute's first character.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut marks = vec![false; code.len()];
    let mut at = 0;
    while at < code.len() {
        let end = test_block_end(code, at).unwrap_or(at);
        if end > at {
            marks[at..=end].fill(true);
        }
        at = end + 1;
    }
    marks
}

/// Returns the last line of the test module whose attribute stands at `start`.
fn test_block_end(code: &[String], start: usize) -> Option<usize> {
    let attribute = &code[start];
    let indent = &attribute[..attribute.len() - attribute.trim_start().len()];
    let is_test_attribute =
        |line: &String| line.trim_start().starts_with("#[cfg(test)]") || line.contains("#[cfg(all(test");
    if !is_test_attribute(attribute) {
        return None;
    }
    let module = (start..code.len()).find(|line| !code[*line].trim_start().starts_with("#["))?;
    let opens = code[module].trim_start().starts_with("mod ") && code[module].trim_end().ends_with('{');
    let close = format!("{indent}}}");
    (module..code.len()).filter(|_| opens).find(|line| code[*line].trim_end() == close)
}

/// Replaces the insides of comments, strings and character literals by spaces; lines stay where they are.
pub(super) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = token_length(rest, out.chars().next_back());
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (token, after) = rest.split_at(length);
            out.extend(token.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        }
    }
    out
}

/// Returns the length in bytes of the comment or literal that `rest` begins with, or 0.
fn token_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    if rest.starts_with('"') {
        return quoted_length(rest);
    }
    if rest.starts_with('\'') {
        return character_length(rest);
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if in_word { 0 } else { raw_string_length(rest) }
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Tells `'x'` and `'\n'` from a lifetime, which has no closing quote after one character.
fn character_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest.get(3..).and_then(|tail| tail.find('\'')).map_or(0, |at| at + 4),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

fn raw_string_length(rest: &str) -> usize {
    let Some(start) = ["r", "br", "cr"].into_iter().find_map(|prefix| rest.strip_prefix(prefix)) else {
        return 0;
    };
    let hashes = start.len() - start.trim_start_matches('#').len();
    if !start[hashes..].starts_with('"') {
        return 0;
    }
    let opening = rest.len() - start.len() + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    rest[opening..].find(&closing).map_or(rest.len(), |at| opening + at + closing.len())
}
