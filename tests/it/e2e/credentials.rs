//! Several credentials of one provider.

use gw_testkit::{FakeProvider, FaultScript, ok, status};

use crate::support::{Gw, Toml, chat};

const CREDENTIALS: &str = "[providers.up]\nkind = \"openai-compatible\"\ncredentials = [\
     { name = \"main\", api_key = { env = \"KEY_1\" } }, { name = \"spare\", api_key = { env = \"KEY_2\" } }]\n";

#[tokio::test]
async fn a_refused_credential_rests_and_the_next_one_is_used() {
    let script = FaultScript::of(status(401)).then(ok("of the spare"));
    let provider = FakeProvider::start(script).await.unwrap();
    let toml = Toml::new()
        .part(&format!("{CREDENTIALS}base_url = \"{}\"", provider.base_url()))
        .var("KEY_1", "sk-canary-main")
        .var("KEY_2", "sk-canary-spare")
        .deployment("up", "up", "")
        .route("m", &["up"])
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    for attempts in ["2", "1"] {
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        assert_eq!((answer.said().as_str(), answer.header("x-gw-attempts")), ("of the spare", attempts));
    }
    let shown: Vec<_> =
        provider.calls().iter().map(|call| call.header("authorization").unwrap().to_owned()).collect();
    let keys = ["main", "spare", "spare"].map(|name| format!("Bearer sk-canary-{name}"));
    assert_eq!(shown, keys);
    let deployment = gw.admin("/admin/v1/deployments").send().await.json()["deployments"][0].clone();
    assert_eq!(deployment["breaker"]["state"], "closed");
    let states: Vec<_> = deployment["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["breaker"]["state"].as_str().unwrap()))
        .collect();
    assert_eq!(states, [("main", "open"), ("spare", "closed")]);
    let page = gw.admin("/metrics").send().await.text();
    let line = "gw_credential_breaker_state{deployment=\"up\",credential=\"main\",state=\"open\"} 1";
    assert!(page.contains(line), "{page}");
    let records = gw.records(2).await;
    assert_eq!(records[0]["attempts"][0]["credential"], "main");
    assert_eq!(records[1]["attempts"][0]["credential"], "spare");
    for text in [page, deployment.to_string(), serde_json::to_string(&records).unwrap(), gw.stderr()] {
        assert!(!text.contains("canary"), "{text}");
    }
}
