//! The semantic cache: a question that was asked before in nearly the same words.

mod codes;
mod features;
mod group;
mod rarity;
mod rows;
mod scan;
mod shelf;
mod vector;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use gw_errors::GatewayError;
use gw_types::{MonoTime, Question};
use parking_lot::RwLock;

pub use self::features::Features;
use self::{
    shelf::{Asked, Shelf},
    vector::UnitVector,
};
use crate::{
    CacheUsage, CachedAnswer, Embedder, InvalidationScope, Partition, SemanticPolicy, Storable,
    guard::{Guard, bare},
    key::{DigestState, short_digest},
};

/// The bounds of a semantic cache. A zero anywhere keeps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticConfig {
    /// The most partitions; the one that was used longest ago goes first. Default 1,000.
    pub partitions_max: usize,
    /// The most entries of a partition; the oldest goes first. Default 50,000. A lookup reads one byte a dimension of
    /// each entry with the same context; an entry weighs its answer, five bytes a dimension (1,920 at 384), and about
    /// 250 bytes and 16 for each word of its question.
    pub partition_entries_max: usize,
    /// The most that the entries of a partition may weigh together, in bytes. Default 128 MiB.
    pub partition_bytes_max: u64,
    /// The most that all entries may weigh together, in bytes; the partition used longest ago goes first. Default
    /// 256 MiB.
    pub bytes_max: u64,
}

impl Default for SemanticConfig {
    fn default() -> Self {
        Self {
            partitions_max: 1_000,
            partition_entries_max: 50_000,
            partition_bytes_max: 128 << 20,
            bytes_max: 256 << 20,
        }
    }
}

/// An answer to a similar question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemanticHit {
    /// The answer.
    pub answer: Arc<CachedAnswer>,
    /// The cosine similarity of the questions in thousandths, rounded down: 0..=1000.
    pub score_milli: u32,
}

/// A question as it is compared: embedded once, for the lookup and for the store after it. Prints no text.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe(Asked);

/// The nearest entry that the guards let through, and what a decision about it looks at.
#[derive(Clone, Debug)]
pub struct SemanticMatch {
    /// The answer.
    pub answer: Arc<CachedAnswer>,
    /// The cosine similarity of the questions in thousandths, rounded down: 0..=1000.
    pub score_milli: u32,
    /// What is known of the match.
    pub features: Features,
    /// The entry: unique in its partition for the life of the cache.
    pub entry: u64,
}

/// The semantic cache: one exact scan over the entries of one partition, behind guards.
///
/// An entry is a hit where all of this holds: it stands in the same partition (tenant, route, primary and everything
/// else of the parts), its context is equal (earlier turns, system prompt, tools, settings), the guards find no
/// difference that matters, and the similarity reaches the route's threshold. Of several the nearest is taken, of
/// equally near ones the newest. Questions and contexts are kept as vectors and digests, not as text.
///
/// The embedder gets the words of the question without brackets and the punctuation of sentences, so that a missing
/// question mark is no difference; what else punctuation can mean is the guards' to compare.
///
/// A lookup costs the embedding and one dot product for each entry with the same context; lookups of a partition run
/// in parallel. No lock is held while the embedder works; cancelling is safe at every point.
#[derive(Debug)]
pub struct SemanticCache {
    embedder: Arc<dyn Embedder>,
    config: SemanticConfig,
    partitions: RwLock<HashMap<Partition, Arc<Slot>, DigestState>>,
    /// Counts uses, to know which partition was used last.
    uses: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    last_use: AtomicU64,
    /// What the shelf weighed after the last store.
    bytes: AtomicU64,
    shelf: RwLock<Shelf>,
}

impl Slot {
    fn usage(&self) -> CacheUsage {
        let shelf = self.shelf.read();
        CacheUsage { entries: shelf.len(), bytes: shelf.bytes() }
    }
}

impl SemanticCache {
    /// The longest question that is compared, in bytes. Longer ones miss and are not kept: two long texts that are
    /// near each other say nearly the same and ask who knows what.
    pub const QUESTION_BYTES_MAX: usize = 8 << 10;

