//! Phrases that stand nowhere in the sources.

use super::source::Source;
use crate::finding::Finding;

/// Code that stands nowhere, tests included: phrase, rule, what to write instead.
const CODE: [(&str, &str, &str); 4] = [
    ("#[should_panic", "a test says what it expects and where", "an assertion on the value or the error"),
    ("#[ignore", "a test that does not run is not a test", "a test that runs, or none"),
    ("todo!(", "what is not built is absent or refused", "finished code"),
    ("unimplemented!(", "what is not built is absent or refused", "finished code"),
];

/// Folders that exist on the author's machine. Written without slashes, or this file would find itself.
const MACHINE_FOLDERS: [&str; 5] = ["Users", "home", "root", "tmp", "work"];

pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in source.code.iter().enumerate() {
        for (phrase, rule, allowed) in CODE.iter().filter(|(phrase, _, _)| line.contains(phrase)) {
            findings.push(source.finding(at + 1, &format!("`{phrase}`"), rule, allowed));
        }
    }
    for (line, text, _) in source.product_lines() {
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(text, folder)) {
            findings.push(source.finding(
                line,
                &format!("a path below `/{folder}`"),
                "the sources do not know the machine they were written on",
                "a relative path, or one that the caller gives",
            ));
        }
    }
    findings
}

/// Says whether a line holds the absolute path of a folder, and not a part of a longer path or of a URL.
fn names_folder(line: &str, folder: &str) -> bool {
    let path = format!("/{folder}/");
    line.match_indices(&path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-~/}>*$".contains(c)))
    })
}
