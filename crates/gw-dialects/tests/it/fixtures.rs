//! Finds the recorded exchanges that stand beside the workspace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use gw_dialects::openai::{ErrorHead, classify};
use gw_types::{GatewayError, UtcTime};
use serde_json::Value;

/// One recorded exchange.
pub(crate) struct Exchange {
    pub(crate) id: String,
    pub(crate) api: String,
    pub(crate) stream: bool,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) request: Value,
}

impl Exchange {
    /// Returns an answer header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Classifies an answer that is an error, as the adapters do.
    pub(crate) fn error(&self) -> GatewayError {
        let header = |name: &str| self.header(name);
        let head = ErrorHead { status: self.status, header: &header, utc: UtcTime::default() };
        classify(&head, &self.body)
    }
}

/// Returns the exchanges whose format is chat completions, or none where the folder is absent, which is reported.
pub(crate) fn chat_exchanges() -> Vec<&'static Exchange> {
    let exchanges: Vec<&Exchange> = all().iter().filter(|exchange| is_chat(exchange)).collect();
    assert!(exchanges.is_empty() || exchanges.len() > 100, "{} exchanges", exchanges.len());
    exchanges
}

/// Returns the exchanges of some formats, by the last part of their names: `responses` stands for every provider's.
pub(crate) fn exchanges_of(format: &str) -> Vec<&'static Exchange> {
    all().iter().filter(|exchange| exchange.api.rsplit('.').next() == Some(format)).collect()
}

/// Returns every exchange, sorted by id. They are read once a process.
fn all() -> &'static [Exchange] {
    static ALL: OnceLock<Vec<Exchange>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/exchanges");
        if !folder.is_dir() {
            assert!(!must_run(), "the recorded exchanges are absent");
            report_skip();
            return Vec::new();
        }
        let mut exchanges: Vec<Exchange> = files(&folder).iter().map(|file| read(file)).collect();
        exchanges.sort_by(|a, b| a.id.cmp(&b.id));
        exchanges
    })
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn report_skip() {
    println!("skipped: the recorded exchanges are absent");
}

/// Where the whole test run must be complete, an absent folder is a failure.
#[expect(
    clippy::disallowed_methods,
    reason = "a test may not skip itself in CI, and only the environment says so"
)]
fn must_run() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Cohere and Ollama have formats of their own under the name `chat`.
fn is_chat(exchange: &Exchange) -> bool {
    let own_format = matches!(exchange.api.as_str(), "cohere.chat" | "ollama.chat");
    !own_format && (exchange.api.ends_with(".chat") || exchange.api == "ollama.openai-chat")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
    };
    let folders = entries(folder).into_iter().filter(|path| path.is_dir());
    folders
        .flat_map(|folder| entries(&folder))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}

/// The part of a file that the tests use.
#[derive(serde::Deserialize)]
struct File {
    id: String,
    api: String,
    stream: bool,
    request: FileRequest,
    response: FileResponse,
}

#[derive(serde::Deserialize)]
struct FileRequest {
    body: Value,
}

#[derive(serde::Deserialize)]
struct FileResponse {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    body_text: Option<String>,
    body_base64: Option<String>,
}

fn read(file: &Path) -> Exchange {
    let text = std::fs::read(file).expect("a file");
    let file: File = serde_json::from_slice(&text).expect("an exchange");
    let response = file.response;
    let body = match response.body_base64 {
        Some(bytes) => STANDARD.decode(bytes).expect("base64"),
        None => {
            response.body_text.unwrap_or_else(|| response.body.unwrap_or_default().to_string()).into_bytes()
        }
    };
    Exchange {
        id: file.id,
        api: file.api,
        stream: file.stream,
        status: response.status,
        headers: response.headers.into_iter().collect(),
        body,
        request: file.request.body,
    }
}
