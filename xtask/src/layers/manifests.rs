//! What the manifests must inherit from the workspace, read as they are written.

use toml::{Table, Value};

use super::TABLE_FILE;
use crate::{finding::Finding, workspace::Manifest};

const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];
const DEPENDENCY_TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Returns the package's name, or the manifest's place where it has none.
pub(super) fn name(manifest: &Manifest) -> &str {
    let name = manifest.table.get("package").and_then(|package| package.get("name"));
    name.and_then(Value::as_str).unwrap_or(&manifest.place)
}

/// Checks the root manifest: virtual, and the only place for versions.
pub(super) fn check_root(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    if manifest.table.contains_key("package") {
        findings.push(finding(
            manifest,
            "`[package]` in the root manifest".to_owned(),
            "the root manifest is virtual, so no command needs a special case",
            "`[workspace]` and profiles".to_owned(),
        ));
    }
    let shared = manifest.table.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    for (name, spec) in shared.and_then(Value::as_table).into_iter().flatten() {
        let complete = spec.is_str() || (spec.get("version").is_some() && spec.get("git").is_none());
        if !complete {
            findings.push(finding(
                manifest,
                format!("`{}` in [workspace.dependencies]", written(name, spec)),
                "every shared dependency has a version of a registry, also beside a path",
                format!("`{name} = {{ version = \"...\" }}`"),
            ));
        }
    }
    findings
}

/// Checks one member's manifest: lints, package keys and versions come from the workspace.
pub(super) fn check_member(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !is_inherited(manifest.table.get("lints")) {
        findings.push(finding(
            manifest,
            format!("`{}` has no `[lints] workspace = true`", name(manifest)),
            "every member takes the lints of the workspace",
            "`[lints] workspace = true`".to_owned(),
        ));
    }
    let package = manifest.table.get("package");
    for key in INHERITED {
        let value = package.and_then(|package| package.get(key));
        if !is_inherited(value) {
            findings.push(finding(
                manifest,
                match value {
                    Some(value) => format!("`{}` in `{}`", written(key, value), name(manifest)),
                    None => format!("no `{key}` in `{}`", name(manifest)),
                },
                "version, edition, rust-version and license are inherited",
                format!("`{key}.workspace = true`"),
            ));
        }
    }
    findings.extend(own_versions(manifest));
    findings
}

fn own_versions(manifest: &Manifest) -> Vec<Finding> {
    let targets = manifest.table.get("target").and_then(Value::as_table).into_iter().flatten();
    let targets =
        targets.filter_map(|(target, table)| Some((format!("target.{target}."), table.as_table()?)));
    let mut findings = Vec::new();
    for (prefix, table) in std::iter::once((String::new(), &manifest.table)).chain(targets) {
        for (section, name, spec) in dependencies(table) {
            if !is_inherited(Some(spec)) {
                findings.push(finding(
                    manifest,
                    format!("`{}` in [{prefix}{section}]", written(name, spec)),
                    "versions, paths and sources of dependencies stand only in [workspace.dependencies]",
                    format!("`{name}.workspace = true`, with features if needed"),
                ));
            }
        }
    }
    findings
}

fn dependencies(table: &Table) -> impl Iterator<Item = (&'static str, &String, &Value)> {
    DEPENDENCY_TABLES.into_iter().flat_map(|section| {
        let entries = table.get(section).and_then(Value::as_table).into_iter().flatten();
        entries.map(move |(name, spec)| (section, name, spec))
    })
}

fn is_inherited(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

/// Writes a key much as it stands in the file; of a table only the keys that say where a thing comes from.
fn written(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{key} = \"{text}\""),
        Value::Table(table) => {
            let keys = table.iter().map(|(key, value)| match value {
                Value::String(text) => format!("{key} = \"{text}\""),
                _ => format!("{key} = ..."),
            });
            format!("{key} = {{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        _ => format!("{key} = ..."),
    }
}

fn finding(manifest: &Manifest, offender: String, rule: &str, allowed: String) -> Finding {
    Finding {
        place: manifest.place.clone(),
        offender,
        rule: rule.to_owned(),
        allowed,
        edit: Some(format!("the manifest; row `{}` of {TABLE_FILE} has no say in this", name(manifest))),
    }
}
