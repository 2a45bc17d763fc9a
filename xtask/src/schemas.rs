//! `cargo xtask schemas`: `docs/schemas/` holds every JSON Schema that a crate prints, byte for byte.
//!
//! Only files are compared, so this costs nothing; that a schema fits its code, the tests of the crates see to.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::{
    Failure,
    finding::{Finding, Report},
};

/// Where a crate keeps its schemas.
const OF_CRATE: &str = "src/schemas";

/// Where all of them stand for readers.
const DOCUMENTED: &str = "docs/schemas";

/// Compares; changes nothing.
pub(crate) fn check(root: &Path) -> Result<Report, Failure> {
    let wanted = wanted(root)?;
    let documented = read_all(&root.join(DOCUMENTED)).map_err(|error| unreadable(DOCUMENTED, &error))?;
    let mut findings = Vec::new();
    for (name, text) in &wanted {
        match documented.get(name) {
            None => findings.push(finding(name, "is missing")),
            Some(found) if found != text => findings.push(finding(name, "is not what the crate prints")),
            Some(_) => {}
        }
    }
    for name in documented.keys().filter(|name| !wanted.contains_key(*name)) {
        findings.push(finding(name, "is a schema that no crate prints"));
    }
    Ok(Report { findings, summary: format!("{} schemas, all as documented", wanted.len()) })
}

/// Writes `docs/schemas/` anew.
pub(crate) fn write(root: &Path) -> Result<String, Failure> {
    let folder = root.join(DOCUMENTED);
    let wanted = wanted(root)?;
    let written = fs::create_dir_all(&folder).and_then(|()| {
        let old = read_all(&folder)?;
        for name in old.keys().filter(|name| !wanted.contains_key(*name)) {
            fs::remove_file(folder.join(name))?;
        }
        wanted.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    });
    written.map_err(|error| Failure::Work(format!("`{DOCUMENTED}` cannot be written: {error}")))?;
    Ok(format!("{} schemas written to {DOCUMENTED}", wanted.len()))
}

/// Returns the schemas of all crates by file name.
fn wanted(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let crates = fs::read_dir(root.join("crates")).map_err(|error| unreadable("crates", &error))?;
    let mut wanted = BTreeMap::new();
    for entry in crates {
        let entry = entry.map_err(|error| unreadable("crates", &error))?;
        let folder = entry.path().join(OF_CRATE);
        let found = read_all(&folder).map_err(|error| unreadable(&folder.display().to_string(), &error))?;
        for (name, text) in found {
            if wanted.insert(name.clone(), text).is_some() {
                return Err(Failure::Work(format!("two crates have a schema `{name}`; rename one")));
            }
        }
    }
    Ok(wanted)
}

/// Reads every schema of a folder; one that is not there is empty.
fn read_all(folder: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            files.insert(name.to_owned(), fs::read(&path)?);
        }
    }
    Ok(files)
}

fn unreadable(what: &str, error: &io::Error) -> Failure {
    Failure::Work(format!("`{what}` cannot be read: {error}"))
}

fn finding(name: &str, what: &str) -> Finding {
    Finding {
        place: format!("{DOCUMENTED}/{name}"),
        offender: format!("`{name}` {what}"),
        rule: format!("`{DOCUMENTED}` holds every schema of `crates/*/{OF_CRATE}`, byte for byte"),
        allowed: "what `cargo xtask schemas` writes".to_owned(),
        edit: None,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::{check, write};

    /// A folder of its own, gone with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("gw-xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("crates/a/src/schemas")).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn drift_is_named_and_mended() {
        let folder = Folder::new("schemas");
        let root = &folder.0;
        let said =
            || check(root).unwrap().findings.iter().map(|one| one.offender.clone()).collect::<Vec<_>>();
        fs::write(root.join("crates/a/src/schemas/one.json"), "{}").unwrap();
        assert_eq!(said(), ["`one.json` is missing"]);
        write(root).unwrap();
        assert!(said().is_empty());
        fs::write(root.join("docs/schemas/one.json"), "{ }").unwrap();
        fs::write(root.join("docs/schemas/two.json"), "{}").unwrap();
        assert_eq!(
            said(),
            ["`one.json` is not what the crate prints", "`two.json` is a schema that no crate prints"]
        );
        write(root).unwrap();
        assert!(said().is_empty());
    }

    #[test]
    fn two_crates_cannot_have_one_name() {
        let folder = Folder::new("twice");
        for name in ["a", "b"] {
            let schemas = folder.0.join("crates").join(name).join("src/schemas");
            fs::create_dir_all(&schemas).unwrap();
            fs::write(schemas.join("one.json"), "{}").unwrap();
        }
        assert!(check(&folder.0).is_err());
    }
}
