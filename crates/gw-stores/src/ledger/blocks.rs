//! Blocks of records: one row for as many as are stored together, because a row of its own costs a record more than its
//! seal.

use std::ops::RangeInclusive;

use gw_types::SealHash;
use memchr::memchr_iter;

use crate::sql::{Db, Row, SqlError, Value};

/// Records in a block at most: what a read of one record has to look through.
pub(super) const RECORDS: usize = 64;

/// Bytes of a link that a block keeps of each record but the last, of which it keeps the whole link. They name the record
/// that was altered; that none was altered is proved by the whole links alone.
pub(crate) const TAG_BYTES: usize = 8;

/// The columns of a block, as [`Block::read`] reads them.
pub(crate) const COLUMNS: &str = "last_seq, first_seq, hash, tags, id_keys, records, min_key, max_key";

/// The key of an entry of the ledger's own, which no id has.
pub(super) const NO_KEY: i64 = -1;

/// A block; `lines` is the canonical bytes of its records, each with a line end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The link of the last record.
    pub(crate) hash: SealHash,
    pub(crate) lines: Vec<u8>,
    tags: Vec<u8>,
    keys: Vec<u8>,
    /// What the index says of the keys.
    bounds: (i64, i64),
    /// Where each line ends.
    ends: Vec<usize>,
}

/// One record of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLine<'a> {
    pub(crate) seq: u64,
    /// `None`: an entry of the ledger's own.
    pub(crate) id_key: Option<i64>,
    pub(crate) canonical: &'a [u8],
}

impl Block {
    /// Reads [`COLUMNS`] into buffers that are used again. What is not as gw writes it has lines, keys or tags missing.
    pub(crate) fn read(&mut self, row: &Row<'_>) -> Result<(), SqlError> {
        (self.last, self.first, self.hash) = (row.count(0)?, row.count(1)?, row.hash(2)?);
        for (at, into) in [(3, &mut self.tags), (4, &mut self.keys), (5, &mut self.lines)] {
            into.clear();
            into.extend_from_slice(row.bytes(at)?);
        }
        self.bounds = (row.int(6)?, row.int(7)?);
        self.ends.clear();
        self.ends.extend(memchr_iter(b'\n', &self.lines));
        Ok(())
    }

    /// Returns how many lines the block has.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Leaves out the records from a place on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
    }

    /// Returns whether the index finds the block under a key of its own.
    pub(crate) fn is_found_under(&self, key: i64) -> bool {
        self.bounds.0 <= key && key <= self.bounds.1
    }

    /// Returns a record by its place in the block.
    pub(crate) fn line(&self, at: usize) -> Option<BlockLine<'_>> {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|end| end + 1))?;
        let key = self.keys.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
        Some(BlockLine {
            seq: self.first.saturating_add(u64::try_from(at).ok()?),
            id_key: Some(key.map_or(NO_KEY, i64::from_le_bytes)).filter(|key| *key != NO_KEY),
            canonical: self.lines.get(start..*self.ends.get(at)?)?,
        })
    }

    pub(crate) fn each(&self) -> impl DoubleEndedIterator<Item = BlockLine<'_>> {
        (0..self.len()).filter_map(|at| self.line(at))
    }

    /// Returns the kept bytes of a record's link.
    pub(crate) fn tag(&self, at: usize) -> Option<&[u8]> {
        self.tags.get(TAG_BYTES * at..TAG_BYTES * (at + 1))
    }

    /// Returns whether the block holds a record under a key.
    pub(super) fn holds_key(&self, key: i64) -> bool {
        self.keys.chunks_exact(8).any(|bytes| bytes == key.to_le_bytes())
    }

    /// Writes the block, in the place of the one with the same last record if there is one, without the records before
    /// a number.
    pub(super) fn store_from(&self, db: &Db, first: u64) -> Result<(), SqlError> {
        let gone = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.len());
        let start = gone.checked_sub(1).and_then(|at| self.ends.get(at)).map_or(0, |end| end + 1);
        db.execute(
            "UPDATE blocks SET first_seq = ?2, tags = ?3, id_keys = ?4, records = ?5 WHERE last_seq = ?1",
            &[
                Value::count(self.last),
                Value::count(first),
                Value::Bytes(self.tags.get(TAG_BYTES * gone..).unwrap_or_default()),
                Value::Bytes(self.keys.get(8 * gone..).unwrap_or_default()),
                Value::Utf8(self.lines.get(start..).unwrap_or_default()),
            ],
        )?;
        Ok(())
    }
}

/// Returns the first bytes of a link.
pub(crate) fn tag_of(hash: &SealHash) -> &[u8] {
    hash.as_bytes().get(..TAG_BYTES).unwrap_or_default()
}

/// Shows every block that holds some of the records, in their order, until `show` returns `false`.
pub(crate) fn each_block(
    db: &Db,
    records: &RangeInclusive<u64>,
    mut show: impl FnMut(&Block) -> bool,
) -> Result<(), SqlError> {
    let sql = format!("SELECT {COLUMNS} FROM blocks WHERE last_seq >= ?1 ORDER BY last_seq");
    let mut block = Block::default();
    db.each(&sql, &[Value::count(*records.start())], |row| {
        block.read(row)?;
        Ok(block.first <= *records.end() && show(&block))
    })
}

/// Returns the block that holds a record.
pub(crate) fn block_of(db: &Db, seq: u64) -> Result<Option<Block>, SqlError> {
    let sql = format!("SELECT {COLUMNS} FROM blocks WHERE last_seq >= ?1 ORDER BY last_seq LIMIT 1");
    let found = db.optional(&sql, &[Value::count(seq)], |row| {
        let mut block = Block::default();
        block.read(row)?;
        Ok(block)
    })?;
    Ok(found.filter(|block| block.first <= seq))
}

/// Returns the link before a block.
pub(crate) fn hash_before(db: &Db, first: u64) -> Result<SealHash, SqlError> {
    const BEFORE: &str = "
        SELECT CASE WHEN base_seq = ?1 THEN base_hash ELSE (SELECT hash FROM blocks WHERE last_seq = ?1) END FROM chain";
    db.one(BEFORE, &[Value::count(first.saturating_sub(1))], |row| row.hash(0))
}
