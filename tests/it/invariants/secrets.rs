//! I18: no secret, prompt or completion where it does not belong.

use std::path::Path;

use gw_testkit::{ChatEnd, FakeProvider, FaultScript, content_filter, ok, status};
use http::Method;
use serde_json::json;

use crate::support::{Answer, Gw, Program, Toml, chat, key_of};

/// Stands in every prompt.
pub(super) const PROMPT: &str = "canary-prompt-7d1f";
/// Stands in every answer.
pub(super) const COMPLETION: &str = "canary-completion-93ab";
/// Stands in what the provider says about a failure.
pub(super) const PROVIDERS_WORDS: &str = "canary-upstream-detail-51c0";
/// A key that nobody has.
pub(super) const BAD_KEY: &str = "canary-bad-key-e6e6";

/// Collects what must not be found, and where it was found.
#[derive(Default)]
pub(super) struct Search(Vec<String>);

impl Search {
    /// Returns what was found, and where.
    pub(super) fn found(self) -> Vec<String> {
        self.0
    }

    pub(super) fn look(&mut self, place: &str, bytes: &[u8]) {
        let keys = [key_of("a"), key_of("b"), "sk-upstream-key-of-the-gateway".to_owned()];
        let canaries = [PROMPT, COMPLETION, PROVIDERS_WORDS, BAD_KEY].map(str::to_owned);
        for secret in keys.iter().chain(&canaries) {
            if bytes.windows(secret.len()).any(|window| window == secret.as_bytes()) {
                self.0.push(format!("`{secret}` in {place}"));
            }
        }
    }

    pub(super) fn look_at_headers(&mut self, place: &str, answer: &Answer) {
        for (name, value) in &answer.headers {
            self.look(&format!("header {name} of {place}"), value.as_bytes());
        }
    }

    pub(super) fn look_into_files(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            self.look(&name, &std::fs::read(&path).unwrap());
        }
    }
}

fn toml(
    good: &FakeProvider,
    busy: &FakeProvider,
    filter: &FakeProvider,
    cut: &FakeProvider,
    bad: &FakeProvider,
) -> Toml {
    Toml::new()
        .upstream("good", good)
        .upstream("busy", busy)
        .upstream("filter", filter)
        .upstream("cut", cut)
        .upstream("bad", bad)
        .route_with("good", &["good"], "cache = { exact = true, semantic = { threshold = 0.9 } }")
        .route("falls-over", &["busy", "good"])
        .route("filter", &["filter"])
        .route("cut", &["cut"])
        .route("bad", &["bad"])
        .tenant("a", "requests_per_minute = 100\nbudget = { limit_micros = 1_000_000, window = \"day\" }")
        .tenant("b", "requests_per_minute = 1")
        .sqlite()
}

/// Drives marked requests down every road; returns the answers that may not carry a secret in their headers.
async fn drive(gw: &Gw) -> Vec<(String, Answer)> {
    let prompt = format!("please repeat {PROMPT}");
    let ask = |tenant: &str, model: &str| gw.chat(tenant, &chat(model, &prompt));
    let mut answers = Vec::new();
    for model in ["good", "good", "falls-over", "filter", "cut", "bad", "nobody-knows"] {
        answers.push((model.to_owned(), ask("a", model).send().await));
        let mut body = chat(model, &prompt);
        body["stream"] = true.into();
        body["user"] = "user-7".into();
        answers.push((format!("{model} streamed"), gw.chat("a", &body).send().await));
    }
    ask("b", "good").send().await;
    answers.push(("rate".to_owned(), ask("b", "good").send().await));
    let bad_key = gw.call(Method::POST, "/v1/chat/completions").key(BAD_KEY).json(&chat("good", &prompt));
    answers.push(("bad key".to_owned(), bad_key.send().await));
    let broken = format!("{{\"model\": \"good\", \"messages\": [{{\"role\": \"{PROMPT}");
    let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a"));
    answers.push(("broken JSON".to_owned(), call.bytes(broken).send().await));
    let wrong = json!({"model": "good", "messages": PROMPT, "max_tokens": PROMPT});
    answers.push(("wrong type".to_owned(), gw.chat("a", &wrong).send().await));
    let path = gw.call(Method::POST, &format!("/v1/{PROMPT}")).key(&key_of("a"));
    answers.push(("unknown path".to_owned(), path.json(&json!({})).send().await));
    let header = ask("a", "good").header("x-gw-task-class", &format!("\"{PROMPT}\""));
    answers.push(("bad header".to_owned(), header.send().await));
    answers
}

