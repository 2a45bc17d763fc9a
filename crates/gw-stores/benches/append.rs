//! What a record costs the request that leaves it, and what it costs the writer.
//!
//! `append` is the request's side, alone; `stored` is one full batch from the first append until all of it is stored,
//! in records a second.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use gw_stores::{MemoryLedger, SqliteConfig, SqliteLedger};
use gw_testkit::sample_record;
use gw_types::{AccountingRecord, IdSource, Ledger, RequestId, SequentialIds};

const BATCH: usize = 512;

fn main() {
    divan::main();
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs nothing").block_on(future)
}

fn sqlite(folder: &tempfile::TempDir) -> Arc<SqliteLedger> {
    let config = SqliteConfig { queue: 8_192, batch: BATCH };
    SqliteLedger::open(&folder.path().join("gw.db"), config).expect("an empty folder takes a ledger")
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

#[divan::bench]
fn append_sqlite(bencher: Bencher) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ledger, ids) = (sqlite(&folder), SequentialIds::default());
    bencher.with_inputs(|| record(&*ledger, &ids)).bench_local_values(|record| ledger.append(record));
}

#[divan::bench]
fn append_memory(bencher: Bencher) {
    let (ledger, ids) = (MemoryLedger::new(1_000), SequentialIds::default());
    bencher.with_inputs(|| record(&*ledger, &ids)).bench_local_values(|record| ledger.append(record));
}

#[divan::bench]
fn stored_sqlite(bencher: Bencher) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ledger, ids) = (sqlite(&folder), SequentialIds::default());
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
