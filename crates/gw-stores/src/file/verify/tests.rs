//! Every way to tamper with a ledger that the check must name.

use gw_testkit::sample_record;
use gw_types::{Ledger, LedgerPlace, SealHash, UtcTime};

use super::{ChainFault, Expected, Verified};
use crate::{
    CheckpointKey, LedgerFile, LedgerStore, RetainedNodes, SqlConfig, SqlLedger,
    home::{Home, on_both},
    ledger::make,
    sql::{Db, SqlError, Value},
};

const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

on_both!(
    a_ledger_that_nobody_touched_is_whole,
    an_empty_ledger_is_whole,
    a_flipped_byte_names_its_record,
    a_deleted_record_is_named,
    a_cut_end_is_named,
    a_swapped_record_is_named,
    an_added_record_is_named,
    a_start_that_was_moved_is_named,
    a_forged_checkpoint_is_named,
    sums_that_were_altered_are_named,
    what_is_known_outside_unmasks_who_writes_the_whole_chain_again,
    deleting_by_age_keeps_the_chain_whole_and_cannot_be_feigned,
);

fn key() -> CheckpointKey {
    CheckpointKey::from_secret(SECRET).unwrap()
}

/// Makes a closed ledger of twenty records in blocks of 4, 8, 5 and 3, with a signed checkpoint at its end.
fn ledger(home: &Home) -> LedgerStore {
    let store = home.store();
    make(&store, key(), &[4, 8, 5, 3]);
    store
}

/// Does something to a ledger behind gw's back, as whoever may write its tables.
fn tamper<T>(store: &LedgerStore, tamper: impl FnOnce(&Db) -> Result<T, SqlError>) -> T {
    let (db, _lock) = store.open_to_change().unwrap();
    if db.is_remote() {
        // What SQLite has of its own.
        let zeroes = "CREATE OR REPLACE FUNCTION gw.zeroblob(count INT) RETURNS BYTEA
            AS $$ SELECT decode(repeat('00', count), 'hex') $$ LANGUAGE sql";
        db.batch(zeroes).unwrap();
    }
    let node = db.nodes().unwrap()[0];
    db.at_node(node, tamper).unwrap()
}

fn append(ledger: &std::sync::Arc<SqlLedger>, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let place = LedgerPlace::take(ledger.clone() as std::sync::Arc<dyn Ledger>).unwrap();
        place.append(Box::new(sample_record(number)));
    }
}

fn verify(store: &LedgerStore, expected: &Expected) -> Verified {
    LedgerFile::open(store).unwrap().verify(expected).unwrap()
}

/// Tampers with a ledger by SQL and compares what is found.
fn check(home: &Home, sql: &str, expected: ChainFault) {
    let store = ledger(home);
    tamper(&store, |db| db.batch(sql));
    let found = verify(&store, &Expected::default());
    assert_eq!(found.fault, Some(expected), "{sql}");
    assert!(!found.is_whole());
}

fn a_ledger_that_nobody_touched_is_whole(home: &Home) {
    let path = ledger(home);
    let signer = Some(key().signer());
    let found = verify(&path, &Expected { signer, known: None });
    assert_eq!((found.records, found.last.0, found.checkpoints, found.fault), (20, 20, 1, None));
    // It goes on, and stays whole, also while a gateway has it open.
    let ledger = SqlLedger::open(&path, SqlConfig::default()).unwrap();
    append(&ledger, 21..=30);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(ledger.flush());
    let more = verify(&path, &Expected { signer, known: Some(found.last) });
    assert_eq!((more.records, more.fault), (30, None));
}

fn an_empty_ledger_is_whole(home: &Home) {
    let path = home.store();
    drop(SqlLedger::open(&path, SqlConfig::default()).unwrap());
    assert_eq!(verify(&path, &Expected::default()).fault, None);
}

/// One block as somebody who tampers with it sees it: a line, a tag and a key a record.
type Lines = Vec<(String, Vec<u8>, Vec<u8>)>;

