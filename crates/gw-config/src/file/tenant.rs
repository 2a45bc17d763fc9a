//! `[tenants.X]`: who may call, up to which limits, with which keys.

use std::{collections::BTreeSet, num::NonZeroU32};

use gw_limits::{Priority, Zone};
use gw_routing::TenantGroup;
use gw_types::{Classification, KeyName, Residency, TenantId};
use serde::{Serialize, Serializer};

use super::{
    CLASSIFICATIONS, Names,
    limits::{self, CONCURRENCY_MAX, ScopeEntry},
};
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
    /// The organisation that the tenant belongs to.
    pub(crate) organisation: Option<Located<TenantId>>,
    #[serde(flatten)]
    pub(crate) limits: ScopeEntry,
    pub(crate) reserved_concurrency: u32,
    pub(crate) queue: QueueEntry,
    pub(crate) keys: Vec<KeyEntry>,
}

/// How a tenant's requests wait for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct QueueEntry {
    /// Requests that may wait; with 0 what is over the cap is refused at once.
    pub(crate) max_queue: u32,
    /// The share against other tenants that wait.
    pub(crate) weight: NonZeroU32,
    #[serde(serialize_with = "priority_name")]
    pub(crate) priority: Priority,
}

impl Default for QueueEntry {
    fn default() -> Self {
        Self { max_queue: 0, weight: NonZeroU32::MIN, priority: Priority::default() }
    }
}

/// One key.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KeyEntry {
    pub(crate) name: KeyName,
    pub(crate) source: Located<KeySource>,
    #[serde(flatten)]
    pub(crate) limits: ScopeEntry,
    /// As the tenant's, where the key does not say.
    pub(crate) queue: QueueEntry,
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

/// Requests of one tenant that may wait: no more than wait in the whole pool.
const QUEUE_MAX: u32 = 10_000;

/// The largest share against others.
const WEIGHT_MAX: u32 = 1_000;

const PRIORITIES: [(&str, Priority); 3] =
    [("high", Priority::High), ("normal", Priority::Normal), ("low", Priority::Low)];

/// Reads one tenant.
pub(super) fn read(node: &Node<'_>, at: Span, names: &Names, outside: Outside<'_>) -> Option<TenantEntry> {
    let mut section = node.section()?;
    let classification = section
        .optional("default_classification")
        .and_then(|node| node.choice("classification", &CLASSIFICATIONS));
    let residency = section
        .optional("residency")
        .and_then(|node| node.reference::<Residency>("residency", &names.residency));
    let zone = limits::zone(&mut section);
    let waiting = queue(&mut section, QueueEntry::default());
    let entry = TenantEntry {
        default_classification: classification.unwrap_or(Classification::Internal),
        residency: residency.map(|residency| residency.value),
        groups: section.names("groups").into_iter().collect(),
        organisation: section
            .optional("organisation")
            .and_then(|node| node.reference("organisation", &names.organisations)),
        limits: limits::read(&mut section, &zone),
        reserved_concurrency: section.small_count("reserved_concurrency", 0..=CONCURRENCY_MAX).unwrap_or(0),
        queue: waiting,
        keys: keys(&mut section, outside, &zone, waiting),
    };
    check_reserved(&mut section, &entry, at);
    section.finish();
    Some(entry)
}

fn queue(section: &mut Section<'_>, default: QueueEntry) -> QueueEntry {
    let priority = section.optional("priority").and_then(|node| node.choice("priority", &PRIORITIES));
    QueueEntry {
        max_queue: section.small_count("max_queue", 0..=QUEUE_MAX).unwrap_or(default.max_queue),
        weight: section.positive("weight", WEIGHT_MAX).unwrap_or(default.weight),
        priority: priority.unwrap_or(default.priority),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that `serialize_with` calls")]
fn priority_name<S: Serializer>(priority: &Priority, to: S) -> Result<S::Ok, S::Error> {
    let name = PRIORITIES.iter().find(|(_, one)| one == priority).map_or("", |(name, _)| name);
    name.serialize(to)
}

fn check_reserved(section: &mut Section<'_>, entry: &TenantEntry, at: Span) {
    let Some(most) = entry.limits.max_concurrency.filter(|most| entry.reserved_concurrency > *most) else {
        return;
    };
    let span = section.optional("reserved_concurrency").map_or(at, |node| node.span());
    let path = format!("{}.reserved_concurrency", section.path());
    let message = format!("`{path}` is above `max_concurrency`: `{}`", entry.reserved_concurrency);
    section.faults().add(span, &path, message, format!("write at most {most}"));
}

fn keys(section: &mut Section<'_>, outside: Outside<'_>, zone: &Zone, waiting: QueueEntry) -> Vec<KeyEntry> {
    let nodes = section.optional("keys").and_then(|node| node.list()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    nodes.iter().filter_map(|node| key(node, outside, (zone, waiting), &mut seen)).collect()
}

fn key(
    node: &Node<'_>,
    outside: Outside<'_>,
    (zone, waiting): (&Zone, QueueEntry),
    seen: &mut BTreeSet<KeyName>,
) -> Option<KeyEntry> {
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
    let limits = limits::read(&mut section, zone);
    let queue = queue(&mut section, waiting);
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
    Some(KeyEntry { name: name?, source, limits, queue })
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