    /// Returns an empty cache that compares by the embedder; memory is taken as entries come.
    pub fn new(config: SemanticConfig, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, config, partitions: RwLock::default(), uses: AtomicU64::new(0) }
    }

    /// Returns the nearest answer of the partition that may be given for the question.
    ///
    /// The embedder is asked only where the partition has entries.
    ///
    /// # Errors
    /// What the embedder raises. It is no reason to fail the request: it is a miss that says why.
    pub async fn get(
        &self,
        partition: &Partition,
        question: &Question,
        policy: &SemanticPolicy,
        now: MonoTime,
    ) -> Result<Option<SemanticHit>, GatewayError> {
        let Some(slot) = self.live_slot(partition, now) else { return Ok(None) };
        let Some(Probe(asked)) = self.probe(question).await? else { return Ok(None) };
        let found = slot.shelf.read().nearest(&asked, policy.threshold_milli, 1, now);
        Ok(found.map(|found| SemanticHit { answer: found.answer, score_milli: found.score_milli }))
    }

    /// Returns the nearest entry of the partition at or above the floor that the guards let through, with its features:
    /// a would-be hit, for a decision.
    pub fn nearest(
        &self,
        partition: &Partition,
        probe: &Probe,
        floor_milli: u32,
        now: MonoTime,
    ) -> Option<SemanticMatch> {
        let slot = self.live_slot(partition, now)?;
        let found = slot.shelf.read().nearest(&probe.0, floor_milli, Features::VOTERS, now)?;
        Some(SemanticMatch {
            answer: found.answer,
            score_milli: found.score_milli,
            features: found.features,
            entry: found.ticket,
        })
    }

    /// Stores an answer to the question in the partition until its time to live is over.
    ///
    /// An equal question's entry is replaced. A question without words or above the bound is not kept.
    ///
    /// # Errors
    /// What the embedder raises; nothing is kept then.
    pub async fn put(
        &self,
        partition: &Partition,
        question: &Question,
        answer: Storable,
        now: MonoTime,
    ) -> Result<(), GatewayError> {
        if let Some(probe) = self.probe(question).await? {
            self.put_probe(partition, &probe, answer, now);
        }
        Ok(())
    }

    /// Stores an answer to a question that was embedded before; as [`SemanticCache::put`].
    pub fn put_probe(&self, partition: &Partition, probe: &Probe, answer: Storable, now: MonoTime) {
        if self.config.partitions_max == 0 {
            return;
        }
        let slot = self.slot(partition).unwrap_or_else(|| self.new_slot(partition));
        slot.shelf.write().put(&probe.0, answer, &self.config, now);
        self.make_room(&slot);
    }

    /// Removes the partitions used longest ago while all entries weigh too much; the one just used stays.
    fn make_room(&self, used: &Arc<Slot>) {
        let weight = |partitions: &HashMap<Partition, Arc<Slot>, DigestState>| {
            partitions.values().map(|slot| slot.bytes.load(Ordering::Relaxed)).sum::<u64>()
        };
        used.bytes.store(used.shelf.read().bytes(), Ordering::Relaxed);
        if weight(&self.partitions.read()) <= self.config.bytes_max {
            return;
        }
        let mut partitions = self.partitions.write();
        while weight(&partitions) > self.config.bytes_max && partitions.len() > 1 {
            let others = partitions.iter().filter(|(_, slot)| !Arc::ptr_eq(slot, used));
            let oldest = others.min_by_key(|(_, slot)| slot.last_use.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            partitions.remove(&oldest);
        }
        drop(partitions);
        let mut shelf = used.shelf.write();
        while shelf.bytes() > self.config.bytes_max && shelf.remove_oldest() {}
        used.bytes.store(shelf.bytes(), Ordering::Relaxed);
    }

    /// Embeds a question by the cache's own embedder; `None` for one without words or above the bound, which is not
    /// compared.
    ///
    /// # Errors
    /// What the embedder raises.
    pub async fn probe(&self, question: &Question) -> Result<Option<Probe>, GatewayError> {
        Self::probe_by(question, self.embedder.as_ref()).await
    }

    /// Embeds a question by an embedder; as [`SemanticCache::probe`].
    ///
    /// # Errors
    /// What the embedder raises.
    pub async fn probe_by(
        question: &Question,
        embedder: &dyn Embedder,
    ) -> Result<Option<Probe>, GatewayError> {
        let Some(words) = Self::words(question) else { return Ok(None) };
        Ok(Self::probe_of(question, embedder.embed(&words).await?))
    }

    /// Returns what an embedder gets of a question: its words; `None` above the bound, which is not compared.
    pub fn words(question: &Question) -> Option<String> {
        if question.text.len() > Self::QUESTION_BYTES_MAX {
            return None;
        }
        let words: Vec<&str> = question.text.split_whitespace().map(bare).collect();
        Some(words.join(" "))
    }

    /// Returns a question together with the vector of its words; `None` for a vector of no length.
    pub fn probe_of(question: &Question, vector: Vec<f32>) -> Option<Probe> {
        UnitVector::new(vector).map(|vector| {
            Probe(Asked {
                context: u128::from_le_bytes(short_digest(&question.context)),
                guard: Arc::new(Guard::of(&question.text)),
                vector,
            })
        })
    }

    /// Returns whether the partition has an entry that has not expired: whether a look-up could find anything.
    pub fn holds(&self, partition: &Partition, now: MonoTime) -> bool {
        self.live_slot(partition, now).is_some()
    }

    /// Returns the number of partitions and of entries in all of them, expired ones that nobody met since included.
    pub fn counts(&self) -> (usize, usize) {
        let partitions = self.partitions.read();
        (partitions.len(), partitions.values().map(|slot| slot.shelf.read().len()).sum())
    }

    /// Returns how much one partition holds, expired entries that nobody met since included.
    pub fn usage(&self, partition: &Partition) -> CacheUsage {
        self.partitions.read().get(partition).map_or_else(CacheUsage::default, |slot| slot.usage())
    }

    /// Returns what [`SemanticCache::invalidate`] would remove.
    pub fn matching(&self, scope: &InvalidationScope) -> CacheUsage {
        let partitions = self.partitions.read();
        let fitting = partitions.iter().filter(|(partition, _)| scope.fits(partition.origin()));
        fitting.fold(CacheUsage::default(), |sum, (_, slot)| sum.with(slot.usage()))
    }

    /// Removes the partitions of the scope with all their entries, and returns what went.
    pub fn invalidate(&self, scope: &InvalidationScope) -> CacheUsage {
        let mut gone = CacheUsage::default();
        self.partitions.write().retain(|partition, slot| {
            let stays = !scope.fits(partition.origin());
            if !stays {
                gone = gone.with(slot.usage());
            }
            stays
        });
        gone
    }

    /// Returns the partition's slot if it has entries that have not expired.
    fn live_slot(&self, partition: &Partition, now: MonoTime) -> Option<Arc<Slot>> {
        let slot = self.slot(partition)?;
        if slot.shelf.read().has_expired(now) {
            slot.shelf.write().remove_expired(now);
        }
        let is_empty = slot.shelf.read().is_empty();
        (!is_empty).then_some(slot)
    }

    fn slot(&self, partition: &Partition) -> Option<Arc<Slot>> {
        let slot = Arc::clone(self.partitions.read().get(partition)?);
        self.mark_used(&slot);
        Some(slot)
    }

    /// Makes room for a partition and puts it in, unless somebody else just did.
    fn new_slot(&self, partition: &Partition) -> Arc<Slot> {
        let mut partitions = self.partitions.write();
        while !partitions.contains_key(partition) && partitions.len() >= self.config.partitions_max {
            let last_use = |slot: &Arc<Slot>| slot.last_use.load(Ordering::Relaxed);
            let oldest =
                partitions.iter().min_by_key(|(_, slot)| last_use(slot)).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            partitions.remove(&oldest);
        }
        let slot = Arc::clone(partitions.entry(partition.clone()).or_default());
        self.mark_used(&slot);
        slot
    }

    fn mark_used(&self, slot: &Slot) {
        slot.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
