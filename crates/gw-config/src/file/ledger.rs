//! `[ledger]`: where the records go.

use gw_stores::CheckpointKey;
use serde::Serialize;

use crate::{
    reader::{Node, quotable},
    secret::{FoundSecret, Outside},
    source::{Located, Span},
};

/// `[ledger]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LedgerEntry {
    pub(crate) store: Located<Store>,
    pub(crate) durability: Durability,
    /// Whether keys may be kept in the database too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keys: bool,
    /// Signs checkpoints of the chain; absent: nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint_key: Option<Located<FoundSecret>>,
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
pub(super) fn read(node: Option<Node<'_>>, outside: Outside<'_>) -> LedgerEntry {
    let default = |span| Located::new(Store::Sqlite(STORE.to_owned()), span);
    let Some(mut section) = node.and_then(|node| node.section()) else {
        let store = default(Span::default());
        return LedgerEntry { store, durability: Durability::default(), keys: false, checkpoint_key: None };
    };
    let store =
        section.optional("store").and_then(|node| store(&node)).unwrap_or_else(|| default(section.at()));
    const WORDS: [(&str, Durability); 3] =
        [("process", Durability::Process), ("power", Durability::Power), ("none", Durability::None)];
    let durability = section.optional("durability").and_then(|node| node.choice("durability", &WORDS));
    let checkpoint_key =
        section.optional("checkpoint_key").and_then(|node| checkpoint_key(&node, &store.value, outside));
    let keys = section.optional("keys").and_then(|node| keys(&node, &store.value)).unwrap_or(false);
    section.finish();
    LedgerEntry { store, durability: durability.unwrap_or_default(), keys, checkpoint_key }
}

fn keys(node: &Node<'_>, store: &Store) -> Option<bool> {
    let keys = node.flag()?;
    if keys && *store == Store::None {
        let message = format!("`{}`: keys cannot be kept where the records are kept in memory", node.path());
        node.fault(message, "leave it out, or write `store = \"sqlite:PATH\"`");
        return None;
    }
    Some(keys)
}

fn checkpoint_key(node: &Node<'_>, store: &Store, outside: Outside<'_>) -> Option<Located<FoundSecret>> {
    let found = outside.secret(node)?;
    if *store == Store::None {
        let message = format!("`{}` has nothing to sign: the records are kept in memory", node.path());
        node.fault(message, "leave it out, or write `store = \"sqlite:PATH\"`");
        return None;
    }
    if CheckpointKey::from_secret(found.value.value.expose()).is_err() {
        let message = format!("what `{}` names is no checkpoint key", node.path());
        node.fault(message, "put the 64 hexadecimal digits there that `gw ledger keygen` prints");
        return None;
    }
    Some(found)
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
