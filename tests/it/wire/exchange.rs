//! Finds recorded exchanges and reads them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gw_dialects::openai::ErrorHead;
use gw_types::UtcTime;
use serde::Deserialize;
use serde_json::Value;

/// Names the folder to check instead of the one beside the workspace.
const FOLDER_VARIABLE: &str = "GW_FIXTURES";

/// Recorded exchanges, and whether the table says what is in them.
pub(super) struct Corpus {
    pub(super) exchanges: Vec<Exchange>,
    /// Whether every exchange must stand in the table. Those of another folder cannot.
    pub(super) is_known: bool,
}

/// One recorded exchange.
pub(super) struct Exchange {
    pub(super) id: String,
    pub(super) provider: String,
    pub(super) api: String,
    pub(super) stream: bool,
    /// Whether a recorder took it off the wire, so that its figures are the provider's own.
    pub(super) is_recorded: bool,
    pub(super) status: u16,
    pub(super) request: Value,
    pub(super) body: Bytes,
    headers: BTreeMap<String, String>,
}

impl Exchange {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Hands the head of the answer over, as the adapters do.
    pub(super) fn with_head<T>(&self, then: impl FnOnce(&ErrorHead<'_>) -> T) -> T {
        let header = |name: &str| self.headers.get(name).map(String::as_str);
        then(&ErrorHead { status: self.status, header: &header, utc: UtcTime::default() })
    }
}

/// Returns the exchanges of the folder that the environment names, else of the one beside the workspace; `None`, reported,
/// where that is absent and need not be there.
pub(super) fn corpus() -> Option<Corpus> {
    let named = variable(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
    let folder = named.as_ref().map_or_else(|| beside_the_workspace("fixtures/exchanges"), PathBuf::from);
    if named.is_none() && is_absent(&folder) {
        return None;
    }
    Some(Corpus { exchanges: read_folder(&folder), is_known: named.is_none() })
}

/// Returns a path of the shared folder beside the workspace.
pub(crate) fn beside_the_workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path)
}

/// Returns whether a shared folder is absent, and says so. Where the whole test run must be complete, that is a failure.
pub(crate) fn is_absent(folder: &Path) -> bool {
    if folder.is_dir() {
        return false;
    }
    let what = folder.file_name().unwrap_or_default().display();
    assert!(variable("CI").as_deref() != Some("true"), "the shared {what} are absent");
    super::report::say(&format!("skipped: the shared {what} are absent\n"));
    true
}

#[expect(
    clippy::disallowed_methods,
    reason = "which folder is checked, and whether it may be absent, only the environment says"
)]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[derive(Deserialize)]
struct Index {
    count: usize,
    exchanges: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    file: String,
}

#[derive(Deserialize)]
struct File {
    id: String,
    provider: String,
    api: String,
    stream: bool,
    #[serde(default)]
    fidelity: String,
    #[serde(default)]
    request: FileRequest,
    response: FileResponse,
}

#[derive(Default, Deserialize)]
struct FileRequest {
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
struct FileResponse {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    body_text: Option<String>,
    body_base64: Option<String>,
}

/// Reads every exchange that the index of a folder names, sorted by id.
pub(super) fn read_folder(folder: &Path) -> Vec<Exchange> {
    let read = |file: &str| {
        let path = folder.join(file);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let index: Index = serde_json::from_slice(&read("index.json")).expect("an index");
    assert_eq!(index.exchanges.len(), index.count, "the index counts itself");
    let mut exchanges: Vec<Exchange> = index
        .exchanges
        .iter()
        .map(|entry| {
            let file: File = serde_json::from_slice(&read(&entry.file)).expect("an exchange");
            assert_eq!(file.id, entry.id, "the index names its files");
            exchange(file)
        })
        .collect();
    exchanges.sort_by(|a, b| a.id.cmp(&b.id));
    exchanges
}

fn exchange(file: File) -> Exchange {
    let response = file.response;
    let body = match (response.body_base64, response.body_text) {
        (Some(bytes), _) => STANDARD.decode(bytes).expect("base64"),
        (None, Some(text)) => text.into_bytes(),
        (None, None) => response.body.unwrap_or_default().to_string().into_bytes(),
    };
    Exchange {
        id: file.id,
        provider: file.provider,
        api: file.api,
        stream: file.stream,
        is_recorded: matches!(file.fidelity.as_str(), "recorded" | "recorded-reserialised"),
        status: response.status,
        request: file.request.body,
        body: Bytes::from(body),
        headers: response
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect(),
    }
}
