//! `[cache]`: the bounds of what the process remembers, over all routes.

use gw_cache::{CacheConfig, SemanticConfig};
use serde::Serialize;

use crate::reader::{Node, Section};

/// `[cache]`, defaults filled in.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct CachingEntry {
    pub(crate) exact: ExactEntry,
    pub(crate) semantic: SimilarEntry,
}

/// `[cache] exact`: answers by equal request.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ExactEntry {
    max_bytes: u64,
    max_entries: usize,
    max_entry_bytes: usize,
}

/// `[cache] semantic`: answers by similar request.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SimilarEntry {
    max_bytes: u64,
    max_partitions: usize,
    max_partition_bytes: u64,
    max_partition_entries: usize,
}

/// The most that a tier may be told to weigh: 1 TiB.
const BYTES_MAX: i64 = 1 << 40;
/// The most entries or partitions that a tier may be told to hold.
const ENTRIES_MAX: u32 = 100_000_000;
/// The most that one answer may weigh: 64 MiB.
const ENTRY_BYTES_MAX: u32 = 64 << 20;

impl Default for ExactEntry {
    fn default() -> Self {
        let CacheConfig { capacity_bytes, capacity_entries, entry_bytes_max } = CacheConfig::default();
        Self { max_bytes: capacity_bytes, max_entries: capacity_entries, max_entry_bytes: entry_bytes_max }
    }
}

impl Default for SimilarEntry {
    fn default() -> Self {
        let SemanticConfig { partitions_max, partition_entries_max, partition_bytes_max, bytes_max } =
            SemanticConfig::default();
        Self {
            max_bytes: bytes_max,
            max_partitions: partitions_max,
            max_partition_bytes: partition_bytes_max,
            max_partition_entries: partition_entries_max,
        }
    }
}

impl CachingEntry {
    /// Returns the bounds of the exact tier.
    pub(crate) fn exact(&self) -> CacheConfig {
        let ExactEntry { max_bytes, max_entries, max_entry_bytes } = self.exact;
        CacheConfig {
            capacity_bytes: max_bytes,
            capacity_entries: max_entries,
            entry_bytes_max: max_entry_bytes,
        }
    }

    /// Returns the bounds of the semantic tier.
    pub(crate) fn semantic(&self) -> SemanticConfig {
        SemanticConfig {
            partitions_max: self.semantic.max_partitions,
            partition_entries_max: self.semantic.max_partition_entries,
            partition_bytes_max: self.semantic.max_partition_bytes,
            bytes_max: self.semantic.max_bytes,
        }
    }
}

/// Reads the table; what it does not say keeps its default.
pub(super) fn read(node: Option<Node<'_>>) -> CachingEntry {
    let Some(mut section) = node.and_then(|node| node.section()) else { return CachingEntry::default() };
    let exact = section.optional("exact").and_then(|node| node.section()).map(exact).unwrap_or_default();
    let semantic =
        section.optional("semantic").and_then(|node| node.section()).map(semantic).unwrap_or_default();
    section.finish();
    CachingEntry { exact, semantic }
}

fn exact(mut section: Section<'_>) -> ExactEntry {
    let default = ExactEntry::default();
    let entry = ExactEntry {
        max_bytes: section.count("max_bytes", 1..=BYTES_MAX).unwrap_or(default.max_bytes),
        max_entries: many(&mut section, "max_entries", ENTRIES_MAX).unwrap_or(default.max_entries),
        max_entry_bytes: many(&mut section, "max_entry_bytes", ENTRY_BYTES_MAX)
            .unwrap_or(default.max_entry_bytes),
    };
    section.finish();
    entry
}

fn semantic(mut section: Section<'_>) -> SimilarEntry {
    let default = SimilarEntry::default();
    let entry = SimilarEntry {
        max_bytes: section.count("max_bytes", 1..=BYTES_MAX).unwrap_or(default.max_bytes),
        max_partitions: many(&mut section, "max_partitions", ENTRIES_MAX).unwrap_or(default.max_partitions),
        max_partition_bytes: section
            .count("max_partition_bytes", 1..=BYTES_MAX)
            .unwrap_or(default.max_partition_bytes),
        max_partition_entries: many(&mut section, "max_partition_entries", ENTRIES_MAX)
            .unwrap_or(default.max_partition_entries),
    };
    section.finish();
    entry
}

fn many(section: &mut Section<'_>, key: &'static str, most: u32) -> Option<usize> {
    section.count(key, 1..=i64::from(most)).and_then(|count| usize::try_from(count).ok())
}
