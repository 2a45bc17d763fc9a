//! The exact cache: equal requests get the answer that the first one got.

mod shard;

use std::sync::Arc;

use gw_types::MonoTime;
use parking_lot::Mutex;

use self::shard::{Shard, ShardBounds};
use crate::{CacheKey, CachedAnswer, InvalidationScope, Storable};

/// The bounds of an exact cache. A zero anywhere keeps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The most that all entries may weigh together, in bytes. An entry weighs its body, the text of its neutral parts
    /// and 512 bytes for everything around them. Default 64 MiB.
    pub capacity_bytes: u64,
    /// The most entries. Default 100,000.
    pub capacity_entries: usize,
    /// The most that one entry may weigh, in bytes; heavier answers are not kept. Default 256 KiB.
    pub entry_bytes_max: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { capacity_bytes: 64 << 20, capacity_entries: 100_000, entry_bytes_max: 256 << 10 }
    }
}

/// What a cache holds at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Entries, expired ones that nobody asked for since included.
    pub entries: usize,
    /// What they weigh, in bytes.
    pub bytes: u64,
}

impl CacheUsage {
    pub(crate) fn with(self, other: Self) -> Self {
        Self { entries: self.entries + other.entries, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// The exact cache, bounded in entries and bytes, with S3-FIFO eviction (SOSP'23). Among main entries whose turn it is
/// to go, the one that costs least to make again goes, by its cost a byte.
///
/// Entries stand in shards by their digest, each with its own short lock and its share of the bounds. The number of
/// shards follows from the bounds alone, so that two caches built alike evict alike. `get` and `put` are O(1) on
/// average and never wait for anything but a shard's lock.
#[derive(Debug)]
pub struct ExactCache {
    shards: Box<[Mutex<Shard>]>,
    entry_bytes_max: u64,
}

impl ExactCache {
    const SHARDS_MAX: usize = 16;
    /// Shares of the bounds below these would evict by chance of the digest rather than for want of room.
    const SHARD_ENTRIES_MIN: usize = 64;
    const SHARD_LARGEST_ENTRIES_MIN: u64 = 8;

    /// Returns an empty cache; memory is taken as entries come.
    pub fn new(config: CacheConfig) -> Self {
        let entry_bytes_max = u64::try_from(config.entry_bytes_max).unwrap_or(u64::MAX);
        let mut count = Self::SHARDS_MAX;
        while count > 1 && !Self::may_split(&config, entry_bytes_max, count) {
            count /= 2;
        }
        let bounds = ShardBounds {
            bytes: config.capacity_bytes / u64::try_from(count).unwrap_or(1),
            entries: config.capacity_entries / count,
        };
        Self {
            shards: (0..count).map(|_| Mutex::new(Shard::new(bounds))).collect(),
            entry_bytes_max: entry_bytes_max.min(bounds.bytes),
        }
    }

    fn may_split(config: &CacheConfig, entry_bytes_max: u64, count: usize) -> bool {
        let wide = u64::try_from(count).unwrap_or(u64::MAX);
        config.capacity_entries / count >= Self::SHARD_ENTRIES_MIN
            && config.capacity_bytes / wide >= entry_bytes_max.saturating_mul(Self::SHARD_LARGEST_ENTRIES_MIN)
    }

    /// Returns the answer stored under the key, if it has not expired; an expired one is removed.
    pub fn get(&self, key: &CacheKey, now: MonoTime) -> Option<Arc<CachedAnswer>> {
        self.shard(key).lock().get(key, now)
    }

    /// Stores an answer under the key until its time to live is over, in place of what was there.
    ///
    /// An answer above the bound of one entry is not kept, and what was there before goes: it is older.
    pub fn put(&self, key: CacheKey, answer: Storable, now: MonoTime) {
        let weight = answer.answer.weight();
        let mut shard = self.shard(&key).lock();
        if weight > self.entry_bytes_max {
            shard.remove(&key);
        } else {
            shard.put(key, answer, weight, now);
        }
    }

    /// Returns how much the cache holds.
    pub fn usage(&self) -> CacheUsage {
        self.shards.iter().fold(CacheUsage::default(), |sum, shard| sum.with(shard.lock().usage()))
    }

    /// Returns what [`ExactCache::invalidate`] would remove.
    pub fn matching(&self, scope: &InvalidationScope) -> CacheUsage {
        self.shards.iter().fold(CacheUsage::default(), |sum, shard| sum.with(shard.lock().matching(scope)))
    }

    /// Removes the entries of the scope, and returns what went. Reads every key; a shard at a time is locked.
    pub fn invalidate(&self, scope: &InvalidationScope) -> CacheUsage {
        self.shards.iter().fold(CacheUsage::default(), |sum, shard| sum.with(shard.lock().invalidate(scope)))
    }

    fn shard(&self, key: &CacheKey) -> &Mutex<Shard> {
        &self.shards[key.shard_byte() % self.shards.len()]
    }
}
