//! The seam through which a configuration reads the world outside its text.

use std::{collections::BTreeMap, env::VarError, ffi::OsString, io, io::Read as _, path::Path};

/// Environment variables and files, as a configuration may refer to them.
///
/// # Contract
/// `var` and `read` have no effect and answer the same for the same argument while a configuration is being read.
/// Whoever implements it prints nothing: both carry secrets.
pub trait Environment: Send + Sync {
    /// Returns the variable's value.
    ///
    /// # Errors
    /// [`VarError`], if it is not set or not UTF-8.
    fn var(&self, name: &str) -> Result<String, VarError>;

    /// Returns the file's content.
    ///
    /// # Errors
    /// [`io::Error`], if it cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The largest file that a configuration may refer to, in bytes.
const FILE_BYTES_MAX: u64 = 16_777_216;

/// The process's own environment and file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where the environment is read")]
    fn var(&self, name: &str) -> Result<String, VarError> {
        // `std::env::var` panics at a name with `=` or NUL in it.
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(VarError::NotPresent);
        }
        std::env::var(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        // One byte more than may be there, so that a file without end is found out.
        std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok(content)
    }
}

/// An environment made of given values, for tests and for embedding. Its `Debug` prints names only.
#[derive(Clone, Default)]
pub struct FixedEnvironment {
    vars: BTreeMap<String, Option<String>>,
    files: BTreeMap<String, Vec<u8>>,
}

impl FixedEnvironment {
    /// Returns an environment without variables and files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable.
    #[must_use]
    pub fn with_var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.to_owned(), Some(value.to_owned()));
        self
    }

    /// Adds a variable whose value is not UTF-8.
    #[must_use]
    pub fn with_garbled_var(mut self, name: &str) -> Self {
        self.vars.insert(name.to_owned(), None);
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: &str, content: &[u8]) -> Self {
        self.files.insert(path.to_owned(), content.to_vec());
        self
    }
}

impl Environment for FixedEnvironment {
    fn var(&self, name: &str) -> Result<String, VarError> {
        match self.vars.get(name) {
            Some(Some(value)) => Ok(value.clone()),
            Some(None) => Err(VarError::NotUnicode(OsString::new())),
            None => Err(VarError::NotPresent),
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = path.to_str().and_then(|path| self.files.get(path));
        found.cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl std::fmt::Debug for FixedEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FixedEnvironment")
            .field("vars", &self.vars.keys())
            .field("files", &self.files.keys())
            .finish()
    }
}

const _: fn(&dyn Environment) = |_object_safe| {};

#[cfg(test)]
mod tests {
    use std::{io::Write as _, path::Path};

    use super::{Environment, FILE_BYTES_MAX, SystemEnvironment};

    #[test]
    fn files_are_read_up_to_a_bound() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"content").unwrap();
        assert_eq!(SystemEnvironment.read(file.path()).unwrap(), b"content");
        file.as_file().set_len(FILE_BYTES_MAX + 1).unwrap();
        let error = SystemEnvironment.read(file.path()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
        assert!(SystemEnvironment.read(Path::new("no/such/file")).is_err());
    }

    #[test]
    fn names_that_are_none_are_not_set() {
        for name in ["", "A=B", "A\0B", "GW_SURELY_NOT_SET"] {
            assert!(SystemEnvironment.var(name).is_err());
        }
    }
}
