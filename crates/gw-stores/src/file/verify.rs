//! Checks a chain from its start to its end, and what is kept beside it.

mod counter;

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use gw_types::{Money, SealHash};

use self::counter::Counted;
use super::LedgerFile;
use crate::{
    Checkpoint, CheckpointSigner, StoreError,
    hashing::digests,
    ledger::{BLOCK_COLUMNS, Block, SUM_COLUMNS, Summary, Tip, each_block, newest_summary, sum, tag_of},
    sql::{Db, Row, SqlError, Value},
    sums::BUCKET_MICROS,
};

/// Threads that count beside the one that checks the links.
const COUNTERS: usize = 2;
/// Blocks that wait for each of them.
const BLOCKS_WAITING: usize = 8;
/// Blocks there are at once.
const BLOCKS_MAX: usize = COUNTERS * (BLOCKS_WAITING + 1) + 1;

/// What somebody outside knows of a ledger. Without it a forger who holds the file and writes the whole chain again is not
/// noticed; with a signer or a known link he is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// Who alone signs the checkpoints. There must be one, and every one must be his.
    pub signer: Option<CheckpointSigner>,
    /// A record that was in the chain, and its link.
    pub known: Option<(u64, SealHash)>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Records that were checked and are as they were sealed, up to the first fault.
    pub records: u64,
    /// The last of them, and its link.
    pub last: (u64, SealHash),
    /// Checkpoints whose signature holds.
    pub checkpoints: u64,
    /// The first fault; `None`: the ledger is whole.
    pub fault: Option<ChainFault>,
}

impl Verified {
    /// Returns whether nothing is wrong.
    pub const fn is_whole(&self) -> bool {
        self.fault.is_none()
    }
}

/// Says what is wrong with a ledger. Names records by their numbers, and nothing of their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// A record is not what was sealed.
    #[error("record {seq} was altered")]
    Altered {
        /// The record.
        seq: u64,
    },
    /// A record is gone, and later ones are there.
    #[error("record {seq} is missing")]
    Missing {
        /// The first that is gone.
        seq: u64,
    },
    /// A record stands where another belongs.
    #[error("record {seq} was moved: it stands in the place of record {at}")]
    Reordered {
        /// The record.
        seq: u64,
        /// Where it stands.
        at: u64,
    },
    /// The end is gone.
    #[error("the chain was cut after record {seq}: it went up to record {end}")]
    Cut {
        /// The last record that is there.
        seq: u64,
        /// The last that was there.
        end: u64,
    },
    /// There are records that gw has not written.
    #[error("record {seq} stands after the end of the chain")]
    Added {
        /// The first of them.
        seq: u64,
    },
    /// The chain begins elsewhere than its last summary of deleted records says, or than a new ledger's does.
    #[error("the start of the chain, before record {seq}, is not what was sealed")]
    Start {
        /// The first record after the start.
        seq: u64,
    },
    /// A signed checkpoint does not fit the chain, or its signature does not hold.
    #[error("the checkpoint at record {seq} does not hold")]
    Checkpoint {
        /// The record that it signs.
        seq: u64,
    },
    /// The expected signer has signed nothing.
    #[error("no checkpoint is signed by the expected key")]
    Unsigned,
    /// A record that is known from outside is not in the chain.
    #[error("record {seq} is not the one that is known")]
    Known {
        /// The record.
        seq: u64,
    },
    /// The sums that budgets and reports rest on are not those of the records.
    #[error(
        "the sums of the quarter of an hour from {bucket} on, in microseconds, are not those of the records"
    )]
    Sums {
        /// The start of the first quarter of an hour whose sums differ.
        bucket: i64,
    },
}

impl ChainFault {
    /// Returns the name of the kind of fault.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Altered { .. } => "altered",
            Self::Missing { .. } => "missing",
            Self::Reordered { .. } => "reordered",
            Self::Cut { .. } => "cut",
            Self::Added { .. } => "added",
            Self::Start { .. } => "start",
            Self::Checkpoint { .. } => "checkpoint",
            Self::Unsigned => "unsigned",
            Self::Known { .. } => "known",
            Self::Sums { .. } => "sums",
        }
    }

    /// Returns the number of the record that the fault is about, where it is about one.
    pub const fn seq(&self) -> Option<u64> {
        match self {
            Self::Altered { seq }
            | Self::Missing { seq }
            | Self::Reordered { seq, .. }
            | Self::Cut { seq, .. }
            | Self::Added { seq }
            | Self::Start { seq }
            | Self::Checkpoint { seq }
            | Self::Known { seq } => Some(*seq),
            Self::Unsigned | Self::Sums { .. } => None,
        }
    }
}

