//! `cargo xtask check-layers`: every rule about who may name whom.
//!
//! The rules themselves are data in [`table`]. All violations are collected before any is reported, and each says what
//! to change: the manifest, or, when the design changes, the row.

mod edges;
mod graph;
mod manifests;
mod outside;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use self::table::{Row, TABLE};
use crate::{
    finding::{Finding, Report},
    workspace::{self, Manifest, Package},
};

const TABLE_FILE: &str = "xtask/src/layers/table.rs";

/// Checks the workspace at `root` against the table.
pub(crate) fn check(root: &Path) -> Report {
    let mut findings = Vec::new();
    let root_manifest = read(root, &root.join("Cargo.toml"), &mut findings);
    let packages = match workspace::metadata(root) {
        Ok(metadata) => metadata.packages,
        Err(words) => {
            findings.push(unreadable("Cargo.toml".to_owned(), &words));
            Vec::new()
        }
    };
    let paths: Vec<PathBuf> = match &root_manifest {
        // Cargo refused the workspace: what the manifests alone can tell is still worth telling.
        Some(manifest) if packages.is_empty() => workspace::member_manifests(root, &manifest.table),
        _ => packages.iter().map(|package| package.manifest_path.clone()).collect(),
    };
    let members: Vec<Manifest> = paths.iter().filter_map(|path| read(root, path, &mut findings)).collect();

    findings.extend(root_manifest.iter().flat_map(manifests::check_root));
    findings.extend(check_rows(&members));
    findings.extend(members.iter().flat_map(manifests::check_member));
    for package in &packages {
        if let Some((place, row)) = table::row(&package.name) {
            let manifest = place_of(root, package);
            findings.extend(edges::check(package, &manifest, place, row));
            findings.extend(outside::check(package, &manifest, row));
            findings.extend(check_targets(package, &manifest, row));
        }
    }
    findings.extend(graph::check_cycles(&packages, |package| place_of(root, package)));
    Report { findings, summary: summary(&packages) }
}

/// Members against rows, both ways.
fn check_rows(members: &[Manifest]) -> Vec<Finding> {
    let is_member = |name: &str| members.iter().any(|member| manifests::name(member) == name);
    let unknown =
        members.iter().filter(|member| table::row(manifests::name(member)).is_none()).map(|member| {
            let name = manifests::name(member);
            Finding {
                place: member.place.clone(),
                offender: format!("member `{name}` has no row"),
                rule: "every member has a row".to_owned(),
                allowed: format!("members: {}", list(TABLE.iter().map(|row| row.name))),
                edit: Some(format!("add row `{name}`, with its reason, to {TABLE_FILE}")),
            }
        });
    let missing = TABLE.iter().filter(|row| !is_member(row.name)).map(|row| Finding {
        place: "Cargo.toml".to_owned(),
        offender: format!("row `{}` has no member", row.name),
        rule: "every row has a member".to_owned(),
        allowed: format!("a member `{}`, or no such row", row.name),
        edit: Some(row_hint(row)),
    });
    unknown.chain(missing).collect()
}

/// Binaries and publication.
fn check_targets(package: &Package, manifest: &str, row: &Row) -> Vec<Finding> {
    let finding = |offender: String, rule: &str, allowed: String| Finding {
        place: manifest.to_owned(),
        offender,
        rule: rule.to_owned(),
        allowed,
        edit: Some(row_hint(row)),
    };
    let binaries = package.targets.iter().filter(|target| target.kind.iter().any(|kind| kind == "bin"));
    let mut findings: Vec<Finding> = binaries
        .filter(|target| row.binary != Some(target.name.as_str()))
        .map(|target| {
            let allowed = TABLE.iter().filter_map(|row| row.binary.map(|binary| (row.name, binary)));
            finding(
                format!("binary `{}` in `{}`", target.name, package.name),
                "a member builds a binary only if its row names it",
                list(allowed.map(|(member, binary)| format!("{binary}` in `{member}"))),
            )
        })
        .collect();
    let published = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
    if published != row.published {
        let (offender, allowed) = match row.published {
            true => ("`publish = false`", "no `publish` key: other teams depend on single crates"),
            false => ("no `publish = false`", "`publish = false`"),
        };
        findings.push(finding(
            format!("{offender} in `{}`", package.name),
            "`publish = false` stands only in members that no other team uses",
            allowed.to_owned(),
        ));
    }
    findings
}

fn summary(packages: &[Package]) -> String {
    let dependencies = packages.iter().flat_map(|package| &package.dependencies);
    let (edges, outside): (Vec<_>, Vec<_>) =
        dependencies.partition(|dependency| table::row(&dependency.name).is_some());
    format!(
        "{} members, {} workspace edges, {} outside dependencies, all as the table says",
        packages.len(),
        edges.len(),
        outside.len()
    )
}

fn read(root: &Path, path: &Path, findings: &mut Vec<Finding>) -> Option<Manifest> {
    match workspace::manifest(root, path) {
        Ok(manifest) => Some(manifest),
        Err((place, words)) => {
            findings.push(unreadable(place, &words));
            None
        }
    }
}

fn unreadable(place: String, words: &str) -> Finding {
    Finding {
        place,
        offender: words.replace('\n', "\n    "),
        rule: "cargo and a TOML parser can read every manifest".to_owned(),
        allowed: "a valid manifest".to_owned(),
        edit: Some(format!("the manifest; {TABLE_FILE} has no say in this")),
    }
}

fn place_of(root: &Path, package: &Package) -> String {
    let path = &package.manifest_path;
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn row_hint(row: &Row) -> String {
    format!("row `{}` in {TABLE_FILE} ({})", row.name, row.why)
}

/// Writes names as `a`, `b`, `c`; an empty list reads "nothing".
fn list<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
