//! The program with its ledger in a PostgreSQL server: requests, a kill, a server that goes away, and every command that
//! takes a ledger.

use std::path::Path;

use gw_stores::CheckpointKey;
use gw_testkit::{FakeProvider, FaultScript, PostgresServer};
use http::Method;
use serde_json::Value;

use crate::support::{Gw, Toml, chat, eventually, metric, run_gw};

const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

fn house(provider: &FakeProvider, url: &str) -> Toml {
    Toml::new()
        .upstream_with("up", &provider.base_url(), "", "price = { input = 0, output = 1_000_000 }")
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 1_000_000, window = \"day\" }")
        .server("drain_grace_ms = 0")
        .store("{ env = \"GW_DATABASE_URL\" }")
        .ledger("checkpoint_key = { env = \"GW_CHECKPOINT_KEY\" }")
        .ledger("keys = true")
        .var("GW_DATABASE_URL", url)
        .var("GW_CHECKPOINT_KEY", SECRET)
}

/// Runs a command on the ledger of a folder's configuration; returns what it prints.
fn gw(folder: &Path, toml: &Toml, arguments: &str) -> String {
    let variables: Vec<_> =
        toml.environment().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let output = run_gw(folder, &arguments.split(' ').collect::<Vec<_>>(), &variables);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

async fn ask(gw: &Gw, count: usize) -> Vec<String> {
    let mut body = chat("m", "hello");
    body["max_tokens"] = 5.into();
    let mut ids = Vec::new();
    for number in 0..count {
        body["stream"] = (number % 2 == 1).into();
        let answer = gw.chat("a", &body).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        ids.push(answer.header("x-request-id").to_owned());
    }
    ids
}

fn exported(folder: &Path, toml: &Toml) -> Vec<String> {
    let lines = gw(folder, toml, "ledger export");
    let id = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["record"]["id"].as_str().unwrap().to_owned()
    };
    lines.lines().map(id).collect()
}

#[tokio::test]
async fn a_killed_gateway_has_lost_nothing_and_the_next_one_goes_on_with_its_chain() {
    let server = PostgresServer::start().unwrap();
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = house(&provider, &server.database().unwrap());
    let first = Gw::start(&toml).await;
    let mut asked = ask(&first, 6).await;
    let spent = first.tenant("a").await["budget"]["spent_micros"].clone();
    let folder = first.kill().await;
    assert_eq!(exported(folder.path(), &toml), asked);

    let second = Gw::start_again(folder, &toml).await;
    assert_eq!(second.tenant("a").await["budget"]["spent_micros"], spent);
    asked.extend(ask(&second, 2).await);
    let receipt = second.admin(&format!("/admin/v1/records/{}/receipt", asked[7])).send().await;
    assert_eq!(receipt.status, 200, "{}", receipt.text());
    let folder = second.folder();
    std::fs::write(folder.join("receipt.json"), receipt.text()).unwrap();
    let whole = gw(&folder, &toml, "ledger verify");
    assert!(whole.contains("node 1: whole; 8 records"), "{whole}");
    assert!(gw(&folder, &toml, "ledger verify --receipt receipt.json").contains("holds"));
    assert!(gw(&folder, &toml, &format!("ledger receipt {}", asked[0])).contains(&asked[0]));
    assert_eq!(exported(&folder, &toml), asked);
    let report: Value = serde_json::from_str(&gw(&folder, &toml, "ledger report --format json")).unwrap();
    assert_eq!(report["rows"][0]["requests"], 8);
    let replay = gw(&folder, &toml, "replay --config gw.toml --summary --format json");
    let replay: Value = serde_json::from_str(&replay).unwrap();
    assert_eq!((&replay["summary"]["records"], &replay["summary"]["changed"]), (&8.into(), &0.into()));
    let signer = CheckpointKey::from_secret(SECRET).unwrap().signer();
    let url = server.url("gw0");
    let by_url = gw(&folder, &toml, &format!("ledger verify --store {url} --signer {signer} --format json"));
    assert_eq!(serde_json::from_str::<Value>(&by_url).unwrap()["node"], 1);
    let key = gw(&folder, &toml, "keys create --stored --tenant a --name web");
    eventually("the new key", || async {
        let call = second.call(Method::POST, "/v1/chat/completions").key(key.trim());
        (call.json(&chat("m", "hello")).send().await.status == 200).then_some(())
    })
    .await;
    let held = gw(&folder, &toml, "ledger retain --older-than 0s --apply --format json");
    assert_eq!(serde_json::from_str::<Value>(&held).unwrap()["in_use"], serde_json::json!([1]));
    let kept = second.stop().await;
    let folder = kept.path();
    let old = gw(folder, &toml, "ledger retain --older-than 0s --apply --format json");
    assert_eq!(serde_json::from_str::<Value>(&old).unwrap()["nodes"][0]["records"], 9);
    assert!(gw(folder, &toml, "ledger verify").contains("whole; 0 records"));
}

