//! Records as the writer stores them: canonical bytes and what to sum, many in one buffer.

use std::{cell::RefCell, ops::Range};

use gw_types::{AccountingRecord, Money};

use crate::sums::{Sums, bucket_of, each_line};

/// Bytes before a lone record's canonical bytes, for the journal's header.
pub(crate) const HEADER_BYTES: usize = 16;

/// A buffer that outgrew this many bytes is not kept.
const BYTES_KEPT: usize = 4 << 20;

/// Records one after the other in one buffer, a line each, so that queueing one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    names: String,
    entries: Vec<Entry>,
    lines: Vec<Line>,
}

/// One record: where its bytes end, and the copies of its parts that the tables need.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    end: usize,
    id_key: i64,
    bucket: i64,
    started: i64,
    lines_end: usize,
}

/// One line of a record's sums.
#[derive(Clone, Copy, Debug)]
struct Line {
    names_end: usize,
    sums: Sums,
}

/// A record of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    pub(crate) canonical: &'a [u8],
    pub(crate) id_key: i64,
    pub(crate) bucket: i64,
    pub(crate) started: i64,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Empties the batch and keeps its buffers, unless they have grown out of proportion.
    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() > BYTES_KEPT {
            *self = Self::default();
            return;
        }
        self.bytes.clear();
        self.names.clear();
        self.entries.clear();
        self.lines.clear();
    }

    /// Adds a record.
    pub(crate) fn push(&mut self, record: &AccountingRecord) {
        let start = self.bytes.len();
        record.write_canonical(&mut self.bytes);
        each_line(record, |names, sums| {
            names.write(&mut self.names);
            self.lines.push(Line { names_end: self.names.len(), sums });
        });
        let end = self.bytes.len();
        self.bytes.push(b'\n');
        self.entries.push(Entry {
            start,
            end,
            id_key: id_key(record.id.as_str()),
            bucket: bucket_of(record.started),
            started: record.started.micros(),
            lines_end: self.lines.len(),
        });
    }

    /// Adds the records of another batch.
    pub(crate) fn append(&mut self, other: &Self) {
        let Some(first) = other.entries.first() else { return };
        let (skipped, bytes, names, lines) =
            (first.start, self.bytes.len(), self.names.len(), self.lines.len());
        self.bytes.extend_from_slice(&other.bytes[skipped..]);
        self.names.push_str(&other.names);
        self.lines.extend(other.lines.iter().map(|line| Line { names_end: line.names_end + names, ..*line }));
        self.entries.extend(other.entries.iter().map(|entry| Entry {
            start: entry.start - skipped + bytes,
            end: entry.end - skipped + bytes,
            lines_end: entry.lines_end + lines,
            ..*entry
        }));
    }

    /// Returns a record.
    pub(crate) fn record(&self, at: usize) -> Option<Encoded<'_>> {
        let entry = self.entries.get(at)?;
        Some(Encoded {
            canonical: self.bytes.get(entry.start..entry.end)?,
            id_key: entry.id_key,
            bucket: entry.bucket,
            started: entry.started,
        })
    }

    /// Returns the canonical bytes of neighbouring records, each with a line end.
    pub(crate) fn text(&self, records: Range<usize>) -> &[u8] {
        let entry = |at: usize| self.entries.get(at);
        let last = records.end.checked_sub(1).and_then(entry);
        let (Some(first), Some(last)) = (entry(records.start), last) else { return &[] };
        self.bytes.get(first.start..=last.end).unwrap_or_default()
    }

    /// Shows the lines of a record: its names as one text, and its sums.
    pub(crate) fn each_line(&self, at: usize, mut show: impl FnMut(&str, &Sums)) {
        let ends = |at: usize| self.entries.get(at).map_or(0, |entry| entry.lines_end);
        let first = at.checked_sub(1).map_or(0, ends);
        let mut from =
            first.checked_sub(1).and_then(|at| self.lines.get(at)).map_or(0, |line| line.names_end);
        for line in self.lines.get(first..ends(at)).unwrap_or_default() {
            show(self.names.get(from..line.names_end).unwrap_or_default(), &line.sums);
            from = line.names_end;
        }
    }

    /// Returns a lone record's bytes with [`HEADER_BYTES`] before them that `header` fills.
    pub(crate) fn framed(&mut self, header: impl FnOnce(&[u8]) -> [u8; HEADER_BYTES]) -> &[u8] {
        let end = self.entries.first().map_or(HEADER_BYTES, |entry| entry.end);
        let filled = header(self.bytes.get(HEADER_BYTES..end).unwrap_or_default());
        if let Some(room) = self.bytes.get_mut(..HEADER_BYTES) {
            room.copy_from_slice(&filled);
        }
        self.bytes.get(..end).unwrap_or_default()
    }
}

