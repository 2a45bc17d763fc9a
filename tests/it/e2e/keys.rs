//! Keys with scopes, and keys that change while the program serves.

use gw_testkit::{FakeProvider, FaultScript};
use http::Method;
use serde_json::Value;

use crate::support::{Gw, Toml, chat, eventually, run_gw};

async fn status(gw: &Gw, key: &str, model: &str) -> u16 {
    gw.call(Method::POST, "/v1/chat/completions").key(key).json(&chat(model, "hello")).send().await.status
}

/// Runs `gw keys`, which must succeed, and returns what it prints.
fn keys(gw: &Gw, toml: &Toml, arguments: &str) -> String {
    let variables: Vec<_> =
        toml.environment().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let arguments: Vec<_> = std::iter::once("keys").chain(arguments.split(' ')).collect();
    let output = run_gw(&gw.folder(), &arguments, &variables);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_key_in_the_ledger_is_made_rotated_and_revoked_while_the_gateway_runs() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("m", &["up"])
        .route("other", &["up"])
        .tenant("a", "")
        .sqlite()
        .ledger("keys = true");
    let gw = Gw::start(&toml).await;
    let key = keys(&gw, &toml, "create --stored --tenant a --name web --models m");
    let becomes = |key: String, expected: u16| {
        let gw = &gw;
        async move {
            eventually("the change of the key", || async {
                (status(gw, &key, "m").await == expected).then_some(())
            })
            .await;
        }
    };
    becomes(key.clone(), 200).await;
    assert_eq!(status(&gw, &key, "other").await, 404);
    let models = gw.call(Method::GET, "/v1/models").key(&key).send().await.json();
    assert_eq!(models["data"].as_array().map(Vec::len), Some(1), "{models}");
    let listed: Value = serde_json::from_str(&keys(&gw, &toml, "list --format json")).unwrap();
    let places: Vec<_> = listed["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| (key["name"].as_str(), key["in"].as_str()))
        .collect();
    assert_eq!(places, [(Some("dev"), Some("file")), (Some("web"), Some("ledger"))]);
    assert!(!listed.to_string().contains(&key));

    let new = keys(&gw, &toml, "rotate --tenant a --name web --overlap 1h");
    becomes(new.clone(), 200).await;
    assert_eq!(status(&gw, &key, "m").await, 200, "the old key goes on for a while");
    let newest = keys(&gw, &toml, "rotate --tenant a --name web --overlap 0s");
    becomes(newest.clone(), 200).await;
    assert_eq!([status(&gw, &key, "m").await, status(&gw, &new, "m").await], [401, 401]);
    keys(&gw, &toml, "revoke --tenant a --name web");
    becomes(newest, 401).await;
    let shown: Value = serde_json::from_str(&keys(&gw, &toml, "show --tenant a --name web")).unwrap();
    assert!(shown["revoked"].is_string(), "{shown}");
}

#[tokio::test]
async fn a_key_narrows_what_its_tenant_may_do() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let key = |name: &str, lines: &str| {
        format!("[[tenants.a.keys]]\nname = \"{name}\"\nsecret = {{ env = \"KEY_{name}\" }}\n{lines}\n")
    };
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("m", &["up"])
        .route("other", &["up"])
        .part("[tenants.a]")
        .part(&key("ROUTE", "routes = [\"other\"]"))
        .part(&key("PAST", "expires = \"2020-01-01\""))
        .part(&key("AWAY", "networks = [\"192.0.2.0/24\"]"))
        .part(&key("HERE", "networks = [\"127.0.0.0/8\", \"::1\"]\nclassification_ceiling = \"internal\""));
    let toml = ["ROUTE", "PAST", "AWAY", "HERE"]
        .iter()
        .fold(toml, |toml, name| toml.var(&format!("KEY_{name}"), &format!("key-{name}")));
    let gw = Gw::start(&toml).await;
    assert_eq!([status(&gw, "key-ROUTE", "m").await, status(&gw, "key-ROUTE", "other").await], [404, 200]);
    assert_eq!([status(&gw, "key-PAST", "m").await, status(&gw, "key-AWAY", "m").await], [401, 401]);
    assert_eq!(status(&gw, "key-HERE", "m").await, 200);
    let above = gw
        .call(Method::POST, "/v1/chat/completions")
        .key("key-HERE")
        .header("x-gw-classification", "confidential");
    assert_eq!(above.json(&chat("m", "hello")).send().await.status, 403);
    assert_eq!(provider.calls().len(), 2);
}
