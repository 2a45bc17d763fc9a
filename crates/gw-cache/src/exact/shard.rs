//! One shard of the exact cache: a map and the three queues of S3-FIFO.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use gw_types::MonoTime;

use crate::{CacheKey, CacheUsage, CachedAnswer, InvalidationScope, Storable, key::DigestState};

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
    cost_micros: u64,
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
    /// Main entries that compete for who goes first.
    const TIED_MAX: usize = 4;
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
    pub(super) fn put(&mut self, key: CacheKey, stored: Storable, weight: u64, now: MonoTime) {
        let Storable { answer, ttl, cost_micros } = stored;
        let expires = now.saturating_add(ttl);
        // A key that is here already keeps its queue and its hits; it is no newcomer.
        let (in_main, hits) = match self.remove(&key) {
            Some(old) => (old.in_main, old.hits),
            None => (self.ghost.forget(key.fingerprint()), 0),
        };
        let ticket = self.ticket();
        self.queue(in_main).push(ticket, key.clone(), weight);
        self.entries.insert(key, Entry { answer, weight, cost_micros, expires, ticket, in_main, hits });
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
    /// so that at most [`Shard::HITS_MAX`] passes find one. Of the next few whose turn it is as well, the cheapest goes.
    fn evict_main(&mut self, now: MonoTime) {
        let mut idle: Vec<(u64, CacheKey)> = Vec::new();
        // How many more places may be looked at; the first idle entry bounds the rest.
        let mut looks = usize::MAX;
        while looks > 0
            && let Some((ticket, key)) = self.main.places.pop_front()
        {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.ticket == ticket) else {
                continue;
            };
            looks -= 1;
            if now >= entry.expires {
                put_back(&mut self.main.places, idle);
                self.remove(&key);
                return;
            }
            if entry.hits > 0 {
                if idle.is_empty() {
                    entry.hits -= 1;
                    self.main.places.push_back((ticket, key));
                    continue;
                }
                self.main.places.push_front((ticket, key));
                break;
            }
            looks = looks.min(Self::TIED_MAX - idle.len() - 1);
            idle.push((ticket, key));
        }
        // Cost a byte, compared without a division; of equal ones the oldest.
        let price = |key: &CacheKey| {
            self.entries.get(key).map_or((0, 1), |entry| (entry.cost_micros, entry.weight.max(1)))
        };
        let cheaper = |one: &CacheKey, other: &CacheKey| {
            let ((cost, weight), (other_cost, other_weight)) = (price(one), price(other));
            u128::from(cost) * u128::from(other_weight) < u128::from(other_cost) * u128::from(weight)
        };
        let cheapest =
            (1..idle.len()).fold(0, |best, at| if cheaper(&idle[at].1, &idle[best].1) { at } else { best });
        let goes = (!idle.is_empty()).then(|| idle.remove(cheapest));
        put_back(&mut self.main.places, idle);
        goes.into_iter().for_each(|(_, key)| drop(self.remove(&key)));
    }

    pub(super) fn matching(&self, scope: &InvalidationScope) -> CacheUsage {
        let fitting = self.entries.iter().filter(|(key, _)| scope.fits(key.origin()));
        fitting.fold(CacheUsage::default(), |sum, (_, entry)| {
            sum.with(CacheUsage { entries: 1, bytes: entry.weight })
        })
    }

    pub(super) fn invalidate(&mut self, scope: &InvalidationScope) -> CacheUsage {
        let gone = self.matching(scope);
        let keys: Vec<CacheKey> =
            self.entries.keys().filter(|key| scope.fits(key.origin())).cloned().collect();
        keys.iter().for_each(|key| drop(self.remove(key)));
        gone
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

/// Puts places back in front, in their order.
fn put_back(places: &mut VecDeque<(u64, CacheKey)>, idle: Vec<(u64, CacheKey)>) {
    idle.into_iter().rev().for_each(|place| places.push_front(place));
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gw_types::{AnswerFacts, DeploymentName, MonoTime, Operation, RequestId, RouteName, TenantId};

    use super::{Shard, ShardBounds};
    use crate::{CacheKey, CachedAnswer, KeyParts, Storable};

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
        let ttl = std::time::Duration::from_nanos(expires.nanos());
        let stored = Storable { answer: Arc::new(answer), ttl, cost_micros: COSTS[number as usize % 4] };
        shard.put(key(number), stored, 1, MonoTime::ZERO);
    }

    /// What entries cost, by their number.
    const COSTS: [u64; 4] = [5, 1, 3, 9];

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
    fn of_idle_main_entries_the_cheapest_goes_first() {
        let mut shard = Shard::new(ShardBounds { bytes: 4, entries: 4 });
        for number in 0..4 {
            put(&mut shard, number, LATER);
            (0..2).for_each(|_| drop(shard.get(&key(number), MonoTime::ZERO)));
        }
        // All four move to the main queue without hits, and the cheapest of them goes.
        shard.evict_one(MonoTime::ZERO);
        let left: Vec<u32> = (0..4).filter(|&n| shard.entries.contains_key(&key(n))).collect();
        assert_eq!((left, shard.usage().entries, shard.main.places.len()), (vec![0, 2, 3], 3, 3));
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
