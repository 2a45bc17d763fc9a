//! Several gateways on one PostgreSQL database: a chain each, and one ledger to whoever reads.

use std::sync::Arc;

use gw_stores::{
    CheckpointKey, Expected, ExportFormat, KeyBook, KeyRow, LedgerFile, LedgerStore, Period, SqlConfig,
    SqlLedger, StoreError,
};
use gw_testkit::{PostgresServer, sample_record};
use gw_types::{
    KeyName, KeyNote, KeyState, Ledger, LedgerPlace, Receipt, RecordQuery, RequestId, SealHash, TenantId,
    UtcTime,
};

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

fn key() -> CheckpointKey {
    CheckpointKey::from_secret(&"11".repeat(32)).unwrap()
}

fn store(server: &PostgresServer) -> LedgerStore {
    LedgerStore::Postgres { url: server.database().unwrap().parse().unwrap(), tls: None }
}

fn open(store: &LedgerStore) -> Arc<SqlLedger> {
    SqlLedger::open_signed(store, SqlConfig::default(), key()).unwrap()
}

fn append(ledger: &Arc<SqlLedger>, number: u32) {
    let place = LedgerPlace::take(ledger.clone() as Arc<dyn Ledger>).unwrap();
    match place.append(Box::new(sample_record(number))) {
        Receipt::Queued => panic!("it says when it is committed"),
        Receipt::Pending(stored) => run(stored).unwrap(),
    }
}

fn verify(store: &LedgerStore) -> Vec<(i64, u64)> {
    let file = LedgerFile::open(store).unwrap();
    let expected = Expected { signer: None, known: None };
    let each = |node: i64| {
        let found = file.verify_node(node, &expected).unwrap();
        assert_eq!(found.fault, None, "node {node}");
        (node, found.records)
    };
    file.nodes().unwrap().into_iter().map(each).collect()
}

