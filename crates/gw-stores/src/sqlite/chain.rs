//! The chain's growing end: seals records, adds them up, signs checkpoints.

use std::{collections::BTreeMap, ops::Range};

use gw_types::SealHash;
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    blocks::{self, each_block, tag_of},
    rows::{Spend, Text, column, count, hash},
};
use crate::{
    checkpoint::CheckpointKey,
    encode::Batch,
    hashing::digests,
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
pub(super) struct Chain {
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
    pub(super) fn begin(connection: &Connection) -> rusqlite::Result<Self> {
        let ledger: Vec<u8> = connection.query_row("SELECT randomblob(16)", [], |row| row.get(0))?;
        let ledger = <[u8; 16]>::try_from(ledger.as_slice()).unwrap_or_default();
        let start = SealHash::genesis(&ledger);
        connection.execute(
            "INSERT INTO chain (one, ledger, base_seq, base_hash, tip_seq, tip_hash, folded)
             VALUES (1, ?1, 0, ?2, 0, ?2, 0)",
            params![ledger, start.as_bytes()],
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

    /// Reads where the chain stands, and adds up what was left out of the sums.
    pub(super) fn read(connection: &Connection, key: Option<CheckpointKey>) -> rusqlite::Result<Self> {
        let read = "SELECT ledger, tip_seq, tip_hash, folded FROM chain";
        let (ledger, tip, folded) = connection.query_row(read, [], |row| {
            let ledger =
                row.get_ref(0)?.as_blob().ok().and_then(|blob| blob.try_into().ok()).unwrap_or_default();
            Ok((ledger, Tip { seq: count(row, 1)?, hash: hash(row, 2)? }, count(row, 3)?))
        })?;
        let mut chain = Self { folded, key, ..Self::at(tip, ledger) };
        let last = "SELECT seq, newest FROM checkpoints ORDER BY seq DESC LIMIT 1";
        let last = connection.query_row(last, [], |row| Ok((count(row, 0)?, row.get(1)?))).optional()?;
        (chain.checkpointed, chain.newest) = last.unwrap_or((0, 0));
        chain.add_left_out(connection)?;
        Ok(chain)
    }

    fn add_left_out(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut batch = Batch::default();
        let from = self.folded + 1;
        each_block(connection, &(from..=u64::MAX), |block| {
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
    pub(super) fn insert(
        &self,
        connection: &Connection,
        batch: &Batch,
        range: Range<usize>,
    ) -> rusqlite::Result<Tip> {
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
            parts.insert(connection, first, tip, batch.text(from..to))?;
            from = to;
        }
        store_tip(connection, tip)?;
        Ok(tip)
    }

    /// Appends an entry of the ledger's own, with its line end; returns where the chain stands once that is committed.
    pub(super) fn insert_note(&self, connection: &Connection, line: &[u8]) -> rusqlite::Result<Tip> {
        let tip = self.tip.after(line.strip_suffix(b"\n").unwrap_or(line));
        let mut parts = BlockParts::default();
        parts.add(blocks::NO_KEY, &tip.hash);
        parts.insert(connection, tip.seq, tip, line)?;
        store_tip(connection, tip)?;
        Ok(tip)
    }

    /// Goes on from a tip that was committed with the records of a batch.
    pub(super) fn advance(&mut self, tip: Tip, batch: &Batch, range: Range<usize>) {
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

    pub(super) fn is_fold_due(&self) -> bool {
        self.tip.seq - self.folded >= FOLD_RECORDS
    }

    /// Adds what was summed up in memory to the tables, inside the caller's transaction. Called again after a failure.
    pub(super) fn fold_into(&self, connection: &Connection) -> rusqlite::Result<()> {
        const FIND: &str = "
            SELECT requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent_pico, first_seq
            FROM sums
            WHERE bucket = ?1 AND tenant = ?2 AND key = ?3 AND model = ?4 AND deployment = ?5 AND route = ?6";
        const STORE: &str = "
            INSERT OR REPLACE INTO sums (bucket, tenant, key, model, deployment, route, first_seq, last_seq,
                requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent_pico)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let (mut find, mut store) = (connection.prepare_cached(FIND)?, connection.prepare_cached(STORE)?);
        let all = self.unfolded.iter().flat_map(|(bucket, sums)| sums.iter().map(move |sum| (bucket, sum)));
        for (bucket, (names, added)) in all {
            let names = SumNames::parse(names);
            let SumNames { tenant, key, model, deployment, route } = names;
            let found = find
                .query_row(params![bucket, tenant, key, model, deployment, route], |row| {
                    let sums = Sums {
                        requests: count(row, 0)?,
                        failed: count(row, 1)?,
                        fallbacks: count(row, 2)?,
                        cache_hits: count(row, 3)?,
                        input_tokens: count(row, 4)?,
                        output_tokens: count(row, 5)?,
                        spent: Spend::read(row.get_ref(6)?).unwrap_or_default().0,
                    };
                    Ok((sums, count(row, 7)?))
                })
                .optional()?;
            let (mut sums, first) = found.unwrap_or((Sums::default(), added.first));
            sums.add(&added.sums);
            store.execute(params![
                bucket,
                tenant,
                key,
                model,
                deployment,
                route,
                column(first.min(added.first)),
                column(added.last),
                column(sums.requests),
                column(sums.failed),
                column(sums.fallbacks),
                column(sums.cache_hits),
                column(sums.input_tokens),
                column(sums.output_tokens),
                Spend(sums.spent),
            ])?;
        }
        connection.execute("UPDATE chain SET folded = ?1", [column(self.tip.seq)])?;
        Ok(())
    }

    /// Forgets what [`Self::fold_into`] has added, once that is committed.
    pub(super) fn folded(&mut self) {
        self.unfolded.clear();
        self.folded = self.tip.seq;
    }

    /// Adds up inside a transaction that the caller commits or gives up whole.
    pub(super) fn fold(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.fold_into(connection)?;
        self.folded();
        Ok(())
    }

    pub(super) const fn is_checkpoint_due(&self) -> bool {
        self.key.is_some() && self.tip.seq - self.checkpointed >= CHECKPOINT_RECORDS
    }

    /// Signs where the chain stands, unless that is signed already or there is no key, inside the caller's transaction.
    pub(super) fn checkpoint_into(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(key) = self.key.as_ref().filter(|_| self.checkpointed != self.tip.seq) else {
            return Ok(());
        };
        let signed = key.sign(&self.ledger, self.tip, self.newest);
        connection.execute(
            "INSERT INTO checkpoints (seq, hash, newest, signer, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                column(signed.seq),
                signed.hash.as_bytes(),
                signed.newest,
                signed.signer.as_slice(),
                signed.signature.as_slice(),
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

    fn insert(&self, connection: &Connection, first: u64, last: Tip, lines: &[u8]) -> rusqlite::Result<()> {
        const INSERT: &str = "
            INSERT INTO blocks (last_seq, first_seq, kind, hash, min_key, max_key, tags, id_keys, records)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let note = self.max_key == blocks::NO_KEY;
        connection.prepare_cached(INSERT)?.execute(params![
            column(last.seq),
            column(first),
            note,
            last.hash.as_bytes(),
            self.min_key,
            self.max_key,
            self.tags,
            self.keys,
            Text(lines),
        ])?;
        Ok(())
    }
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

/// Reads where the chain stands in the file.
pub(super) fn stored_tip(connection: &Connection) -> rusqlite::Result<Tip> {
    const READ: &str = "SELECT tip_seq, tip_hash FROM chain";
    let mut read = connection.prepare_cached(READ)?;
    read.query_row([], |row| Ok(Tip { seq: count(row, 0)?, hash: hash(row, 1)? }))
}

fn store_tip(connection: &Connection, tip: Tip) -> rusqlite::Result<()> {
    const STORE: &str = "UPDATE chain SET tip_seq = ?1, tip_hash = ?2";
    connection.prepare_cached(STORE)?.execute(params![column(tip.seq), tip.hash.as_bytes()])?;
    Ok(())
}
