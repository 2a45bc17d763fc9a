//! The file: what it refuses, what it survives, and what happens while it cannot be written.

use std::{path::Path, sync::Arc};

use gw_testkit::sample_record;
use gw_types::{
    KeyNote, KeyState, Ledger, LedgerPlace, Receipt, RecordQuery, RequestId, SealHash, TenantId, UtcTime,
};
use rusqlite::Connection;

use super::{Durability, SqlConfig, SqlLedger};
use crate::StoreError;

const NEWEST: RecordQuery = RecordQuery { tenant: None, node: None, before: None, limit: 10 };

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

fn open(path: &Path) -> Result<Arc<SqlLedger>, StoreError> {
    SqlLedger::open(path, SqlConfig::default())
}

fn append(ledger: &Arc<SqlLedger>, number: u32) {
    let ledger: Arc<dyn Ledger> = ledger.clone();
    LedgerPlace::take(ledger).unwrap().append(Box::new(sample_record(number)));
}

#[test]
fn dropping_stores_what_is_queued_and_tidies_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = open(&path).unwrap();
    (1..=1_000).for_each(|number| append(&ledger, number));
    drop(ledger);
    let mut files: Vec<_> =
        folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["gw.db", "gw.db.lock"]);
    let ledger = open(&path).unwrap();
    let page = run(ledger.records(NEWEST)).unwrap();
    assert_eq!(
        page.iter().map(|stored| stored.seq).collect::<Vec<_>>(),
        (991..=1_000).rev().collect::<Vec<_>>()
    );
    assert_eq!(page[0].record, sample_record(1_000));
}

#[test]
fn numbering_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    for number in 1..=2 {
        let ledger = open(&path).unwrap();
        append(&ledger, number);
        run(ledger.flush());
        assert_eq!(run(ledger.records(NEWEST)).unwrap()[0].seq, u64::from(number));
    }
}

#[test]
fn one_writer_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = open(&path).unwrap();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for other in [&path, &link] {
        let error = open(other).unwrap_err();
        assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    }
    drop(ledger);
    // The lock file is still there, and blocks nobody.
    assert!(folder.path().join("gw.db.lock").exists());
    assert!(open(&link).is_ok());
}

/// Makes a file by SQL and returns why it is refused.
fn refusal(sql: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let error = open(&path).unwrap_err();
    error.to_string().replace(&folder.path().canonicalize().unwrap().display().to_string(), "FOLDER")
}

#[test]
fn refuses_what_it_does_not_know() {
    assert_eq!(
        refusal("PRAGMA user_version = 5"),
        "the ledger `FOLDER/gw.db` has version 5, and this gw knows versions up to 4"
    );
    assert_eq!(
        refusal("CREATE TABLE songs (title TEXT)"),
        "`FOLDER/gw.db` is a database, but not a ledger of gw"
    );
}

#[test]
fn refuses_files_that_are_no_database_and_folders_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    std::fs::write(&path, "not a database, and longer than the header of one: ".repeat(20)).unwrap();
    for path in [path, folder.path().join("missing/gw.db")] {
        let error = open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[test]
fn refuses_queues_and_batches_out_of_range() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    for (config, expected) in [
        (
            SqlConfig { queue: 0, batch: 1, ..SqlConfig::default() },
            "the ledger's queue must be 1 to 1048576, not 0",
        ),
        (
            SqlConfig { queue: 1, batch: 0, ..SqlConfig::default() },
            "the ledger's batch must be 1 to 65536, not 0",
        ),
    ] {
        assert_eq!(SqlLedger::open(&path, config).unwrap_err().to_string(), expected);
    }
    assert!(!path.exists());
}

#[test]
fn keeps_everything_while_the_file_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = open(&path).unwrap();
    append(&ledger, 1);
    run(ledger.flush());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    append(&ledger, 2);
    run(async { ledger.progress.clone().wait_for(|now| now.failing).await.unwrap().stored });
    assert!(ledger.is_failing());
    assert!(!ledger.take_place());
    // Reads do not wait for what cannot be stored now.
    assert_eq!(run(ledger.records(NEWEST)).unwrap().len(), 1);
    other.execute_batch("COMMIT").unwrap();
    run(ledger.flush());
    assert_eq!(run(ledger.records(NEWEST)).unwrap().len(), 2);
    assert!(!ledger.is_failing());
    assert!(ledger.take_place());
    ledger.give_place_back();
}

/// Closes a ledger whose file stays locked, and returns how many records the next open finds.
fn found_after_a_close_under_a_lock(durability: Durability) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = SqlLedger::open(&path, SqlConfig { durability, ..SqlConfig::default() }).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    append(&ledger, 1);
    drop(ledger);
    other.execute_batch("COMMIT").unwrap();
    run(open(&path).unwrap().records(NEWEST)).unwrap().len()
}

#[test]
fn closing_gives_up_a_file_that_stays_locked_and_the_journal_keeps_its_records() {
    assert_eq!(found_after_a_close_under_a_lock(Durability::None), 0);
    assert_eq!(found_after_a_close_under_a_lock(Durability::Process), 1);
}

#[test]
fn places_are_taken_until_the_record_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let config = SqlConfig { queue: 2, batch: 1, ..SqlConfig::default() };
    let ledger = SqlLedger::open(&folder.path().join("gw.db"), config).unwrap();
    assert_eq!([ledger.take_place(), ledger.take_place(), ledger.take_place()], [true, true, false]);
    ledger.append(Box::new(sample_record(1)));
    run(ledger.flush());
    assert_eq!([ledger.take_place(), ledger.take_place()], [true, false]);
    ledger.give_place_back();
    assert_eq!([ledger.take_place(), ledger.take_place()], [true, false]);
}

