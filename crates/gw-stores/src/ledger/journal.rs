//! The journal: records that are not in the database yet, in a file that outlives the process.
//!
//! The file is mapped into memory, and a record is copied there: from then on it is the system's to keep, so what was
//! appended survives `kill -9` at once, without a call of the system, and no request waits for a transaction. On file
//! systems that need new room to overwrite a place, records are appended by write calls instead. Two segments take turns:
//! while the writer stores what the one holds, records go to the other; a stored segment is filled again from its
//! beginning. What is left over after a crash is stored by the next open.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use gw_types::AccountingRecord;
use memmap2::MmapMut;

use crate::{StoreError, encode::HEADER_BYTES};

/// How the segments' names end, after the ledger's own name.
const SEGMENTS: [&str; 2] = [".journal-a", ".journal-b"];

/// The least that a segment grows to, in bytes.
const BYTES_MIN: usize = 64 << 10;
/// A segment that has grown beyond this is cut off when it is emptied.
const BYTES_KEPT: usize = 2 << 20;

/// One of the two files.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    path: PathBuf,
    way: Way,
    /// Bytes that records take up.
    used: usize,
}

/// How records come into the file.
#[derive(Debug)]
enum Way {
    /// By copies into a map of the whole file; `None`: the file is empty.
    Mapped(Option<MmapMut>),
    /// By write calls.
    Written,
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
        let open = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path);
        let file = open.map_err(|source| failed(&path, source))?;
        let way = if overwrites_in_place(&file) { Way::Mapped(None) } else { Way::Written };
        Ok(Self { file, path, way, used: 0 })
    }

    /// Appends a framed record. After an error the segment holds what it held before.
    pub(super) fn append(&mut self, framed: &[u8]) -> std::io::Result<()> {
        let end = self.used + framed.len();
        match &mut self.way {
            Way::Mapped(map) => {
                if map.as_ref().is_none_or(|map| map.len() < end) {
                    grow(&mut self.file, map, end)?;
                }
                let room = map.as_mut().and_then(|map| map.get_mut(self.used..end));
                room.ok_or(std::io::ErrorKind::StorageFull)?.copy_from_slice(framed);
            }
            Way::Written => write_at(&mut self.file, self.used, framed)?,
        }
        self.used = end;
        Ok(())
    }

    /// Empties the segment: its records are stored. Where that fails, the next open leaves out what is stored already.
    pub(super) fn empty(&mut self) {
        if std::mem::take(&mut self.used) == 0 {
            return;
        }
        if let Way::Mapped(map) = &mut self.way {
            // Behind a header of zeros nothing is read, and later records end before what is left of older ones.
            if let Some(first) = map.as_mut().and_then(|map| map.first_chunk_mut::<HEADER_BYTES>()) {
                *first = [0; HEADER_BYTES];
            }
            if map.as_ref().is_some_and(|map| map.len() <= BYTES_KEPT) {
                return;
            }
            *map = None;
        }
        if let Err(error) = self.file.set_len(0) {
            tracing::warn!(%error, "the ledger's journal cannot be cut off");
        }
    }

    /// Returns a segment on a device without room.
    #[cfg(test)]
    pub(super) fn always_full(folder: &Path) -> Self {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        Self { file, path: folder.join("full"), way: Way::Mapped(None), used: 0 }
    }

    /// Removes the file; a file that cannot be removed is empty and harms nobody.
    pub(super) fn remove(mut self) {
        self.empty();
        let _kept = std::fs::remove_file(&self.path);
    }
}

/// Makes room for this many bytes and maps it. All of it is written once: a place in a mapped file for which its disk has
/// no room would end the process.
fn grow(file: &mut File, map: &mut Option<MmapMut>, least: usize) -> std::io::Result<()> {
    let len = map.as_ref().map_or(0, |map| map.len());
    let wanted = least.max(len * 2).max(BYTES_MIN);
    write_at(file, len, &vec![0; wanted - len])?;
    #[expect(unsafe_code, reason = "nobody can promise what other processes do to a file")]
    // SAFETY: the map is never read, so what somebody else writes to the file is seen by nobody here; the ledger's lock
    // keeps other gateways away. Who cuts the file off kills the process, which the journal is there to survive.
    let grown = unsafe { MmapMut::map_mut(&*file) }?;
    *map = Some(grown);
    Ok(())
}

