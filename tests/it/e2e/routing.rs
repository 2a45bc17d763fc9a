//! What decides where a request goes, seen from outside.

use gw_testkit::{FakeProvider, FaultScript, ok};

use crate::support::{Gw, Toml, chat, run_gw};

async fn gateway() -> (Gw, FakeProvider) {
    let provider = FakeProvider::start(FaultScript::of(ok("hello"))).await.unwrap();
    let toml = Toml::new()
        .sqlite()
        .upstream("one", &provider)
        .upstream("two", &provider)
        .route_with("m", &["one"], "priority = 1")
        .route_with("team", &["two"], "match = { models = [\"m\"], metadata = { team = [\"blue\"] } }")
        .part("[[refused]]\nclassifications = [\"restricted\"]")
        .tenant("a", "");
    (Gw::start(&toml).await, provider)
}

#[tokio::test]
async fn metadata_of_the_body_decides() {
    let (gw, _provider) = gateway().await;
    for (metadata, deployment) in
        [("{\"team\": \"blue\"}", "two"), ("{\"team\": \"red\"}", "one"), ("null", "one")]
    {
        let mut body = chat("m", "hello");
        body["metadata"] = serde_json::from_str(metadata).unwrap();
        let answer = gw.chat("a", &body).send().await;
        assert_eq!((answer.status, answer.header("x-gw-deployment")), (200, deployment), "{metadata}");
    }
}

#[tokio::test]
async fn what_is_declared_refused_is_403_and_calls_nobody() {
    let (gw, _provider) = gateway().await;
    let call = gw.chat("a", &chat("m", "hello")).header("x-gw-classification", "restricted");
    let answer = call.send().await;
    assert_eq!((answer.status, answer.error()["code"].as_str()), (403, Some("policy_violation")));
    assert_eq!(answer.header("x-gw-attempts"), "0");
    let id = answer.header("x-request-id").to_owned();
    gw.records(1).await;
    let folder = gw.folder();
    // A caller's key is not needed to explain what became of its request.
    let variables = [("UPSTREAM_KEY", "x")];
    let explained = run_gw(&folder, &["explain", "--config", "gw.toml", "--record", &id], &variables);
    let said = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert_eq!(explained.status.code(), Some(1), "{}", String::from_utf8_lossy(&explained.stderr));
    assert!(said.contains("outcome refused, policy_violation"), "{said}");
    assert!(said.ends_with("refused: such requests are declared refused\n"), "{said}");
}
