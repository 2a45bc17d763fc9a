//! One shard of the exact cache: a map and the three queues of S3-FIFO.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use gw_types::MonoTime;

use crate::{CacheKey, CacheUsage, CachedAnswer, key::DigestState};

/// A shard's share of the cache's bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShardBounds {
    pub(super) bytes: u64,
    pub(super) entries: usize,
}

/// A map with S3-FIFO eviction (Yang, Zhang, Qiu, Yue, Rashmi, SOSP'23).
///
/// New keys enter the small queue (a tenth of the room); those asked for more than once while there move to the main
/// queue, the others leave, and a ghost remembers that they were here, so that they enter the main queue if they come
/// back. Main entries that were asked for since their last turn get another one.
#[derive(Debug)]
pub(super) struct Shard {
    bounds: ShardBounds,
    entries: HashMap<CacheKey, Entry, DigestState>,
    small: Queue,
    main: Queue,
    ghost: Ghost,
    next_ticket: u64,
}

#[derive(Debug)]
pub(super) struct Entry {
    answer: Arc<CachedAnswer>,
    weight: u64,
    expires: MonoTime,
    /// Which place in the queues is this entry's; older places of the same key are void.
    ticket: u64,
    in_main: bool,
    /// Hits since the entry's last turn, at most [`Shard::HITS_MAX`].
    hits: u8,
}

/// Keys in order of arrival. Places of removed entries stay until their turn or until there are too many.
#[derive(Debug, Default)]
struct Queue {
    places: VecDeque<(u64, CacheKey)>,
    live: CacheUsage,
}

/// Fingerprints of keys that left the small queue without a second look. A collision costs a misplaced entry.
#[derive(Debug, Default)]
struct Ghost {
    order: VecDeque<(u64, u64)>,
    tickets: HashMap<u64, u64, DigestState>,
}

impl Shard {
    const HITS_MAX: u8 = 3;
    /// The small queue's share of the room: one part in this many.
    const SMALL_SHARE: u64 = 10;
    /// Void places that a queue may hold beyond as many as it has live ones.
    const VOID_PLACES_MAX: usize = 32;

    pub(super) fn new(bounds: ShardBounds) -> Self {
        Self {
            bounds,
            entries: HashMap::default(),
            small: Queue::default(),
            main: Queue::default(),
            ghost: Ghost::default(),
            next_ticket: 0,
        }
    }

    pub(super) fn usage(&self) -> CacheUsage {
        CacheUsage {
            entries: self.small.live.entries + self.main.live.entries,
            bytes: self.small.live.bytes + self.main.live.bytes,
        }
    }

    pub(super) fn get(&mut self, key: &CacheKey, now: MonoTime) -> Option<Arc<CachedAnswer>> {
        let entry = self.entries.get_mut(key)?;
        if now < entry.expires {
            entry.hits = (entry.hits + 1).min(Self::HITS_MAX);
            return Some(Arc::clone(&entry.answer));
        }
        self.remove(key);
        None
    }

    /// Stores an entry that fits into the bounds on its own, and makes room for it.
    pub(super) fn put(
        &mut self,
        key: CacheKey,
        answer: Arc<CachedAnswer>,
        weight: u64,
        expires: MonoTime,
        now: MonoTime,
    ) {
        // A key that is here already keeps its queue and its hits; it is no newcomer.
        let (in_main, hits) = match self.remove(&key) {
            Some(old) => (old.in_main, old.hits),
            None => (self.ghost.forget(key.fingerprint()), 0),
        };
        let ticket = self.ticket();
        self.queue(in_main).push(ticket, key.clone(), weight);
        self.entries.insert(key, Entry { answer, weight, expires, ticket, in_main, hits });
        while self.is_over() {
            self.evict_one(now);
        }
    }

    /// Takes an entry out; its place in the queue becomes void.
    pub(super) fn remove(&mut self, key: &CacheKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        let Self { entries, small, main, .. } = self;
        let queue = if entry.in_main { main } else { small };
        queue.live.entries -= 1;
        queue.live.bytes -= entry.weight;
        if queue.places.len() > 2 * queue.live.entries + Self::VOID_PLACES_MAX {
            queue
                .places
                .retain(|(ticket, key)| entries.get(key).is_some_and(|entry| entry.ticket == *ticket));
        }
        Some(entry)
    }

    fn is_over(&self) -> bool {
        let usage = self.usage();
        usage.entries > self.bounds.entries || usage.bytes > self.bounds.bytes
    }

    /// Removes one entry, or moves the whole small queue to the main one, of which the next call removes one.
    fn evict_one(&mut self, now: MonoTime) {
        let small = self.small.live;
        let share = |part: u64, whole: u64| part.saturating_mul(Self::SMALL_SHARE) >= whole;
        let small_is_full = share(small.bytes, self.bounds.bytes)
            || share(wide(small.entries), wide(self.bounds.entries))
            || self.main.live.entries == 0;
        if small_is_full && self.evict_small(now) {
            return;
        }
        self.evict_main(now);
    }

