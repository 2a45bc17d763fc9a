//! `[ledger]`: where the records go.

use serde::Serialize;

use crate::{
    reader::{Node, quotable},
    source::{Located, Span},
};

/// `[ledger]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LedgerEntry {
    pub(crate) store: Located<Store>,
    pub(crate) durability: Durability,
}

/// What a record survives once its answer is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Durability {
    /// The end of the process, however it comes.
    #[default]
    Process,
    /// The loss of power as well.
    Power,
    /// Neither: it is queued for some milliseconds.
    None,
}

/// Where the records go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Store {
    /// Into a SQLite file; a relative path starts from the configuration's folder.
    Sqlite(String),
    /// Nowhere: the last ones are kept in memory.
    None,
}

/// The store where the file names none.
const STORE: &str = "gw.db";

/// Reads the table; an absent one is all defaults.
pub(super) fn read(node: Option<Node<'_>>) -> LedgerEntry {
    let default = |span| Located::new(Store::Sqlite(STORE.to_owned()), span);
    let Some(mut section) = node.and_then(|node| node.section()) else {
        return LedgerEntry { store: default(Span::default()), durability: Durability::default() };
    };
    let store =
        section.optional("store").and_then(|node| store(&node)).unwrap_or_else(|| default(section.at()));
    const WORDS: [(&str, Durability); 3] =
        [("process", Durability::Process), ("power", Durability::Power), ("none", Durability::None)];
    let durability = section.optional("durability").and_then(|node| node.choice("durability", &WORDS));
    section.finish();
    LedgerEntry { store, durability: durability.unwrap_or_default() }
}

fn store(node: &Node<'_>) -> Option<Located<Store>> {
    const REMEDY: &str = "write `\"sqlite:PATH\"` or `\"none\"`";
    if node.raw_text().is_none() && node.is_table() {
        node.fault(format!("`{}`: PostgreSQL is not available in this version", node.path()), REMEDY);
        return None;
    }
    let text = node.text()?;
    let store = match text.split_once(':') {
        None if text == "none" => Store::None,
        Some(("sqlite", path)) if !path.is_empty() => Store::Sqlite(path.to_owned()),
        Some(("postgres" | "postgresql", _)) => {
            node.fault(format!("`{}`: PostgreSQL is not available in this version", node.path()), REMEDY);
            return None;
        }
        Some(_) | None => {
            node.fault(format!("unknown store `{}` in `{}`", quotable(text), node.path()), REMEDY);
            return None;
        }
    };
    Some(Located::new(store, node.span()))
}
