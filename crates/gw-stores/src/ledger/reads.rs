//! What is read from the tables: pages, single records, sums.

use std::ops::RangeInclusive;

use gw_types::{ErrorKind, GatewayError, RecordQuery, RequestId, StoredRecord, TenantId, UtcTime};
use memchr::memmem;

use super::{
    blocks::{Block, BlockLine, COLUMNS, each_block},
    rows::{self, SUM_COLUMNS},
};
use crate::{
    encode::id_key,
    sql::{Db, SqlError, Value},
    sums::{BUCKET_MICROS, SpendSums, SumNames, Summed, Sums, bucket_of},
};

/// Records in one answer at most.
pub(crate) const PAGE_RECORDS_MAX: u32 = 1_000;

/// Says why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The database cannot be read now.
    Now,
    /// A row is not what gw wrote.
    Row,
}

impl From<SqlError> for Unreadable {
    fn from(error: SqlError) -> Self {
        tracing::error!(%error, "the ledger cannot be read");
        Self::Now
    }
}

impl From<Unreadable> for GatewayError {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Now => Self::new(ErrorKind::Overloaded, "the ledger cannot be read now"),
            Unreadable::Row => Self::new(ErrorKind::Internal, "the ledger holds a row that cannot be read"),
        }
    }
}

// === Pages and records ===

/// Returns a page of records, newest first.
pub(crate) fn records(db: &Db, query: &RecordQuery) -> Result<Vec<StoredRecord>, Unreadable> {
    let before = query.before.unwrap_or(u64::MAX);
    let limit = query.limit.clamp(1, PAGE_RECORDS_MAX);
    let mut page = Page { limit, left: limit, tenant: None, found: Vec::new() };
    // One view of the file for all the statements of a page.
    let view = db.view()?;
    match &query.tenant {
        None => page.scan(&view, 0, before)?,
        Some(tenant) => page.scan_tenant(&view, tenant, before)?,
    }
    Ok(page.found)
}

/// A page that is being filled from the newest record to the oldest.
struct Page {
    limit: u32,
    /// How many are still wanted.
    left: u32,
    /// What the canonical bytes of a wanted record hold.
    tenant: Option<Vec<u8>>,
    found: Vec<StoredRecord>,
}

impl Page {
    /// Reads records from before `before` down to after `after`, until the page is full.
    fn scan(&mut self, db: &Db, after: u64, before: u64) -> Result<(), Unreadable> {
        // The block that holds the record before `before`, or the last one.
        const NEWEST: &str = "SELECT min(last_seq) FROM blocks WHERE last_seq >= ?1";
        let newest = db.one(NEWEST, &[Value::count(before.saturating_sub(1))], |row| row.optional_int(0))?;
        let sql = format!(
            "SELECT {COLUMNS} FROM blocks WHERE last_seq <= ?1 AND last_seq > ?2 AND kind = 0 ORDER BY last_seq DESC"
        );
        if self.left == 0 {
            return Ok(());
        }
        let mut block = Block::default();
        db.each(&sql, &[Value::Int(newest.unwrap_or(i64::MAX)), Value::count(after)], |row| {
            block.read(row)?;
            self.take(&block, after, before)?;
            Ok(self.left > 0)
        })
    }

    fn take(&mut self, block: &Block, after: u64, before: u64) -> Result<(), Unreadable> {
        // A name in canonical bytes is never escaped, and no other object has this key.
        let wanted =
            |bytes: &[u8]| self.tenant.as_ref().is_none_or(|tenant| memmem::find(bytes, tenant).is_some());
        if !wanted(&block.lines) {
            return Ok(());
        }
        let lines = block.each().rev().filter(|line| line.seq > after && line.seq < before);
        for line in lines.filter(|line| wanted(line.canonical)).take(self.left as usize) {
            self.found.push(stored(&line)?);
        }
        let found = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        self.left = self.limit.saturating_sub(found);
        Ok(())
    }

    /// Reads the records that are in no sum yet, then only stretches in which the sums say that the tenant has records.
    fn scan_tenant(&mut self, db: &Db, tenant: &TenantId, before: u64) -> Result<(), Unreadable> {
        self.tenant = Some(format!("\"tenant\":\"{tenant}\"").into_bytes());
        let folded = folded(db)?;
        self.scan(db, folded, before)?;
        for (first, last) in stretches(db, tenant, before)? {
            if self.left == 0 {
                break;
            }
            self.scan(db, first.saturating_sub(1), before.min(last.min(folded) + 1))?;
        }
        Ok(())
    }
}

/// Returns the stretches of the chain that hold a tenant's records, newest first, merged where they touch.
fn stretches(db: &Db, tenant: &TenantId, before: u64) -> Result<Vec<(u64, u64)>, Unreadable> {
    const STRETCHES: &str =
        "SELECT first_seq, last_seq FROM sums WHERE tenant = ?1 AND first_seq < ?2 ORDER BY last_seq DESC";
    let mut merged: Vec<(u64, u64)> = Vec::new();
    db.each(STRETCHES, &[Value::Text(tenant.as_str()), Value::count(before)], |row| {
        let (first, last) = (row.count(0)?, row.count(1)?);
        match merged.last_mut() {
            Some(newer) if last >= newer.0 => newer.0 = newer.0.min(first),
            Some(_) | None => merged.push((first, last)),
        }
        Ok::<_, Unreadable>(true)
    })?;
    Ok(merged)
}