    /// Removes the oldest small entry that was not asked for twice; those before it move to the main queue.
    fn evict_small(&mut self, now: MonoTime) -> bool {
        while let Some((ticket, key)) = self.small.places.pop_front() {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.ticket == ticket) else {
                continue;
            };
            if entry.hits > 1 && now < entry.expires {
                (entry.in_main, entry.hits) = (true, 0);
                let weight = entry.weight;
                self.small.leave(weight);
                self.main.push(ticket, key, weight);
                continue;
            }
            if now < entry.expires {
                let room = self.bounds.entries;
                let ghost_ticket = self.ticket();
                self.ghost.remember(key.fingerprint(), ghost_ticket, room);
            }
            self.remove(&key);
            return true;
        }
        false
    }

    /// Removes the oldest main entry that was not asked for since its last turn; each pass takes a hit from the rest,
    /// so that at most [`Shard::HITS_MAX`] passes find one.
    fn evict_main(&mut self, now: MonoTime) {
        while let Some((ticket, key)) = self.main.places.pop_front() {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.ticket == ticket) else {
                continue;
            };
            if entry.hits > 0 && now < entry.expires {
                entry.hits -= 1;
                self.main.places.push_back((ticket, key));
                continue;
            }
            self.remove(&key);
            return;
        }
    }

    fn queue(&mut self, main: bool) -> &mut Queue {
        if main { &mut self.main } else { &mut self.small }
    }

    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }
}

impl Queue {
    fn push(&mut self, ticket: u64, key: CacheKey, weight: u64) {
        self.places.push_back((ticket, key));
        self.live.entries += 1;
        self.live.bytes += weight;
    }

    fn leave(&mut self, weight: u64) {
        self.live.entries -= 1;
        self.live.bytes -= weight;
    }
}

impl Ghost {
    /// Remembers a fingerprint, and at most `room` of them.
    fn remember(&mut self, fingerprint: u64, ticket: u64, room: usize) {
        self.order.push_back((fingerprint, ticket));
        self.tickets.insert(fingerprint, ticket);
        while self.order.len() > room {
            if let Some((oldest, ticket)) = self.order.pop_front()
                && self.tickets.get(&oldest) == Some(&ticket)
            {
                self.tickets.remove(&oldest);
            }
        }
    }

    /// Returns whether the fingerprint was remembered, and no longer does.
    fn forget(&mut self, fingerprint: u64) -> bool {
        self.tickets.remove(&fingerprint).is_some()
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gw_types::{AnswerFacts, DeploymentName, MonoTime, Operation, RequestId, RouteName, TenantId};

    use super::{Shard, ShardBounds};
    use crate::{CacheKey, CachedAnswer, KeyParts};

    fn key(number: u32) -> CacheKey {
        let parts = KeyParts {
            tenant: &TenantId::new("t").unwrap(),
            route: &RouteName::new("r").unwrap(),
            primary: &DeploymentName::new("d").unwrap(),
            model_version: None,
            operation: Operation::Chat,
            policy_digest: "",
        };
        CacheKey::new(&parts, format!("{{\"n\":{number}}}").as_bytes()).unwrap()
    }

    fn put(shard: &mut Shard, number: u32, expires: MonoTime) {
        let answer = CachedAnswer {
            raw: None,
            completion: None,
            facts: AnswerFacts::default(),
            serving: DeploymentName::new("d").unwrap(),
            model_version: None,
            origin: RequestId::from_bits(number.into()),
        };
        shard.put(key(number), Arc::new(answer), 1, expires, MonoTime::ZERO);
    }

    const LATER: MonoTime = MonoTime::from_nanos(1);

    #[test]
    fn places_of_removed_entries_do_not_pile_up() {
        let mut shard = Shard::new(ShardBounds { bytes: 100, entries: 100 });
        for number in 0..1_000 {
            put(&mut shard, number % 7, LATER);
            assert!(number % 3 == 0 || shard.get(&key(number % 7), LATER).is_none());
        }
        assert!(shard.small.places.len() <= 2 * 7 + Shard::VOID_PLACES_MAX + 1);
    }

    #[test]
    fn a_key_that_comes_back_enters_the_main_queue() {
        let mut shard = Shard::new(ShardBounds { bytes: 10, entries: 10 });
        (0..11).for_each(|number| put(&mut shard, number, LATER));
        assert!(shard.get(&key(0), MonoTime::ZERO).is_none());
        put(&mut shard, 0, LATER);
        assert_eq!((shard.main.live.entries, shard.usage().entries), (1, 10));
        // A flood of new keys takes the small queue only.
        (100..200).for_each(|number| put(&mut shard, number, LATER));
        assert!(shard.get(&key(0), MonoTime::ZERO).is_some());
        assert!(shard.ghost.order.len() <= 10);
    }

    #[test]
    fn expired_entries_give_way_first_whatever_their_hits() {
        let mut shard = Shard::new(ShardBounds { bytes: 2, entries: 2 });
        put(&mut shard, 0, LATER);
        (0..5).for_each(|_| drop(shard.get(&key(0), MonoTime::ZERO)));
        put(&mut shard, 1, MonoTime::from_nanos(9));
        shard.evict_one(LATER);
        assert!(shard.get(&key(0), MonoTime::ZERO).is_none());
        assert!(shard.get(&key(1), LATER).is_some());
    }
}
