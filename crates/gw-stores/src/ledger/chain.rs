//! The chain's growing end: seals records, adds them up, signs checkpoints.

use std::{collections::BTreeMap, ops::Range};

use gw_types::SealHash;

use super::blocks::{self, each_block, tag_of};
use crate::{
    checkpoint::CheckpointKey,
    encode::Batch,
    hashing::digests,
    sql::{Db, SqlError, Value},
    sums::{SumNames, Sums},
};

/// Records whose sums are kept in memory until they are added to the tables. Reads add up so many by themselves.
const FOLD_RECORDS: u64 = 4_096;

/// Records between two checkpoints: the most that a receipt has to show.
const CHECKPOINT_RECORDS: u64 = 1_000;

/// Where a chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) seq: u64,
    pub(crate) hash: SealHash,
}

/// The one writer's view of the chain.
#[derive(Debug)]
pub(crate) struct Chain {
    tip: Tip,
    folded: u64,
    /// By bucket, then by names.
    unfolded: BTreeMap<i64, BTreeMap<Box<str>, Added>>,
    key: Option<CheckpointKey>,
    ledger: [u8; 16],
    checkpointed: u64,
    /// The latest start among the records that this writer has stored.
    newest: i64,
}

/// What is still to be added to a row of sums.
#[derive(Clone, Copy, Debug)]
struct Added {
    first: u64,
    last: u64,
    sums: Sums,
}

impl Chain {
    /// Makes the chain of a new ledger.
    pub(crate) fn begin(db: &Db) -> Result<Self, SqlError> {
        let ledger = db.new_ledger()?;
        let start = SealHash::genesis(&ledger);
        db.execute(
            "INSERT INTO chain (ledger, base_seq, base_hash, tip_seq, tip_hash, folded)
             VALUES (?1, 0, ?2, 0, ?2, 0)",
            &[Value::Bytes(&ledger), Value::Bytes(start.as_bytes())],
        )?;
        Ok(Self::at(Tip { seq: 0, hash: start }, ledger))
    }

    fn at(tip: Tip, ledger: [u8; 16]) -> Self {
        Self {
            tip,
            folded: tip.seq,
            unfolded: BTreeMap::new(),
            key: None,
            ledger,
            checkpointed: 0,
            newest: 0,
        }
    }

    /// Reads where the chain stands, or makes the one of a new node, and adds up what was left out of the sums.
    pub(crate) fn read(db: &Db, key: Option<CheckpointKey>) -> Result<Self, SqlError> {
        let read = "SELECT ledger, tip_seq, tip_hash, folded FROM chain";
        let found = db.optional(read, &[], |row| {
            let ledger = row.bytes(0)?.try_into().unwrap_or_default();
            Ok((ledger, Tip { seq: row.count(1)?, hash: row.hash(2)? }, row.count(3)?))
        })?;
        let Some((ledger, tip, folded)) = found else {
            return Ok(Self { key, ..Self::begin(db)? });
        };
        let mut chain = Self { folded, key, ..Self::at(tip, ledger) };
        let last = "SELECT seq, newest FROM checkpoints ORDER BY seq DESC LIMIT 1";
        let last = db.optional(last, &[], |row| Ok((row.count(0)?, row.int(1)?)))?;
        (chain.checkpointed, chain.newest) = last.unwrap_or((0, 0));
        chain.add_left_out(db)?;
        Ok(chain)
    }

    /// Reads where the chain stands now: another process has written to it, or this one does not know whether its last
    /// transaction was committed.
    pub(super) fn read_again(&mut self, db: &Db) -> Result<(), SqlError> {
        *self = Self::read(db, self.key.clone())?;
        Ok(())
    }

    fn add_left_out(&mut self, db: &Db) -> Result<(), SqlError> {
        let mut batch = Batch::default();
        let from = self.folded + 1;
        each_block(db, &(from..=u64::MAX), |block| {
            for line in block.each().filter(|line| line.seq >= from && line.id_key.is_some()) {
                // A line that is no record is `verify`'s to name.
                let Ok(record) = serde_json::from_slice(line.canonical) else { continue };
                batch.clear();
                batch.push(&record);
                self.add(&batch, 0, line.seq);
            }
            true
        })
    }

    pub(super) const fn tip(&self) -> Tip {
        self.tip
    }

    /// Appends records of a batch; returns where the chain stands once that is committed.
    pub(crate) fn insert(&self, db: &Db, batch: &Batch, range: Range<usize>) -> Result<Tip, SqlError> {
        let mut hashes = Vec::with_capacity(range.len());
        digests(
            range.clone().filter_map(|at| batch.record(at)).map(|encoded| encoded.canonical),
            &mut hashes,
        );
        let mut tip = self.tip;
        let mut parts = BlockParts::default();
        let (mut from, mut digests) = (range.start, hashes.iter());
        while from < range.end {
            let to = range.end.min(from + blocks::RECORDS);
            let first = tip.seq + 1;
            parts.clear();
            for (encoded, digest) in (from..to).filter_map(|at| batch.record(at)).zip(digests.by_ref()) {
                tip = tip.then(*digest);
                parts.add(encoded.id_key, &tip.hash);
            }
            parts.insert(db, first, tip, batch.text(from..to))?;
            from = to;
        }
        store_tip(db, self.tip, tip)?;
        Ok(tip)
    }

