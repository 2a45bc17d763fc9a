//! The entries of one partition: a group for each context, and the order in which they came.

use std::{
    collections::{BinaryHeap, HashMap, VecDeque},
    sync::Arc,
};

use gw_types::MonoTime;

use super::{
    Features, SemanticConfig,
    group::{Entry, Group},
    rarity::Rarity,
    vector::UnitVector,
};
use crate::{CachedAnswer, Storable, guard::Guard, key::DigestState};

/// A question as it is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// The digest of everything but the last user turn.
    pub(super) context: u128,
    pub(super) guard: Arc<Guard>,
    pub(super) vector: UnitVector,
}

/// The entries of one partition.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    groups: HashMap<u128, Group, DigestState>,
    /// Tickets and contexts, oldest first. Places of removed entries stay until their turn or until there are too many.
    order: VecDeque<(u64, u128)>,
    rarity: Rarity,
    entries: usize,
    bytes: u64,
    /// No entry expires before this instant.
    first_expiry: MonoTime,
    next_ticket: u64,
}

/// The nearest entry that the guards let through.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) ticket: u64,
    pub(super) answer: Arc<CachedAnswer>,
    pub(super) score_milli: u32,
    pub(super) features: Features,
}

/// An entry that was compared exactly.
#[derive(Clone, Copy, Debug)]
struct Near<'a> {
    cosine: f32,
    entry: &'a Entry,
}

/// A candidate in the order of what its cosine may be.
#[derive(Debug, PartialEq)]
struct ByBound(f32, usize);

impl Eq for ByBound {}

impl Ord for ByBound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for ByBound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Shelf {
    /// Void places that the order may hold beyond as many as there are entries.
    const VOID_PLACES_MAX: usize = 64;

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn has_expired(&self, now: MonoTime) -> bool {
        !self.is_empty() && self.first_expiry <= now
    }

    pub(super) fn remove_expired(&mut self, now: MonoTime) {
        if !self.has_expired(now) {
            return;
        }
        let expired: Vec<(u128, u64)> = self
            .groups
            .iter()
            .flat_map(|(&context, group)| group.entries().iter().map(move |entry| (context, entry)))
            .filter(|(_, entry)| entry.expires <= now)
            .map(|(context, entry)| (context, entry.ticket))
            .collect();
        expired.into_iter().for_each(|(context, ticket)| self.remove(context, ticket));
        let expiries =
            self.groups.values().flat_map(|group| group.entries().iter().map(|entry| entry.expires));
        self.first_expiry = expiries.min().unwrap_or_default();
    }

    /// Returns the nearest entry of the context at or above the floor that the guards let through; of equally near
    /// ones the newest. With `voters` above 1 so many of the nearest are compared, for the features.
    ///
    /// Reads the codes of all entries of the context, and compares those exactly that may be among the nearest: what
    /// is found is what a scan of the vectors finds.
    pub(super) fn nearest(
        &self,
        asked: &Asked,
        floor_milli: u32,
        voters: usize,
        now: MonoTime,
    ) -> Option<Found> {
        let group = self.groups.get(&asked.context)?;
        let candidates = group.candidates(&asked.vector, UnitVector::floor(floor_milli));
        let mut by_bound: BinaryHeap<ByBound> =
            candidates.into_iter().map(|candidate| ByBound(candidate.cosine_max, candidate.row)).collect();
        let mut nearest: Vec<Near<'_>> = Vec::with_capacity(voters + 1);
        let mut blocked = 0.0_f32;
        while let Some(ByBound(bound, row)) = by_bound.pop() {
            if nearest.len() >= voters && nearest.last().is_none_or(|last| bound < last.cosine) {
                break;
            }
            let entry = &group.entries()[row];
            if entry.expires <= now {
                continue;
            }
            let cosine = group.cosine(row, &asked.vector);
            if !entry.guard.allows(&asked.guard) {
                blocked = blocked.max(cosine);
                continue;
            }
            let at =
                nearest.partition_point(|near| (near.cosine, near.entry.ticket) > (cosine, entry.ticket));
            nearest.insert(at, Near { cosine, entry });
            nearest.truncate(voters);
        }
        let best = nearest.first()?;
        let score_milli = UnitVector::milli(best.cosine);
        (score_milli >= floor_milli).then(|| Found {
            ticket: best.entry.ticket,
            answer: Arc::clone(&best.entry.answer),
            score_milli,
            features: self.features(&nearest, blocked, &asked.guard),
        })
    }

