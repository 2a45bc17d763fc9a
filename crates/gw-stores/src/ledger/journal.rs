//! The journal: records that are not in the database yet, in a file that outlives the process.
//!
//! One write call appends one record, so what was appended survives `kill -9` at once and no request waits for a
//! transaction. Two segments take turns: while the writer stores what the one holds, records go to the other; a stored
//! segment is emptied. What is left over after a crash is stored by the next open.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use gw_types::AccountingRecord;

use crate::{StoreError, encode::HEADER_BYTES};

/// How the segments' names end, after the ledger's own name.
const SEGMENTS: [&str; 2] = [".journal-a", ".journal-b"];

/// One of the two files.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    path: PathBuf,
    len: u64,
    /// Whether the file may end in half a record, so that nothing may be appended until it is emptied.
    torn: bool,
}

/// A record as a journal holds it.
#[derive(Debug)]
pub(super) struct Journaled {
    number: u64,
    pub(super) record: AccountingRecord,
}

// === impl Segment ===

impl Segment {
    /// Opens both segments, and makes them if there are none.
    pub(super) fn open_both(ledger: &Path) -> Result<[Self; 2], StoreError> {
        let [a, b] = SEGMENTS;
        Ok([Self::open(ledger, a)?, Self::open(ledger, b)?])
    }

    fn open(ledger: &Path, end: &str) -> Result<Self, StoreError> {
        let path = path(ledger, end);
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let file = open.map_err(|source| failed(&path, source))?;
        Ok(Self { file, path, len: 0, torn: false })
    }

    /// Appends a framed record. After an error the segment holds what it held before.
    pub(super) fn append(&mut self, framed: &[u8]) -> std::io::Result<()> {
        if self.torn {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let written = self.file.write_all(framed);
        match &written {
            Ok(()) => self.len += u64::try_from(framed.len()).unwrap_or(0),
            Err(_) => self.torn = self.file.set_len(self.len).is_err(),
        }
        written
    }

    /// Empties the segment: its records are stored. Where that fails, the next open leaves out what is stored already.
    pub(super) fn empty(&mut self) {
        if self.len == 0 && !self.torn {
            return;
        }
        match self.file.set_len(0) {
            Ok(()) => (self.len, self.torn) = (0, false),
            Err(error) => {
                tracing::error!(%error, "the ledger's journal cannot be emptied");
                self.torn = true;
            }
        }
    }

    /// Returns a segment on a device without room.
    #[cfg(test)]
    pub(super) fn always_full(folder: &Path) -> Self {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        Self { file, path: folder.join("full"), len: 0, torn: false }
    }

    /// Removes the file; a file that cannot be removed is empty and harms nobody.
    pub(super) fn remove(mut self) {
        self.empty();
        let _kept = std::fs::remove_file(&self.path);
    }
}

/// Returns the header of a record: length, checksum, number; little-endian.
pub(super) fn header(number: u64, canonical: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let len = u32::try_from(canonical.len()).unwrap_or(u32::MAX);
    header[..4].copy_from_slice(&len.to_le_bytes());
    header[4..8].copy_from_slice(&crc32fast::hash(canonical).to_le_bytes());
    header[8..].copy_from_slice(&number.to_le_bytes());
    header
}

/// Reads what both segments hold, in the order of the appends.
///
/// # Errors
/// A segment cannot be read, or holds a record that this version does not know.
pub(super) fn left_over(ledger: &Path) -> Result<Vec<Journaled>, StoreError> {
    let mut found = Vec::new();
    for end in SEGMENTS {
        let path = path(ledger, end);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(mut file) => drop(file.read_to_end(&mut bytes).map_err(|source| failed(&path, source))?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(&path, source)),
        }
        let mut rest = bytes.as_slice();
        while let Some((number, canonical, after)) = next(rest) {
            let record = serde_json::from_slice(canonical).map_err(|_| unknown(&path))?;
            found.push(Journaled { number, record });
            rest = after;
        }
        if !rest.is_empty() {
            // Half a record, whose request was not answered; or what a loss of power left.
            tracing::warn!(
                bytes = rest.len(),
                "the end of the ledger's journal is no record and is left out"
            );
        }
    }
    found.sort_by_key(|journaled| journaled.number);
    Ok(found)
}

/// Takes the segments' files away, once everything in them is stored.
pub(super) fn remove_left_over(ledger: &Path) {
    for end in SEGMENTS {
        let _absent = std::fs::remove_file(path(ledger, end));
    }
}

/// Splits the first whole record off.
fn next(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (canonical, after) = rest.split_at_checked(len)?;
    (crc32fast::hash(canonical) == u32::from_le_bytes(*checksum)).then_some((
        u64::from_le_bytes(*number),
        canonical,
        after,
    ))
}

fn path(ledger: &Path, end: &str) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn failed(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Open { ledger: path.display().to_string(), source: source.into() }
}

/// The parser's message may quote the record; it goes no further.
fn unknown(path: &Path) -> StoreError {
    let source = "the journal holds a record that this version of gw does not know".into();
    StoreError::Open { ledger: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;

    use super::{Segment, header, left_over};
    use crate::encode::with_encoded;

    fn append(segment: &mut Segment, number: u32) {
        with_encoded(&sample_record(number), |encoded| {
            segment.append(encoded.framed(|canonical| header(number.into(), canonical))).unwrap();
        });
    }

    #[test]
    fn what_is_left_over_comes_back_in_order_without_a_torn_end() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("gw.db");
        let [mut a, mut b] = Segment::open_both(&ledger).unwrap();
        (3..=4).for_each(|number| append(&mut a, number));
        (1..=2).for_each(|number| append(&mut b, number));
        let found = |expected: &[u32]| {
            let records: Vec<_> = left_over(&ledger).unwrap().into_iter().map(|found| found.record).collect();
            let expected: Vec<_> = expected.iter().map(|number| sample_record(*number)).collect();
            assert_eq!(records, expected);
        };
        found(&[1, 2, 3, 4]);
        a.file.set_len(a.len - 1).unwrap();
        found(&[1, 2, 3]);
        b.empty();
        found(&[3]);
        append(&mut b, 9);
        found(&[3, 9]);
    }
}