/// Returns the record with the id. Looks through the index from the id's own time on, where its block is near.
pub(crate) fn record(db: &Db, id: &RequestId) -> Result<Option<StoredRecord>, Unreadable> {
    let key = id_key(id.as_str());
    let sql = format!(
        "SELECT {COLUMNS} FROM blocks WHERE kind = 0 AND max_key >= ?1 AND min_key <= ?1 ORDER BY max_key"
    );
    let (mut block, mut record) = (Block::default(), None);
    db.each(&sql, &[Value::Int(key)], |row| {
        block.read(row)?;
        if block.holds_key(key) {
            for line in block.each().filter(|line| line.id_key == Some(key)) {
                record = Some(stored(&line)?).filter(|found| found.record.id == *id);
                if record.is_some() {
                    return Ok(false);
                }
            }
        }
        Ok::<_, Unreadable>(true)
    })?;
    Ok(record)
}

/// Reads a record. The parser's message may quote it; it goes no further.
fn stored(line: &BlockLine<'_>) -> Result<StoredRecord, Unreadable> {
    let record = serde_json::from_slice(line.canonical).map_err(|_| Unreadable::Row)?;
    Ok(StoredRecord { seq: line.seq, record })
}

// === Sums ===

/// Adds up what was spent since an instant, in every chain.
pub(crate) fn spend_since(db: &Db, since: UtcTime) -> Result<SpendSums, Unreadable> {
    let mut sums = SpendSums::default();
    for node in db.nodes()? {
        db.at_node(node, |db| each_sum(db, since, |_, names, sum| sums.add(names, sum.spent)))?;
    }
    Ok(sums)
}

/// Shows every sum of the records that started at or after an instant, with its bucket. A combination of bucket and names
/// may come several times.
///
/// Linear in the rows of the sums (some 10^6 a second), and in the records that are in no sum yet or in the bucket that
/// `since` cuts. Where records of that bucket were deleted by age, all of the bucket counts: rather more than was spent
/// than less.
pub(crate) fn each_sum(
    db: &Db,
    since: UtcTime,
    mut show: impl FnMut(i64, SumNames<'_>, &Sums),
) -> Result<(), Unreadable> {
    let view = db.view()?;
    let folded = folded(&view)?;
    let mut whole_from = bucket_of(since);
    if whole_from != since.micros() {
        let cut = Cut { bucket: whole_from, since, folded };
        if cut.each_sum(&view, &mut show)? {
            whole_from = whole_from.saturating_add(BUCKET_MICROS);
        }
    }
    let sql = format!("SELECT {SUM_COLUMNS} FROM sums WHERE bucket >= ?1");
    view.each(&sql, &[Value::Int(whole_from)], |row| {
        let (bucket, names, sums) = rows::sum(row)?.ok_or(Unreadable::Row)?;
        show(bucket, names, &sums);
        Ok::<_, Unreadable>(true)
    })?;
    each_of_records(&view, &(folded + 1..=u64::MAX), |started| started >= since, &mut show)
}

/// A bucket of which only the end is wanted.
struct Cut {
    bucket: i64,
    since: UtcTime,
    folded: u64,
}

impl Cut {
    /// Shows the records of the bucket's end; returns `false`, and shows nothing, if some of them are gone.
    fn each_sum(&self, db: &Db, show: impl FnMut(i64, SumNames<'_>, &Sums)) -> Result<bool, Unreadable> {
        const BOUNDS: &str = "
            SELECT coalesce(min(first_seq), 0), coalesce(max(last_seq), 0), (SELECT base_seq FROM chain)
            FROM sums WHERE bucket = ?1";
        let (first, last, base) = db.one(BOUNDS, &[Value::Int(self.bucket)], |row| {
            Ok((row.count(0)?, row.count(1)?, row.count(2)?))
        })?;
        if last == 0 {
            return Ok(true);
        }
        if first <= base {
            return Ok(false);
        }
        let wanted = |started| bucket_of(started) == self.bucket && started >= self.since;
        each_of_records(db, &(first..=last.min(self.folded)), wanted, show)?;
        Ok(true)
    }
}

/// Shows the lines of the wanted ones among some records.
fn each_of_records(
    db: &Db,
    records: &RangeInclusive<u64>,
    wanted: impl Fn(UtcTime) -> bool,
    mut show: impl FnMut(i64, SumNames<'_>, &Sums),
) -> Result<(), Unreadable> {
    let mut all_read = true;
    each_block(db, records, |block| {
        for line in block.each().filter(|line| records.contains(&line.seq) && line.id_key.is_some()) {
            let Some(summed) = Summed::read(line.canonical) else {
                all_read = false;
                break;
            };
            if wanted(summed.started) {
                summed.each_line(|names, sums| show(bucket_of(summed.started), names, &sums));
            }
        }
        all_read
    })?;
    if all_read { Ok(()) } else { Err(Unreadable::Row) }
}

/// Returns the last record that is in the sums.
fn folded(db: &Db) -> Result<u64, SqlError> {
    db.one("SELECT folded FROM chain", &[], |row| row.count(0))
}

/// Returns the place of a record, by its id.
pub(crate) fn seq_of(db: &Db, id: &RequestId) -> Result<Option<u64>, Unreadable> {
    Ok(record(db, id)?.map(|stored| stored.seq))
}

/// Returns whether there is a signed place at or after a number.
pub(crate) fn is_signed(db: &Db, seq: u64) -> Result<bool, Unreadable> {
    let find = "SELECT seq FROM checkpoints WHERE seq >= ?1 ORDER BY seq LIMIT 1";
    Ok(db.optional(find, &[Value::count(seq)], |row| row.count(0))?.is_some())
}
