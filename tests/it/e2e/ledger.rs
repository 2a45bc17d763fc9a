//! Records and spend across a restart.

use std::path::Path;

use gw_stores::{ExportFormat, LedgerFile, Period};
use gw_testkit::{FakeProvider, FaultScript, ok};
use serde_json::Value;

use crate::support::{Gw, Toml, chat};

/// Reads the records out of the ledger of a folder, oldest first.
pub(super) fn records(folder: &Path) -> Vec<Value> {
    let mut lines = Vec::new();
    let ledger = LedgerFile::open(&folder.join("gw.db")).unwrap();
    ledger.export(ExportFormat::JsonLines, Period::default(), None, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].take()).collect()
}

#[tokio::test]
async fn records_survive_a_restart_and_spend_is_restored() {
    let provider = FakeProvider::start(FaultScript::of(ok("a b c").usage(0, 3))).await.unwrap();
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", "price = { input = 0, output = 1_000_000 }")
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 10, window = \"day\" }")
        .tenant("b", "budget = { limit_micros = 10, window = \"day\" }")
        .server("drain_grace_ms = 0")
        .sqlite();
    let gw = Gw::start(&toml).await;
    let mut body = chat("m", "hello");
    body["max_tokens"] = 5.into();
    let mut ids = Vec::new();
    for tenant in ["a", "a", "b"] {
        let answer = gw.chat(tenant, &body).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        ids.push(answer.header("x-request-id").to_owned());
    }
    let before = gw.records(3).await;
    let folder = gw.stop().await;

    let gw = Gw::start_again(folder, &toml).await;
    assert_eq!(gw.records(3).await, before);
    let found: Vec<_> = before.iter().map(|record| record["id"].as_str().unwrap()).collect();
    assert_eq!(found, ids);
    assert_eq!(gw.tenant("a").await["budget"]["spent_micros"], 6);
    assert_eq!(gw.tenant("b").await["budget"]["spent_micros"], 3);
    // 4 are left and 5 might be needed.
    assert_eq!(gw.chat("a", &body).send().await.error()["type"], "insufficient_quota");
    assert_eq!(gw.chat("b", &body).send().await.status, 200);
    assert_eq!(provider.calls().len(), 4);
    let seqs: Vec<_> = gw.records(5).await.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5], "numbers go on where they ended");
}

#[tokio::test]
async fn plain_and_streamed_answers_leave_their_records_in_the_file() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "").sqlite();
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    let stream = gw.chat("a", &body).stream().await;
    let streamed = stream.header("x-request-id").to_owned();
    stream.rest().await;
    gw.records(2).await;
    let ids: Vec<_> =
        records(&gw.folder()).iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, [answer.header("x-request-id"), &streamed]);
}
