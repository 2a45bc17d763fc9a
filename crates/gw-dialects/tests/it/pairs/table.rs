//! The table in the documentation.

use std::{fmt::Write as _, path::Path};

use gw_types::Operation;

use super::{Outcome, TARGETS};

const BEGIN: &str = "<!-- begin: table -->\n";
const END: &str = "<!-- end: table -->\n";

/// Holds the documentation against what was found; writes it anew if the environment asks for it.
pub(super) fn compare(rows: &[(&str, Operation, Vec<Option<Outcome>>)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/translation.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (found, tail) = rest.split_once(END).unwrap();
    let expected = table(rows);
    if is_update() {
        std::fs::write(&path, format!("{head}{BEGIN}{expected}{END}{tail}")).unwrap();
        return;
    }
    assert!(found == expected, "docs/translation.md is not what gw does; GW_UPDATE=1 writes it anew");
}

#[expect(clippy::disallowed_methods, reason = "only the environment can ask a test to write a page anew")]
fn is_update() -> bool {
    std::env::var_os("GW_UPDATE").is_some()
}

fn table(rows: &[(&str, Operation, Vec<Option<Outcome>>)]) -> String {
    let mut text = "\n| what | caller |".to_owned();
    TARGETS.iter().for_each(|target| text.push_str(&format!(" {} |", target.name)));
    text.push_str("\n|---|---|");
    TARGETS.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for (name, caller, outcomes) in rows {
        let _ = write!(text, "| {name} | {} |", caller.as_str());
        for outcome in outcomes {
            let _ = write!(text, " {} |", cell(outcome.as_ref()));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn cell(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "as it is".to_owned(),
        Some(Outcome::Arrived) => "yes".to_owned(),
        Some(Outcome::Reported(kinds)) => kinds.iter().copied().collect::<Vec<_>>().join(", "),
        Some(Outcome::Harmless) => "no need".to_owned(),
        Some(Outcome::Silent) => "SILENT".to_owned(),
    }
}
