//! A process that dies in the middle of its appends loses none that was acknowledged, and stores none twice.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use gw_stores::{Durability, Expected, LedgerFile, SqlConfig, SqlLedger};
use gw_testkit::sample_record;
use gw_types::{Ledger, Receipt, RecordQuery};

/// Where the child finds its ledger; absent in an ordinary run of the tests.
const LEDGER: &str = "GW_CRASH_LEDGER";
/// Records that the child would append if nobody killed it.
const APPENDS: u32 = 100_000;

/// Appends until it is killed, and writes the number of each acknowledged record to standard output.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent names the ledger to its child")]
fn child() {
    let Ok(path) = std::env::var(LEDGER) else { return };
    let durability = if path.contains("Power") { Durability::Power } else { Durability::Process };
    let config = SqlConfig { batch: 16, durability, ..SqlConfig::default() };
    let ledger: Arc<dyn Ledger> = SqlLedger::open(Path::new(&path), config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut acknowledged = std::io::stderr();
    let known = runtime
        .block_on(ledger.records(RecordQuery { tenant: None, node: None, before: None, limit: 1 }))
        .unwrap();
    let first = known.first().map_or(0, |stored| u32::try_from(stored.seq).unwrap());
    for number in first + 1..first + APPENDS {
        while !ledger.take_place() {
            runtime.block_on(ledger.flush());
        }
        if let Receipt::Pending(stored) = ledger.append(Box::new(sample_record(number))) {
            runtime.block_on(stored).unwrap();
        }
        writeln!(acknowledged, "acknowledged {number}").unwrap();
    }
}

/// Kills a child after so many acknowledgements, and returns all that it has acknowledged.
fn kill_after(path: &Path, count: usize) -> BTreeSet<u32> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture"])
        .env(LEDGER, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let number = |line: String| line.strip_prefix("acknowledged ").and_then(|number| number.parse().ok());
    let mut acknowledged: BTreeSet<u32> = lines.by_ref().filter_map(number).take(count).collect();
    child.kill().unwrap();
    // What it said before it died.
    acknowledged.extend(lines.filter_map(number));
    child.wait().unwrap();
    acknowledged
}

fn check(durability: Durability, counts: &[usize]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{durability:?}.db"));
    let mut acknowledged = BTreeSet::new();
    for count in counts {
        let more = kill_after(&path, *count);
        assert!(more.len() >= *count);
        acknowledged.extend(more);
    }
    // Opening stores what the journal holds.
    drop(SqlLedger::open(&path, SqlConfig::default()).unwrap());
    let file = LedgerFile::open(&path).unwrap();
    let found = file.verify(&Expected::default()).unwrap();
    assert_eq!(found.fault, None);
    let mut export = Vec::new();
    file.export(gw_stores::ExportFormat::Csv, gw_stores::Period::default(), None, &mut export).unwrap();
    let ids: Vec<String> =
        export.lines().skip(1).map(|line| line.unwrap().split(',').nth(1).unwrap().to_owned()).collect();
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
    for number in acknowledged {
        assert!(unique.contains(&sample_record(number).id.as_str().to_owned()), "record {number} is lost");
    }
}

#[test]
fn kill_9_loses_no_acknowledged_record_from_the_journal() {
    check(Durability::Process, &[1, 70, 400]);
}

#[test]
fn kill_9_loses_no_acknowledged_record_from_the_database() {
    check(Durability::Power, &[1, 40]);
}
