//! `cargo xtask tidy`: layout of the repository, size and shape of its files, phrases that stand nowhere.
//!
//! What a compiler or clippy can see is left to them; this looks at what they cannot.

mod files;
mod phrases;
mod size;
mod source;
#[cfg(test)]
mod tests;
mod title_page;

use std::{fs, path::Path};

use self::source::Source;
use crate::{
    Failure,
    finding::{Finding, Report},
    workspace,
};

const TOP_LEVEL: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "crates",
    "docs",
    "rust-toolchain.toml",
    "tests",
];
const AUTOMATION: &str = "xtask";
const SOURCE_FOLDERS: [&str; 3] = ["crates/", "tests/", "xtask/"];

/// Checks the repository at `root`.
///
/// # Errors
///
/// When the folder cannot be listed.
pub(crate) fn check(root: &Path) -> Result<Report, Failure> {
    let paths = files::list(root)?;
    let mut findings = check_top_level(&paths);
    findings.extend(paths.iter().filter_map(|path| check_name(path)));
    let mut sources = 0_usize;
    for path in &paths {
        if !(path.ends_with(".rs") && SOURCE_FOLDERS.iter().any(|folder| path.starts_with(folder))) {
            continue;
        }
        // A file may vanish between listing and reading while somebody works; the next run sees the truth.
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        sources += 1;
        findings.extend(check_source(&Source::new(path, &text)));
    }
    for path in paths.iter().filter(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml")) {
        findings.extend(check_folder(root, path));
    }
    Ok(Report { findings, summary: format!("{} files, {sources} of them Rust, all tidy", paths.len()) })
}

fn check_source(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(source.finding(
            1,
            "no `//!` at the top",
            "every file begins by saying what it is",
            "`//! ...`",
        ));
    }
    findings.extend(size::check(source));
    findings.extend(phrases::check(source));
    if source.path.ends_with("src/lib.rs") {
        findings.extend(title_page::check(source));
    }
    findings
}

fn check_top_level(paths: &[String]) -> Vec<Finding> {
    let mut entries: Vec<&str> = paths.iter().filter_map(|path| path.split('/').next()).collect();
    entries.dedup();
    entries.retain(|entry| !entry.starts_with('.') && !TOP_LEVEL.contains(entry) && *entry != AUTOMATION);
    let finding = |entry: &&str| Finding {
        place: (*entry).to_owned(),
        offender: format!("`{entry}` at the top level"),
        rule: "the top level holds only what every repository has; the rest has a room inside".to_owned(),
        allowed: format!("{}, {AUTOMATION} and dotfiles", TOP_LEVEL.join(", ")),
        edit: None,
    };
    entries.iter().map(finding).collect()
}

fn check_name(path: &str) -> Option<Finding> {
    let file = path.rsplit('/').next()?;
    let (rule, allowed) = match file {
        "mod.rs" => ("a module's file bears its name", "`foo.rs` beside `foo/`"),
        "Makefile" | "makefile" | "justfile" => ("automation is Rust", "a command of `xtask`"),
        _ if file.ends_with(".sh") => ("automation is Rust", "a command of `xtask`"),
        _ => return None,
    };
    Some(Finding {
        place: path.to_owned(),
        offender: format!("a file named `{file}`"),
        rule: rule.to_owned(),
        allowed: allowed.to_owned(),
        edit: None,
    })
}

/// A crate's folder is named exactly as its package, so that a name found in code is found on disk.
fn check_folder(root: &Path, path: &str) -> Option<Finding> {
    let folder =
        path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|folder| !folder.contains('/'))?;
    let manifest = workspace::manifest(root, &root.join(path)).ok()?;
    let name = manifest.table.get("package")?.get("name")?.as_str()?;
    (name != folder).then(|| Finding {
        place: path.to_owned(),
        offender: format!("package `{name}` in folder `{folder}`"),
        rule: "a folder under crates/ is named as its package".to_owned(),
        allowed: format!("`crates/{name}`"),
        edit: None,
    })
}
