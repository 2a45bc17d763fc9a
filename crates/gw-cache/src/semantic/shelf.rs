//! The entries of one partition, oldest first.

use std::{collections::VecDeque, sync::Arc};

use gw_types::MonoTime;

use super::{SemanticConfig, vector::UnitVector};
use crate::{CachedAnswer, Storable, guard::Guard};

/// A question as it is compared.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    /// The digest of everything but the last user turn.
    pub(super) context: [u8; 16],
    pub(super) guard: Guard,
    pub(super) vector: UnitVector,
}

/// The entries of one partition, oldest first.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    entries: VecDeque<Entry>,
    bytes: u64,
    /// No entry expires before this instant.
    first_expiry: MonoTime,
}

#[derive(Debug)]
struct Entry {
    asked: Asked,
    answer: Arc<CachedAnswer>,
    weight: u64,
    expires: MonoTime,
}

impl Shelf {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has_expired(&self, now: MonoTime) -> bool {
        !self.entries.is_empty() && self.first_expiry <= now
    }

    pub(super) fn remove_expired(&mut self, now: MonoTime) {
        if self.has_expired(now) {
            self.retain(|entry| now < entry.expires);
        }
    }

    /// Returns the nearest answer at or above the threshold that the guards let through, and its similarity.
    pub(super) fn nearest(
        &self,
        asked: &Asked,
        threshold_milli: u32,
        now: MonoTime,
    ) -> Option<(Arc<CachedAnswer>, u32)> {
        let mut best: Option<(&Entry, u32)> = None;
        for entry in &self.entries {
            if entry.asked.context != asked.context || entry.expires <= now {
                continue;
            }
            let score = entry.asked.vector.similarity_milli(&asked.vector);
            let is_nearer = best.is_none_or(|(_, best)| score >= best);
            // The guards last: they cost most, and few entries come this far.
            if score >= threshold_milli && is_nearer && entry.asked.guard.allows(&asked.guard) {
                best = Some((entry, score));
            }
        }
        best.map(|(entry, score)| (Arc::clone(&entry.answer), score))
    }

    /// Adds an entry in place of an equal one, and makes room for it.
    pub(super) fn put(&mut self, asked: Asked, answer: Storable, config: &SemanticConfig, now: MonoTime) {
        self.remove_expired(now);
        self.retain(|entry| entry.asked != asked);
        let own = u64::try_from(asked.vector.bytes() + asked.guard.bytes()).unwrap_or(u64::MAX);
        let weight = answer.answer.weight().saturating_add(own);
        if weight > config.partition_bytes_max || config.partition_entries_max == 0 {
            return;
        }
        let expires = now.saturating_add(answer.ttl);
        self.first_expiry = if self.is_empty() { expires } else { self.first_expiry.min(expires) };
        self.entries.push_back(Entry { asked, answer: answer.answer, weight, expires });
        self.bytes = self.bytes.saturating_add(weight);
        while self.entries.len() > config.partition_entries_max || self.bytes > config.partition_bytes_max {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.weight);
        }
    }

    fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
        self.bytes = self.entries.iter().map(|entry| entry.weight).sum();
        self.first_expiry = self.entries.iter().map(|entry| entry.expires).min().unwrap_or_default();
    }
}