impl LedgerFile {
    /// Checks every link from the start to the end, the checkpoints, the index and the sums, and names the first fault.
    ///
    /// Streams: memory is linear in the checkpoints and sums, not in the records. Some 10^6 records take a few seconds.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the file cannot be read.
    pub fn verify(&self, expected: &Expected) -> Result<Verified, StoreError> {
        let node = self.nodes()?.first().copied().unwrap_or(0);
        self.verify_node(node, expected)
    }

    /// Checks the chain of one node as [`Self::verify`] does that of the first.
    ///
    /// # Errors
    /// [`StoreError::Open`] if it cannot be read.
    pub fn verify_node(&self, node: i64, expected: &Expected) -> Result<Verified, StoreError> {
        let verified = self.db.at_node(node, |db| {
            // One view of it, whatever a gateway writes meanwhile.
            let view = db.view()?;
            Check::start(&view, *expected).and_then(|check| check.run(&view))
        });
        verified.map_err(|error| self.failed(error))
    }
}

/// A check under way.
struct Check {
    expected: Expected,
    ledger: [u8; 16],
    base: Tip,
    tip: Tip,
    folded: u64,
    summary: Option<Summary>,
    at: Tip,
    records: u64,
    checkpoints: BTreeMap<u64, Checkpoint>,
}

impl Check {
    fn start(db: &Db, expected: Expected) -> Result<Self, SqlError> {
        let read = "SELECT ledger, base_seq, base_hash, tip_seq, tip_hash, folded FROM chain";
        let (ledger, base, tip, folded) = db.one(read, &[], |row| {
            let ledger: [u8; 16] = row.bytes(0)?.try_into().unwrap_or_default();
            let base = Tip { seq: row.count(1)?, hash: row.hash(2)? };
            Ok((ledger, base, Tip { seq: row.count(3)?, hash: row.hash(4)? }, row.count(5)?))
        })?;
        Ok(Self {
            expected,
            ledger,
            base,
            tip,
            folded,
            summary: newest_summary(db)?,
            at: base,
            records: 0,
            checkpoints: checkpoints(db)?,
        })
    }

    fn run(mut self, db: &Db) -> Result<Verified, SqlError> {
        let fault = self.first_fault(db)?;
        let signed = self.checkpoints.range(..=self.at.seq).filter(|(_, signed)| signed.holds(&self.ledger));
        let checkpoints = u64::try_from(signed.count()).unwrap_or(u64::MAX);
        Ok(Verified { records: self.records, last: (self.at.seq, self.at.hash), checkpoints, fault })
    }

    fn first_fault(&mut self, db: &Db) -> Result<Option<ChainFault>, SqlError> {
        if !self.starts_well() {
            return Ok(Some(ChainFault::Start { seq: self.base.seq + 1 }));
        }
        let (fault, counted) = self.walk(db)?;
        // A copy that differs stands before the first link that differs, or there is none.
        if let Some(seq) = counted.altered {
            return Ok(Some(ChainFault::Altered { seq }));
        }
        if let Some(fault) = fault.or_else(|| self.end()) {
            return Ok(Some(fault));
        }
        self.compare_sums(db, counted)
    }

    /// The chain begins with the ledger's own start, or where the last summary of deleted records says.
    fn starts_well(&self) -> bool {
        match &self.summary {
            None => self.base == Tip { seq: 0, hash: SealHash::genesis(&self.ledger) },
            Some(summary) => summary.base() == Some(self.base),
        }
    }

    /// Checks the links on this thread, and the records' copies and sums on others.
    fn walk(&mut self, db: &Db) -> Result<(Option<ChainFault>, Counted), SqlError> {
        std::thread::scope(|scope| {
            let (empty, emptied) = sync_channel(BLOCKS_MAX);
            let folded = self.folded;
            let (to_count, counting): (Vec<_>, Vec<_>) = (0..COUNTERS)
                .map(|_| {
                    let (to_count, blocks) = sync_channel(BLOCKS_WAITING);
                    let empty = empty.clone();
                    (to_count, scope.spawn(move || Counted::count(&blocks, &empty, folded)))
                })
                .unzip();
            let fault = self.walk_links(db, &to_count, &emptied);
            drop(to_count);
            let mut counted = Counted::default();
            for counting in counting {
                counted.merge(counting.join().unwrap_or_default());
            }
            Ok((fault?, counted))
        })
    }

