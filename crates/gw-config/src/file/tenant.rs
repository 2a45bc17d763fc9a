//! `[tenants.X]`: who may call, up to which limits, with which keys.

use std::collections::BTreeSet;

use gw_routing::TenantGroup;
use gw_types::{Classification, KeyName, Money, Residency};
use serde::Serialize;

use super::{CLASSIFICATIONS, Names};
use crate::{
    keys::StoredKey,
    reader::{Node, Section},
    secret::{FoundSecret, Outside},
    source::{Located, Span},
};

/// `[tenants.X]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TenantEntry {
    pub(crate) default_classification: Classification,
    pub(crate) residency: Option<Residency>,
    pub(crate) groups: BTreeSet<TenantGroup>,
    pub(crate) requests_per_minute: Option<u64>,
    pub(crate) tokens_per_minute: Option<u64>,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) reserved_concurrency: u32,
    pub(crate) budget: Option<BudgetEntry>,
    pub(crate) keys: Vec<KeyEntry>,
}

/// `budget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BudgetEntry {
    #[serde(rename = "limit_pico")]
    pub(crate) limit: Money,
    pub(crate) window: WindowEntry,
}

/// `window` of a budget, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WindowEntry {
    Hour,
    Day,
}

/// One key.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KeyEntry {
    pub(crate) name: KeyName,
    pub(crate) source: Located<KeySource>,
}

/// What is known of a key.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum KeySource {
    /// The line that `gw keys create` printed.
    Stored(StoredKey),
    /// The key itself, found elsewhere.
    Found(FoundSecret),
}

/// The most requests or tokens a minute.
const PER_MINUTE_MAX: i64 = 1_000_000_000_000;

/// The largest budget, in micro-USD: a billion USD.
const LIMIT_MICROS_MAX: i64 = 1_000_000_000_000_000;

/// The most requests in flight.
const CONCURRENCY_MAX: u32 = 1_000_000;

/// Reads one tenant.
pub(super) fn read(node: &Node<'_>, at: Span, names: &Names, outside: Outside<'_>) -> Option<TenantEntry> {
    let mut section = node.section()?;
    let classification = section
        .optional("default_classification")
        .and_then(|node| node.choice("classification", &CLASSIFICATIONS));
    let residency = section
        .optional("residency")
        .and_then(|node| node.reference::<Residency>("residency", &names.residency));
    let entry = TenantEntry {
        default_classification: classification.unwrap_or(Classification::Internal),
        residency: residency.map(|residency| residency.value),
        groups: section.names("groups").into_iter().collect(),
        requests_per_minute: section.count("requests_per_minute", 1..=PER_MINUTE_MAX),
        tokens_per_minute: section.count("tokens_per_minute", 1..=PER_MINUTE_MAX),
        max_concurrency: section.small_count("max_concurrency", 1..=CONCURRENCY_MAX),
        reserved_concurrency: section.small_count("reserved_concurrency", 0..=CONCURRENCY_MAX).unwrap_or(0),
        budget: section.optional("budget").and_then(|node| budget(&node)),
        keys: keys(&mut section, outside),
    };
    check_queue(&mut section);
    check_reserved(&mut section, &entry, at);
    section.finish();
    Some(entry)
}

fn check_queue(section: &mut Section<'_>) {
    if let Some(node) = section.optional("max_queue")
        && node.whole(0..=1_000_000).is_some_and(|places| places > 0)
    {
        let message = format!("a queue (`{}` above 0) is not available in this version", node.path());
        node.fault(message, "write `0`: over the cap is refused at once");
    }
}

fn check_reserved(section: &mut Section<'_>, entry: &TenantEntry, at: Span) {
    let Some(most) = entry.max_concurrency.filter(|most| entry.reserved_concurrency > *most) else { return };
    let span = section.optional("reserved_concurrency").map_or(at, |node| node.span());
    let path = format!("{}.reserved_concurrency", section.path());
    let message = format!("`{path}` is above `max_concurrency`: `{}`", entry.reserved_concurrency);
    section.faults().add(span, &path, message, format!("write at most {most}"));
}

fn budget(node: &Node<'_>) -> Option<BudgetEntry> {
    const WINDOWS: [(&str, WindowEntry); 2] = [("hour", WindowEntry::Hour), ("day", WindowEntry::Day)];
    let mut section = node.section()?;
    let limit = section
        .required("limit_micros", "50_000_000")
        .and_then(|node| node.whole(1..=LIMIT_MICROS_MAX))
        .and_then(|micros| u64::try_from(micros).ok());
    let window = section
        .required("window", "\"day\"")
        .and_then(|node| node.choice_so_far("window", &WINDOWS, &["week", "month"]));
    section.unavailable("estimate");
    section.finish();
    Some(BudgetEntry { limit: Money::from_micros(limit?), window: window? })
}

fn keys(section: &mut Section<'_>, outside: Outside<'_>) -> Vec<KeyEntry> {
    let nodes = section.optional("keys").and_then(|node| node.list()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    nodes.iter().filter_map(|node| key(node, outside, &mut seen)).collect()
}

fn key(node: &Node<'_>, outside: Outside<'_>, seen: &mut BTreeSet<KeyName>) -> Option<KeyEntry> {
    let mut section = node.section()?;
    let name = section.required("name", "\"NAME\"").and_then(|node| {
        let name = node.name::<KeyName>()?.value;
        if !seen.insert(name.clone()) {
            node.fault(format!("key `{name}` stands twice"), "write another name");
        }
        Some(name)
    });
    let hash = section.optional("hash");
    let secret = section.optional("secret");
    section.finish();
    let source = match (hash, secret) {
        (Some(hash), None) => Located::new(KeySource::Stored(stored(&hash)?), hash.span()),
        (None, Some(secret)) => {
            let found = outside.secret(&secret)?;
            Located::new(KeySource::Found(found.value), found.span)
        }
        (Some(_), Some(_)) | (None, None) => {
            node.fault(
                format!("`{}` must have one of `hash` and `secret`", node.path()),
                "write `hash = \"gwk1:...\"` from `gw keys create`, or `secret = { env = \"NAME\" }`",
            );
            return None;
        }
    };
    Some(KeyEntry { name: name?, source })
}

fn stored(node: &Node<'_>) -> Option<StoredKey> {
    let text = node.text()?;
    if let Some(key) = StoredKey::parse(text) {
        return Some(key);
    }
    let message = if text.starts_with("gwk1_") {
        format!("`{}` must not hold the key itself", node.path())
    } else {
        format!("`{}` is no stored key", node.path())
    };
    node.fault(message, "write the line `gwk1:...` that `gw keys create` printed");
    None
}
