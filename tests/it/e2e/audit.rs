//! `gw ledger` and the receipts of a running gateway.

use std::{path::Path, process::Output};

use gw_config::NewCheckpointKey;
use gw_stores::{CheckpointKey, SqlConfig, SqlLedger};
use gw_testkit::{FakeProvider, FaultScript, ok, sample_record};
use gw_types::{Ledger, LedgerPlace, UtcTime};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Gw, Toml, chat, run_gw};

const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const SIGNER: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Makes a closed, signed ledger of 100 records.
fn ledger() -> TempDir {
    let folder = TempDir::new().unwrap();
    let key = CheckpointKey::from_secret(SECRET).unwrap();
    let config = SqlConfig::default();
    let ledger = SqlLedger::open_signed(&folder.path().join("gw.db"), config, key).unwrap();
    for number in 1..=100 {
        LedgerPlace::take(ledger.clone() as std::sync::Arc<dyn Ledger>)
            .unwrap()
            .append(Box::new(sample_record(number)));
    }
    drop(ledger);
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn gw(folder: &Path, arguments: &str) -> Output {
    let arguments: Vec<_> = arguments.split(' ').collect();
    run_gw(folder, &[&["ledger"], &arguments[..]].concat(), &[])
}

/// Runs a command that must succeed, and reads its JSON.
fn json(folder: &Path, arguments: &str) -> Value {
    let output = gw(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

// === Verification ===

#[test]
fn a_whole_ledger_verifies_with_exit_code_0() {
    let folder = ledger();
    let whole = json(folder.path(), &format!("verify --store sqlite:gw.db --signer {SIGNER} --format json"));
    assert_eq!((&whole["whole"], &whole["records"]), (&Value::Bool(true), &Value::from(100)));
    let known = format!("{}:{}", whole["last"]["seq"], whole["last"]["hash"].as_str().unwrap());
    let output = gw(folder.path(), &format!("verify --store sqlite:gw.db --known {known}"));
    let said = text(&output.stdout);
    assert!(said.starts_with("gw.db: whole; 100 records, 1 signed checkpoints"), "{said}");
    let other = gw(folder.path(), &format!("verify --store sqlite:gw.db --signer {}", "1".repeat(64)));
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("the checkpoint at record 100 does not hold"));
}

/// The largest block of a ledger: its first and its last record.
fn block(connection: &Connection) -> (i64, i64) {
    let largest = "SELECT first_seq, last_seq FROM blocks ORDER BY last_seq - first_seq DESC LIMIT 1";
    connection.query_row(largest, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

/// Tampers with a ledger, and compares the kind of fault and the record that the program names.
fn check(tamper: impl FnOnce(&Connection) -> (&'static str, i64)) {
    let folder = ledger();
    let (kind, seq) = tamper(&Connection::open(folder.path().join("gw.db")).unwrap());
    let output = gw(folder.path(), "verify --store sqlite:gw.db --format json");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), found["fault"]["kind"].as_str(), found["fault"]["seq"].as_i64()),
        (Some(1), Some(kind), Some(seq))
    );
    let output = gw(folder.path(), "verify --store sqlite:gw.db");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(text(&output.stderr).contains(&format!("record {seq}")), "{}", text(&output.stderr));
}

#[test]
fn a_flipped_byte_is_named() {
    check(|connection| {
        // A digit in the id of record 57.
        let flip = "UPDATE blocks SET records = replace(records, '0000000039', '0000000038')";
        connection.execute_batch(flip).unwrap();
        ("altered", 57)
    });
}

#[test]
fn a_deleted_record_is_named() {
    check(|connection| {
        let (first, last) = block(connection);
        connection.execute("DELETE FROM blocks WHERE last_seq = ?1", [last]).unwrap();
        if last == 100 { ("cut", first - 1) } else { ("missing", first) }
    });
}

#[test]
fn swapped_records_are_named() {
    check(|connection| {
        let (first, last) = block(connection);
        let read = "SELECT records, id_keys FROM blocks WHERE last_seq = ?1";
        let (records, mut keys): (String, Vec<u8>) =
            connection.query_row(read, [last], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut lines: Vec<&str> = records.split_inclusive('\n').collect();
        lines.swap(0, 1);
        keys[..16].rotate_left(8);
        let write = "UPDATE blocks SET records = ?2, id_keys = ?3 WHERE last_seq = ?1";
        connection.execute(write, rusqlite::params![last, lines.concat(), keys]).unwrap();
        ("reordered", first)
    });
}

#[test]
fn a_cut_end_and_a_forged_signature_are_named() {
    check(|connection| {
        connection.execute_batch("DELETE FROM blocks WHERE last_seq = 100").unwrap();
        let end = connection.query_row("SELECT max(last_seq) FROM blocks", [], |row| row.get(0));
        ("cut", end.unwrap_or(0))
    });
    check(|connection| {
        connection.execute_batch("UPDATE checkpoints SET signature = zeroblob(64)").unwrap();
        ("checkpoint", 100)
    });
}

// === Receipts ===

#[tokio::test]
async fn a_running_gateway_gives_receipts_that_hold_offline() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let key = NewCheckpointKey::generate().unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("m", &["up"])
        .tenant("a", "")
        .sqlite()
        .ledger("checkpoint_key = { env = \"LEDGER_KEY\" }")
        .var("LEDGER_KEY", key.secret.expose());
    let gw = Gw::start(&toml).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        ids.push(answer.header("x-request-id").to_owned());
    }
    let receipt = gw.admin(&format!("/admin/v1/records/{}/receipt", ids[1])).send().await;
    assert_eq!(receipt.status, 200, "{}", receipt.text());
    let none = gw.admin("/admin/v1/records/req_0/receipt").send().await;
    assert_eq!(none.status, 404);
    let folder = gw.stop().await;
    std::fs::remove_file(folder.path().join("gw.db")).unwrap();
    std::fs::write(folder.path().join("receipt.json"), receipt.text()).unwrap();
    let verify = |signer: &str| {
        let arguments = ["ledger", "verify", "--receipt", "receipt.json", "--signer", signer];
        run_gw(folder.path(), &arguments, &[])
    };
    let holds = verify(&key.signer.to_string());
    assert_eq!(holds.status.code(), Some(0), "{}", text(&holds.stderr));
    assert!(text(&holds.stdout).contains("holds; record 2 stands"), "{}", text(&holds.stdout));
    assert_eq!(verify(SIGNER).status.code(), Some(1));
    let altered = receipt.text().replacen("\"outcome\":\"ok\"", "\"outcome\":\"no\"", 1);
    std::fs::write(folder.path().join("receipt.json"), altered).unwrap();
    let broken = verify(&key.signer.to_string());
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken.stderr).contains("does not lead to the checkpoint"));
}

