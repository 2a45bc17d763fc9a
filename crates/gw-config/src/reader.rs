//! Walks a TOML tree and collects every fault, instead of stopping at the first.
//!
//! Every read returns an `Option`: `None` is either absent or faulty, and a faulty value has been reported by then. A
//! caller may therefore put a default in its place and go on; whether the whole is usable, [`Faults`] knows.

#[cfg(test)]
pub(crate) mod asked;
mod number;
mod text;

use std::cell::RefCell;

use toml::de::{DeTable, DeValue};

pub(crate) use self::{number::DAY_MS, text::quotable};
use crate::{
    nearest,
    source::{Located, Span},
};

/// One fault, before the text to show is cut out.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) span: Span,
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) expected: String,
    /// Whether something is missing; such a fault may only be a consequence of text that could not be read.
    pub(crate) absent: bool,
}

/// Collects faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: RefCell<Vec<Fault>>,
    broken: Vec<Span>,
}

impl Faults {
    /// Faults collected; a text with more is wrong as a whole.
    const KEPT_MAX: usize = 1_000;

    /// Returns an empty collection; `broken` are the places that are no TOML and were reported as such.
    pub(crate) fn new(broken: Vec<Span>) -> Self {
        Self { list: RefCell::default(), broken }
    }

    /// Adds a fault at a value; what touches broken text is dropped, because the value is not what was written.
    pub(crate) fn add(&self, span: Span, path: &str, message: String, expected: impl Into<String>) {
        self.push(Fault { span, path: path.to_owned(), message, expected: expected.into(), absent: false });
    }

    /// Adds a fault about something that is not there.
    pub(crate) fn add_absent(&self, span: Span, path: &str, message: String, expected: impl Into<String>) {
        self.push(Fault { span, path: path.to_owned(), message, expected: expected.into(), absent: true });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<Fault> {
        self.list.into_inner()
    }

    fn push(&self, fault: Fault) {
        let consequence = self.broken.iter().any(|broken| fault.absent || broken.touches(fault.span));
        let mut list = self.list.borrow_mut();
        if !consequence && list.len() < Self::KEPT_MAX {
            list.push(fault);
        }
    }
}

/// A table that is being read: which of its keys are known shows while they are asked for.
#[derive(Debug)]
pub(crate) struct Section<'t> {
    faults: &'t Faults,
    path: String,
    at: Span,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'t> Section<'t> {
    pub(crate) fn root(table: &'t DeTable<'t>, faults: &'t Faults) -> Self {
        Self { faults, path: String::new(), at: Span::default(), table, known: Vec::new() }
    }

    /// Returns the section that an absent table stands for.
    pub(crate) fn absent(path: &str, faults: &'t Faults) -> Self {
        /// A table without entries, for as long as anybody reads it.
        static EMPTY: std::sync::LazyLock<DeTable<'static>> = std::sync::LazyLock::new(DeTable::new);
        Self { faults, path: path.to_owned(), at: Span::default(), table: &EMPTY, known: Vec::new() }
    }

    pub(crate) fn faults(&self) -> &'t Faults {
        self.faults
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the place where the table begins, for faults about the table as a whole.
    pub(crate) fn at(&self) -> Span {
        self.at
    }

    /// Reads a key that may be absent.
    pub(crate) fn optional(&mut self, key: &'static str) -> Option<Node<'t>> {
        self.known.push(key);
        self.node(key)
    }

    /// Returns the text of a key, if it is there and is one, without a word about what it should be.
    pub(crate) fn text_of(&self, key: &str) -> Option<&'t str> {
        self.table.get(key).and_then(|value| value.get_ref().as_str())
    }

    /// Reads a key that must be there; `example` says what to write.
    pub(crate) fn required(&mut self, key: &'static str, example: &str) -> Option<Node<'t>> {
        let node = self.optional(key);
        if node.is_none() {
            let message = format!("missing `{key}` in {}", self.described());
            self.faults.add_absent(self.at, &self.join(key), message, format!("write `{key} = {example}`"));
        }
        node
    }

    /// Refuses a key that the rest of the table gives no meaning, if it is there.
    pub(crate) fn refuse(&mut self, key: &'static str, why: &str) {
        if let Some(node) = self.optional(key) {
            self.faults.add(node.key, node.path(), format!("`{key}` {why}"), format!("remove `{key}`"));
        }
    }

    /// Returns every entry of a table whose keys are names, in the order of the names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Located<&'t str>, Node<'t>)> {
        self.table.iter().map(|(key, value)| {
            let span = Span::from(key.span());
            let name: &'t str = key.get_ref().as_ref();
            let path = self.join(name);
            (
                Located::new(name, span),
                Node {
                    faults: self.faults,
                    path,
                    key: span,
                    value: value.get_ref(),
                    span: value.span().into(),
                },
            )
        })
    }

    /// Reports every key that was not asked for.
    pub(crate) fn finish(self) {
        #[cfg(test)]
        asked::note(&self.path, &self.known);
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let message = format!("unknown key `{}` in {}", quotable(name), self.described());
                let expected = nearest::remedy(name, self.known.iter().copied());
                self.faults.add(key.span().into(), &self.join(name), message, expected);
            }
        }
    }

    fn node(&self, key: &str) -> Option<Node<'t>> {
        let (found, value) = self.table.get_key_value(key)?;
        let span = Span::from(value.span());
        Some(Node {
            faults: self.faults,
            path: self.join(key),
            key: found.span().into(),
            value: value.get_ref(),
            span,
        })
    }

    fn join(&self, key: &str) -> String {
        let key = quotable(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    fn described(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", self.path) }
    }
}

/// A value that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Node<'t> {
    faults: &'t Faults,
    path: String,
    key: Span,
    value: &'t DeValue<'t>,
    span: Span,
}

