//! Deleting by age, with a sealed summary that the chain goes on from.

use gw_types::{AccountingRecord, Money, SealHash, UtcTime};
use serde::{Deserialize, Serialize};

use super::{
    blocks::{block_of, each_block},
    chain::{Chain, Tip},
};
use crate::{
    encode::spent,
    sql::{Db, SqlError, Value},
};

/// Blocks that one transaction deletes, so that records never wait long for the writer.
const STEP_ROWS: i64 = 16;

/// What was deleted by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    /// The last record that was deleted.
    pub seq: u64,
    /// Records that were deleted this time.
    pub requests: u64,
    /// What they had spent.
    pub spent: Money,
}

/// The summary, as the chain holds it: all that was ever deleted. The fields are sorted: the entry is canonical.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Summary {
    /// Records that started at or after this instant are all there, in microseconds.
    pub(crate) before: i64,
    /// The link of the last deleted record, from which the chain goes on.
    pub(crate) hash: String,
    /// Records ever deleted.
    pub(crate) requests: u64,
    /// The last deleted record.
    pub(crate) seq: u64,
    /// What all of them had spent.
    pub(crate) spent_pico: u128,
}

/// An entry of the ledger's own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    retention: Summary,
}

/// What is about to be deleted.
#[derive(Debug, Default)]
struct Old {
    tip: Option<Tip>,
    requests: u64,
    spent: Money,
}

/// Seals the summary and moves the chain's base; the rows go with [`delete_some`].
pub(super) fn retain_chain(
    chain: &mut Chain,
    db: &Db,
    before: UtcTime,
) -> Result<Option<Retained>, SqlError> {
    let transaction = db.transaction()?;
    let old = old(&transaction, before)?;
    let Some(tip) = old.tip else { return Ok(None) };
    let last = newest_summary(&transaction)?;
    let (requests, spent) =
        last.as_ref().map_or((0, Money::ZERO), |last| (last.requests, Money::from_pico(last.spent_pico)));
    let summary = Summary {
        before: last.map_or(before.micros(), |last| before.micros().max(last.before)),
        hash: tip.hash.to_string(),
        requests: requests.saturating_add(old.requests),
        seq: tip.seq,
        spent_pico: spent.saturating_add(old.spent).pico(),
    };
    let Ok(mut note) = serde_json::to_vec(&Note { retention: summary }) else { return Ok(None) };
    note.push(b'\n');
    // What is deleted must be in the sums first: afterwards nobody can add it up again.
    chain.fold_into(&transaction)?;
    let end = chain.insert_note(&transaction, &note)?;
    transaction.execute(
        "UPDATE chain SET base_seq = ?1, base_hash = ?2",
        &[Value::count(tip.seq), Value::Bytes(tip.hash.as_bytes())],
    )?;
    // The block that the cut goes through keeps its end.
    if let Some(block) = block_of(&transaction, tip.seq + 1)?.filter(|block| block.first <= tip.seq) {
        block.store_from(&transaction, tip.seq + 1)?;
    }
    transaction.execute("DELETE FROM checkpoints WHERE seq <= ?1", &[Value::count(tip.seq)])?;
    transaction.commit()?;
    chain.folded();
    chain.advance_past_note(end);
    Ok(Some(Retained { seq: tip.seq, requests: old.requests, spent: old.spent }))
}

/// Returns what would be deleted.
pub(crate) fn retainable(db: &Db, before: UtcTime) -> Result<Option<Retained>, SqlError> {
    let Old { tip, requests, spent } = old(db, before)?;
    Ok(tip.map(|tip| Retained { seq: tip.seq, requests, spent }))
}

/// Reads from the base on, up to the first record that is not old.
fn old(db: &Db, before: UtcTime) -> Result<Old, SqlError> {
    let read = "SELECT base_seq, base_hash FROM chain";
    let base = db.one(read, &[], |row| Ok(Tip { seq: row.count(0)?, hash: row.hash(1)? }))?;
    let (mut at, mut old) = (base, Old::default());
    each_block(db, &(base.seq + 1..=u64::MAX), |block| {
        for line in block.each() {
            at = at.after(line.canonical);
            if line.id_key.is_none() {
                continue;
            }
            // A line that is no record ends the old ones: `verify` names it.
            match serde_json::from_slice::<AccountingRecord>(line.canonical) {
                Ok(record) if record.started < before => {
                    old.requests += 1;
                    old.spent = old.spent.saturating_add(spent(&record));
                    old.tip = Some(at);
                }
                Ok(_) | Err(_) => return false,
            }
        }
        true
    })?;
    Ok(old)
}

/// Returns whether a line is an entry of the ledger's own.
pub(crate) fn is_note(line: &[u8]) -> bool {
    serde_json::from_slice::<Note>(line).is_ok()
}

/// Returns the newest summary in the chain.
pub(crate) fn newest_summary(db: &Db) -> Result<Option<Summary>, SqlError> {
    let newest = "SELECT records FROM blocks WHERE kind = 1 ORDER BY last_seq DESC LIMIT 1";
    let note = db.optional(newest, &[], |row| Ok(serde_json::from_slice::<Note>(row.bytes(0)?).ok()))?;
    Ok(note.flatten().map(|note| note.retention))
}

/// Deletes some rows before the base; returns whether there may be more.
pub(super) fn delete_some(db: &Db) -> Result<bool, SqlError> {
    let delete = "DELETE FROM blocks WHERE last_seq IN
        (SELECT last_seq FROM blocks WHERE last_seq <= (SELECT base_seq FROM chain) ORDER BY last_seq LIMIT ?1)";
    Ok(db.execute(delete, &[Value::Int(STEP_ROWS)])? > 0)
}

/// Deletes all rows before the base.
pub(super) fn finish(db: &Db) -> Result<(), SqlError> {
    while delete_some(db)? {}
    Ok(())
}

impl Summary {
    /// Returns the link from which the chain goes on.
    pub(crate) fn base(&self) -> Option<Tip> {
        self.hash.parse::<SealHash>().ok().map(|hash| Tip { seq: self.seq, hash })
    }
}
