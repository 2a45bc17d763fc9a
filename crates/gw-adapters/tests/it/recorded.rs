//! Recorded exchanges of every kind of provider, served over a socket: as they come, and in each caller's format.

use std::{path::Path, sync::OnceLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use gw_adapters::{ProviderConfig, ProviderKind};
use gw_dialects::vendors::Preset;
use gw_types::{Answer, ErrorKind, GatewayError, Operation, StreamItem};
use serde_json::Value;

use crate::{
    server::{Act, Server},
    setup::{PLAN, Setup, asked, config, items},
};

/// The part of a recorded exchange that is served.
struct Exchange {
    id: String,
    api: String,
    stream: bool,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    features: Vec<String>,
}

impl Exchange {
    fn read(file: &Path) -> Self {
        let value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let response = &value["response"];
        let body = match (&response["body_text"], &response["body_base64"]) {
            (Value::String(text), _) => text.clone().into_bytes(),
            (_, Value::String(bytes)) => STANDARD.decode(bytes).unwrap(),
            _ => serde_json::to_vec(&response["body"]).unwrap(),
        };
        let headers = response["headers"].as_object().into_iter().flatten();
        Self {
            id: text(&value["id"]),
            api: text(&value["api"]),
            stream: value["stream"].as_bool().unwrap(),
            status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
            headers: headers.map(|(name, value)| (name.clone(), text(value))).collect(),
            body,
            features: value["features"].as_array().unwrap().iter().map(text).collect(),
        }
    }

    fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }

    /// The answer as HTTP.
    fn act(&self) -> Act {
        let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {}\r\n", self.status, self.body.len());
        for (name, value) in &self.headers {
            if value.is_ascii() && !value.contains(['\r', '\n']) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        head.push_str("\r\n");
        Act::Pieces(vec![head.into_bytes(), self.body.clone()])
    }

    /// Whether the recording ends in the middle of an answer or with an error, or holds none that a caller could be given.
    fn fails(&self) -> bool {
        self.status >= 400
            || ["error", "error-in-stream", "error-body-on-200", "prompt-blocked"]
                .iter()
                .any(|feature| self.has(feature))
    }
}

/// Returns every recorded exchange; none where the folder is absent, which is reported.
fn exchanges() -> &'static [Exchange] {
    static ALL: OnceLock<Vec<Exchange>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/exchanges");
        if !folder.is_dir() {
            assert!(!must_run(), "the recorded exchanges are absent");
            report_skip();
            return Vec::new();
        }
        let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<Exchange> = folders
            .filter(|path| path.is_dir())
            .flat_map(|folder| std::fs::read_dir(folder).unwrap())
            .map(|entry| Exchange::read(&entry.unwrap().path()))
            .collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    })
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn report_skip() {
    println!("skipped: the recorded exchanges are absent");
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test may not skip itself in CI, and only the environment says so"
)]
fn must_run() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// A call's end: the kind of its error, or how its answer came.
#[derive(Debug)]
struct Outcome {
    error: Option<GatewayError>,
    bytes: Vec<u8>,
    finished: bool,
}