#[tokio::test]
async fn replicas_share_a_database_and_find_each_others_records() {
    let server = PostgresServer::start().unwrap();
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = house(&provider, &server.database().unwrap());
    let (first, second) = (Gw::start(&toml).await, Gw::start(&toml).await);
    let asked = ask(&first, 2).await;
    let more = ask(&second, 1).await;
    let found = first.admin(&format!("/admin/v1/records/{}", more[0])).send().await;
    assert_eq!(found.json()["id"], more[0].as_str());
    // Both list all records, newest first, page by page; and those of one gateway where it is named.
    let newest: Vec<String> = [asked.clone(), more.clone()].concat().into_iter().rev().collect();
    for (gateway, query) in [(&first, ""), (&second, "&tenant=a")] {
        let (mut ids, mut before) = (Vec::new(), String::new());
        loop {
            let path = format!("/admin/v1/records?limit=2{query}{before}");
            let page = gateway.admin(&path).send().await.json();
            let records = page["records"].as_array().unwrap();
            ids.extend(records.iter().map(|record| record["id"].as_str().unwrap().to_owned()));
            assert!(records.iter().all(|record| record["node"].is_u64()), "{page}");
            let Some(next) = page["next_before"].as_str() else { break };
            before = format!("&before={next}");
        }
        assert_eq!(ids, newest);
        let page = gateway.admin("/admin/v1/records?node=2").send().await.json();
        assert_eq!(
            (page["records"].as_array().unwrap().len(), &page["records"][0]["id"]),
            (1, &more[0].as_str().into())
        );
        for query in ["node=9", "before=5"] {
            assert_eq!(gateway.admin(&format!("/admin/v1/records?{query}")).send().await.status, 400);
        }
    }
    // Each signs the end of its chain.
    drop(second.stop().await);
    let kept = first.stop().await;
    let folder = kept.path();
    let whole = gw(folder, &toml, "ledger verify");
    assert!(
        whole.contains("node 1: whole; 2 records") && whole.contains("node 2: whole; 1 records"),
        "{whole}"
    );
    let all = exported(folder, &toml);
    assert_eq!(all, [asked, more].concat());
}

#[tokio::test]
async fn a_server_that_goes_away_turns_requests_away_and_comes_back() {
    let mut server = PostgresServer::start().unwrap();
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = house(&provider, &server.database().unwrap());
    let gateway = Gw::start(&toml).await;
    let mut asked = ask(&gateway, 1).await;
    server.stop("immediate").unwrap();
    // Nobody asks for anything, and it is known all the same.
    eventually("the loss", || async {
        let ready = gateway.admin("/readyz").send().await;
        (ready.status == 503).then(|| assert!(ready.text().contains("ledger_failing"), "{}", ready.text()))
    })
    .await;
    let page = gateway.metrics().await;
    assert_eq!([metric(&page, "gw_ledger_failing"), metric(&page, "gw_ledger_has_place")], [1, 0]);
    let refused = gateway.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((refused.status, refused.error()["code"].as_str()), (503, Some("overloaded")));
    assert_eq!(refused.error()["message"], "the ledger cannot be written");
    assert_eq!(provider.calls().len(), 1);
    server.run().unwrap();
    eventually("the return", || async {
        (gateway.admin("/readyz").send().await.status == 200).then_some(())
    })
    .await;
    asked.extend(ask(&gateway, 2).await);
    assert_eq!(exported(&gateway.folder(), &toml), asked);
    let said = gateway.stderr();
    assert!(said.contains("the ledger cannot be written; trying again"), "{said}");
    assert!(said.contains("the ledger can be written again"), "{said}");
}
