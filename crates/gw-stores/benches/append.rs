//! What a record costs the request that leaves it, and what it costs the writer.
//!
//! `append` is the request's side, alone; `stored` is one full batch from the first append until all of it is stored,
//! in records a second.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use gw_stores::{Durability, Expected, LedgerFile, MemoryLedger, SqlConfig, SqlLedger};
use gw_testkit::sample_record;
use gw_types::{AccountingRecord, IdSource, Ledger, RequestId, SequentialIds};

const BATCH: usize = 512;

fn main() {
    divan::main();
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs nothing").block_on(future)
}

fn sqlite(folder: &tempfile::TempDir, durability: Durability) -> Arc<SqlLedger> {
    let config = SqlConfig { queue: 8_192, batch: BATCH, durability };
    SqlLedger::open(&folder.path().join("gw.db"), config).expect("an empty folder takes a ledger")
}

/// Returns a record with an id of its own and with a place; waits for one if there is none.
fn record(ledger: &dyn Ledger, ids: &SequentialIds) -> Box<AccountingRecord> {
    while !ledger.take_place() {
        run(ledger.flush());
    }
    // As the system's ids are: milliseconds first (here 20 records each), then what looks like chance.
    let number = ids.next_id();
    let chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & u128::from(u64::MAX);
    let id = ((number / 20) << 80) | chance;
    Box::new(AccountingRecord { id: RequestId::from_bits(id), ..sample_record(7) })
}

#[divan::bench(args = [Durability::None, Durability::Process])]
fn append_sqlite(bencher: Bencher, durability: Durability) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ledger, ids) = (sqlite(&folder, durability), SequentialIds::default());
    bencher.with_inputs(|| record(&*ledger, &ids)).bench_local_values(|record| ledger.append(record));
}

#[divan::bench]
fn canonical(bencher: Bencher) {
    let record = sample_record(7);
    let mut into = Vec::new();
    bencher.bench_local(|| {
        into.clear();
        record.write_canonical(&mut into);
        into.len()
    });
}

#[divan::bench]
fn append_memory(bencher: Bencher) {
    let (ledger, ids) = (MemoryLedger::new(1_000), SequentialIds::default());
    bencher.with_inputs(|| record(&*ledger, &ids)).bench_local_values(|record| ledger.append(record));
}

#[divan::bench(args = [Durability::None, Durability::Process])]
fn stored_sqlite(bencher: Bencher, durability: Durability) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ledger, ids) = (sqlite(&folder, durability), SequentialIds::default());
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| (0..BATCH).map(|_| record(&*ledger, &ids)).collect::<Vec<_>>())
        .bench_local_values(|records| {
            for record in records {
                ledger.append(record);
            }
            run(ledger.flush());
        });
}

/// Records in the ledger that is verified.
const VERIFIED: usize = 100_000;

#[divan::bench(sample_count = 3, sample_size = 1)]
fn verified(bencher: Bencher) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ledger, ids) = (sqlite(&folder, Durability::None), SequentialIds::default());
    for _ in 0..VERIFIED {
        let record = record(&*ledger, &ids);
        ledger.append(record);
    }
    drop(ledger);
    let file = LedgerFile::open(&folder.path().join("gw.db")).expect("a ledger was made");
    bencher
        .counter(ItemsCount::new(VERIFIED))
        .bench_local(|| file.verify(&Expected::default()).expect("the ledger is there").is_whole());
}