    fn walk_links(
        &mut self,
        db: &Db,
        to_count: &[SyncSender<Block>],
        emptied: &Receiver<Block>,
    ) -> Result<Option<ChainFault>, SqlError> {
        let sql = format!("SELECT {BLOCK_COLUMNS} FROM blocks WHERE last_seq > ?1 ORDER BY last_seq");
        let (mut hashes, mut to_count) = (Vec::new(), to_count.iter().cycle());
        let mut fault = None;
        db.each(&sql, &[Value::count(self.base.seq)], |row| {
            let mut block = emptied.try_recv().unwrap_or_default();
            block.read(row)?;
            hashes.clear();
            digests(block.each().map(|line| line.canonical), &mut hashes);
            let before = self.at.seq;
            fault = self.check_block(db, &block, &hashes)?;
            if fault.is_some() {
                block.truncate(usize::try_from(self.at.seq - before).unwrap_or(usize::MAX));
            }
            if let Some(to_count) = to_count.next() {
                let _counter_gone = to_count.send(block);
            }
            Ok::<_, SqlError>(fault.is_none())
        })?;
        Ok(fault)
    }

    /// Checks the place and the links of a block's records; goes on to the last that is right.
    fn check_block(
        &mut self,
        db: &Db,
        block: &Block,
        digests: &[SealHash],
    ) -> Result<Option<ChainFault>, SqlError> {
        let next = self.at.seq + 1;
        if block.first > next {
            return Ok(Some(ChainFault::Missing { seq: next }));
        }
        if block.first < next {
            return Ok(Some(ChainFault::Altered { seq: next }));
        }
        if block.last > self.tip.seq {
            return Ok(Some(ChainFault::Added { seq: block.first.max(self.tip.seq + 1) }));
        }
        let records = block.last.saturating_sub(block.first).saturating_add(1);
        for (at, digest) in digests.iter().enumerate() {
            let after = self.at.then(*digest);
            let tagged = block.tag(at) == Some(tag_of(&after.hash));
            let whole = after.seq < block.last || after.hash == block.hash;
            if after.seq > block.last || !tagged || !whole {
                let fewer = u64::try_from(block.len()).unwrap_or(u64::MAX) < records;
                let fault = self.altered_or_moved(db, block.tag(at))?;
                let missing = ChainFault::Missing { seq: after.seq };
                return Ok(Some(if fewer { missing } else { fault }));
            }
            if let Some(fault) = self.check_signed(after) {
                return Ok(Some(fault));
            }
            self.at = after;
            self.records += u64::from(block.line(at).is_some_and(|line| line.id_key.is_some()));
        }
        Ok((self.at.seq < block.last).then_some(ChainFault::Missing { seq: self.at.seq + 1 }))
    }

    /// Checks what is known of a place beside the chain itself.
    fn check_signed(&self, at: Tip) -> Option<ChainFault> {
        if let Some((seq, known)) = self.expected.known
            && seq == at.seq
            && known != at.hash
        {
            return Some(ChainFault::Known { seq });
        }
        let signed = self.checkpoints.get(&at.seq)?;
        let right_signer = self.expected.signer.is_none_or(|signer| signer == signed.signer);
        let holds = right_signer && signed.hash == at.hash && signed.holds(&self.ledger);
        (!holds).then_some(ChainFault::Checkpoint { seq: at.seq })
    }

    /// Looks where the record that belongs at the next place has gone; `own` is what that place keeps of its link.
    fn altered_or_moved(&self, db: &Db, own: Option<&[u8]>) -> Result<ChainFault, SqlError> {
        let seq = self.at.seq + 1;
        let mut moved = None;
        each_block(db, &(seq..=u64::MAX), |block| {
            let belongs = |at: usize| {
                let line = block.line(at).filter(|line| line.seq > seq)?;
                let link = self.at.after(line.canonical).hash;
                let tag = Some(tag_of(&link));
                (tag == own || tag == block.tag(at)).then_some(line.seq)
            };
            moved = (0..block.len()).find_map(belongs);
            moved.is_none()
        })?;
        Ok(moved.map_or(ChainFault::Altered { seq }, |at| ChainFault::Reordered { seq, at }))
    }