    /// Appends an entry of the ledger's own, with its line end; returns where the chain stands once that is committed.
    pub(super) fn insert_note(&self, db: &Db, line: &[u8]) -> Result<Tip, SqlError> {
        let tip = self.tip.after(line.strip_suffix(b"\n").unwrap_or(line));
        let mut parts = BlockParts::default();
        parts.add(blocks::NO_KEY, &tip.hash);
        parts.insert(db, tip.seq, tip, line)?;
        store_tip(db, self.tip, tip)?;
        Ok(tip)
    }

    /// Goes on from a tip that was committed with the records of a batch.
    pub(crate) fn advance(&mut self, tip: Tip, batch: &Batch, range: Range<usize>) {
        for (at, seq) in range.zip(self.tip.seq + 1..) {
            self.add(batch, at, seq);
        }
        self.tip = tip;
    }

    /// Goes on from a tip that was committed with an entry of the ledger's own.
    pub(super) fn advance_past_note(&mut self, tip: Tip) {
        self.tip = tip;
    }

    fn add(&mut self, batch: &Batch, at: usize, seq: u64) {
        let Some(encoded) = batch.record(at) else { return };
        self.newest = self.newest.max(encoded.started);
        let bucket = self.unfolded.entry(encoded.bucket).or_default();
        batch.each_line(at, |names, sums| {
            // Looked up before it is inserted, so that only new names allocate.
            match bucket.get_mut(names) {
                Some(added) => {
                    added.last = seq;
                    added.sums.add(sums);
                }
                None => drop(bucket.insert(names.into(), Added { first: seq, last: seq, sums: *sums })),
            }
        });
    }

    pub(crate) fn is_fold_due(&self) -> bool {
        self.tip.seq - self.folded >= FOLD_RECORDS
    }

    /// Adds what was summed up in memory to the tables, inside the caller's transaction. Called again after a failure.
    pub(super) fn fold_into(&self, db: &Db) -> Result<(), SqlError> {
        let all = self.unfolded.iter().flat_map(|(bucket, sums)| sums.iter().map(move |sum| (bucket, sum)));
        for (bucket, (names, added)) in all {
            fold_sum(db, *bucket, SumNames::parse(names), added)?;
        }
        db.execute("UPDATE chain SET folded = ?1", &[Value::count(self.tip.seq)])?;
        Ok(())
    }

    /// Forgets what [`Self::fold_into`] has added, once that is committed.
    pub(super) fn folded(&mut self) {
        self.unfolded.clear();
        self.folded = self.tip.seq;
    }

    /// Adds up inside a transaction that the caller commits or gives up whole.
    pub(crate) fn fold(&mut self, db: &Db) -> Result<(), SqlError> {
        self.fold_into(db)?;
        self.folded();
        Ok(())
    }

    pub(super) const fn is_checkpoint_due(&self) -> bool {
        self.key.is_some() && self.tip.seq - self.checkpointed >= CHECKPOINT_RECORDS
    }

    /// Signs where the chain stands, unless that is signed already or there is no key, inside the caller's transaction.
    pub(super) fn checkpoint_into(&self, db: &Db) -> Result<(), SqlError> {
        let Some(key) = self.key.as_ref().filter(|_| self.checkpointed != self.tip.seq) else {
            return Ok(());
        };
        let signed = key.sign(&self.ledger, self.tip, self.newest);
        db.execute(
            "INSERT INTO checkpoints (seq, hash, newest, signer, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
            &[
                Value::count(signed.seq),
                Value::Bytes(signed.hash.as_bytes()),
                Value::Int(signed.newest),
                Value::Bytes(signed.signer.as_slice()),
                Value::Bytes(signed.signature.as_slice()),
            ],
        )?;
        Ok(())
    }

    /// Remembers what [`Self::checkpoint_into`] has signed, once that is committed.
    pub(super) fn checkpointed(&mut self) {
        if self.key.is_some() {
            self.checkpointed = self.tip.seq;
        }
    }
}

/// The columns of a block that is being put together.
#[derive(Debug)]
struct BlockParts {
    tags: Vec<u8>,
    keys: Vec<u8>,
    min_key: i64,
    max_key: i64,
}

impl Default for BlockParts {
    fn default() -> Self {
        Self { tags: Vec::new(), keys: Vec::new(), min_key: i64::MAX, max_key: blocks::NO_KEY }
    }
}

impl BlockParts {
    fn clear(&mut self) {
        self.tags.clear();
        self.keys.clear();
        (self.min_key, self.max_key) = (i64::MAX, blocks::NO_KEY);
    }

    fn add(&mut self, key: i64, hash: &SealHash) {
        self.tags.extend_from_slice(tag_of(hash));
        self.keys.extend_from_slice(&key.to_le_bytes());
        (self.min_key, self.max_key) = (self.min_key.min(key), self.max_key.max(key));
    }

