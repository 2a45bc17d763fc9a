//! The files that belong to the repository, as paths relative to its root with `/` between the parts.

use std::{fs, path::Path, process::Command};

use crate::Failure;

/// Lists every file that is or would be committed, sorted.
///
/// Git knows best, because it knows what is ignored. Outside a checkout, or where git sees nothing (the folder is itself
/// ignored by a repository around it), everything but build output is taken.
pub(super) fn list(root: &Path) -> Result<Vec<String>, Failure> {
    let mut paths = match from_git(root) {
        Some(paths) if !paths.is_empty() => paths,
        _ => walk(root)?,
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn from_git(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(root);
    // Inside a git hook these name the hook's repository, which may be another one.
    for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        git.env_remove(variable);
    }
    let output = git.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    // A file that was deleted but not yet removed from the index is still listed.
    let there = |path: &&str| !path.is_empty() && root.join(path).symlink_metadata().is_ok();
    Some(text.split('\0').filter(there).map(str::to_owned).collect())
}

fn walk(root: &Path) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).map_err(|error| {
            Failure::Work(format!("cannot list `{}`: {error}", root.join(&folder).display()))
        })?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            // A symbolic link is a file here, so no circle can arise.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_output(&name, &path) => {}
                Ok(kind) if kind.is_dir() => folders.push(path),
                _ => paths.push(path),
            }
        }
    }
    Ok(paths)
}

/// Says whether a folder holds what cargo or git made; a module may be called `target`.
fn is_output(name: &str, path: &str) -> bool {
    name == ".git" || (name == "target" && !path.contains("/src/"))
}
