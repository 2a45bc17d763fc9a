//! The shape of a `lib.rs`: a title page and a table of contents.

use super::source::Source;
use crate::finding::Finding;

const LINES_MAX: usize = 100;
const RULE: &str = "a `lib.rs` is a title page and a table of contents";

pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.product_lines().count();
    if lines > LINES_MAX {
        let allowed = format!("at most {LINES_MAX} lines, documentation included");
        findings.push(source.finding(LINES_MAX, &format!("{lines} lines"), RULE, &allowed));
    }
    let mut documented = false;
    let mut signature: Option<usize> = None;
    for (number, text, code) in source.product_lines() {
        let code = code.trim();
        if let Some((offender, allowed)) = misplaced(code, documented) {
            findings.push(source.finding(number, &format!("`{offender}`"), RULE, allowed));
        }
        // A signature without a body is part of a trait; where the body opens, logic begins.
        if is_function(code) {
            signature = Some(number);
        }
        if let Some(line) = signature
            && code.contains('{')
        {
            findings.push(source.finding(line, "a function with a body", RULE, "modules that hold the code"));
            signature = None;
        } else if code.ends_with(';') {
            signature = None;
        }
        let attribute = code.starts_with("#[");
        documented = text.trim_start().starts_with("///") || (documented && attribute);
    }
    findings
}

/// Returns what a line of code has no business doing here, and what to do instead.
fn misplaced(code: &str, documented: bool) -> Option<(&str, &'static str)> {
    if code.contains("::*") {
        return Some((code, "a `pub use self::{...}` that names every item"));
    }
    if code.starts_with("pub mod") && !documented {
        return Some((code, "a private `mod`; a namespace only with its own documentation"));
    }
    if code.starts_with("impl ") || code.starts_with("impl<") || code.starts_with("macro_rules!") {
        return Some((code, "modules that hold the code"));
    }
    None
}

fn is_function(code: &str) -> bool {
    let mut words = code.split_whitespace();
    words
        .by_ref()
        .find(|word| !matches!(*word, "pub" | "pub(crate)" | "const" | "async" | "unsafe" | "extern"))
        == Some("fn")
}