#[tokio::test]
async fn i18_no_secret_prompt_or_completion_anywhere() {
    let text = format!("well, {COMPLETION} it is");
    let start = |script| async { FakeProvider::start(script).await.unwrap() };
    let good = start(FaultScript::of(ok(&text))).await;
    let said =
        format!(r#"{{"error":{{"message":"{PROVIDERS_WORDS} {PROMPT}","type":"requests","code":null}}}}"#);
    let busy = start(FaultScript::of(status(429).body(said.clone()))).await;
    let filter =
        start(FaultScript::of(content_filter().body(said.replace("null", "\"content_filter\"")))).await;
    let cut = start(FaultScript::of(ok(&text).end(ChatEnd::CutAfter(2)))).await;
    let key = "sk-upstream-key-of-the-gateway";
    let refused =
        format!(r#"{{"error":{{"message":"Incorrect API key provided: {key}","code":"invalid_api_key"}}}}"#);
    let bad = start(FaultScript::of(status(401).body(refused))).await;
    let toml = toml(&good, &busy, &filter, &cut, &bad);
    let gw = Gw::start_with(&toml, &["--log", "debug"], &[]).await;
    let answers = drive(&gw).await;

    let mut search = Search::default();
    for (place, answer) in &answers {
        search.look_at_headers(place, answer);
        if answer.status >= 400 {
            let text = answer.text();
            assert!(!text.contains(key), "the gateway's own key in the answer to {place}: {text}");
            assert!(
                !text.contains(BAD_KEY) && !text.contains(&key_of("a")),
                "a key in the answer to {place}"
            );
        }
    }
    // What the provider said reaches the caller of that request, scrubbed, and nobody else.
    let of = |name: &str| answers.iter().find(|(place, _)| place == name).unwrap().1.text();
    assert!(of("filter").contains(PROVIDERS_WORDS), "{}", of("filter"));
    assert!(of("good").contains(COMPLETION));
    for place in ["broken JSON", "wrong type", "unknown path", "bad header", "rate", "nobody-knows"] {
        assert!(!of(place).contains(PROMPT), "{}", of(place));
    }

    // Let in: 14 of tenant a, 2 of tenant b, and the three whose body or header could not be read.
    let records = gw.records(19).await;
    search.look("the records", json!(records).to_string().as_bytes());
    for record in &records {
        let id = record["id"].as_str().unwrap();
        let one = gw.admin(&format!("/admin/v1/records/{id}")).send().await;
        search.look("one record", &one.body);
    }
    for page in ["/metrics", "/admin/v1/tenants", "/admin/v1/deployments"] {
        search.look(page, &gw.admin(page).send().await.body);
    }
    assert!(gw.stderr().contains("DEBUG") || gw.stderr().contains("INFO"), "nothing was logged");
    let folder = gw.folder();
    search.look("stdout", gw.stdout().as_bytes());
    let kept = gw.stop().await;
    search.look_into_files(&folder);
    assert!(folder.join("gw.db").exists(), "the ledger was searched");
    drop(kept);
    assert_eq!(search.0, Vec::<String>::new());
}

#[test]
fn i18_a_configuration_error_shows_no_secret() {
    let folder = tempfile::TempDir::new().unwrap();
    let text = format!(
        "version = 1\n[providers.p]\nkind = \"openai\"\napi_key = \"{BAD_KEY}\"\n[tenants.a]\nkeys = [{{ name = \"x\", secret = \"{PROMPT}\" }}]\n"
    );
    std::fs::write(folder.path().join("gw.toml"), text).unwrap();
    for format in ["text", "json"] {
        let output = std::process::Command::new(Program::path())
            .args(["check", "--format", format])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("api_key"), "{said}");
        assert!(!said.contains(BAD_KEY) && !said.contains(PROMPT), "{said}");
    }
}