/// Encodes a record into a buffer of the thread's own, behind room for a header, and lends it.
pub(crate) fn with_encoded<T>(record: &AccountingRecord, take: impl FnOnce(&mut Batch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Batch> = const { RefCell::new(Batch {
            bytes: Vec::new(), names: String::new(), entries: Vec::new(), lines: Vec::new(),
        }) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        scratch.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        scratch.push(record);
        take(scratch)
    })
}

/// Returns the integer under which a record is found by its id: the id's milliseconds (48 bits), then 15 bits of the rest.
///
/// Ids of the system's source begin with their time, so an index of these integers grows at its end and stays cheap. It
/// is no identity: records of different ids may share it. An id of another shape is hashed whole (FNV-1a).
pub(crate) fn id_key(id: &str) -> i64 {
    const POSITIVE: u64 = i64::MAX.unsigned_abs();
    let key = match id.strip_prefix("req_").filter(|digits| digits.len() == 32) {
        Some(digits) => u128::from_str_radix(digits, 16).ok().map(time_and_rest),
        None => None,
    };
    let key = key.unwrap_or_else(|| {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        id.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    });
    i64::try_from(key & POSITIVE).unwrap_or(0)
}

fn time_and_rest(bits: u128) -> u64 {
    let part = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
    let rest = part(bits) ^ (part(bits >> 64) & 0xffff);
    part(bits >> 80) << 15 | rest.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49
}

/// Returns cost and side costs of a record.
pub(crate) fn spent(record: &AccountingRecord) -> Money {
    let side: Money = record.side_costs.iter().map(|side| side.cost).sum();
    record.cost.saturating_add(side)
}

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;
    use gw_types::{AccountingRecord, RequestId};

    use super::{Batch, HEADER_BYTES, id_key, spent, with_encoded};

    fn records(batch: &Batch) -> Vec<AccountingRecord> {
        (0..batch.len())
            .map(|at| serde_json::from_slice(batch.record(at).unwrap().canonical).unwrap())
            .collect()
    }

    #[test]
    fn records_come_back_from_a_batch_that_was_put_together() {
        let mut batch = Batch::default();
        for number in 1..=3 {
            with_encoded(&sample_record(number), |encoded| {
                assert_eq!(encoded.framed(|_| [7; HEADER_BYTES])[..HEADER_BYTES], [7; HEADER_BYTES]);
                batch.append(encoded);
            });
        }
        assert_eq!(records(&batch), [1, 2, 3].map(sample_record));
        for at in 0..3 {
            let record = sample_record(u32::try_from(at).unwrap() + 1);
            let mut lines = Vec::new();
            batch.each_line(at, |names, sums| lines.push((names.to_owned(), sums.spent)));
            assert_eq!(lines[0].0, "wholesale\nbatch\nreasoner\neu\nrestricted-reasoning");
            assert_eq!(lines[1].0, "wholesale\nbatch\nreasoner\nembed\nrestricted-reasoning");
            assert_eq!(lines.iter().map(|(_, spent)| *spent).sum::<gw_types::Money>(), spent(&record));
        }
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn ids_of_the_system_are_indexed_by_their_time() {
        let key = |bits: u128| id_key(RequestId::from_bits(bits).as_str());
        let (early, late) = (key(1 << 80 | u128::from(u64::MAX)), key(2 << 80));
        assert!(early < late);
        assert_eq!(late >> 15, 2);
        assert!(key(u128::MAX) > 0);
        assert_ne!(key(1), key(2));
        assert!(id_key("another") > 0);
    }
}
