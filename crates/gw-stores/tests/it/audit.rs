//! Receipts, exports, reports and deleting by age.

use std::sync::Arc;

use gw_stores::{
    BrokenReceipt, CheckpointKey, Expected, ExportFormat, GroupBy, LedgerFile, LedgerStore, Period,
    RecordReceipt, SqlConfig, SqlLedger,
};
use gw_testkit::sample_record;
use gw_types::{AccountingRecord, Ledger, LedgerPlace, Money, RecordQuery, TenantId, UtcTime};

use crate::home::{Home, on_both};

const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

on_both!(
    a_receipt_proves_its_record_without_the_ledger,
    a_receipt_is_also_read_from_the_file,
    an_altered_receipt_proves_nothing,
    receipts_need_a_record_and_a_key,
    checkpoints_are_signed_as_records_come,
    exported_lines_hold_the_records_as_they_were_sealed,
    exports_keep_to_a_tenant_and_a_period,
    reports_add_up_by_any_groups,
    deleting_by_age_while_the_gateway_runs_keeps_chain_sums_and_new_records,
);

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

fn key() -> CheckpointKey {
    CheckpointKey::from_secret(SECRET).unwrap()
}

/// A record of one of two tenants, on one of two days.
fn record(number: u32) -> AccountingRecord {
    let mut record = sample_record(number);
    record.tenant = TenantId::new(if number.is_multiple_of(2) { "even" } else { "odd" }).unwrap();
    if number > 5 {
        record.started = record.started.saturating_add(std::time::Duration::from_secs(24 * 3_600));
    }
    record
}

struct House {
    store: LedgerStore,
    ledger: Arc<SqlLedger>,
}

/// Makes a ledger of ten records.
fn house(home: &Home, signed: bool) -> House {
    let store = home.store();
    let config = SqlConfig::default();
    let ledger =
        if signed { SqlLedger::open_signed(&store, config, key()) } else { SqlLedger::open(&store, config) };
    let ledger = ledger.unwrap();
    for number in 1..=10 {
        LedgerPlace::take(ledger.clone() as Arc<dyn Ledger>).unwrap().append(Box::new(record(number)));
    }
    run(ledger.flush());
    House { store, ledger }
}

fn file(house: &House) -> LedgerFile {
    LedgerFile::open(&house.store).unwrap()
}

// === Receipts ===

fn a_receipt_proves_its_record_without_the_ledger(home: &Home) {
    let house = house(home, true);
    let receipt = run(house.ledger.signed_receipt(&record(3).id)).unwrap().unwrap();
    let text = serde_json::to_string(&receipt).unwrap();
    drop(house);
    let back: RecordReceipt = serde_json::from_str(&text).unwrap();
    assert_eq!(back.verify(&key().signer()), Ok(()));
    assert_eq!((back.seq(), back.checkpoint().seq), (3, 10));
    assert_eq!(serde_json::from_str::<AccountingRecord>(back.canonical()).unwrap(), record(3));
    // Nothing of the records after it.
    assert!(!text.contains("even"));
}

fn a_receipt_is_also_read_from_the_file(home: &Home) {
    let house = house(home, true);
    let file = file(&house);
    assert!(file.receipt(&record(3).id).unwrap().is_none());
    let first = run(house.ledger.signed_receipt(&record(10).id)).unwrap().unwrap();
    assert_eq!(first.verify(&key().signer()), Ok(()));
    assert_eq!(file.receipt(&record(1).id).unwrap().unwrap().verify(&key().signer()), Ok(()));
    assert!(file.receipt(&sample_record(99).id).unwrap().is_none());
}