#[tokio::test]
async fn without_a_key_there_is_no_receipt() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "");
    for toml in [toml.clone(), toml.sqlite()] {
        let gw = Gw::start(&toml).await;
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        let path = format!("/admin/v1/records/{}/receipt", answer.header("x-request-id"));
        assert_eq!(gw.admin(&path).send().await.status, 404);
    }
}

#[test]
fn a_receipt_is_read_from_a_file_too() {
    let folder = ledger();
    let id = sample_record(7).id;
    let receipt = json(folder.path(), &format!("receipt --store sqlite:gw.db {id}"));
    assert_eq!((&receipt["seq"], &receipt["checkpoint"]["seq"]), (&Value::from(7), &Value::from(100)));
    let none = gw(folder.path(), &format!("receipt --store sqlite:gw.db {}", sample_record(999).id));
    assert_eq!(none.status.code(), Some(1));
}

// === Export, report, retention ===

#[test]
fn records_are_exported_as_lines_and_as_a_table() {
    let folder = ledger();
    let lines = text(&gw(folder.path(), "export --store sqlite:gw.db").stdout);
    assert_eq!(lines.lines().count(), 100);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["seq"], first["record"]["id"].as_str()),
        (&Value::from(1), Some(sample_record(1).id.as_str()))
    );
    let output = gw(folder.path(), "export --store sqlite:gw.db --format csv --output out.csv");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    let table = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert_eq!(table.lines().count(), 101);
    let again = gw(folder.path(), "export --store sqlite:gw.db --format csv --output out.csv");
    assert_eq!(again.status.code(), Some(1), "what is there is not overwritten");
    let none = gw(folder.path(), "export --store sqlite:gw.db --tenant nobody --until 2030-01-02");
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0));
}