impl<'t> Node<'t> {
    /// Items of one list; a longer one is a mistake.
    const ITEMS_MAX: usize = 10_000;

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Returns the place of the value's key.
    pub(crate) fn key(&self) -> Span {
        self.key
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Reports a fault of the value.
    pub(crate) fn fault(&self, message: String, expected: impl Into<String>) {
        self.faults.add(self.span, &self.path, message, expected);
    }

    /// Reads a table.
    pub(crate) fn section(&self) -> Option<Section<'t>> {
        match self.value {
            DeValue::Table(table) => Some(Section {
                faults: self.faults,
                path: self.path.clone(),
                at: self.key,
                table,
                known: Vec::new(),
            }),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => self.wrong("a table", "write `{ ... }` or a `[...]` heading"),
        }
    }

    /// Reads a list.
    pub(crate) fn list(&self) -> Option<Vec<Node<'t>>> {
        match self.value {
            DeValue::Array(items) if items.len() <= Self::ITEMS_MAX => {
                let item = |(at, item): (usize, &'t toml::Spanned<DeValue<'t>>)| {
                    let span = Span::from(item.span());
                    let path = format!("{}[{at}]", self.path);
                    Node { faults: self.faults, path, key: span, value: item.get_ref(), span }
                };
                Some(items.iter().enumerate().map(item).collect())
            }
            DeValue::Array(items) => {
                self.fault(
                    format!("`{}` has {} items", self.path, items.len()),
                    format!("write at most {}", Self::ITEMS_MAX),
                );
                None
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Table(_) => self.wrong("a list", "write `[...]` around the items"),
        }
    }

    /// Reads a list that must not be empty.
    pub(crate) fn filled_list(&self) -> Option<Vec<Node<'t>>> {
        let items = self.list()?;
        if items.is_empty() {
            self.fault(format!("`{}` is empty", self.path), "write at least one item");
            return None;
        }
        Some(items)
    }

    /// Reads a boolean.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(flag) => Some(*flag),
            DeValue::String(text) if matches!(text.as_ref(), "true" | "false") => {
                self.wrong("a boolean", &format!("write `{text}` without quotes"))
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => self.wrong("a boolean", "write `true` or `false`"),
        }
    }

    /// Reports a value of the wrong type; returns `None` for the caller to return.
    fn wrong<T>(&self, expected: &str, remedy: &str) -> Option<T> {
        self.fault(format!("`{}` is {}, not {expected}", self.path, self.kind()), remedy);
        None
    }

    fn kind(&self) -> &'static str {
        match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }
}
