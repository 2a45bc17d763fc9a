//! Callers with signed tokens: a real issuer's keys over a socket, real signatures, the real program.

use std::sync::Arc;

use gw_exec::SystemClock;
use gw_testkit::{FakeProvider, FaultScript, TokenSigner};
use gw_types::Clock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::support::{Answer, Gw, Toml, chat, key_of, metric};

/// Shows a set of keys to everybody who asks, and counts them; returns its address.
async fn issuer(set: Arc<Mutex<(String, usize)>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                line.clear();
            }
            let body = {
                let mut set = set.lock();
                set.1 += 1;
                set.0.clone()
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            drop(stream.write_all(answer.as_bytes()).await);
        }
    });
    address
}

fn toml(provider: &FakeProvider, keys: &str) -> Toml {
    Toml::new()
        .upstream("up", provider)
        .route("m", &["up"])
        .route("other", &["up"])
        .tenant("a", "")
        .part(&format!(
            r#"
[issuers.corp]
issuer = "https://login.example.com"
audience = ["gw"]
{keys}

[tenants.team]
keys = [
    {{ name = "people", issuer = "corp", claims = {{ groups = "team" }}, models = ["m"] }},
    {{ name = "robots", issuer = "corp", claims = {{ groups = "team", "/act/kind" = ["job", "cron"] }}, requests_per_minute = 1 }},
]"#
        ))
}

fn claims(change: &Value) -> Value {
    let now = SystemClock::default().utc().seconds();
    let mut claims = json!({
        "iss": "https://login.example.com", "aud": "gw", "iat": now, "nbf": now, "exp": now + 300,
        "sub": "MARKED-SUBJECT", "groups": ["team", "staff"],
    });
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

async fn ask(gw: &Gw, token: &str, model: &str) -> Answer {
    gw.call(http::Method::POST, "/v1/chat/completions").key(token).json(&chat(model, "hello")).send().await
}

#[tokio::test]
async fn tokens_of_an_issuer_are_keys_of_a_tenant() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let signer = TokenSigner::rs256("k1").unwrap();
    let set = Arc::new(Mutex::new((TokenSigner::set(&[&signer]).unwrap(), 0)));
    let address = issuer(Arc::clone(&set)).await;
    let gw = Gw::start(&toml(&provider, &format!("jwks_url = \"{address}/keys\""))).await;
    let sign = |change: Value| signer.sign(&claims(&change)).unwrap();
    let person = sign(json!({}));
    assert_eq!(ask(&gw, &person, "m").await.status, 200);
    assert_eq!(ask(&gw, &person, "other").await.status, 404, "the key's scope holds for its tokens");
    let robot = sign(json!({"act": {"kind": "cron"}}));
    assert_eq!(ask(&gw, &robot, "other").await.status, 200);
    assert_eq!(ask(&gw, &robot, "other").await.status, 429, "and its limits");
    assert_eq!(set.lock().1, 1, "the keys were fetched once");
    assert_eq!(ask(&gw, &key_of("a"), "other").await.status, 200, "keys go on beside tokens");

    let other = TokenSigner::rs256("k1").unwrap();
    let now = claims(&json!({}))["iat"].as_i64().unwrap();
    for (token, status, said) in [
        (sign(json!({"exp": now - 61})), 401, "has expired"),
        (sign(json!({"nbf": now + 120})), 401, "not valid yet"),
        (sign(json!({"aud": "other"})), 401, "is not for this gateway"),
        (sign(json!({"iss": "https://evil.example.com"})), 401, "issuer (`iss`) is unknown"),
        (sign(json!({"groups": ["guests"]})), 403, "no tenant takes its claims"),
        (other.sign(&claims(&json!({}))).unwrap(), 401, "signature is wrong"),
        (signer.sign_as(Some("k9"), &claims(&json!({}))).unwrap(), 401, "is none of its issuer's"),
    ] {
        let answer = ask(&gw, &token, "m").await;
        assert_eq!(answer.status, status, "{said}: {}", answer.text());
        assert!(answer.text().contains(said), "{said}: {}", answer.text());
        assert!(!answer.text().contains(&token[..40]), "a token in {}", answer.text());
    }
    assert_eq!(set.lock().1, 1, "a key that there is not is looked for once in ten seconds at most");
    let page = gw.admin("/metrics").send().await.text();
    assert_eq!(metric(&page, "gw_refusals_total{reason=\"token\"}"), 6);
    assert_eq!(metric(&page, "gw_refusals_total{reason=\"token_forbidden\"}"), 1);
    // A refusal at the limit has a record; those of the door have none.
    let records = gw.records(5).await;
    let of = |key: &str| records.iter().filter(|record| record["key"] == key).count();
    assert_eq!((of("people"), of("robots")), (2, 2));
    let told = format!("{records:?}{}{page}", gw.stderr());
    assert!(!told.contains("MARKED") && !told.contains(&person[..60]), "{told}");
}

#[tokio::test]
async fn a_reload_takes_up_new_keys_of_a_file_and_other_claims() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let (old, new) = (TokenSigner::es256("old").unwrap(), TokenSigner::es256("new").unwrap());
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("jwks.json");
    std::fs::write(&file, TokenSigner::set(&[&old]).unwrap()).unwrap();
    let toml = toml(&provider, &format!("jwks_file = \"{}\"", file.display()));
    let gw = Gw::start(&toml).await;
    let of = |signer: &TokenSigner| signer.sign(&claims(&json!({}))).unwrap();
    assert_eq!(ask(&gw, &of(&old), "m").await.status, 200);
    assert_eq!(ask(&gw, &of(&new), "m").await.status, 401);
    std::fs::write(&file, TokenSigner::set(&[&new]).unwrap()).unwrap();
    assert_eq!(gw.admin_post("/admin/v1/reload").send().await.status, 200);
    assert_eq!(ask(&gw, &of(&new), "m").await.status, 200);
    assert_eq!(ask(&gw, &of(&old), "m").await.status, 401);
}

#[tokio::test]
async fn an_issuer_that_is_away_is_no_fault_of_the_caller() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let signer = TokenSigner::es256("k1").unwrap();
    // A port that nobody listens on any more.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gw = Gw::start(&toml(&provider, &format!("jwks_url = \"http://{port}/keys\""))).await;
    let answer = ask(&gw, &signer.sign(&claims(&json!({}))).unwrap(), "m").await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("cannot be fetched"), "{}", answer.text());
    assert_eq!(gw.call(http::Method::GET, "/v1/models").key(&key_of("a")).send().await.status, 200);
}
