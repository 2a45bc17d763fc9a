//! `[tenants.X]`: who may call, up to which limits, with which keys.

use std::{collections::BTreeSet, num::NonZeroU32};

use gw_limits::{Priority, Zone};
use gw_routing::TenantGroup;
use gw_types::{Classification, Residency, TenantId};
use serde::{Serialize, Serializer};

use super::{
    CLASSIFICATIONS, Names,
    key::{self, KeyEntry},
    limits::{self, CONCURRENCY_MAX, ScopeEntry},
};
use crate::{
    reader::{Node, Section},
    secret::Outside,
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
    #[serde(serialize_with = "key::of_file")]
    pub(crate) keys: Vec<KeyEntry>,
    /// Where the windows of its keys' budgets begin.
    #[serde(skip)]
    pub(crate) zone: Zone,
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
        keys: key::read_all(&mut section, outside, &zone, waiting),
        zone,
    };
    check_reserved(&mut section, &entry, at);
    section.finish();
    Some(entry)
}

pub(super) fn queue(section: &mut Section<'_>, default: QueueEntry) -> QueueEntry {
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