fn an_altered_receipt_proves_nothing(home: &Home) {
    let house = house(home, true);
    let text = serde_json::to_string(&run(house.ledger.signed_receipt(&record(3).id)).unwrap()).unwrap();
    let check = |from: &str, to: &str, expected| {
        let altered = text.replacen(from, to, 1);
        assert_ne!(altered, text, "{from}");
        let receipt: RecordReceipt = serde_json::from_str(&altered).unwrap();
        assert_eq!(receipt.verify(&key().signer()), expected, "{from}");
    };
    check("order-17", "order-18", Err(BrokenReceipt::Chain));
    check("\"seq\":3", "\"seq\":4", Err(BrokenReceipt::Chain));
    let mut swapped: serde_json::Value = serde_json::from_str(&text).unwrap();
    swapped["following"].as_array_mut().unwrap().swap(0, 1);
    let receipt: RecordReceipt = serde_json::from_value(swapped).unwrap();
    assert_eq!(receipt.verify(&key().signer()), Err(BrokenReceipt::Chain));
}

fn receipts_need_a_record_and_a_key(home: &Home) {
    let signed = house(home, true);
    assert!(run(signed.ledger.signed_receipt(&sample_record(99).id)).unwrap().is_none());
    let unsigned = house(home, false);
    let error = run(unsigned.ledger.signed_receipt(&record(1).id)).unwrap_err();
    assert_eq!(error.to_string(), "the ledger has no key to sign checkpoints with");
    let other = CheckpointKey::from_secret(&"22".repeat(32)).unwrap().signer();
    let receipt = run(signed.ledger.signed_receipt(&record(1).id)).unwrap().unwrap();
    assert_eq!(receipt.verify(&other), Err(BrokenReceipt::Signer));
}

fn checkpoints_are_signed_as_records_come(home: &Home) {
    let house = house(home, true);
    for number in 11..=2_500 {
        LedgerPlace::take(house.ledger.clone() as Arc<dyn Ledger>).unwrap().append(Box::new(record(number)));
        if number % 500 == 0 {
            run(house.ledger.flush());
        }
    }
    run(house.ledger.flush());
    let House { store, ledger } = house;
    drop(ledger);
    let expected = Expected { signer: Some(key().signer()), known: None };
    let found = LedgerFile::open(&store).unwrap().verify(&expected).unwrap();
    assert_eq!((found.fault, found.records), (None, 2_500));
    assert!(found.checkpoints >= 3, "{found:?}");
}

// === Exports ===

fn export(house: &House, format: ExportFormat, period: Period, tenant: Option<&str>) -> Vec<String> {
    let mut to = Vec::new();
    let tenant = tenant.map(|tenant| TenantId::new(tenant).unwrap());
    let count = file(house).export(format, period, tenant.as_ref(), &mut to).unwrap();
    let lines: Vec<String> = String::from_utf8(to).unwrap().lines().map(str::to_owned).collect();
    let names = usize::from(format == ExportFormat::Csv);
    assert_eq!(u64::try_from(lines.len() - names).unwrap(), count);
    lines
}

fn exported_lines_hold_the_records_as_they_were_sealed(home: &Home) {
    let house = house(home, false);
    let lines = export(&house, ExportFormat::JsonLines, Period::default(), None);
    assert_eq!(lines.len(), 10);
    for (line, number) in lines.iter().zip(1..) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["seq"], number);
        assert_eq!(
            serde_json::from_value::<AccountingRecord>(value["record"].clone()).unwrap(),
            record(number)
        );
        let mut canonical = Vec::new();
        record(number).write_canonical(&mut canonical);
        assert!(line.contains(std::str::from_utf8(&canonical).unwrap()));
    }
}

fn exports_keep_to_a_tenant_and_a_period(home: &Home) {
    let house = house(home, false);
    let ids = |period, tenant| -> Vec<u32> {
        let seq = |line: &String| line.split(',').next().unwrap().parse().unwrap();
        export(&house, ExportFormat::Csv, period, tenant).iter().skip(1).map(seq).collect()
    };
    assert_eq!(ids(Period::default(), Some("even")), [2, 4, 6, 8, 10]);
    assert_eq!(ids(Period::default(), Some("eve")), [0; 0]);
    let second_day = record(6).started;
    assert_eq!(ids(Period { from: Some(second_day), until: None }, None), [6, 7, 8, 9, 10]);
    assert_eq!(ids(Period { from: None, until: Some(second_day) }, Some("odd")), [1, 3, 5]);
}

// === Reports ===

