//! `gw replay`: recorded requests under another configuration.

use std::path::Path;

use gw_testkit::{FakeProvider, FaultScript, ok, status};
use serde_json::Value;

use crate::support::{Gw, Toml, chat, run_gw};

/// The configuration under which the requests are recorded.
fn before(up: &FakeProvider, ill: &FakeProvider) -> Toml {
    Toml::new()
        .upstream("up", up)
        .upstream("ill", ill)
        .upstream_with("other", &up.base_url(), "", "price = { input = 3_000_000, output = 5_000_000 }")
        .upstream_with("low", &up.base_url(), "", "classification_ceiling = \"internal\"")
        .route("plain", &["up"])
        .route("falls-over", &["ill", "up"])
        .route_with("shared", &["up", "other"], "strategy = \"weighted\"\nweights = { up = 1, other = 3 }")
        .route_with("cached", &["up"], "cache = { exact = true, ttl_s = 300 }")
        .route("only-low", &["low"])
        .part("[[refused]]\nmodels = [\"plain\"]\ntask_classes = [\"gossip\"]")
        .part("[[tenants.narrow.keys]]\nname = \"n\"\nsecret = { env = \"KEY_N\" }\nroutes = [\"cached\"]\nmodels = [\"ca*\"]\nclassification_ceiling = \"internal\"")
        .var("KEY_N", "key-n")
        .tenant("a", "budget = { limit_micros = 1_000_000, window = \"day\" }")
        .sqlite()
}

/// Runs a replay, and returns the differences and the summary. It needs no caller's key.
fn replay(folder: &Path, toml: &Toml, arguments: &[&str]) -> (Vec<Value>, Value) {
    std::fs::write(folder.join("new.toml"), toml.text()).unwrap();
    let variables = toml.environment().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let variables: Vec<_> = variables.filter(|(name, _)| !name.starts_with("KEY_")).collect();
    let fixed = ["replay", "--ledger", "gw.db", "--config", "new.toml", "--format", "json"];
    let output = run_gw(folder, &[&fixed, arguments].concat(), &variables);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap()["summary"].take();
    (lines, summary)
}

/// Sends requests that are answered, that fall over, that the cache answers and that are refused.
async fn record(gw: &Gw) {
    for model in
        ["plain", "falls-over", "shared", "shared", "shared", "cached", "cached", "nobody", "only-low"]
    {
        let mut body = chat(model, "hello");
        body["max_tokens"] = 5.into();
        gw.chat("a", &body).send().await;
        body["stream"] = true.into();
        if model != "nobody" {
            gw.chat("a", &body).header("x-gw-classification", "confidential").send().await;
        }
    }
    // Enough failures that the breaker takes the ill one out.
    for _ in 0..8 {
        gw.chat("a", &chat("falls-over", "again")).send().await;
    }
    gw.chat("a", &chat("plain", "hello")).header("x-gw-task-class", "gossip").send().await;
    gw.chat("a", &chat("plain", "hello")).header("x-gw-classification", "public").send().await;
    gw.chat("a", &Value::Bool(true)).send().await;
    // A key that is for less than its tenant.
    let narrow = |model: &str| {
        let call = gw.call(http::Method::POST, "/v1/chat/completions").key("key-n");
        call.json(&chat(model, "hello"))
    };
    for model in ["cached", "plain"] {
        narrow(model).send().await;
    }
    narrow("cached").header("x-gw-classification", "restricted").send().await;
}

#[tokio::test]
async fn the_old_configuration_changes_nothing_and_a_new_one_what_it_changes() {
    let up = FakeProvider::start(FaultScript::of(ok("a b c").usage(10, 3))).await.unwrap();
    let ill = FakeProvider::start(FaultScript::of(status(500))).await.unwrap();
    let old = before(&up, &ill);
    let gw = Gw::start(&old).await;
    record(&gw).await;
    let folder = gw.stop().await;

    let (differences, summary) = replay(folder.path(), &old, &[]);
    assert_eq!(differences, [] as [Value; 0]);
    assert_eq!((&summary["records"], &summary["changed"]), (&31.into(), &0.into()), "{summary}");
    assert_eq!(summary["cost_then_pico"], summary["cost_now_pico"]);
    assert_ne!(summary["cost_then_pico"], "0");

    // Another price, and nothing else.
    let text = |from: &str, to: &str| {
        let part = old.text().replacen(from, to, 1);
        assert_ne!(part, old.text(), "{from}");
        old.clone().whole(&part)
    };
    let dearer = text("input = 3_000_000", "input = 4_000_000");
    let (differences, summary) = replay(folder.path(), &dearer, &[]);
    assert_eq!(summary["changes"].as_object().unwrap().keys().collect::<Vec<_>>(), ["cost"]);
    for difference in differences.iter().filter(|one| one["changes"][0]["what"] == "cost") {
        assert_eq!(
            (&difference["changes"][0]["then"], &difference["changes"][0]["now"]),
            (&"$0.000045".into(), &"$0.000055".into())
        );
    }

    // The route of one model goes elsewhere, and so do its requests and no other's.
    let moved = text(
        "match = { models = [\"plain\"] }\ndeployments = [\"up\"]",
        "match = { models = [\"plain\"] }\ndeployments = [\"other\"]",
    );
    let (differences, summary) = replay(folder.path(), &moved, &[]);
    let changes = &summary["changes"];
    assert_eq!((&changes["candidates"], &changes["cost"]), (&2.into(), &2.into()), "{summary}");
    assert_eq!((changes.get("route"), changes.get("refusal")), (None, None), "{summary}");
    let first = &differences[0]["changes"][0];
    assert_eq!((&first["then"], &first["now"]), (&"up".into(), &"other".into()));

    // What was refused is served, and what was served is refused.
    let wider = text("classification_ceiling = \"internal\"", "classification_ceiling = \"restricted\"");
    let (differences, _) = replay(folder.path(), &wider, &[]);
    let refusals: Vec<&Value> = differences
        .iter()
        .flat_map(|one| one["changes"].as_array().unwrap())
        .filter(|change| change["what"] == "refusal")
        .collect();
    assert_eq!(refusals.len(), 1, "{differences:?}");
    assert_eq!((&refusals[0]["then"], &refusals[0]["now"]), (&"no_route_available".into(), &Value::Null));
    let narrower = text(
        "match = { models = [\"plain\"] }",
        "match = { models = [\"plain\"], classifications = [\"internal\"] }",
    );
    let (differences, summary) = replay(folder.path(), &narrower, &[]);
    assert_eq!(summary["changes"]["refusal"], 1, "{differences:?}");

    let (none, summary) = replay(folder.path(), &moved, &["--summary", "--until", "2020-01-01"]);
    assert_eq!((none.len(), &summary["records"]), (0, &0.into()));
}