/// Tampers with the lines of the block that ends with a record, and compares what is found.
fn check_lines(home: &Home, last: i64, alter: impl FnOnce(&mut Lines), expected: ChainFault) {
    let store = ledger(home);
    tamper(&store, |db| {
        let read = "SELECT records, tags, id_keys FROM blocks WHERE last_seq = ?1";
        let (text, tags, keys) = db.one(read, &[Value::Int(last)], |row| {
            Ok((row.text(0)?.to_owned(), row.bytes(1)?.to_owned(), row.bytes(2)?.to_owned()))
        })?;
        let parts = tags.chunks(8).zip(keys.chunks(8));
        let mut lines: Lines = text
            .lines()
            .zip(parts)
            .map(|(line, (tag, key))| (line.to_owned(), tag.to_owned(), key.to_owned()))
            .collect();
        alter(&mut lines);
        let text: String = lines.iter().map(|(line, ..)| format!("{line}\n")).collect();
        let tags: Vec<u8> = lines.iter().flat_map(|(_, tag, _)| tag.clone()).collect();
        let keys: Vec<u8> = lines.iter().flat_map(|(.., key)| key.clone()).collect();
        let update = "UPDATE blocks SET records = ?2, tags = ?3, id_keys = ?4 WHERE last_seq = ?1";
        let (tags, keys) = (Value::Bytes(&tags), Value::Bytes(&keys));
        db.execute(update, &[Value::Int(last), Value::Text(&text), tags, keys])
    });
    assert_eq!(verify(&store, &Expected::default()).fault, Some(expected));
}

fn a_flipped_byte_names_its_record(home: &Home) {
    let altered = |seq| ChainFault::Altered { seq };
    check_lines(home, 12, |lines| lines[2].0 = lines[2].0.replace("order-17", "order-18"), altered(7));
    check_lines(home, 12, |lines| lines[7].0 = lines[7].0.replace("order-17", "order-18"), altered(12));
    check_lines(home, 12, |lines| lines[3].1[0] ^= 1, altered(8));
    check_lines(home, 4, |lines| lines[1].2[0] ^= 1, altered(2));
    check_lines(home, 4, |lines| lines[1].2 = (-1_i64).to_le_bytes().to_vec(), altered(2));
    check(home, "UPDATE blocks SET hash = zeroblob(32) WHERE last_seq = 20", altered(20));
    check(home, "UPDATE blocks SET max_key = 0, min_key = 0 WHERE last_seq = 12", altered(5));
    check(home, "UPDATE blocks SET first_seq = 4 WHERE last_seq = 12", altered(5));
    check(home, "UPDATE blocks SET records = '' WHERE last_seq = 12", ChainFault::Missing { seq: 5 });
}

fn a_deleted_record_is_named(home: &Home) {
    check_lines(home, 12, |lines| drop(lines.remove(2)), ChainFault::Missing { seq: 7 });
    check_lines(home, 12, |lines| drop(lines.pop()), ChainFault::Missing { seq: 12 });
    check(home, "DELETE FROM blocks WHERE last_seq = 12", ChainFault::Missing { seq: 5 });
    check(home, "DELETE FROM blocks WHERE last_seq <= 12", ChainFault::Missing { seq: 1 });
    let close_up = "DELETE FROM blocks WHERE last_seq = 12;
        UPDATE blocks SET first_seq = first_seq - 8, last_seq = last_seq - 8 WHERE last_seq > 12;";
    check(home, close_up, ChainFault::Altered { seq: 5 });
}

fn a_cut_end_is_named(home: &Home) {
    let cut = |seq| ChainFault::Cut { seq, end: 20 };
    check(home, "DELETE FROM blocks WHERE last_seq = 20", cut(17));
    check(home, "DELETE FROM blocks", cut(0));
    // The anchor was moved too, and the signed checkpoint tells.
    check(
        home,
        "DELETE FROM blocks WHERE last_seq > 12;
         UPDATE chain SET tip_seq = 12, tip_hash = (SELECT hash FROM blocks WHERE last_seq = 12)",
        cut(12),
    );
    check(home, "UPDATE chain SET tip_hash = zeroblob(32)", ChainFault::Altered { seq: 20 });
}

fn a_swapped_record_is_named(home: &Home) {
    let moved = ChainFault::Reordered { seq: 6, at: 9 };
    check_lines(home, 12, |lines| lines.swap(1, 4), moved);
    let contents = |lines: &mut Lines| {
        let (a, b) = (lines[1].clone(), lines[4].clone());
        ((lines[1].0, lines[1].2), (lines[4].0, lines[4].2)) = ((b.0, b.2), (a.0, a.2));
    };
    check_lines(home, 12, contents, moved);
    let blocks = "CREATE TEMP TABLE two AS SELECT * FROM blocks WHERE last_seq IN (4, 12);
        UPDATE blocks SET (hash, tags, id_keys, records) = (SELECT hash, tags, id_keys, records FROM two WHERE last_seq = 12)
            WHERE last_seq = 4;
        UPDATE blocks SET (hash, tags, id_keys, records) = (SELECT hash, tags, id_keys, records FROM two WHERE last_seq = 4)
            WHERE last_seq = 12;";
    check(home, blocks, ChainFault::Reordered { seq: 1, at: 5 });
}

