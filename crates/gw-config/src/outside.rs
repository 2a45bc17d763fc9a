//! What a configuration read outside its text, remembered as digests: a change of it is a change of the configuration.

use std::{
    collections::BTreeMap,
    env::VarError,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use blake2::{Blake2b128, Digest as _};

use crate::Environment;

/// The digest of a value; `None`: it could not be read.
type Mark = Option<[u8; 16]>;

/// The variables and files that were read, by digest. `Debug` prints names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    variables: BTreeMap<String, Mark>,
    files: BTreeMap<PathBuf, Mark>,
}

impl Seen {
    /// Returns the files that were asked for, whether they were there or not.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }

    /// Returns whether the variable or the file of that name is the same in both; a name of neither is.
    pub(crate) fn same(&self, other: &Self, name: &str, folder: &Path) -> bool {
        let path = folder.join(name);
        self.variables.get(name) == other.variables.get(name)
            && self.files.get(&path) == other.files.get(&path)
    }
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (variables, files) = (self.variables.keys(), self.files.keys());
        f.debug_struct("Seen").field("variables", &variables).field("files", &files).finish()
    }
}

/// An environment that remembers what was read through it.
pub(crate) struct Watching<'e> {
    inner: &'e dyn Environment,
    seen: Mutex<Seen>,
}

impl<'e> Watching<'e> {
    pub(crate) fn new(inner: &'e dyn Environment) -> Self {
        Self { inner, seen: Mutex::default() }
    }

    pub(crate) fn into_seen(self) -> Seen {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns the digest of what was read.
pub(crate) fn mark(bytes: &[u8]) -> [u8; 16] {
    Blake2b128::digest(bytes).into()
}

impl Environment for Watching<'_> {
    fn var(&self, name: &str) -> Result<String, VarError> {
        let value = self.inner.var(name);
        let found = value.as_ref().ok().map(|value| mark(value.as_bytes()));
        self.note(|seen| {
            seen.variables.insert(name.to_owned(), found);
        });
        value
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let content = self.inner.read(path);
        let found = content.as_ref().ok().map(|content| mark(content));
        self.note(|seen| {
            seen.files.insert(path.to_owned(), found);
        });
        content
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Watching;
    use crate::{Environment, FixedEnvironment};

    #[test]
    fn what_is_read_is_remembered_without_its_text() {
        let seen = |value: &str| {
            let environment = FixedEnvironment::new().with_var("KEY", value).with_file("d/f", b"canary");
            let watching = Watching::new(&environment);
            assert_eq!(watching.var("KEY").unwrap(), value);
            assert!(watching.read(Path::new("d/f")).is_ok() && watching.read(Path::new("d/g")).is_err());
            watching.into_seen()
        };
        let (one, other) = (seen("canary-1"), seen("canary-2"));
        assert_eq!(one, seen("canary-1"));
        assert!(!one.same(&other, "KEY", Path::new("d")) && one.same(&other, "f", Path::new("d")));
        assert_eq!(one.files().count(), 2);
        assert!(!format!("{one:?}").contains("canary"));
    }
}
