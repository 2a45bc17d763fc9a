//! The semantic cache: a question that was asked before in nearly the same words.

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

use self::{
    shelf::{Asked, Shelf},
    vector::UnitVector,
};
use crate::{
    CachedAnswer, Embedder, Partition, SemanticPolicy, Storable,
    guard::{Guard, bare},
    key::{DigestState, short_digest},
};

/// The bounds of a semantic cache. A zero anywhere keeps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticConfig {
    /// The most partitions; the one that was used longest ago goes first. Default 64.
    pub partitions_max: usize,
    /// The most entries of a partition; the oldest goes first. Default 4,096. A lookup compares with all of them.
    pub partition_entries_max: usize,
    /// The most that the entries of a partition may weigh together, in bytes. Default 8 MiB.
    pub partition_bytes_max: u64,
}

impl Default for SemanticConfig {
    fn default() -> Self {
        Self { partitions_max: 64, partition_entries_max: 4_096, partition_bytes_max: 8 << 20 }
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
    shelf: RwLock<Shelf>,
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
        let Some(slot) = self.slot(partition) else { return Ok(None) };
        if slot.shelf.read().has_expired(now) {
            slot.shelf.write().remove_expired(now);
        }
        if slot.shelf.read().is_empty() {
            return Ok(None);
        }
        let Some(asked) = self.ask(question).await? else { return Ok(None) };
        let found = slot.shelf.read().nearest(&asked, policy.threshold_milli, now);
        Ok(found.map(|(answer, score_milli)| SemanticHit { answer, score_milli }))
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
        if self.config.partitions_max == 0 {
            return Ok(());
        }
        if let Some(asked) = self.ask(question).await? {
            let slot = self.slot(partition).unwrap_or_else(|| self.new_slot(partition));
            slot.shelf.write().put(asked, answer, &self.config, now);
        }
        Ok(())
    }

    /// Returns the number of partitions and of entries in all of them, expired ones that nobody met since included.
    pub fn counts(&self) -> (usize, usize) {
        let partitions = self.partitions.read();
        (partitions.len(), partitions.values().map(|slot| slot.shelf.read().len()).sum())
    }

    async fn ask(&self, question: &Question) -> Result<Option<Asked>, GatewayError> {
        if question.text.len() > Self::QUESTION_BYTES_MAX {
            return Ok(None);
        }
        let words: Vec<&str> = question.text.split_whitespace().map(bare).collect();
        let vector = self.embedder.embed(&words.join(" ")).await?;
        Ok(UnitVector::new(vector).map(|vector| Asked {
            context: short_digest(&question.context),
            guard: Guard::of(&question.text),
            vector,
        }))
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
