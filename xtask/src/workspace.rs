//! The workspace that holds a folder, as cargo describes it and as its manifests are written.
//!
//! Both views are needed: `cargo metadata` knows targets, edges and merged features, but no longer tells whether a
//! value was inherited; the manifests tell that.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::Table;

use crate::{Failure, host};

/// What `cargo metadata --no-deps` says about the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// One member in cargo's eyes.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// `None`: may be published anywhere; an empty list: `publish = false`.
    pub(crate) publish: Option<Vec<String>>,
}

/// One dependency as a manifest states it, with the features it inherited.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The package's real name, also when the manifest renames it.
    pub(crate) name: String,
    pub(crate) rename: Option<String>,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) features: Vec<String>,
    /// The `cfg(...)` or triple under which the dependency holds.
    pub(crate) target: Option<String>,
}

/// One thing that cargo builds from a member.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

/// A manifest as it is written.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// Relative to the workspace root.
    pub(crate) place: String,
    pub(crate) table: Table,
}

impl Package {
    /// Returns every feature this member asks of a dependency, also through its own `[features]`.
    pub(crate) fn features_of<'a>(&'a self, dependency: &'a Dependency) -> impl Iterator<Item = &'a str> {
        let key = dependency.rename.as_ref().unwrap_or(&dependency.name);
        let forwarded = self.features.values().flatten().filter_map(move |value| {
            let (owner, feature) = value.split_once('/')?;
            (owner.trim_end_matches('?') == key).then_some(feature)
        });
        dependency.features.iter().map(String::as_str).chain(forwarded)
    }
}

impl Dependency {
    /// Says whether only tests and benches see this dependency.
    ///
    /// A model checker must be a normal dependency under its own `cfg`, which no user of the crate ever sets.
    pub(crate) fn is_for_tests(&self) -> bool {
        let checker = matches!(self.target.as_deref(), Some("cfg(loom)" | "cfg(shuttle)"));
        checker || self.kind.as_deref() == Some("dev")
    }
}

/// Returns the root of the workspace that holds `folder`.
///
/// The manifest is only searched for its `[workspace` line, so that a broken one is found and reported by the checks.
pub(crate) fn find_root(folder: &Path) -> Result<PathBuf, Failure> {
    let is_root = |candidate: &&Path| {
        fs::read_to_string(candidate.join("Cargo.toml"))
            .is_ok_and(|text| text.lines().any(|line| line.trim_start().starts_with("[workspace")))
    };
    folder.ancestors().find(is_root).map(Path::to_path_buf).ok_or_else(|| {
        Failure::Work(format!("no Cargo.toml with `[workspace]` in or above `{}`", folder.display()))
    })
}

/// Asks cargo for the members of the workspace; never resolves dependencies, so cycles are no obstacle.
///
/// # Errors
///
/// With cargo's own words, where it cannot read a manifest.
pub(crate) fn metadata(root: &Path) -> Result<Metadata, String> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let output =
        host::cargo(root, arguments).output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("unexpected answer: {error}"))
}

/// Reads one manifest as TOML.
///
/// # Errors
///
/// With the place and what is wrong there.
pub(crate) fn manifest(root: &Path, path: &Path) -> Result<Manifest, (String, String)> {
    let place = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let parsed = fs::read_to_string(path)
        .map_err(|error| error.to_string())
        .and_then(|text| text.parse::<Table>().map_err(|error| error.to_string()));
    match parsed {
        Ok(table) => Ok(Manifest { place, table }),
        Err(error) => Err((place, error)),
    }
}

/// Returns the manifests of all members without asking cargo, for a workspace that cargo refuses to read.
///
/// Understands what this workspace uses: plain folders and a `*` as the last part.
pub(crate) fn member_manifests(root: &Path, root_manifest: &Table) -> Vec<PathBuf> {
    let patterns = root_manifest.get("workspace").and_then(|workspace| workspace.get("members"));
    let patterns = patterns.and_then(toml::Value::as_array).into_iter().flatten();
    let mut paths = Vec::new();
    for pattern in patterns.filter_map(toml::Value::as_str) {
        match pattern.strip_suffix("/*") {
            None => paths.push(root.join(pattern).join("Cargo.toml")),
            Some(folder) => {
                let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
                paths.extend(entries.map(|entry| entry.path().join("Cargo.toml")));
            }
        }
    }
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}