fn report(house: &House, period: Period, by: &[GroupBy]) -> Vec<(String, u64, Money)> {
    let rows = file(house).report(period, by).unwrap();
    rows.into_iter().map(|row| (row.groups.join(" "), row.sums.requests, row.sums.spent)).collect()
}

fn reports_add_up_by_any_groups(home: &Home) {
    let house = house(home, false);
    // A record costs its number in micro-USD, and 3 pico-USD at `embed`.
    let money = |micros: u128, side: u128| Money::from_pico(micros * 1_000_000 + side);
    let all = Period::default();
    assert_eq!(report(&house, all, &[]), [(String::new(), 10, money(55, 30))]);
    let row = |name: &str, requests, spent| (name.to_owned(), requests, spent);
    assert_eq!(
        report(&house, all, &[GroupBy::Tenant]),
        [row("even", 5, money(30, 15)), row("odd", 5, money(25, 15))]
    );
    assert_eq!(
        report(&house, all, &[GroupBy::Deployment]),
        [row("embed", 0, money(0, 30)), row("eu", 10, money(55, 0))]
    );
    assert_eq!(
        report(&house, all, &[GroupBy::Day, GroupBy::Tenant]),
        [
            row("2030-01-01 even", 2, money(6, 6)),
            row("2030-01-01 odd", 3, money(9, 9)),
            row("2030-01-02 even", 3, money(24, 9)),
            row("2030-01-02 odd", 2, money(16, 6)),
        ]
    );
    let first_day = Period { from: None, until: Some(record(6).started) };
    let quarter = UtcTime::from_micros(record(6).started.micros().div_euclid(900_000_000) * 900_000_000);
    let until_quarter = Period { until: Some(quarter), ..first_day };
    assert_eq!(
        report(&house, until_quarter, &[GroupBy::Route]),
        [row("restricted-reasoning", 5, money(15, 15))]
    );
    let since = Period { from: Some(record(9).started), until: None };
    assert_eq!(report(&house, since, &[GroupBy::Key]), [row("batch", 2, money(19, 6))]);
    let sums = file(&house).report(all, &[]).unwrap()[0].sums;
    assert_eq!((sums.fallbacks, sums.cache_hits, sums.failed), (10, 0, 0));
    assert_eq!((sums.input_tokens, sums.output_tokens), (12_000, 1_000));
}

// === Deleting by age ===

fn deleting_by_age_while_the_gateway_runs_keeps_chain_sums_and_new_records(home: &Home) {
    let house = house(home, true);
    let retained = run(house.ledger.retain(record(6).started)).unwrap().unwrap();
    assert_eq!((retained.seq, retained.requests), (5, 5));
    assert_eq!(retained.spent, Money::from_pico(15 * 1_000_000 + 15));
    assert_eq!(run(house.ledger.retain(record(6).started)).unwrap(), None);
    LedgerPlace::take(house.ledger.clone() as Arc<dyn Ledger>).unwrap().append(Box::new(record(11)));
    let page = run(house.ledger.records(RecordQuery { tenant: None, node: None, before: None, limit: 100 }))
        .unwrap();
    assert_eq!(page.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [12, 10, 9, 8, 7, 6]);
    let of_tenant = RecordQuery { tenant: Some(record(1).tenant), node: None, before: None, limit: 100 };
    let page = run(house.ledger.records(of_tenant)).unwrap();
    assert_eq!(page.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [12, 9, 7]);
    assert!(run(house.ledger.record(&record(5).id)).unwrap().is_none());
    let receipt = run(house.ledger.signed_receipt(&record(6).id)).unwrap().unwrap();
    assert_eq!(receipt.verify(&key().signer()), Ok(()));
    let found = file(&house).verify(&Expected { signer: Some(key().signer()), known: None }).unwrap();
    assert_eq!((found.records, found.last.0, found.fault), (6, 12, None));
    let spent = run(house.ledger.spend_since(UtcTime::from_micros(0))).unwrap();
    assert_eq!(spent.iter().map(|row| row.spent.pico()).sum::<u128>(), 66 * 1_000_000 + 33);
}