#[test]
fn a_report_adds_up() {
    let folder = ledger();
    let report = json(folder.path(), "report --store sqlite:gw.db --by tenant,day --format json");
    let row = &report["rows"][0];
    assert_eq!((row["tenant"].as_str(), row["day"].as_str()), (Some("wholesale"), Some("2030-01-01")));
    assert_eq!(row["requests"], 100);
    let lines = text(&gw(folder.path(), "export --store sqlite:gw.db --format csv").stdout);
    let at = lines.lines().next().unwrap().split(',').position(|name| name == "spent_pico").unwrap();
    let spent: u64 =
        lines.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(row["spent_pico"], spent);
    let table = text(&gw(folder.path(), "report --store sqlite:gw.db --by deployment").stdout);
    assert!(table.starts_with("deployment  requests"), "{table}");
    assert_eq!(gw(folder.path(), "report --store sqlite:gw.db --by planet").status.code(), Some(2));
    // The same by single records, and what only they tell apart.
    let report =
        json(folder.path(), "report --store sqlite:gw.db --by user,tag:team --savings --format json");
    let row = &report["rows"][0];
    assert_eq!((row["user"].as_str(), row["tag:team"].as_str()), (Some("user-7"), Some("blue \"7\"")));
    assert_eq!((&row["spent_pico"], &row["saved_pico"]), (&spent.into(), &300_000_000.into()));
}

#[tokio::test]
async fn tags_that_the_configuration_names_and_savings_reach_the_report() {
    let provider = FakeProvider::start(FaultScript::of(ok("fine").usage(10, 5))).await.unwrap();
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", "price = { input = 1_000_000, output = 1_000_000 }")
        .route_with("m", &["up"], "cache = { exact = true }")
        .tenant("a", "")
        .sqlite()
        .ledger("tags = [\"team\"]");
    let gw = Gw::start(&toml).await;
    let mut body = chat("m", "hello");
    body["metadata"] = serde_json::json!({"team": "blue", "note": "canary-note"});
    for _ in 0..2 {
        assert_eq!(gw.chat("a", &body).send().await.status, 200);
    }
    let records = gw.records(2).await;
    assert!(!Value::from(records).to_string().contains("canary-note"), "only what is named is kept");
    let folder = gw.stop().await;
    let report = json(folder.path(), "report --store sqlite:gw.db --by tag:team --savings --format json");
    let row = &report["rows"][0];
    assert_eq!(
        (row["tag:team"].as_str(), &row["requests"], &row["cache_hits"]),
        (Some("blue"), &2.into(), &1.into())
    );
    assert_eq!((&row["spent_pico"], &row["saved_pico"]), (&15_000_000.into(), &15_000_000.into()), "{row}");
}

#[test]
fn retention_shows_first_and_keeps_the_chain_verifiable() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gw.db");
    let ledger = SqlLedger::open(&path, SqlConfig::default()).unwrap();
    for number in 1..=10 {
        let mut record = sample_record(number);
        if number <= 4 {
            record.started = UtcTime::from_micros(i64::from(number));
        }
        LedgerPlace::take(ledger.clone() as std::sync::Arc<dyn Ledger>).unwrap().append(Box::new(record));
    }
    drop(ledger);
    let retain = |more: &str| {
        json(folder.path(), &format!("retain --store sqlite:gw.db --older-than 90d --format json{more}"))
    };
    let records = || json(folder.path(), "verify --store sqlite:gw.db --format json")["records"].clone();
    let shown = retain("");
    assert_eq!(
        (&shown["records"], &shown["last_seq"], &shown["applied"]),
        (&4.into(), &4.into(), &false.into())
    );
    assert_eq!(records(), 10);
    let applied = retain(" --apply");
    assert_eq!((&applied["records"], &applied["spent_pico"]), (&shown["records"], &shown["spent_pico"]));
    assert_eq!(records(), 6);
    assert_eq!(retain(" --apply")["records"], 0);
    assert_eq!(json(folder.path(), "report --store sqlite:gw.db --format json")["rows"][0]["requests"], 10);
}

#[test]
fn a_key_is_made_once_and_wrong_usage_is_told() {
    let folder = ledger();
    let made = gw(folder.path(), "keygen");
    let secret = text(&made.stdout).trim().to_owned();
    assert_eq!(secret.len(), 64);
    let signer = CheckpointKey::from_secret(&secret).unwrap().signer().to_string();
    let said = text(&made.stderr);
    assert!(said.contains(&signer) && !said.contains(&secret), "{said}");
    for wrong in ["verify --store postgres", "verify --store sqlite:none.db", "verify --config none.toml"] {
        let output = gw(folder.path(), wrong);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{wrong}");
    }
    for wrong in ["verify --known 5", "retain --store sqlite:gw.db", "verify --signer x", "frobnicate"] {
        assert_eq!(gw(folder.path(), wrong).status.code(), Some(2), "{wrong}");
    }
}
