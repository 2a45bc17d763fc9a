//! A configuration that was read: every value valid by itself, every name known, every secret found.

use std::path::{Path, PathBuf};

use blake2::{Blake2b128, Digest};
use gw_types::{BoundedText, Secret};
use toml::de::DeTable;

use crate::{
    Environment,
    diagnostics::{Diagnostic, Diagnostics},
    file::{self, Callers, File},
    keys, mask,
    outside::{Seen, Watching},
    parts,
    reader::{Fault, Faults, quotable},
    secret::{self, Outside},
    source::{Source, Span},
    stored_keys::StoredMark,
    variables,
};

/// The largest configuration, in bytes.
const TEXT_BYTES_MAX: usize = 8_388_608;

/// Records kept in memory where the store is `none`, for the admin plane to show.
const MEMORY_RECORDS: usize = 10_000;

/// A configuration that was read. What its parts make of each other, [`crate::check`] and [`crate::Composition`] say.
///
/// `Debug`, [`Config::effective`] and [`Config::digest`] hold no secret.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) file: File,
    pub(crate) source: Source,
    pub(crate) folder: PathBuf,
    pub(crate) callers: Callers,
    pub(crate) proxies: Proxies,
    /// What was read outside the text.
    pub(crate) outside: Seen,
    /// What was read in the ledger.
    pub(crate) stored: StoredMark,
    /// Records kept in memory where the store is `none`.
    pub(crate) memory_records: usize,
}

/// The outbound proxies that the environment names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proxies {
    pub(crate) https: Option<Secret>,
    pub(crate) http: Option<Secret>,
    pub(crate) except: Option<Secret>,
}

impl Proxies {
    fn of(environment: &dyn Environment) -> Self {
        Self {
            https: variables::proxy(environment, variables::HTTPS_PROXY),
            http: variables::proxy(environment, variables::HTTP_PROXY),
            except: variables::proxy(environment, variables::NO_PROXY),
        }
    }
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Every fault of the file at once, or the one that it cannot be read.
    pub fn load(path: &Path, environment: &dyn Environment) -> Result<Self, Diagnostics> {
        Self::load_for(path, environment, Callers::WithKey)
    }

    /// Reads a configuration file for a process to which nobody comes in, such as a batch: no tenant need have a key, and
    /// what listeners alone need is not looked for outside the text. Those are the secrets of callers, of the admin plane
    /// and of the collector, and the certificates of the listeners.
    ///
    /// # Errors
    /// As [`Self::load`], but for what is not there or not looked for.
    pub fn load_without_callers(path: &Path, environment: &dyn Environment) -> Result<Self, Diagnostics> {
        Self::load_for(path, environment, Callers::Nobody)
    }