    fn features(&self, nearest: &[Near<'_>], blocked: f32, guard: &Guard) -> Features {
        let (best, second) = (nearest[0], nearest.get(1));
        let agrees = |near: &Near<'_>| near.entry.says == best.entry.says;
        let weight = |near: &Near<'_>| near.cosine.clamp(0.0, 1.0);
        let all: f32 = nearest.iter().map(weight).sum();
        let votes: f32 = nearest.iter().filter(|near| agrees(near)).map(weight).sum();
        let second_cosine = second.map_or(0.0, weight);
        let words = guard.compare(&best.entry.guard, |word| self.rarity.of(word));
        Features {
            nearest: weight(&best),
            second: second_cosine,
            agreeing: if second.is_some_and(agrees) { second_cosine } else { 0.0 },
            votes: if all > 0.0 { votes / all } else { 1.0 },
            blocked: blocked.clamp(0.0, 1.0),
            ..words
        }
    }

    /// Adds an entry in place of an equal one, and makes room for it.
    pub(super) fn put(&mut self, asked: &Asked, answer: Storable, config: &SemanticConfig, now: MonoTime) {
        self.remove_expired(now);
        let equal =
            self.groups.get(&asked.context).and_then(|group| group.equal(&asked.vector, &asked.guard));
        if let Some(ticket) = equal {
            self.remove(asked.context, ticket);
        }
        let own = Group::entry_bytes(asked.vector.parts().len()) + asked.guard.bytes();
        let weight = answer.answer.weight().saturating_add(u64::try_from(own).unwrap_or(u64::MAX));
        if weight > config.partition_bytes_max || config.partition_entries_max == 0 {
            return;
        }
        let expires = now.saturating_add(answer.ttl);
        self.next_ticket += 1;
        let entry = Entry {
            ticket: self.next_ticket,
            guard: Arc::clone(&asked.guard),
            says: answer.answer.says(),
            answer: answer.answer,
            weight,
            expires,
        };
        if self.groups.entry(asked.context).or_default().push(&asked.vector, entry).is_err() {
            return;
        }
        self.first_expiry = if self.is_empty() { expires } else { self.first_expiry.min(expires) };
        self.rarity.add(asked.guard.word_set());
        self.order.push_back((self.next_ticket, asked.context));
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(weight);
        while self.entries > config.partition_entries_max || self.bytes > config.partition_bytes_max {
            if !self.remove_oldest() {
                break;
            }
        }
    }

    /// Removes the oldest entry; returns whether there was one.
    pub(super) fn remove_oldest(&mut self) -> bool {
        let before = self.entries;
        while self.entries == before {
            let Some((ticket, context)) = self.order.pop_front() else { return false };
            self.remove(context, ticket);
        }
        true
    }

    fn remove(&mut self, context: u128, ticket: u64) {
        let Some(group) = self.groups.get_mut(&context) else { return };
        let Some(entry) = group.remove(ticket) else { return };
        if group.is_empty() {
            self.groups.remove(&context);
        }
        self.rarity.remove(entry.guard.word_set());
        self.entries -= 1;
        self.bytes = self.bytes.saturating_sub(entry.weight);
        if self.order.len() > 2 * self.entries + Self::VOID_PLACES_MAX {
            let groups = &self.groups;
            let mut live: Vec<u64> =
                groups.values().flat_map(|group| group.entries().iter().map(|entry| entry.ticket)).collect();
            live.sort_unstable();
            self.order.retain(|(ticket, _)| live.binary_search(ticket).is_ok());
        }
    }
}
