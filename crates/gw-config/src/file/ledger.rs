//! `[ledger]`: where the records go.

use std::collections::BTreeSet;

use gw_stores::CheckpointKey;
use gw_types::{BoundedText, Metadata};
use serde::Serialize;

use super::provider::{CaFile, ca_file as read_ca_file};
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
    /// Names in a request's metadata whose values records keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<BoundedText>,
    /// Signs checkpoints of the chain; absent: nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint_key: Option<Located<FoundSecret>>,
    /// Roots that the certificate of a PostgreSQL server may come from, beside the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<Located<CaFile>>,
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Store {
    /// Into a SQLite file; a relative path starts from the configuration's folder.
    Sqlite(String),
    /// Into a PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(PostgresEntry),
    /// Nowhere: the last ones are kept in memory.
    None,
}

/// A database, by its address or by where that is found. Shows no password.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PostgresEntry {
    pub(crate) address: Address,
    #[serde(skip)]
    pub(crate) url: gw_stores::PostgresUrl,
}

/// How the file names a database.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Address {
    /// As it is: there is no password in it.
    Plain(String),
    /// By the place of its secret.
    At(crate::secret::SecretPlace),
}

/// Names of metadata that records keep at most: a request has no more.
const TAGS_MAX: usize = Metadata::PAIRS_MAX;
/// The longest such name, in bytes.
const TAG_BYTES_MAX: usize = 64;

/// The store where the file names none.
const STORE: &str = "gw.db";

/// Reads the table; an absent one is all defaults.
pub(super) fn read(node: Option<Node<'_>>, outside: Outside<'_>) -> LedgerEntry {
    let default = |span| Located::new(Store::Sqlite(STORE.to_owned()), span);
    let Some(mut section) = node.and_then(|node| node.section()) else {
        let store = default(Span::default());
        return LedgerEntry {
            store,
            durability: Durability::default(),
            keys: false,
            tags: Vec::new(),
            checkpoint_key: None,
            ca_file: None,
        };
    };
    let store = section
        .optional("store")
        .and_then(|node| store(&node, outside))
        .unwrap_or_else(|| default(section.at()));
    const WORDS: [(&str, Durability); 3] =
        [("process", Durability::Process), ("power", Durability::Power), ("none", Durability::None)];
    let durability = section.optional("durability").and_then(|node| node.choice("durability", &WORDS));
    let checkpoint_key =
        section.optional("checkpoint_key").and_then(|node| checkpoint_key(&node, &store.value, outside));
    let keys = section.optional("keys").and_then(|node| keys(&node, &store.value)).unwrap_or(false);
    let ca_file = section.optional("ca_file").and_then(|node| ca_file(&node, &store.value, outside));
    let tags = section.optional("tags").map(|node| tags(&node)).unwrap_or_default();
    section.finish();
    LedgerEntry { store, durability: durability.unwrap_or_default(), keys, tags, checkpoint_key, ca_file }
}

fn ca_file(node: &Node<'_>, store: &Store, outside: Outside<'_>) -> Option<Located<CaFile>> {
    if matches!(store, Store::Sqlite(_) | Store::None) {
        node.fault(format!("`{}` has no meaning without a PostgreSQL server", node.path()), "leave it out");
        return None;
    }
    read_ca_file(node, outside)
}

/// Reads names of metadata. Each is a column of reports, so they are few, short and plain.
fn tags(node: &Node<'_>) -> Vec<BoundedText> {
    let items = node.filled_list().unwrap_or_default();
    if items.len() > TAGS_MAX {
        node.fault(
            format!("`{}` has {} names", node.path(), items.len()),
            format!("write at most {TAGS_MAX}"),
        );
    }
    let mut seen = BTreeSet::new();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let tag = |item: &Node<'_>| {
        let text = item.text()?;
        if text.is_empty() || text.len() > TAG_BYTES_MAX || !text.bytes().all(plain) {
            let message = format!("`{}` is no name of a tag: `{}`", item.path(), quotable(text));
            item.fault(message, format!("write 1 to {TAG_BYTES_MAX} letters, digits, `_`, `-` or `.`"));
            return None;
        }
        if !seen.insert(text.to_owned()) {
            item.fault(format!("tag `{text}` stands twice"), "write it once");
            return None;
        }
        Some(BoundedText::new(text))
    };
    items.iter().filter_map(tag).collect()
}

fn keys(node: &Node<'_>, store: &Store) -> Option<bool> {
    let keys = node.flag()?;
    if keys && matches!(store, Store::None) {
        let message = format!("`{}`: keys cannot be kept where the records are kept in memory", node.path());
        node.fault(message, "leave it out, or write `store = \"sqlite:PATH\"`");
        return None;
    }
    Some(keys)
}

fn checkpoint_key(node: &Node<'_>, store: &Store, outside: Outside<'_>) -> Option<Located<FoundSecret>> {
    let found = outside.secret(node)?;
    if matches!(store, Store::None) {
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

fn store(node: &Node<'_>, outside: Outside<'_>) -> Option<Located<Store>> {
    const REMEDY: &str = "write `\"sqlite:PATH\"`, `\"postgres://USER@HOST/DATABASE\"` or `\"none\"`";
    if node.raw_text().is_none() && node.is_table() {
        return postgres(node, outside);
    }
    let text = node.text()?;
    let store = match text.split_once(':') {
        None if text == "none" => Store::None,
        Some(("sqlite", path)) if !path.is_empty() => Store::Sqlite(path.to_owned()),
        Some(("postgres" | "postgresql", _)) => return postgres(node, outside),
        Some(_) | None => {
            node.fault(format!("unknown store `{}` in `{}`", quotable(text), node.path()), REMEDY);
            return None;
        }
    };
    Some(Located::new(store, node.span()))
}

/// Reads the address of a database: as it is where it holds no password, else the place where it is found.
#[cfg(feature = "postgres")]
fn postgres(node: &Node<'_>, outside: Outside<'_>) -> Option<Located<Store>> {
    const REMEDY: &str = "write it as `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
    let (text, found) = match node.raw_text() {
        Some(text) => (text.to_owned(), None),
        None => {
            let found = outside.secret(node)?.value;
            (found.value.expose().to_owned(), Some(found.place))
        }
    };
    let Ok(url) = text.parse::<gw_stores::PostgresUrl>() else {
        node.fault(
            format!("what `{}` names is not the address of a PostgreSQL database", node.path()),
            REMEDY,
        );
        return None;
    };
    if found.is_none() && url.has_password() {
        let message = format!("`{}` must not hold the password itself", node.path());
        node.fault(
            message,
            "put the whole address elsewhere and write `{ env = \"NAME\" }` or `{ file = \"PATH\" }`",
        );
        return None;
    }
    let address = found.map_or_else(|| Address::Plain(url.to_string()), Address::At);
    Some(Located::new(Store::Postgres(PostgresEntry { address, url }), node.span()))
}

#[cfg(not(feature = "postgres"))]
fn postgres(node: &Node<'_>, _: Outside<'_>) -> Option<Located<Store>> {
    const REMEDY: &str = "write `\"sqlite:PATH\"` or `\"none\"`";
    node.fault(format!("`{}`: PostgreSQL is not available in this version", node.path()), REMEDY);
    None
}