    fn insert(&self, db: &Db, first: u64, last: Tip, lines: &[u8]) -> Result<(), SqlError> {
        const INSERT: &str = "
            INSERT INTO blocks (last_seq, first_seq, kind, hash, min_key, max_key, tags, id_keys, records)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let is_note = self.max_key == blocks::NO_KEY;
        db.execute(
            INSERT,
            &[
                Value::count(last.seq),
                Value::count(first),
                Value::Int(is_note.into()),
                Value::Bytes(last.hash.as_bytes()),
                Value::Int(self.min_key),
                Value::Int(self.max_key),
                Value::Bytes(&self.tags),
                Value::Bytes(&self.keys),
                Value::Utf8(lines),
            ],
        )?;
        Ok(())
    }
}

/// Adds to a row of sums, or makes it.
fn fold_sum(db: &Db, bucket: i64, names: SumNames<'_>, added: &Added) -> Result<(), SqlError> {
    const FIND: &str = "
        SELECT requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent_pico, first_seq
        FROM sums
        WHERE bucket = ?1 AND tenant = ?2 AND key = ?3 AND model = ?4 AND deployment = ?5 AND route = ?6";
    const INSERT: &str = "
        INSERT INTO sums (bucket, tenant, key, model, deployment, route, first_seq, last_seq,
            requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent_pico)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    const UPDATE: &str = "
        UPDATE sums SET first_seq = ?7, last_seq = ?8, requests = ?9, failed = ?10, fallbacks = ?11, cache_hits = ?12,
            input_tokens = ?13, output_tokens = ?14, spent_pico = ?15
        WHERE bucket = ?1 AND tenant = ?2 AND key = ?3 AND model = ?4 AND deployment = ?5 AND route = ?6";
    let SumNames { tenant, key, model, deployment, route } = names;
    let [tenant, key, model, deployment, route] = [tenant, key, model, deployment, route].map(Value::Text);
    let found = db.optional(FIND, &[Value::Int(bucket), tenant, key, model, deployment, route], |row| {
        let sums = Sums {
            requests: row.count(0)?,
            failed: row.count(1)?,
            fallbacks: row.count(2)?,
            cache_hits: row.count(3)?,
            input_tokens: row.count(4)?,
            output_tokens: row.count(5)?,
            spent: row.money(6)?.unwrap_or_default(),
        };
        Ok((sums, row.count(7)?))
    })?;
    let store = if found.is_some() { UPDATE } else { INSERT };
    let (mut sums, first) = found.unwrap_or((Sums::default(), added.first));
    sums.add(&added.sums);
    let (first, last) = (Value::count(first.min(added.first)), Value::count(added.last));
    let [requests, failed, fallbacks] = [sums.requests, sums.failed, sums.fallbacks].map(Value::count);
    let [hits, input, output] = [sums.cache_hits, sums.input_tokens, sums.output_tokens].map(Value::count);
    let spent = Value::Money(sums.spent);
    let bucket = Value::Int(bucket);
    #[rustfmt::skip] // In the order of the columns.
    let row = [
        bucket, tenant, key, model, deployment, route, first, last, requests, failed, fallbacks, hits, input, output,
        spent,
    ];
    db.execute(store, &row)?;
    Ok(())
}

impl Tip {
    /// Returns the place after it, of the record with these canonical bytes.
    pub(crate) fn after(self, canonical: &[u8]) -> Self {
        self.then(SealHash::of_record(canonical))
    }

    /// Returns the place after it, of the record with this digest.
    pub(crate) fn then(self, digest: SealHash) -> Self {
        let seq = self.seq + 1;
        Self { seq, hash: self.hash.next(seq, digest) }
    }
}

/// Reads where the chain stands in the database.
pub(super) fn stored_tip(db: &Db) -> Result<Tip, SqlError> {
    db.one("SELECT tip_seq, tip_hash FROM chain", &[], |row| {
        Ok(Tip { seq: row.count(0)?, hash: row.hash(1)? })
    })
}

/// Returns whether a block ends with a link.
pub(super) fn is_stored(db: &Db, end: Tip) -> Result<bool, SqlError> {
    let read = "SELECT hash FROM blocks WHERE last_seq = ?1";
    let found = db.optional(read, &[Value::count(end.seq)], |row| row.hash(0))?;
    Ok(found == Some(end.hash))
}

/// Moves the chain's end; refuses where another process has moved it meanwhile.
fn store_tip(db: &Db, from: Tip, to: Tip) -> Result<(), SqlError> {
    const STORE: &str = "UPDATE chain SET tip_seq = ?1, tip_hash = ?2 WHERE tip_seq = ?3 AND tip_hash = ?4";
    let values = [
        Value::count(to.seq),
        Value::Bytes(to.hash.as_bytes()),
        Value::count(from.seq),
        Value::Bytes(from.hash.as_bytes()),
    ];
    if db.execute(STORE, &values)? == 1 { Ok(()) } else { Err(SqlError::ForeignEnd) }
}