fn write_at(file: &mut File, at: usize, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(u64::try_from(at).unwrap_or(u64::MAX)))?;
    file.write_all(bytes)
}

/// Returns whether the file system overwrites a place where it stands. One that looks for new room each time may find the
/// disk full, which ends a process that writes through a map; one that is not known to be of the first kind counts as such.
fn overwrites_in_place(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        // By the numbers of statfs(2): ext2 to ext4, XFS, tmpfs.
        const IN_PLACE: [u64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];
        rustix::fs::fstatfs(file)
            .is_ok_and(|of| u64::try_from(of.f_type).is_ok_and(|kind| IN_PLACE.contains(&kind)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _unknown = file;
        false
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
        // Behind the last record stands half of one, whose request was not answered, or what an earlier turn has left:
        // numbers only rise.
        let (mut rest, mut last) = (bytes.as_slice(), 0);
        while let Some((number, canonical, after)) = next(rest).filter(|(number, ..)| *number > last) {
            let record = serde_json::from_slice(canonical).map_err(|_| unknown(&path))?;
            found.push(Journaled { number, record });
            (rest, last) = (after, number);
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

    use super::{BYTES_KEPT, Segment, Way, header, left_over, write_at};
    use crate::encode::with_encoded;

    const WAYS: [fn() -> Way; 2] = [|| Way::Mapped(None), || Way::Written];

    fn open_both(folder: &tempfile::TempDir, way: fn() -> Way) -> (std::path::PathBuf, [Segment; 2]) {
        let ledger = folder.path().join("gw.db");
        let both = Segment::open_both(&ledger).unwrap();
        (ledger, both.map(|segment| Segment { way: way(), ..segment }))
    }

    fn append(segment: &mut Segment, number: u32) {
        with_encoded(&sample_record(number), |encoded| {
            segment.append(encoded.framed(|canonical| header(number.into(), canonical))).unwrap();
        });
    }

    #[test]
    fn what_is_left_over_comes_back_in_order_without_a_torn_end() {
        for way in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let (ledger, [mut a, mut b]) = open_both(&folder, way);
            (3..=4).for_each(|number| append(&mut a, number));
            append(&mut b, 1);
            let first = b.used;
            append(&mut b, 2);
            let found = |expected: &[u32]| {
                let found: Vec<_> =
                    left_over(&ledger).unwrap().into_iter().map(|found| found.record).collect();
                let expected: Vec<_> = expected.iter().map(|number| sample_record(*number)).collect();
                assert_eq!(found, expected);
            };
            found(&[1, 2, 3, 4]);
            // A torn record ends its segment, and the next one takes its place.
            let torn = a.used - 1;
            write_at(&mut a.file, torn, b"?").unwrap();
            found(&[1, 2, 3]);
            b.empty();
            found(&[3]);
            // What an earlier turn has left behind a new record is not read, though it is whole.
            append(&mut b, 9);
            assert_eq!(b.used, first);
            found(&[3, 9]);
        }
    }

    #[test]
    fn a_segment_grows_and_is_cut_off_again() {
        for way in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let (ledger, [mut a, _b]) = open_both(&folder, way);
            let mut number = 0;
            while a.used <= BYTES_KEPT {
                number += 1;
                append(&mut a, number);
            }
            let all = left_over(&ledger).unwrap();
            assert_eq!(all.len(), usize::try_from(number).unwrap());
            assert!(all.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
            a.empty();
            assert_eq!(a.file.metadata().unwrap().len(), 0);
            append(&mut a, number + 1);
            assert_eq!(left_over(&ledger).unwrap().len(), 1);
        }
    }
}
