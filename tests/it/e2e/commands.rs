//! `gw check`, `gw keys create`, `gw demo`, wrong usage.

use std::process::Output;

use gw_testkit::{FakeProvider, FaultScript};
use http::Method;
use tempfile::TempDir;

use crate::support::{Gw, Toml, chat, run_gw};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn check(config: &str, arguments: &[&str]) -> Output {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("gw.toml"), config).unwrap();
    let arguments: Vec<_> = ["check"].iter().chain(arguments).copied().collect();
    run_gw(folder.path(), &arguments, &[("KEY_A", "key-of-tenant-a"), ("UPSTREAM_KEY", "k")])
}

fn good() -> String {
    Toml::new().scripted("up", &["ok"]).route("m", &["up"]).tenant("a", "").text()
}

#[test]
fn a_good_configuration_checks_with_exit_code_0() {
    let output = check(&good(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("gw.toml: valid; 1 provider, 1 deployment, 1 route, 1 tenant"));
    let json: serde_json::Value =
        serde_json::from_slice(&check(&good(), &["--format", "json"]).stdout).unwrap();
    assert_eq!(
        (json["errors"].as_array().map(Vec::len), json["counts"]["routes"].as_u64()),
        (Some(0), Some(1))
    );
    assert_eq!(check(&good(), &["gw.toml"]).status.code(), Some(0));
}

#[test]
fn a_bad_configuration_checks_with_exit_code_1_and_every_fault() {
    let bad = good()
        .replace("deployments = [\"up\"]", "deployments = [\"pu\"]")
        .replace("expected_latency_ms", "expected_latency")
        .replace("{ env = \"KEY_A\" }", "{ env = \"KEY_MISSING\" }");
    let output = check(&bad, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in ["pu", "expected_latency_ms", "KEY_MISSING", "gw.toml:"] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    let output = check(&bad, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let faults = json.as_array().or_else(|| json["errors"].as_array()).unwrap();
    assert_eq!(faults.len(), 3, "{json}");
    assert!(faults.iter().all(|fault| fault["line"].as_u64().is_some_and(|line| line > 1)), "{json}");
    assert_eq!(check(&good(), &["nowhere.toml"]).status.code(), Some(1));
}

#[test]
fn keys_are_listed_and_reports_made_where_no_callers_secret_is_at_hand() {
    let folder = TempDir::new().unwrap();
    let config = good().replace("[server]", "[server]\nadmin_keys = [{ env = \"ADMIN\" }]");
    std::fs::write(folder.path().join("gw.toml"), config).unwrap();
    let run = |arguments: &[&str]| {
        let output = run_gw(folder.path(), arguments, &[]);
        (text(&output.stdout), text(&output.stderr))
    };
    let (keys, faults) = run(&["keys", "list", "--config", "gw.toml"]);
    assert!(keys.contains("dev") && faults.is_empty(), "{faults}");
    let (_, faults) = run(&["ledger", "report", "--config", "gw.toml"]);
    assert!(!faults.contains("KEY_A") && !faults.contains("ADMIN"), "{faults}");
}

#[test]
fn a_bad_configuration_does_not_serve() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("gw.toml"), "version = 2").unwrap();
    let output = run_gw(folder.path(), &["serve"], &[]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
}

#[test]
fn wrong_usage_has_exit_code_2() {
    let folder = TempDir::new().unwrap();
    for arguments in [
        &["frobnicate"][..],
        &[],
        &["serve", "--listen", "nowhere"],
        &["check", "--format", "xml"],
        &["keys", "create", "--tenant", "a"],
        &["keys", "create", "--tenant", "no name", "--name", "n"],
    ] {
        let output = run_gw(folder.path(), arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_eq!(run_gw(folder.path(), &["--version"], &[]).status.code(), Some(0));
}

#[tokio::test]
async fn a_created_key_works_in_a_served_configuration() {
    let folder = TempDir::new().unwrap();
    let output = run_gw(folder.path(), &["keys", "create", "--tenant", "a", "--name", "laptop"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let key = text(&output.stdout).trim().to_owned();
    let said = text(&output.stderr);
    assert!(!said.contains(&key), "the key is shown once");
    let line = said.lines().find(|line| line.starts_with("keys = ")).unwrap();
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml =
        Toml::new().upstream("up", &provider).route("m", &["up"]).part(&format!("[tenants.a]\n{line}"));
    let gw = Gw::start(&toml).await;
    let ask =
        |key: &str| gw.call(Method::POST, "/v1/chat/completions").key(key).json(&chat("m", "hello")).send();
    assert_eq!(ask(&key).await.status, 200);
    let x_api_key = gw.call(Method::POST, "/v1/chat/completions").header("x-api-key", &key);
    assert_eq!(x_api_key.json(&chat("m", "hello")).send().await.status, 200);
    let mut other = key.clone();
    other.pop();
    let hash = line.split('"').nth(3).unwrap();
    for wrong in [&*other, hash, "", &key.to_uppercase()] {
        assert_eq!(ask(wrong).await.status, 401, "{wrong}");
    }
    assert_eq!(gw.records(2).await[0]["key"], "laptop");
}

#[test]
fn the_demo_shows_its_scenes() {
    let folder = TempDir::new().unwrap();
    let output = run_gw(folder.path(), &["demo"], &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let scenes: Vec<_> = said.split("\n== ").skip(1).collect();
    assert_eq!(scenes.len(), 6, "{said}");
    for (scene, parts) in scenes.iter().zip([
        &["200 OK", "x-gw-attempts: 1", "The answer is 42."][..],
        &["200 OK", "text/event-stream", "data: [DONE]"],
        &["200 OK", "x-gw-attempts: 2", "The answer is 42."],
        &["400 Bad Request", "x-gw-attempts: 1", "content_filter", "x-should-retry: false"],
        &["200 OK", "x-gw-attempts: 2", "x-gw-deployment: healthy", "data: [DONE]"],
        &["200 OK", "x-gw-attempts: 1", "x-gw-deployment: dying", r#"data: {"error""#],
    ]) {
        for part in parts {
            assert!(scene.contains(part), "no {part}: {scene}");
        }
    }
    assert!(!scenes[5].contains("data: [DONE]") && !scenes[5].contains(r#""finish_reason":"stop""#));
}
