//! Reads text: names, choices and references.

use std::{collections::BTreeSet, str::FromStr};

use gw_types::{BoundedText, InvalidName};
use toml::de::DeValue;

use super::{Node, Section};
use crate::{mask, nearest, source::Located};

/// The longest text of one setting, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;

impl<'t> Node<'t> {
    /// Reads one line of text that is not empty.
    pub(crate) fn text(&self) -> Option<&'t str> {
        let DeValue::String(text) = self.value else {
            return self.wrong("a string", "write it in quotes");
        };
        let text = text.as_ref();
        if text.trim().is_empty() {
            self.fault(format!("`{}` is empty", self.path), "write a text");
        } else if text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
            let remedy = format!("write one line of at most {TEXT_BYTES_MAX} bytes");
            self.fault(format!("`{}` is too long or holds a control character", self.path), remedy);
        } else if text.contains("${") {
            self.fault(
                format!("`{}` holds `${{`, which is not expanded here", self.path),
                "write the text itself; a secret is written `{ env = \"NAME\" }`",
            );
        } else {
            return Some(text);
        }
        None
    }

    /// Returns the text as it stands, for a fault that must tell texts apart.
    pub(crate) fn raw_text(&self) -> Option<&'t str> {
        match self.value {
            DeValue::String(text) => Some(text.as_ref()),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        }
    }

    /// Reads a name.
    pub(crate) fn name<T: FromStr<Err = InvalidName>>(&self) -> Option<Located<T>> {
        let text = self.text()?;
        match text.parse() {
            Ok(name) => Some(Located::new(name, self.span)),
            Err(invalid) => {
                self.fault(format!("`{}` is no name", quotable(text)), invalid.to_string());
                None
            }
        }
    }

    /// Reads a text that goes into records.
    pub(crate) fn label(&self) -> Option<BoundedText> {
        let text = self.text()?;
        let label = BoundedText::new(text);
        if label.as_str() == text {
            return Some(label);
        }
        let remedy = format!("write at most {} bytes of visible ASCII", BoundedText::BYTES_MAX);
        self.fault(format!("`{}` does not fit in a record", self.path), remedy);
        None
    }

    /// Reads one of a closed set of words; `what` says what they name.
    pub(crate) fn choice<T: Copy>(&self, what: &str, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            self.unknown(what, text, words.iter().map(|(word, _)| *word));
        }
        found.map(|(_, value)| *value)
    }

    /// Reads the name of something that the file must define.
    pub(crate) fn reference<T: FromStr<Err = InvalidName>>(
        &self,
        what: &str,
        known: &BTreeSet<String>,
    ) -> Option<Located<T>> {
        let name = self.text()?;
        if known.contains(name) {
            return self.name();
        }
        let message = format!("unknown {what} `{}` in `{}`", quotable(name), self.path);
        self.faults.add(
            self.span,
            &self.path,
            message,
            nearest::remedy(name, known.iter().map(String::as_str)),
        );
        None
    }

    /// Reports a word that a closed set does not have.
    pub(crate) fn unknown<'a>(
        &self,
        what: &str,
        text: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) {
        self.fault(
            format!("unknown {what} `{}` in `{}`", quotable(text), self.path),
            nearest::remedy(text, known),
        );
    }
}

impl Section<'_> {
    /// Reads an optional list of names.
    pub(crate) fn names<T: FromStr<Err = InvalidName>>(&mut self, key: &'static str) -> Vec<T> {
        let items = self.optional(key).and_then(|node| node.filled_list()).unwrap_or_default();
        items.iter().filter_map(Node::name).map(|name| name.value).collect()
    }

    /// Reads a list of words of a closed set.
    pub(crate) fn choices<T: Copy>(
        &mut self,
        key: &'static str,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Option<Vec<T>> {
        let items = self.optional(key)?.filled_list()?;
        Some(items.iter().filter_map(|item| item.choice(what, words)).collect())
    }
}

/// Returns text of the file as a message may quote it: short, one line, no credential.
pub(crate) fn quotable(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    if mask::looks_like_credential(text) {
        return "[redacted]".to_owned();
    }
    let mut kept: String =
        text.chars().take(CHARACTERS_MAX).map(|c| if c.is_control() || c == '`' { '?' } else { c }).collect();
    if text.chars().count() > CHARACTERS_MAX {
        kept.push_str("...");
    }
    kept
}