#[test]
fn a_journal_whose_records_are_stored_already_is_not_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = open(&path).unwrap();
    (1..=3).for_each(|number| append(&ledger, number));
    // As if the process had died between the commit and the emptying of its journal, with two more records there.
    let segments = [".journal-a", ".journal-b"].map(|end| folder.path().join(format!("gw.db{end}")));
    let held = segments.each_ref().map(|path| std::fs::read(path).unwrap());
    let put_back = || segments.iter().zip(&held).for_each(|(path, held)| std::fs::write(path, held).unwrap());
    drop(ledger);
    assert!(segments.iter().all(|path| !path.exists()));
    put_back();
    let more = SqlLedger::open(&path, SqlConfig::default()).unwrap();
    assert_eq!(run(more.records(NEWEST)).unwrap().len(), 3);
    drop(more);
    std::fs::remove_file(&path).unwrap();
    put_back();
    let page = run(open(&path).unwrap().records(NEWEST)).unwrap();
    assert_eq!(
        page.into_iter().map(|stored| stored.record).collect::<Vec<_>>(),
        [3, 2, 1].map(sample_record)
    );
}

#[test]
fn receipts_resolve_as_the_durability_says() {
    let folder = tempfile::tempdir().unwrap();
    for (durability, waits) in
        [(Durability::None, false), (Durability::Process, false), (Durability::Power, true)]
    {
        let path = folder.path().join(format!("{durability:?}.db"));
        let ledger = SqlLedger::open(&path, SqlConfig { durability, ..SqlConfig::default() }).unwrap();
        for number in 1..=3 {
            let receipt = LedgerPlace::take(ledger.clone() as Arc<dyn Ledger>)
                .unwrap()
                .append(Box::new(sample_record(number)));
            match receipt {
                Receipt::Queued => assert!(!waits),
                Receipt::Pending(stored) => {
                    assert!(waits);
                    run(stored).unwrap();
                    let count = "SELECT tip_seq FROM chain";
                    let stored: u32 =
                        Connection::open(&path).unwrap().query_row(count, [], |row| row.get(0)).unwrap();
                    assert_eq!(stored, number);
                }
            }
        }
    }
}

#[test]
fn keeps_everything_while_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(&folder.path().join("gw.db")).unwrap();
    run(ledger.order(|_, db| {
        let used = db.one("PRAGMA page_count", &[], |row| row.int(0))?;
        db.batch(&format!("PRAGMA max_page_count = {used}"))
    }))
    .unwrap();
    // They were admitted before the disk was full.
    (1..=500).for_each(|_| assert!(ledger.take_place()));
    (1..=500).for_each(|number| drop(ledger.append(Box::new(sample_record(number)))));
    run(async { ledger.progress.clone().wait_for(|now| now.failing).await.unwrap().stored });
    assert!(!ledger.take_place());
    assert!(ledger.is_failing());
    drop(ledger);
    // The writer gave up at the end, and the journal has kept every record.
    let again = open(&folder.path().join("gw.db")).unwrap();
    let all = RecordQuery { limit: 1_000, ..NEWEST };
    assert_eq!(run(again.records(all)).unwrap().len(), 500);
}

#[test]
fn a_row_that_was_tampered_with_is_an_error_and_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = open(&path).unwrap();
    append(&ledger, 1);
    run(ledger.flush());
    Connection::open(&path).unwrap().execute_batch("UPDATE blocks SET records = '{\"canary\":1}\n'").unwrap();
    let error = run(ledger.record(&sample_record(1).id)).unwrap_err();
    assert_eq!(error.to_string(), "the ledger holds a row that cannot be read");
    assert!(!format!("{error:?}").contains("canary"));
}

#[test]
fn idempotency_keys_survive_and_the_latest_state_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gw.db");
    let day = 24 * 60 * 60 * 1_000_000;
    let note = |key: &[u8], state, since| KeyNote {
        tenant: TenantId::new("wholesale").unwrap(),
        key: SealHash::of_record(key),
        fingerprint: SealHash::of_record(b"body"),
        request: RequestId::from_bits(7),
        state,
        since: UtcTime::from_micros(since),
    };
    let ledger = open(&path).unwrap();
    let keep = |note: KeyNote| match ledger.note_key(note) {
        Receipt::Queued => panic!("it says when it is stored"),
        Receipt::Pending(stored) => run(stored).unwrap(),
    };
    keep(note(b"old", KeyState::Dispatched, 1));
    for (key, last) in [(b"1", KeyState::Dispatched), (b"2", KeyState::Answered), (b"3", KeyState::Released)]
    {
        keep(note(key, KeyState::Dispatched, day + 2));
        keep(note(key, last, day + 2));
    }
    drop(ledger);
    let again = open(&path).unwrap();
    let mut found = run(again.key_notes_since(UtcTime::from_micros(0))).unwrap();
    found.sort_by_key(|note| note.state == KeyState::Answered);
    // What is older than a day is gone.
    let expected = [note(b"1", KeyState::Dispatched, day + 2), note(b"2", KeyState::Answered, day + 2)];
    assert_eq!(found, expected);
    assert_eq!(run(again.key_notes_since(UtcTime::from_micros(day + 3))).unwrap(), []);
}