#[test]
fn gateways_keep_a_chain_each_and_go_on_with_the_ones_that_are_free() {
    let server = PostgresServer::start().unwrap();
    let store = store(&server);
    let (first, second) = (open(&store), open(&store));
    append(&first, 1);
    append(&second, 2);
    append(&second, 3);
    assert_eq!(verify(&store), [(1, 1), (2, 2)]);
    // Each lists its own, and finds what the other has, with its proof where that is signed.
    let newest = RecordQuery { tenant: None, node: None, before: None, limit: 10 };
    assert_eq!(run(first.records(newest)).unwrap().len(), 1);
    assert_eq!(run(first.record(&sample_record(3).id)).unwrap().unwrap().record, sample_record(3));
    let error = run(first.signed_receipt(&sample_record(3).id)).unwrap_err();
    assert_eq!(error.to_string(), "the gateway that holds the record's chain has not signed it yet");
    let receipt = run(second.signed_receipt(&sample_record(3).id)).unwrap().unwrap();
    assert_eq!(receipt.verify(&key().signer()), Ok(()));
    assert_eq!(run(first.signed_receipt(&sample_record(3).id)).unwrap().unwrap().seq(), 2);
    // Budgets count what all of them have spent.
    let spent = run(first.spend_since(UtcTime::from_micros(0))).unwrap();
    assert_eq!(spent.iter().map(|row| row.spent.pico()).sum::<u128>(), 6 * 1_000_000 + 3 * 3);
    drop(first);
    let third = open(&store);
    append(&third, 4);
    assert_eq!(verify(&store), [(1, 2), (2, 2)]);
    let mut export = Vec::new();
    let file = LedgerFile::open(&store).unwrap();
    assert_eq!(file.export(ExportFormat::JsonLines, Period::default(), None, &mut export).unwrap(), 4);
    let nodes: Vec<_> = String::from_utf8(export)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| (line["node"].as_i64().unwrap(), line["seq"].as_u64().unwrap()))
        .collect();
    assert_eq!(nodes, [(1, 1), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(file.report(Period::default(), &[]).unwrap()[0].sums.requests, 4);
    // Only what no gateway holds is deleted by age.
    drop(third);
    let all = UtcTime::from_micros(i64::MAX);
    let retained = LedgerFile::retain(&store, all, Some(&key())).unwrap();
    assert_eq!(retained.nodes.iter().map(|(node, old)| (*node, old.requests)).collect::<Vec<_>>(), [(1, 2)]);
    assert_eq!(retained.in_use, [2]);
    assert_eq!(verify(&store), [(1, 0), (2, 2)]);
}

#[test]
fn keys_and_idempotency_keys_are_the_ledgers_and_no_nodes() {
    let server = PostgresServer::start().unwrap();
    let store = store(&server);
    let mut book = KeyBook::open(&store).unwrap();
    let row = KeyRow {
        tenant: TenantId::new("a").unwrap(),
        name: KeyName::new("one").unwrap(),
        entry: "{}".to_owned(),
        created: UtcTime::from_micros(1),
        revoked: None,
    };
    assert!(book.add(&row).unwrap());
    assert!(!book.add(&row).unwrap(), "a name is taken once");
    let (first, second) = (open(&store), open(&store));
    assert!(book.replace(&row, "{ x = 1 }").unwrap());
    assert!(!book.replace(&row, "{ x = 2 }").unwrap(), "it is another one meanwhile");
    let (changes, rows) = KeyBook::read(&store).unwrap();
    assert_eq!((changes, rows[0].entry.as_str()), (2, "{ x = 1 }"));
    assert!(book.revoke(&row.tenant, &row.name, UtcTime::from_micros(9)).unwrap());
    assert_eq!(KeyBook::read(&store).unwrap(), (3, Vec::new()));
    assert_eq!(book.rows().unwrap()[0].revoked, Some(UtcTime::from_micros(9)));
    let note = KeyNote {
        tenant: row.tenant,
        key: SealHash::of_record(b"key"),
        fingerprint: SealHash::of_record(b"body"),
        request: RequestId::from_bits(7),
        state: KeyState::Dispatched,
        since: UtcTime::from_micros(5),
    };
    for state in [KeyState::Dispatched, KeyState::Answered] {
        let Receipt::Pending(stored) = first.note_key(KeyNote { state, ..note.clone() }) else {
            panic!("it says when it is stored")
        };
        run(stored).unwrap();
    }
    let found = run(second.key_notes_since(UtcTime::from_micros(0))).unwrap();
    assert_eq!(found, [KeyNote { state: KeyState::Answered, ..note }]);
}

#[test]
fn refuses_what_it_does_not_know() {
    let server = PostgresServer::start().unwrap();
    let store = store(&server);
    let sql = |sql: &str| server.sql("gw0", sql).unwrap();
    let refused = || match SqlLedger::open(&store, SqlConfig::default()).unwrap_err() {
        StoreError::NotALedger { .. } => "not a ledger".to_owned(),
        error => error.to_string().replace(&store.to_string(), "DB"),
    };
    let error = LedgerFile::open(&store).unwrap_err();
    assert!(matches!(error, StoreError::Older { found: 0, .. }), "{error}");
    sql("CREATE SCHEMA gw; CREATE TABLE gw.songs (title TEXT)");
    assert_eq!(refused(), "not a ledger");
    sql("DROP TABLE gw.songs");
    drop(open(&store));
    sql("UPDATE gw.migrations SET digest = 'x'");
    assert_eq!(refused(), "the tables of the ledger `DB` were not made by migration 1 of this gw");
    sql("INSERT INTO gw.migrations VALUES (7, '')");
    assert_eq!(refused(), "the ledger `DB` has version 7, and this gw knows versions up to 1");
    let nobody = LedgerStore::Postgres { url: server.url("nothing").parse().unwrap(), tls: None };
    let error = SqlLedger::open(&nobody, SqlConfig::default()).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "PostgreSQL says: database \"nothing\" does not exist (3D000)");
}
