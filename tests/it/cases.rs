//! Faults that users of such gateways reported, each as a test of its name.

mod attempts;
mod caching;
mod cost;
mod intake;
mod limits;
mod observability;
mod resources;
mod security;
mod streaming;
mod usage;

use std::{collections::BTreeSet, fs, path::Path};

use crate::wire::{beside_the_workspace, is_absent};

/// Reads every Rust file below a folder that Cargo does not write.
fn sources(folder: &Path, read: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, read);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            read(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_reported_fault_has_a_test_of_its_name() {
    let folder = beside_the_workspace("cases");
    if is_absent(&folder) {
        return;
    }
    let mut open = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        open.extend(
            text.lines().filter_map(|line| line.strip_prefix("- id: ")).map(|id| id.replace('-', "_")),
        );
    }
    assert!(open.len() >= 40, "{} cases were read", open.len());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for folder in ["crates", "tests"] {
        sources(&workspace.join(folder), &mut |text| {
            open.retain(|id| !text.contains(&format!("fn {id}")));
        });
    }
    assert_eq!(open, BTreeSet::new(), "cases without a test that begins with their name");
}
