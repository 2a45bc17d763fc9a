//! Secrets: the file says where one is found, never what it is.

use std::{
    env::VarError,
    io,
    path::{Path, PathBuf},
};

use gw_types::Secret;
use serde::Serialize;

use crate::{
    Environment,
    file::Callers,
    reader::{Node, Section},
    source::Located,
};

/// The longest secret, in bytes; a longer file is no key.
const SECRET_BYTES_MAX: usize = 65_536;

/// The longest name of a variable, in bytes.
const VARIABLE_BYTES_MAX: usize = 256;

/// What a string in a secret's place should have been.
const REMEDY: &str = "write `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";

/// Where a secret is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SecretPlace {
    /// In an environment variable.
    Env(String),
    /// In a file, named as the configuration names it.
    File(String),
}

/// A secret and where it was found. Prints and serializes as the place alone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FoundSecret<V = Secret> {
    #[serde(flatten)]
    pub(crate) place: SecretPlace,
    #[serde(skip)]
    pub(crate) value: V,
}

/// A secret that only a process with listeners has a use for; without them it is not looked for.
pub(crate) type ListenerSecret = FoundSecret<Option<Secret>>;

/// What is outside the text: the environment, the folder that relative paths start from, and who may come to ask.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'e> {
    pub(crate) environment: &'e dyn Environment,
    pub(crate) folder: &'e Path,
    pub(crate) callers: Callers,
}

impl Outside<'_> {
    /// Returns the path from the configuration's own folder.
    pub(crate) fn path(self, text: &str) -> PathBuf {
        self.folder.join(text)
    }

    /// Reads a secret's place and the secret itself.
    pub(crate) fn secret(self, node: &Node<'_>) -> Option<Located<FoundSecret>> {
        let (place, at, ()) = place(node, |_| ())?;
        let value = self.value(&place, &at)?;
        Some(Located::new(FoundSecret { place, value }, node.span()))
    }

    /// Reads the place of a secret of the listeners, the secret itself where there are any, and what else stands beside
    /// the place.
    pub(crate) fn listener_secret<T>(
        self,
        node: &Node<'_>,
        beside: impl FnOnce(&mut Section<'_>) -> T,
    ) -> Option<(Located<ListenerSecret>, T)> {
        let (place, at, beside) = place(node, beside)?;
        let value = if self.callers.come_in() { Some(self.value(&place, &at)?) } else { None };
        Some((Located::new(FoundSecret { place, value }, node.span()), beside))
    }

    fn value(self, place: &SecretPlace, at: &Node<'_>) -> Option<Secret> {
        let value = match place {
            SecretPlace::Env(name) => self.variable_value(name),
            SecretPlace::File(path) => self.file_value(path),
        };
        value.map_err(|(message, remedy)| at.fault(message, remedy)).ok()
    }

    /// Reads a credential out of a well-known variable; `None` if it is not set.
    pub(crate) fn variable(self, name: &'static str) -> Option<FoundSecret> {
        let value = Secret::new(&self.environment.var(name).ok()?)?;
        Some(FoundSecret { place: SecretPlace::Env(name.to_owned()), value })
    }

    /// Reads a whole file that the configuration names.
    pub(crate) fn file(self, text: &str) -> Result<Vec<u8>, (String, String)> {
        self.environment.read(&self.path(text)).map_err(|error| {
            let remedy = format!("put it at `{}`, or name another file", self.path(text).display());
            (format!("file `{text}` cannot be read: {}", said(&error)), remedy)
        })
    }

    fn variable_value(self, name: &str) -> Result<Secret, (String, String)> {
        let set = format!("set `{name}`, or name another variable");
        match self.environment.var(name) {
            Ok(value) => secret_of(&value, &format!("environment variable `{name}`"), &set),
            Err(VarError::NotPresent) => Err((format!("environment variable `{name}` is not set"), set)),
            Err(VarError::NotUnicode(_)) => {
                Err((format!("environment variable `{name}` is not valid UTF-8"), set))
            }
        }
    }

    fn file_value(self, path: &str) -> Result<Secret, (String, String)> {
        let bytes = self.file(path)?;
        let remedy = format!("write the secret alone into `{path}`");
        match std::str::from_utf8(&bytes) {
            Ok(text) => secret_of(text, &format!("file `{path}`"), &remedy),
            Err(_) => Err((format!("file `{path}` is not valid UTF-8"), remedy)),
        }
    }
}

/// Reads where a secret is found: the place, the node that names it, and what else stands beside it.
fn place<'t, T>(
    node: &Node<'t>,
    beside: impl FnOnce(&mut Section<'_>) -> T,
) -> Option<(SecretPlace, Node<'t>, T)> {
    if let Some(text) = node.raw_text() {
        node.fault(
            format!("`{}` must not hold the secret itself", node.path()),
            variable_in(text)
                .map_or_else(|| REMEDY.to_owned(), |name| format!("write `{{ env = \"{name}\" }}`")),
        );
        return None;
    }
    let mut section = node.section()?;
    let env = section.optional("env");
    let file = section.optional("file");
    let beside = beside(&mut section);
    section.finish();
    let (place, at) = match (env, file) {
        (Some(env), None) => (SecretPlace::Env(variable(&env)?.to_owned()), env),
        (None, Some(file)) => (SecretPlace::File(file.text()?.to_owned()), file),
        (Some(_), Some(_)) | (None, None) => {
            node.fault(format!("`{}` must name one place of the secret", node.path()), REMEDY);
            return None;
        }
    };
    Some((place, at, beside))
}

fn secret_of(text: &str, place: &str, remedy: &str) -> Result<Secret, (String, String)> {
    let fault = |what: &str| Err((format!("{place} {what}"), remedy.to_owned()));
    if text.is_empty() {
        fault("is empty")
    } else if text.trim().is_empty() {
        fault("holds only blanks")
    } else if text.len() > SECRET_BYTES_MAX {
        fault("is too long for a secret")
    } else if text.contains("${") {
        fault("holds a placeholder that was not expanded")
    } else {
        Secret::new(text).or_else(|| one_line(text)).map_or_else(|| fault("holds a control character"), Ok)
    }
}

/// A key file of Google's is a JSON object over many lines; written on one it is the same.
fn one_line(text: &str) -> Option<Secret> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    Secret::new(&serde_json::Value::Object(object).to_string())
}

/// Reads the name of a variable. A name that is none is not quoted: it may be the secret, in the wrong place.
fn variable<'t>(node: &Node<'t>) -> Option<&'t str> {
    let text = node.raw_text().map_or_else(|| node.text(), Some)?;
    if is_variable(text) {
        return Some(text);
    }
    let remedy = variable_in(text).map_or_else(
        || "write letters, digits and underscores, not beginning with a digit".to_owned(),
        |name| format!("write `\"{name}\"`"),
    );
    node.fault(format!("`{}` is no name of an environment variable", node.path()), remedy);
    None
}

/// Returns the variable that a text in another tool's notation means: `$NAME`, `${NAME}`, `${NAME`.
fn variable_in(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?.trim_start_matches('{').trim_end_matches('}');
    is_variable(name).then_some(name)
}

fn is_variable(text: &str) -> bool {
    text.len() <= VARIABLE_BYTES_MAX
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns why a file could not be read, in words of gw's own.
pub(crate) fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        kind => kind.to_string(),
    }
}