    fn load_for(path: &Path, environment: &dyn Environment, callers: Callers) -> Result<Self, Diagnostics> {
        let name = path.display().to_string();
        let unreadable = |message: String, expected: &str| {
            Diagnostics::new(vec![Diagnostic::of_file(&name, message, expected.to_owned())])
        };
        let bytes = environment.read(path).map_err(|error| {
            let message = format!("the configuration cannot be read: {}", secret::said(&error));
            unreadable(message, what_to_do(error.kind()))
        })?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::read(text, &name, environment, callers),
            Err(error) => {
                let good = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
                let line = good.matches('\n').count() + 1;
                Err(unreadable(format!("line {line} is not valid UTF-8"), "save the file as UTF-8"))
            }
        }
    }

    /// Reads the text of a configuration; `name` is the file's path, for messages and for relative paths.
    ///
    /// Never panics, whatever the text. Costs O(n log n) in the length of the text.
    ///
    /// # Errors
    /// Every fault of the text at once.
    pub fn parse(text: &str, name: &str, environment: &dyn Environment) -> Result<Self, Diagnostics> {
        Self::read(text, name, environment, Callers::WithKey)
    }

    pub(crate) fn read(
        text: &str,
        name: &str,
        environment: &dyn Environment,
        callers: Callers,
    ) -> Result<Self, Diagnostics> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("the configuration has {} bytes", text.len());
            let fault = Diagnostic::of_file(name, message, format!("write at most {TEXT_BYTES_MAX}"));
            return Err(Diagnostics::new(vec![fault]));
        }
        let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
        let (root, errors) = DeTable::parse_recoverable(text);
        let broken: Vec<_> = errors.iter().map(|error| error.span().unwrap_or_default()).collect();
        let source = Source::new(name, mask::mask(text, root.get_ref(), &broken));
        let (mut found, broken) = syntax_faults(&errors, text);
        let faults = Faults::new(broken);
        let watching = Watching::new(environment);
        let outside = Outside { environment: &watching, folder: &folder, callers };
        let file = file::read(root.get_ref(), &faults, outside, callers);
        found.extend(faults.into_list());
        let proxies = Proxies::of(&watching);
        let outside = watching.into_seen();
        let config = Self {
            file,
            source,
            folder,
            callers,
            proxies,
            outside,
            stored: StoredMark::default(),
            memory_records: MEMORY_RECORDS,
        };
        if found.is_empty() {
            return Ok(config);
        }
        if errors.is_empty() {
            let further = parts::further_faults(&config, &found);
            found.extend(further);
        }
        Err(config.diagnose(found))
    }

    /// Returns the configuration in force as JSON: defaults filled in, secrets by the place where they are found.
    pub fn effective(&self) -> String {
        // The value is made of maps with text keys, numbers and text, which JSON can hold.
        serde_json::to_string_pretty(&self.file).expect("a configuration is JSON")
    }

    /// Returns the digest of the configuration in force: 32 hexadecimal digits of its BLAKE2b-128.
    ///
    /// Layout, comments and the values of secrets do not change it.
    pub fn digest(&self) -> BoundedText {
        BoundedText::new(&keys::hex(&Blake2b128::digest(self.effective())))
    }

    /// Returns the places of faults in this configuration's text.
    pub(crate) fn diagnose(&self, faults: Vec<Fault>) -> Diagnostics {
        let diagnostic = |fault: Fault| {
            Diagnostic::at(&self.source, fault.span, &fault.path, fault.message, fault.expected)
        };
        Diagnostics::new(faults.into_iter().map(diagnostic).collect())
    }
}

/// Returns what to do about a file that cannot be read.
const fn what_to_do(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::FileTooLarge => "name a configuration: no file is read beyond 16 MiB",
        std::io::ErrorKind::PermissionDenied => "let the user that gw runs as read it",
        std::io::ErrorKind::IsADirectory => "name the file in it",
        _ => "name a file that is there with `--config FILE`",
    }
}

/// Returns what is no TOML, and the places whose values cannot be trusted for it.
///
/// A key that stands twice leaves a readable rest, so only its own place is broken for it.
fn syntax_faults(errors: &[toml::de::Error], text: &str) -> (Vec<Fault>, Vec<Span>) {
    let mut faults = Vec::new();
    let mut broken = Vec::new();
    for error in errors {
        let span = Span::from(error.span().unwrap_or_default());
        let (message, expected) = error.message().split_once(", expected ").unwrap_or((error.message(), ""));
        if message == "duplicate key" {
            let key = quotable(text.get(span.start..span.end).unwrap_or_default());
            let (message, expected) = (format!("key `{key}` stands twice"), "write it once".to_owned());
            faults.push(Fault { span, path: key, message, expected, absent: false });
            continue;
        }
        broken.push(span);
        let expected = match expected {
            "" | "nothing" => "see the TOML specification, https://toml.io".to_owned(),
            expected => format!("expected {expected}"),
        };
        let message = format!("no TOML: {message}");
        faults.push(Fault { span, path: String::new(), message, expected, absent: false });
    }
    (faults, broken)
}

#[cfg(test)]
pub(crate) mod tests;