    fn end(&self) -> Option<ChainFault> {
        let last_signed = self.checkpoints.keys().next_back().copied().unwrap_or(0);
        let end = self.tip.seq.max(last_signed).max(self.expected.known.map_or(0, |(seq, _)| seq));
        if end > self.at.seq {
            return Some(ChainFault::Cut { seq: self.at.seq, end });
        }
        if self.at != self.tip {
            return Some(ChainFault::Altered { seq: self.at.seq });
        }
        (self.expected.signer.is_some() && self.checkpoints.is_empty()).then_some(ChainFault::Unsigned)
    }

    /// Compares the sums: each one from where all records are kept on, and before that their total.
    fn compare_sums(&self, db: &Db, counted: Counted) -> Result<Option<ChainFault>, SqlError> {
        let exact_from = self.summary.as_ref().map_or(i64::MIN, |summary| {
            summary.before.div_euclid(BUCKET_MICROS).saturating_add(1).saturating_mul(BUCKET_MICROS)
        });
        let deleted = self.summary.as_ref().map_or(0, |summary| summary.spent_pico);
        let (mut kept, mut key) = (counted.sums, String::new());
        let mut old = Money::ZERO;
        let mut fault = None;
        db.each(&format!("SELECT {SUM_COLUMNS} FROM sums ORDER BY bucket"), &[], |row| {
            let Some((bucket, names, sums)) = sum(row)? else {
                fault = Some(ChainFault::Sums { bucket: row.int(0)? });
                return Ok(false);
            };
            if bucket < exact_from {
                old = old.saturating_add(sums.spent);
                return Ok(true);
            }
            key.clear();
            names.write(&mut key);
            let counted = kept.get_mut(&bucket).and_then(|sums| sums.remove(key.as_str()));
            fault = (counted != Some(sums)).then_some(ChainFault::Sums { bucket });
            Ok::<_, SqlError>(fault.is_none())
        })?;
        if fault.is_some() {
            return Ok(fault);
        }
        let mut counted_old = Money::from_pico(deleted);
        for (bucket, sums) in kept {
            if bucket >= exact_from && !sums.is_empty() {
                return Ok(Some(ChainFault::Sums { bucket }));
            }
            let spent = sums.values().map(|sums| sums.spent).sum();
            counted_old = counted_old.saturating_add(spent);
        }
        Ok((counted_old != old)
            .then_some(ChainFault::Sums { bucket: exact_from.saturating_sub(BUCKET_MICROS) }))
    }
}

fn checkpoints(db: &Db) -> Result<BTreeMap<u64, Checkpoint>, SqlError> {
    let sql = "SELECT seq, hash, newest, signer, signature FROM checkpoints";
    let mut checkpoints = BTreeMap::new();
    db.each(sql, &[], |row| {
        let signed = checkpoint(row)?;
        checkpoints.insert(signed.seq, signed);
        Ok::<_, SqlError>(true)
    })?;
    Ok(checkpoints)
}

/// Reads a checkpoint from five columns; what is malformed does not hold.
fn checkpoint(row: &Row<'_>) -> Result<Checkpoint, SqlError> {
    Ok(Checkpoint {
        seq: row.count(0)?,
        hash: row.hash(1)?,
        newest: row.int(2)?,
        signer: CheckpointSigner::from_slice(row.bytes(3)?).unwrap_or_default(),
        signature: row.bytes(4)?.try_into().unwrap_or([0; Checkpoint::SIGNATURE_BYTES]),
    })
}

/// Returns the first checkpoint at or after a record.
pub(super) fn checkpoint_after(db: &Db, seq: u64) -> Result<Option<Checkpoint>, SqlError> {
    let sql =
        "SELECT seq, hash, newest, signer, signature FROM checkpoints WHERE seq >= ?1 ORDER BY seq LIMIT 1";
    db.optional(sql, &[Value::count(seq)], checkpoint)
}

#[cfg(feature = "postgres")]
#[cfg(test)]
mod tests;
