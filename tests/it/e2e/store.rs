//! A store that cannot take records for a while: nothing that was answered is lost.

use std::collections::BTreeSet;

use gw_stores::{Expected, LedgerFile};
use gw_testkit::{FakeProvider, FaultScript, ok};
use rusqlite::Connection;

use super::ledger::records;
use crate::support::{Gw, Toml, chat, eventually, metric};

#[tokio::test]
async fn while_the_database_is_locked_records_wait_and_none_of_an_answer_is_lost() {
    const REQUESTS: usize = 20;
    let provider = FakeProvider::start(FaultScript::of(ok("fine"))).await.unwrap();
    let toml = Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "").sqlite();
    let gw = Gw::start(&toml).await;
    let other = Connection::open(gw.folder().join("gw.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut answered = BTreeSet::new();
    for _ in 0..REQUESTS {
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        // Once the writer has given up waiting for the lock, nobody new is let in.
        if answer.status == 503 {
            assert!(answer.text().contains("\"overloaded\""), "{}", answer.text());
            break;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        answered.insert(answer.header("x-request-id").to_owned());
    }
    assert!(!answered.is_empty(), "the journal takes what the database does not");
    let waiting = metric(&gw.metrics().await, "gw_ledger_queue_used");
    assert!(waiting > 0, "their records wait for their turn");
    other.execute_batch("COMMIT").unwrap();
    gw.records(answered.len()).await;
    eventually("an empty queue", || async {
        (metric(&gw.metrics().await, "gw_ledger_queue_used") == 0).then_some(())
    })
    .await;
    let folder = gw.stop().await;
    let stored: BTreeSet<_> =
        records(folder.path()).iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(stored, answered);
    let verified = LedgerFile::open(&folder.path().join("gw.db")).unwrap().verify(&Expected::default());
    assert!(verified.unwrap().is_whole());
}

#[tokio::test]
async fn killed_while_the_database_is_locked_it_has_the_records_at_the_next_start() {
    let provider = FakeProvider::start(FaultScript::of(ok("fine"))).await.unwrap();
    let toml = Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "").sqlite();
    let gw = Gw::start(&toml).await;
    let other = Connection::open(gw.folder().join("gw.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let folder = gw.kill().await;
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    let gw = Gw::start_again(folder, &toml).await;
    assert_eq!(gw.records(1).await[0]["id"], answer.header("x-request-id"));
}
