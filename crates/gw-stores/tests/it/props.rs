//! For any records: they come back equal, newest first, page by page, and their costs add up exactly.

use std::{collections::BTreeMap, sync::Arc};

use gw_stores::{MemoryLedger, SqliteConfig, SqliteLedger};
use gw_testkit::sample_record;
use gw_types::{
    AccountingRecord, KeyName, Ledger, LedgerPlace, Money, RecordQuery, SpendRow, StoredRecord, TenantId,
    UtcTime,
};
use proptest::prelude::*;

/// What a test varies in a record.
#[derive(Clone, Debug)]
struct Varied {
    tenant: u8,
    key: u8,
    started: i64,
    cost: u128,
    side_cost: u128,
    routed: bool,
}

fn varied() -> impl Strategy<Value = Varied> {
    // Around what one SQLite integer holds, far above it, and nothing.
    let amount = prop_oneof![
        Just(0),
        0..1_000_000_u128,
        (1_u128 << 63) - 2..(1_u128 << 63) + 2,
        0..u128::MAX / 1_000,
    ];
    (0..3_u8, 0..3_u8, -5..5_i64, amount.clone(), amount, any::<bool>()).prop_map(
        |(tenant, key, started, cost, side_cost, routed)| Varied {
            tenant,
            key,
            started,
            cost,
            side_cost,
            routed,
        },
    )
}

fn records(varied: Vec<Varied>) -> Vec<AccountingRecord> {
    varied.into_iter().zip(1..).map(|(varied, number)| record(&varied, number)).collect()
}

fn record(varied: &Varied, number: u32) -> AccountingRecord {
    let mut record = sample_record(number);
    record.tenant = TenantId::new(&format!("t{}", varied.tenant)).unwrap();
    record.key = KeyName::new(&format!("k{}", varied.key)).unwrap();
    record.started = UtcTime::from_micros(varied.started);
    record.cost = Money::from_pico(varied.cost);
    record.side_costs[0].cost = Money::from_pico(varied.side_cost);
    if !varied.routed {
        record.route = None;
        record.serving = None;
        record.facts = None;
        record.error = None;
    }
    record
}

fn ledgers() -> (tempfile::TempDir, [Arc<dyn Ledger>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    // Small batches, so that a case has several.
    let config = SqliteConfig { queue: 64, batch: 3 };
    let sqlite: Arc<dyn Ledger> = SqliteLedger::open(&folder.path().join("gw.db"), config).unwrap();
    let memory: Arc<dyn Ledger> = MemoryLedger::new(64);
    (folder, [sqlite, memory])
}

fn fill(ledger: &Arc<dyn Ledger>, records: &[AccountingRecord]) {
    for record in records {
        LedgerPlace::take(ledger.clone()).unwrap().append(Box::new(record.clone()));
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

/// Reads all pages of so many records.
fn read_all(ledger: &Arc<dyn Ledger>, tenant: Option<&TenantId>, limit: u32) -> Vec<StoredRecord> {
    let mut all: Vec<StoredRecord> = Vec::new();
    loop {
        let before = all.last().map(|stored| stored.seq);
        let page = run(ledger.records(RecordQuery { tenant: tenant.cloned(), before, limit })).unwrap();
        assert!(page.len() <= limit as usize);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn sums(records: &[AccountingRecord], since: i64) -> Vec<SpendRow> {
    let mut sums: BTreeMap<_, u128> = BTreeMap::new();
    for record in records.iter().filter(|record| record.started.micros() >= since) {
        let spent = record.cost.pico() + record.side_costs[0].cost.pico();
        if spent > 0 {
            *sums.entry((record.tenant.clone(), record.key.clone())).or_default() += spent;
        }
    }
    let rows = sums.into_iter();
    rows.map(|((tenant, key), spent)| SpendRow { tenant, key, spent: Money::from_pico(spent) }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_come_back_and_costs_add_up(
        varied in prop::collection::vec(varied(), 0..40),
        limit in 1..7_u32,
        since in -6..6_i64,
    ) {
        let records = records(varied);
        let (_folder, ledgers) = ledgers();
        for ledger in &ledgers {
            fill(ledger, &records);
            let all = read_all(ledger, None, limit);
            let numbered = records.iter().zip(1..);
            let mut expected: Vec<_> =
                numbered.map(|(record, seq)| StoredRecord { seq, record: record.clone() }).collect();
            expected.reverse();
            prop_assert_eq!(&all, &expected);
            let tenant = TenantId::new("t1").unwrap();
            let of_tenant: Vec<_> =
                expected.into_iter().filter(|stored| stored.record.tenant == tenant).collect();
            prop_assert_eq!(read_all(ledger, Some(&tenant), limit), of_tenant);
            for stored in all {
                prop_assert_eq!(run(ledger.record(&stored.record.id)).unwrap(), Some(stored));
            }
            let spent = run(ledger.spend_since(UtcTime::from_micros(since))).unwrap();
            prop_assert_eq!(spent, sums(&records, since));
        }
    }
}

#[test]
fn unknown_ids_and_empty_windows_have_no_answer() {
    let (_folder, ledgers) = ledgers();
    for ledger in ledgers {
        fill(&ledger, &[sample_record(1)]);
        run(ledger.flush());
        assert_eq!(run(ledger.record(&sample_record(2).id)).unwrap(), None);
        assert_eq!(run(ledger.spend_since(UtcTime::from_micros(i64::MAX))).unwrap(), []);
    }
}

#[test]
fn pages_have_at_least_one_record() {
    let (_folder, ledgers) = ledgers();
    for ledger in ledgers {
        fill(&ledger, &[sample_record(1), sample_record(2)]);
        let query = RecordQuery { tenant: None, before: Some(u64::MAX), limit: 0 };
        assert_eq!(run(ledger.records(query)).unwrap().len(), 1);
    }
}

#[test]
fn memory_keeps_the_latest_records_and_bounds_places() {
    let memory = MemoryLedger::with_places(2, 1);
    let ledger: Arc<dyn Ledger> = memory.clone();
    fill(&ledger, &[1, 2, 3].map(sample_record));
    let kept = read_all(&ledger, None, 10).into_iter().map(|stored| stored.seq).collect::<Vec<_>>();
    assert_eq!(kept, [3, 2]);
    assert_eq!([memory.take_place(), memory.take_place()], [true, false]);
    memory.give_place_back();
    assert!(memory.take_place());
}
