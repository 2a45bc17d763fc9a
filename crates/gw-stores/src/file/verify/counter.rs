//! Adds records up again, and compares the copies of their parts.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, SyncSender},
};

use crate::{
    encode::id_key,
    ledger::{Block, BlockLine, is_note},
    sums::{Summed, Sums, bucket_of},
};

/// What the records add up to.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// By bucket, then by names.
    pub(super) sums: BTreeMap<i64, BTreeMap<Box<str>, Sums>>,
    /// The first record that is none, or that the index has under another number.
    pub(super) altered: Option<u64>,
    names: String,
}

impl Counted {
    /// Counts what comes, up to the first record that is altered or the end; sends the blocks back.
    pub(super) fn count(blocks: &Receiver<Block>, empty: &SyncSender<Block>, folded: u64) -> Self {
        let mut counted = Self::default();
        for block in blocks {
            for line in block.each() {
                if counted.altered.is_none() && !counted.add(&block, &line, folded) {
                    counted.altered = Some(line.seq);
                }
            }
            // A block that nobody takes is freed.
            let _full = empty.try_send(block);
        }
        counted
    }

    /// Adds what another counter has counted.
    pub(super) fn merge(&mut self, other: Self) {
        self.altered = [self.altered, other.altered].into_iter().flatten().min();
        for (bucket, sums) in other.sums {
            let bucket = self.sums.entry(bucket).or_default();
            for (names, sums) in sums {
                bucket.entry(names).or_default().add(&sums);
            }
        }
    }

    /// Adds a record, if it is in the ledger's sums; returns whether its copies are its own.
    fn add(&mut self, block: &Block, record: &BlockLine<'_>, folded: u64) -> bool {
        let Some(key) = record.id_key else { return is_note(record.canonical) };
        let Some(summed) = Summed::read(record.canonical) else { return false };
        if id_key(summed.id) != key || !block.is_found_under(key) {
            return false;
        }
        if record.seq <= folded {
            let bucket = self.sums.entry(bucket_of(summed.started)).or_default();
            summed.each_line(|names, sums| {
                self.names.clear();
                names.write(&mut self.names);
                match bucket.get_mut(self.names.as_str()) {
                    Some(sum) => sum.add(&sums),
                    None => drop(bucket.insert(self.names.as_str().into(), sums)),
                }
            });
        }
        true
    }
}
