//! A folder of broken configurations, each with exactly what is said about it.
//!
//! To write what is said anew, run the test with `UPDATE=1`, and read the difference.

use std::{collections::BTreeSet, fs, path::PathBuf};

use gw_config::{FixedEnvironment, check};

/// The fewest configurations that the folder must hold.
const CASES_MIN: usize = 40;

fn environment() -> FixedEnvironment {
    FixedEnvironment::new()
        .with_var("UP_KEY", "canary-up")
        .with_var("TEAM_KEY", "canary-team")
        .with_var("REDIS_URL", "redis://localhost")
        .with_var("EMPTY_KEY", "")
        .with_var("BLANK_KEY", "  ")
        .with_garbled_var("GARBLED_KEY")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

#[expect(clippy::disallowed_methods, reason = "a switch for whoever changes what is said")]
fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

#[test]
fn every_broken_configuration_is_refused_with_what_to_write() {
    let names: BTreeSet<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .collect();
    assert!(names.len() >= CASES_MIN, "{}", names.len());
    let mut different = Vec::new();
    for path in &names {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let said = match check(&text, name, &environment()) {
            Ok(checked) => panic!("{name} is accepted; {}", checked.warnings),
            Err(faults) => faults.render(false),
        };
        assert!(!said.contains("canary"), "{said}");
        let expected = path.with_extension("txt");
        if is_update() {
            fs::write(&expected, &said).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != said {
            different.push(format!("{name}:\n{said}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn nothing_lies_about_in_the_folder() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let other = if path.extension().is_some_and(|kind| kind == "txt") { "toml" } else { "txt" };
        assert!(path.with_extension(other).exists(), "{} stands alone", path.display());
    }
}