async fn outcome(setup: &Setup, operation: Operation, stream: bool) -> Outcome {
    let field = if operation == Operation::Responses {
        r#""input":"Hi""#
    } else {
        r#""max_tokens":99,"messages":[{"role":"user","content":"Hi"}]"#
    };
    let request = asked(operation, &format!(r#"{{"model":"fast","stream":{stream},{field}}}"#));
    let prepared = setup.adapter.prepare(&request, &setup.deployment, &PLAN).unwrap();
    let outcome = match setup.adapter.call(prepared).await {
        Err(error) => Outcome { error: Some(error), bytes: Vec::new(), finished: false },
        Ok(Answer::Complete(answer)) => {
            Outcome { error: None, bytes: answer.raw.to_vec(), finished: answer.facts.finish.is_some() }
        }
        Ok(Answer::Stream(answer)) => of_stream(items(answer).await),
    };
    setup.wait_until_free().await;
    outcome
}

fn of_stream(items: Vec<Result<StreamItem, GatewayError>>) -> Outcome {
    let mut outcome = Outcome { error: None, bytes: Vec::new(), finished: false };
    for item in items {
        match item {
            Ok(item) => {
                outcome.bytes.extend_from_slice(&item.raw);
                outcome.finished |= item.facts.finish.is_some();
                outcome.error = item.facts.error.or(outcome.error);
            }
            Err(error) => outcome.error = Some(error),
        }
    }
    outcome
}

/// Checks every exchange of the formats, at a provider of the kind, for a caller of the operation.
async fn check(kind: ProviderKind, model: &str, apis: &[&str], operation: Operation, at_least: usize) {
    let mut served = 0;
    for exchange in exchanges().iter().filter(|exchange| apis.contains(&exchange.api.as_str())) {
        served += 1;
        let server = Server::always(exchange.act()).await;
        let config = ProviderConfig { kind: kind.clone(), ..config(&format!("http://{}", server.addr)) };
        let setup = Setup::with_model(config, model);
        // An error answer is one whether or not a stream was asked for.
        let stream = exchange.stream || exchange.status >= 400;
        let found = outcome(&setup, operation, stream).await;
        let id = &exchange.id;
        if exchange.fails() {
            let error = found.error.unwrap_or_else(|| panic!("{id}: no error"));
            if exchange.status >= 400 {
                assert_eq!(error.status(), Some(exchange.status), "{id}");
                assert_ne!(error.kind(), ErrorKind::MalformedResponse, "{id}");
            }
        } else {
            assert!(found.error.is_none(), "{id}: {:?} {operation:?}", found.error);
            assert!(found.finished, "{id} says not why it ended");
            if is_own_format(&exchange.api, operation) && !exchange.stream {
                assert!(found.bytes == exchange.body, "{id} has changed on its way");
            }
            let text = String::from_utf8(found.bytes).unwrap();
            let whole = if exchange.stream { text.contains("data: {") } else { is_object(&text) };
            assert!(whole, "{id}: {text}");
        }
    }
    assert!(exchanges().is_empty() || served >= at_least, "{served} exchanges of {apis:?}");
}

/// Whether callers of the operation read what the provider has sent.
fn is_own_format(api: &str, operation: Operation) -> bool {
    match operation {
        Operation::Chat => api.ends_with(".chat") || api.ends_with(".openai-chat"),
        Operation::Responses => api.ends_with(".responses"),
        Operation::Messages => api.ends_with(".messages"),
        Operation::Completions => api.ends_with(".completions"),
        Operation::Embeddings => api.ends_with(".embeddings"),
        Operation::CountTokens => api.ends_with(".count_tokens"),
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

const CONVERSATIONS: [Operation; 3] = [Operation::Chat, Operation::Messages, Operation::Responses];

#[tokio::test]
async fn openai_answers_every_caller() {
    for operation in [Operation::Chat, Operation::Messages] {
        check(ProviderKind::OpenAi, "m", &["openai.chat"], operation, 30).await;
    }
    let responses = ["openai.responses", "xai.responses", "deepseek.responses"];
    check(ProviderKind::OpenAi, "m", &responses, Operation::Responses, 35).await;
}

#[tokio::test]
async fn azure_answers_every_caller() {
    let kind = ProviderKind::AzureOpenAi { api_version: "v1".to_owned() };
    for operation in [Operation::Chat, Operation::Messages] {
        check(kind.clone(), "m", &["azure.chat"], operation, 15).await;
    }
    check(kind, "m", &["azure.responses"], Operation::Responses, 2).await;
}

#[tokio::test]
async fn any_compatible_server_answers_every_caller() {
    let apis = [
        "alibaba.chat",
        "cerebras.chat",
        "huggingface.chat",
        "moonshot.chat",
        "ollama.openai-chat",
        "together.chat",
        "zai.chat",
    ];
    for operation in CONVERSATIONS {
        check(ProviderKind::OpenAiCompatible { preset: None }, "m", &apis, operation, 12).await;
    }
}

#[tokio::test]
async fn vendors_answer_every_caller() {
    for (name, api, count) in [
        ("mistral", "mistral.chat", 15),
        ("groq", "groq.chat", 12),
        ("deepseek", "deepseek.chat", 8),
        ("openrouter", "openrouter.chat", 12),
        ("xai", "xai.chat", 4),
        ("perplexity", "perplexity.chat", 2),
    ] {
        let preset = Preset::named(name).unwrap();
        let kind = ProviderKind::OpenAiCompatible { preset: Some(preset) };
        // Where the vendor has responses itself, they are not translated into chat.
        let translated = |operation| operation != Operation::Responses || !preset.endpoints.responses;
        for operation in CONVERSATIONS.into_iter().filter(|operation| translated(*operation)) {
            check(kind.clone(), "m", &[api], operation, count).await;
        }
    }
}

#[tokio::test]
async fn anthropic_answers_every_caller() {
    for operation in CONVERSATIONS {
        check(ProviderKind::Anthropic, "claude-x", &["anthropic.messages"], operation, 40).await;
    }
}

#[tokio::test]
async fn gemini_answers_every_caller() {
    for operation in CONVERSATIONS {
        let apis = ["gemini.generateContent", "gemini.streamGenerateContent"];
        check(ProviderKind::Gemini, "gemini-x", &apis, operation, 35).await;
    }
}

#[tokio::test]
async fn bedrock_answers_every_caller() {
    for operation in CONVERSATIONS {
        let kind = ProviderKind::Bedrock { region: "us-east-1".to_owned() };
        check(kind, "amazon.nova", &["bedrock.converse", "bedrock.converse-stream"], operation, 20).await;
    }
}
