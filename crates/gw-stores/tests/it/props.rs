//! For any records: they come back equal, newest first, page by page, and their costs add up exactly.

use std::{collections::BTreeMap, sync::Arc};

use gw_stores::{
    Durability, Expected, GroupBy, LedgerFile, LedgerStore, MemoryLedger, Period, SqlConfig, SqlLedger,
};
use gw_testkit::sample_record;
use gw_types::{
    AccountingRecord, KeyName, Ledger, LedgerPlace, Money, RecordQuery, SpendDetail, SpendRow, StoredRecord,
    TenantId, UtcTime,
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::home::{Home, on_both};

on_both!(
    records_come_back_and_costs_add_up,
    a_ledger_is_whole_whatever_it_holds_and_its_report_adds_up,
    unknown_ids_and_empty_windows_have_no_answer,
    pages_have_at_least_one_record,
);

/// A quarter of an hour, in microseconds.
const QUARTER: i64 = 900_000_000;

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
    // Around the borders of the quarters of an hour that sums are kept by.
    let started = (-5..5_i64, -1..2_i64).prop_map(|(micros, quarter)| micros + quarter * QUARTER);
    (0..3_u8, 0..3_u8, started, amount.clone(), amount, any::<bool>()).prop_map(
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

/// Small batches, so that a case has several.
const CONFIG: SqlConfig = SqlConfig { queue: 64, batch: 3, durability: Durability::Process };

/// Returns both ledgers with the records in them; the stored one was closed and opened again after some of them, so that
/// some are in its sums and the rest are not.
fn filled(store: &LedgerStore, records: &[AccountingRecord], closed_after: usize) -> [Arc<dyn Ledger>; 2] {
    let memory: Arc<dyn Ledger> = MemoryLedger::new(64);
    fill(&memory, records);
    let (before, after) = records.split_at(closed_after.min(records.len()));
    let stored: Arc<dyn Ledger> = SqlLedger::open(store, CONFIG).unwrap();
    fill(&stored, before);
    drop(stored);
    let stored: Arc<dyn Ledger> = SqlLedger::open(store, CONFIG).unwrap();
    fill(&stored, after);
    [stored, memory]
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
        let page =
            run(ledger.records(RecordQuery { tenant: tenant.cloned(), node: None, before, limit })).unwrap();
        assert!(page.len() <= limit as usize);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn sums(records: &[AccountingRecord], since: i64) -> Vec<SpendDetail> {
    let mut sums: BTreeMap<_, u128> = BTreeMap::new();
    for record in records.iter().filter(|record| record.started.micros() >= since) {
        let model = record.facts.as_ref().map(|facts| facts.model.clone());
        let side = &record.side_costs[0];
        for (deployment, cost) in
            [(record.serving.clone(), record.cost), (Some(side.deployment.clone()), side.cost)]
        {
            if !cost.is_zero() {
                let key = (record.tenant.clone(), record.key.clone(), model.clone(), deployment);
                *sums.entry(key).or_default() += cost.pico();
            }
        }
    }
    let row = |((tenant, key, model, deployment), spent)| SpendDetail {
        tenant,
        key,
        model,
        deployment,
        spent: Money::from_pico(spent),
    };
    sums.into_iter().map(row).collect()
}

fn by_key(details: &[SpendDetail]) -> Vec<SpendRow> {
    let mut sums: BTreeMap<_, u128> = BTreeMap::new();
    for detail in details {
        *sums.entry((detail.tenant.clone(), detail.key.clone())).or_default() += detail.spent.pico();
    }
    let row = |((tenant, key), spent)| SpendRow { tenant, key, spent: Money::from_pico(spent) };
    sums.into_iter().map(row).collect()
}

/// Tries any records, closed and opened again after any of them.
fn try_any(
    home: &Home,
    try_one: impl Fn(&[AccountingRecord], usize, (u32, i64, i64)) -> Result<(), TestCaseError>,
) {
    // A database takes longer to make than a file.
    let cases = if matches!(home, Home::Server(_)) { 6 } else { 32 };
    let varied = prop::collection::vec(varied(), 0..40);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    let any = (varied, 0..40_usize, (1..7_u32, -6..6_i64, -1..2_i64));
    TestRunner::new(config)
        .run(&any, |(varied, closed, more)| try_one(&records(varied), closed, more))
        .unwrap();
}

fn records_come_back_and_costs_add_up(home: &Home) {
    try_any(home, |records, closed_after, (limit, micros, quarter)| {
        let since = micros + quarter * QUARTER;
        for ledger in &filled(&home.store(), records, closed_after) {
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
            let details = sums(records, since);
            let since = UtcTime::from_micros(since);
            prop_assert_eq!(run(ledger.spend_since(since)).unwrap(), by_key(&details));
            prop_assert_eq!(run(ledger.spend_details_since(since)).unwrap(), details);
        }
        Ok(())
    });
}

fn a_ledger_is_whole_whatever_it_holds_and_its_report_adds_up(home: &Home) {
    try_any(home, |records, closed_after, _| {
        let store = home.store();
        let [stored, memory] = filled(&store, records, closed_after);
        let file = LedgerFile::open(&store).unwrap();
        run(stored.flush());
        let found = file.verify(&Expected::default()).unwrap();
        prop_assert_eq!((found.fault, found.records), (None, records.len() as u64));
        let report = file.report(Period::default(), &[GroupBy::Tenant]).unwrap();
        let expected = run(memory.spend_since(UtcTime::from_micros(i64::MIN))).unwrap();
        for row in &report {
            let of_tenant = records.iter().filter(|record| record.tenant.as_str() == row.groups[0]).count();
            let spent = expected.iter().filter(|spent| spent.tenant.as_str() == row.groups[0]);
            prop_assert_eq!(row.sums.requests, of_tenant as u64);
            prop_assert_eq!(row.sums.spent, spent.map(|row| row.spent).sum());
        }
        Ok(())
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn canonical_bytes_read_back_and_are_canonical(varied in varied(), number in 1..u32::MAX) {
        let record = record(&varied, number);
        let mut bytes = Vec::new();
        record.write_canonical(&mut bytes);
        let back: AccountingRecord = serde_json::from_slice(&bytes).unwrap();
        let mut again = Vec::new();
        back.write_canonical(&mut again);
        prop_assert_eq!(&back, &record);
        prop_assert_eq!(bytes, again);
    }
}

fn unknown_ids_and_empty_windows_have_no_answer(home: &Home) {
    for ledger in filled(&home.store(), &[], 0) {
        fill(&ledger, &[sample_record(1)]);
        run(ledger.flush());
        assert_eq!(run(ledger.record(&sample_record(2).id)).unwrap(), None);
        assert_eq!(run(ledger.spend_since(UtcTime::from_micros(i64::MAX))).unwrap(), []);
    }
}

fn pages_have_at_least_one_record(home: &Home) {
    for ledger in filled(&home.store(), &[], 0) {
        fill(&ledger, &[sample_record(1), sample_record(2)]);
        let query = RecordQuery { tenant: None, node: None, before: Some(u64::MAX), limit: 0 };
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
