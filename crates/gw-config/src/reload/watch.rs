//! Notices that a file says something else.
//!
//! The files are read and compared, once a second by whoever watches. Notifications of the kernel are not used: they
//! miss network file systems and the symbolic links of a mounted `ConfigMap` unless every folder on the way is watched
//! too, and a configuration is small.

use std::path::PathBuf;

use blake2::{Blake2b256, Digest as _};

use crate::{Environment, outside::mark};

/// What some files say, as one digest, and how often the stored keys had changed. A file that cannot be read counts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    files: [u8; 32],
    key_changes: Option<i64>,
}

impl Fingerprint {
    pub(crate) fn of<'p>(paths: impl Iterator<Item = &'p PathBuf>, environment: &dyn Environment) -> Self {
        let mut digest = Blake2b256::new();
        for path in paths {
            match environment.read(path) {
                Ok(content) => {
                    digest.update([1]);
                    digest.update(mark(&content));
                }
                Err(_) => digest.update([0]),
            }
        }
        Self { files: digest.finalize().into(), key_changes: None }
    }

    /// Returns the same with the count of changes of the stored keys; `None`: they are not read.
    pub(crate) fn with_keys(self, key_changes: Option<i64>) -> Self {
        Self { key_changes, ..self }
    }

    /// Returns what is otherwise than before, in the word that the log has for it: `file`, or `stored_keys` where nothing
    /// else is.
    pub fn cause_since(&self, before: &Self) -> &'static str {
        if self.files == before.files && self.key_changes != before.key_changes {
            "stored_keys"
        } else {
            "file"
        }
    }
}

/// Decides when a change is worth a reload: once it has stood still from one look to the next, and only once. So a file
/// that is being written is left alone until it is whole, and a faulty one is not tried again until it changes.
#[derive(Clone, Debug)]
pub struct Watch {
    last: Fingerprint,
    tried: Fingerprint,
}

impl Watch {
    /// Returns a watch that takes what is there now for what is in force.
    pub fn new(now: Fingerprint) -> Self {
        Self { last: now, tried: now }
    }

    /// Looks once; returns whether to reload.
    pub fn look(&mut self, now: Fingerprint) -> bool {
        let stands_still = std::mem::replace(&mut self.last, now) == now;
        let is_due = stands_still && now != self.tried;
        if is_due {
            self.tried = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Fingerprint, Watch};
    use crate::FixedEnvironment;

    fn of(content: Option<&str>) -> Fingerprint {
        let environment = FixedEnvironment::new();
        let environment = match content {
            Some(content) => environment.with_file("gw.toml", content.as_bytes()),
            None => environment,
        };
        Fingerprint::of(std::iter::once(&PathBuf::from("gw.toml")), &environment)
    }

    #[test]
    fn a_change_is_taken_up_once_and_when_it_stands_still() {
        let mut watch = Watch::new(of(Some("a")));
        let mut looks = |contents: &[Option<&str>]| -> Vec<bool> {
            contents.iter().map(|content| watch.look(of(*content))).collect()
        };
        assert_eq!(looks(&[Some("a"), Some("a")]), [false, false]);
        assert_eq!(looks(&[Some("b"), Some("bc"), Some("bc"), Some("bc")]), [false, false, true, false]);
        // Gone for a moment, as while a link is swapped.
        assert_eq!(looks(&[None, Some("d"), Some("d")]), [false, false, true]);
        // Back to what it was.
        assert_eq!(looks(&[Some("bc"), Some("bc")]), [false, true]);
    }

    #[test]
    fn stored_keys_are_told_from_files() {
        let before = of(Some("a")).with_keys(Some(1));
        let cause = |now: Fingerprint| now.cause_since(&before);
        assert_eq!(cause(of(Some("a")).with_keys(Some(2))), "stored_keys");
        assert_eq!(cause(of(Some("b")).with_keys(Some(2))), "file");
        assert_eq!(cause(of(Some("b")).with_keys(Some(1))), "file");
    }
}