fn an_added_record_is_named(home: &Home) {
    check(
        home,
        "INSERT INTO blocks SELECT 23, 21, kind, hash, min_key, max_key, tags, id_keys, records FROM blocks
         WHERE last_seq = 20",
        ChainFault::Added { seq: 21 },
    );
    check_lines(home, 12, |lines| lines.push(lines[0].clone()), ChainFault::Altered { seq: 13 });
}

fn a_start_that_was_moved_is_named(home: &Home) {
    check(
        home,
        "UPDATE chain SET base_seq = 4, base_hash = (SELECT hash FROM blocks WHERE last_seq = 4);
         DELETE FROM blocks WHERE last_seq = 4;",
        ChainFault::Start { seq: 5 },
    );
    check(home, "UPDATE chain SET ledger = zeroblob(16)", ChainFault::Start { seq: 1 });
}

fn a_forged_checkpoint_is_named(home: &Home) {
    let at = ChainFault::Checkpoint { seq: 20 };
    check(home, "UPDATE checkpoints SET signature = zeroblob(64)", at);
    check(home, "UPDATE checkpoints SET newest = newest + 1", at);
    check(home, "UPDATE checkpoints SET hash = zeroblob(32)", at);
}

fn sums_that_were_altered_are_named(home: &Home) {
    // 2030-01-01T00:00:00Z.
    let fault = ChainFault::Sums { bucket: 1_893_456_000_000_000 };
    check(home, "UPDATE sums SET spent_pico = 1 WHERE deployment = 'embed'", fault);
    check(home, "UPDATE sums SET requests = requests + 1 WHERE deployment = 'eu'", fault);
    check(home, "DELETE FROM sums WHERE deployment = 'eu'", fault);
    check(home, "UPDATE sums SET tenant = 'retail'", fault);
}

fn what_is_known_outside_unmasks_who_writes_the_whole_chain_again(home: &Home) {
    let forged = ledger(home);
    let known = (20, SealHash::of_record(b"another chain"));
    let expected = Expected { known: Some(known), signer: None };
    assert_eq!(verify(&forged, &expected).fault, Some(ChainFault::Known { seq: 20 }));
    let expected = Expected { known: Some((25, known.1)), signer: None };
    assert_eq!(verify(&forged, &expected).fault, Some(ChainFault::Cut { seq: 20, end: 25 }));
    let other = CheckpointKey::from_secret(&"11".repeat(32)).unwrap().signer();
    let expected = Expected { signer: Some(other), known: None };
    assert_eq!(verify(&forged, &expected).fault, Some(ChainFault::Checkpoint { seq: 20 }));
    tamper(&forged, |db| db.batch("DELETE FROM checkpoints"));
    assert_eq!(verify(&forged, &expected).fault, Some(ChainFault::Unsigned));
}

fn deleting_by_age_keeps_the_chain_whole_and_cannot_be_feigned(home: &Home) {
    let path = ledger(home);
    let before = UtcTime::from_micros(sample_record(11).started.micros());
    let wanted = LedgerFile::open(&path).unwrap().retainable(before).unwrap();
    let retained = LedgerFile::retain(&path, before, None).unwrap();
    let (_, first) = retained.nodes[0];
    assert_eq!((first.seq, first.requests), (10, 10));
    assert_eq!(wanted, retained);
    assert_eq!(LedgerFile::retain(&path, before, None).unwrap(), RetainedNodes::default());
    let found = verify(&path, &Expected::default());
    assert_eq!((found.records, found.last.0, found.fault), (10, 21, None));
    let all = UtcTime::from_micros(i64::MAX);
    let (_, again) = LedgerFile::retain(&path, all, Some(&key())).unwrap().nodes[0];
    assert_eq!((again.seq, again.requests), (20, 10));
    let found = verify(&path, &Expected::default());
    assert_eq!((found.records, found.last.0, found.fault), (0, 22, None));
    // The checkpoints of what is gone went with it; the new end is signed again.
    let signed = verify(&path, &Expected { signer: Some(key().signer()), known: None });
    assert_eq!((signed.checkpoints, signed.fault), (1, None));
    // The sums of what is gone are still there, and still guarded.
    tamper(&path, |db| db.batch("UPDATE sums SET spent_pico = 0"));
    assert!(matches!(verify(&path, &Expected::default()).fault, Some(ChainFault::Sums { .. })));
    // A base without its summary is no base.
    tamper(&path, |db| db.batch("UPDATE chain SET base_seq = 21, base_hash = tip_hash"));
    assert_eq!(verify(&path, &Expected::default()).fault, Some(ChainFault::Start { seq: 22 }));
}
