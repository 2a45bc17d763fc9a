//! `[providers.X]`: a provider account or server, and how it is reached.

mod credentials;
mod several;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use gw_dialects::vendors::{PRESETS, Preset};
use serde::{Serialize, Serializer};

pub(crate) use self::{credentials::CredentialsEntry, several::AccountEntry};
use super::written;
use crate::{
    mask,
    reader::{Node, Section, quotable},
    secret::{FoundSecret, Outside},
    source::Located,
};

/// `[providers.X]`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ProviderEntry {
    /// Reached over HTTP.
    Http(Box<HttpEntry>),
    /// Answers from a script, in this process.
    Scripted(Located<ScriptEntry>),
}

/// A provider over HTTP.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HttpEntry {
    pub(crate) kind: ProviderKindEntry,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "vendor_name")]
    pub(crate) vendor: Option<&'static Preset>,
    /// Empty: the kind's or the vendor's own.
    pub(crate) base_url: Located<String>,
    pub(crate) api_key: Option<Located<FoundSecret>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<Located<CredentialsEntry>>,
    /// Several of them, in order of preference; then neither of the two above.
    #[serde(rename = "credentials", skip_serializing_if = "Vec::is_empty")]
    pub(crate) accounts: Vec<Located<AccountEntry>>,
    pub(crate) api_version: Option<Located<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<Located<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<Located<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) region: Option<Located<String>>,
    pub(crate) headers: BTreeMap<String, Located<HeaderValue>>,
    pub(crate) ca_file: Option<Located<CaFile>>,
    pub(crate) transport: TransportEntry,
}

/// Which provider's habits it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProviderKindEntry {
    Openai,
    AzureOpenai,
    OpenaiCompatible,
    Anthropic,
    Gemini,
    Ollama,
    Vertex,
    Bedrock,
}

fn vendor_name<S: Serializer>(vendor: &Option<&'static Preset>, to: S) -> Result<S::Ok, S::Error> {
    vendor.map(|vendor| vendor.name).serialize(to)
}

/// What a scripted provider plays.
#[derive(Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptEntry {
    /// Says back what was asked.
    Echo,
    /// The same, slowly.
    Slow,
    /// The steps, in order.
    Steps(Vec<Located<String>>),
}

/// What a step answers is an answer: it is not printed.
impl std::fmt::Debug for ScriptEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Echo => f.write_str("Echo"),
            Self::Slow => f.write_str("Slow"),
            Self::Steps(steps) => write!(f, "Steps({})", steps.len()),
        }
    }
}

/// A header's value: a text of the file, or a secret found elsewhere.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum HeaderValue {
    Text(String),
    Secret(FoundSecret),
}

/// A file with certificates, read when the configuration was.
#[derive(Clone, Serialize)]
pub(crate) struct CaFile {
    pub(crate) path: PathBuf,
    #[serde(skip)]
    pub(crate) pem: Vec<u8>,
}

impl std::fmt::Debug for CaFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CaFile({}, {} bytes)", self.path.display(), self.pem.len())
    }
}

/// Bounds of the transport; absent: the transport's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TransportEntry {
    #[serde(rename = "connect_timeout_ms", serialize_with = "written::some_millis")]
    pub(crate) connect_timeout: Option<Duration>,
    #[serde(rename = "write_timeout_ms", serialize_with = "written::some_millis")]
    pub(crate) write_timeout: Option<Duration>,
    #[serde(rename = "head_timeout_ms", serialize_with = "written::some_millis")]
    pub(crate) head_timeout: Option<Duration>,
    #[serde(rename = "read_idle_timeout_ms", serialize_with = "written::some_millis")]
    pub(crate) read_idle_timeout: Option<Duration>,
    #[serde(rename = "pool_wait_timeout_ms", serialize_with = "written::some_millis")]
    pub(crate) pool_wait_timeout: Option<Duration>,
    pub(crate) max_connections: Option<u32>,
    pub(crate) http2: Option<bool>,
}

/// What a kind is read as.
#[derive(Clone, Copy)]
enum Kind {
    Http(ProviderKindEntry),
    Scripted,
}

const KINDS: [(&str, Kind); 9] = [
    ("openai", Kind::Http(ProviderKindEntry::Openai)),
    ("azure-openai", Kind::Http(ProviderKindEntry::AzureOpenai)),
    ("openai-compatible", Kind::Http(ProviderKindEntry::OpenaiCompatible)),
    ("anthropic", Kind::Http(ProviderKindEntry::Anthropic)),
    ("gemini", Kind::Http(ProviderKindEntry::Gemini)),
    ("ollama", Kind::Http(ProviderKindEntry::Ollama)),
    ("vertex", Kind::Http(ProviderKindEntry::Vertex)),
    ("bedrock", Kind::Http(ProviderKindEntry::Bedrock)),
    ("scripted", Kind::Scripted),
];

const HTTP_KEYS: [&str; 12] = [
    "base_url",
    "api_key",
    "credentials",
    "headers",
    "ca_file",
    "connect_timeout_ms",
    "write_timeout_ms",
    "head_timeout_ms",
    "read_idle_timeout_ms",
    "pool_wait_timeout_ms",
    "max_connections",
    "http2",
];

/// Keys that one kind alone has, and its name.
const KIND_KEYS: [(&str, ProviderKindEntry, &str); 11] = [
    ("vendor", ProviderKindEntry::OpenaiCompatible, "is for `kind = \"openai-compatible\"` only"),
    ("api_version", ProviderKindEntry::AzureOpenai, "is for `kind = \"azure-openai\"` only"),
    ("project", ProviderKindEntry::Vertex, ONLY_VERTEX),
    ("location", ProviderKindEntry::Vertex, ONLY_VERTEX),
    ("region", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
    ("access_key_id", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
    ("secret_access_key", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
    ("session_token", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
    ("role", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
    ("role_session", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
    ("web_identity_token_file", ProviderKindEntry::Bedrock, ONLY_BEDROCK),
];

const ONLY_VERTEX: &str = "is for `kind = \"vertex\"` only";
const ONLY_BEDROCK: &str = "is for `kind = \"bedrock\"` only";

const SCRIPT_KEYS: [&str; 2] = ["behaviour", "script"];

/// The place of OpenAI's own API.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The version of Azure's API that is asked for, where the file names none: the newest that is generally available.
const AZURE_API_VERSION: &str = "2024-10-21";

/// Steps of one script.
const STEPS_MAX: usize = 1_000;

/// Reads one provider.
pub(super) fn read(node: &Node<'_>, outside: Outside<'_>) -> Option<ProviderEntry> {
    let mut section = node.section()?;
    let kind = section.required("kind", "\"openai\"");
    let read = kind.and_then(|kind| kind.choice("provider kind", &KINDS));
    let entry = match read {
        Some(Kind::Http(kind)) => {
            for key in SCRIPT_KEYS {
                section.refuse(key, "is for `kind = \"scripted\"` only");
            }
            for (key, of, why) in KIND_KEYS {
                if of != kind {
                    section.refuse(key, why);
                }
            }
            http(&mut section, kind, outside)
        }
        Some(Kind::Scripted) => {
            for key in HTTP_KEYS.into_iter().chain(KIND_KEYS.map(|(key, _, _)| key)) {
                section.refuse(key, "has no meaning for `kind = \"scripted\"`");
            }
            scripted(&mut section).map(ProviderEntry::Scripted)
        }
        None => {
            // The kind is not known, so no key is out of place; what a value is can be checked all the same.
            section.optional("api_key").and_then(|node| outside.secret(&node));
            headers(&mut section, outside);
            transport(&mut section);
            for key in HTTP_KEYS.into_iter().chain(SCRIPT_KEYS).chain(KIND_KEYS.map(|(key, _, _)| key)) {
                section.optional(key);
            }
            None
        }
    };
    section.finish();
    entry
}

fn http(section: &mut Section<'_>, kind: ProviderKindEntry, outside: Outside<'_>) -> Option<ProviderEntry> {
    let vendor = vendor(section, kind);
    let base_url = base_url(section, kind, vendor.is_none_or(|vendor| vendor.is_some()));
    let accounts = several::read(section, kind, outside);
    let has_one = accounts.as_ref().is_some_and(Vec::is_empty);
    let api_key = section.optional("api_key").filter(|_| has_one).and_then(|node| outside.secret(&node));
    let credentials =
        if has_one { credentials::read(section, kind, api_key.as_ref(), outside) } else { Some(None) };
    let api_version = (kind == ProviderKindEntry::AzureOpenai).then(|| api_version(section));
    let project = text_of(section, kind, ProviderKindEntry::Vertex, "project");
    let location = required_text(section, kind, ProviderKindEntry::Vertex, "location", "\"europe-west4\"");
    let region = required_text(section, kind, ProviderKindEntry::Bedrock, "region", "\"eu-central-1\"");
    let headers = headers(section, outside);
    let ca_file = section.optional("ca_file").and_then(|node| ca_file(&node, outside));
    let transport = transport(section);
    let base_url = base_url?;
    if let Some(file) = ca_file.as_ref().filter(|_| base_url.value.starts_with("http://")) {
        let path = format!("{}.ca_file", section.path());
        let message = "`ca_file` has no meaning for a `base_url` without TLS".to_owned();
        section.faults().add(file.span, &path, message, "write `https://`, or remove `ca_file`");
    }
    Some(ProviderEntry::Http(Box::new(HttpEntry {
        kind,
        vendor: vendor?,
        base_url,
        api_key,
        credentials: credentials?,
        accounts: accounts?,
        api_version,
        project,
        location: location?,
        region: region?,
        headers,
        ca_file,
        transport,
    })))
}

/// Reads which known server it is. The outer `None` is a name that is none.
fn vendor(section: &mut Section<'_>, kind: ProviderKindEntry) -> Option<Option<&'static Preset>> {
    let node = Some(kind)
        .filter(|kind| *kind == ProviderKindEntry::OpenaiCompatible)
        .and_then(|_| section.optional("vendor"));
    let Some(node) = node else { return Some(None) };
    let known: Vec<_> = PRESETS.iter().map(|preset| (preset.name, preset)).collect();
    node.choice("vendor", &known).map(Some)
}

/// Reads a text that one kind alone has.
fn text_of(
    section: &mut Section<'_>,
    kind: ProviderKindEntry,
    of: ProviderKindEntry,
    key: &'static str,
) -> Option<Located<String>> {
    let node = Some(kind).filter(|kind| *kind == of).and_then(|_| section.optional(key))?;
    Some(Located::new(node.text()?.to_owned(), node.span()))
}

/// Reads a text that one kind alone has and cannot do without; `None` if it is missing.
fn required_text(
    section: &mut Section<'_>,
    kind: ProviderKindEntry,
    of: ProviderKindEntry,
    key: &'static str,
    example: &str,
) -> Option<Option<Located<String>>> {
    if kind != of {
        return Some(None);
    }
    let node = section.required(key, example)?;
    Some(Some(Located::new(node.text()?.to_owned(), node.span())))
}

fn base_url(section: &mut Section<'_>, kind: ProviderKindEntry, has_vendor: bool) -> Option<Located<String>> {
    let own = match kind {
        ProviderKindEntry::Openai => Some(OPENAI_BASE_URL),
        ProviderKindEntry::AzureOpenai => None,
        ProviderKindEntry::OpenaiCompatible => has_vendor.then_some(""),
        ProviderKindEntry::Anthropic
        | ProviderKindEntry::Gemini
        | ProviderKindEntry::Ollama
        | ProviderKindEntry::Vertex
        | ProviderKindEntry::Bedrock => Some(""),
    };
    let node = match own {
        Some(own) => match section.optional("base_url") {
            Some(node) => node,
            None => return Some(Located::new(own.to_owned(), section.at())),
        },
        None if kind == ProviderKindEntry::AzureOpenai => {
            section.required("base_url", "\"https://NAME.openai.azure.com\"")?
        }
        None => section.required("base_url", "\"http://127.0.0.1:8000/v1\"")?,
    };
    let text = node.text()?;
    Some(Located::new(text.trim_end_matches('/').to_owned(), node.span()))
}

fn api_version(section: &mut Section<'_>) -> Located<String> {
    let default = Located::new(AZURE_API_VERSION.to_owned(), section.at());
    let Some(node) = section.optional("api_version") else { return default };
    let Some(text) = node.text() else { return default };
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        let message = format!("`{}` is no API version: `{}`", node.path(), quotable(text));
        node.fault(message, format!("write a version such as `\"{AZURE_API_VERSION}\"`"));
    }
    Located::new(text.to_owned(), node.span())
}

fn headers(section: &mut Section<'_>, outside: Outside<'_>) -> BTreeMap<String, Located<HeaderValue>> {
    let mut headers = BTreeMap::new();
    let Some(table) = section.optional("headers").and_then(|node| node.section()) else { return headers };
    for (key, node) in table.entries() {
        let name = key.value.to_ascii_lowercase();
        if let Some(value) = header_value(&node, &name, outside)
            && headers.insert(name.clone(), Located::new(value, node.span())).is_some()
        {
            let message = format!("header `{name}` stands twice");
            table.faults().add(key.span, node.path(), message, "write it once, header names ignore case");
        }
    }
    headers
}

/// Reads a header's value. One whose name tells of a credential may not stand in the file.
fn header_value(node: &Node<'_>, name: &str, outside: Outside<'_>) -> Option<HeaderValue> {
    if node.raw_text().is_none() || mask::is_telling(name) {
        return outside.secret(node).map(|secret| HeaderValue::Secret(secret.value));
    }
    let text = node.text()?;
    Some(HeaderValue::Text(text.to_owned()))
}

pub(super) fn ca_file(node: &Node<'_>, outside: Outside<'_>) -> Option<Located<CaFile>> {
    let text = node.text()?;
    match outside.file(text) {
        Ok(pem) => Some(Located::new(CaFile { path: text.into(), pem }, node.span())),
        Err((message, remedy)) => {
            node.fault(message, remedy);
            None
        }
    }
}

fn transport(section: &mut Section<'_>) -> TransportEntry {
    TransportEntry {
        connect_timeout: section.millis("connect_timeout_ms"),
        write_timeout: section.millis("write_timeout_ms"),
        head_timeout: section.millis("head_timeout_ms"),
        read_idle_timeout: section.millis("read_idle_timeout_ms"),
        pool_wait_timeout: section.millis("pool_wait_timeout_ms"),
        max_connections: section.small_count("max_connections", 1..=100_000),
        http2: section.optional("http2").and_then(|node| node.flag()),
    }
}

fn scripted(section: &mut Section<'_>) -> Option<Located<ScriptEntry>> {
    const WORDS: [(&str, bool); 2] = [("echo", true), ("slow", false)];
    let behaviour = section.optional("behaviour");
    let script = section.optional("script");
    match (behaviour, script) {
        (Some(node), None) => {
            let echo = node.choice("behaviour", &WORDS)?;
            Some(Located::new(if echo { ScriptEntry::Echo } else { ScriptEntry::Slow }, node.span()))
        }
        (None, Some(node)) => {
            let items = node.filled_list()?;
            if items.len() > STEPS_MAX {
                let message = format!("`{}` has {} steps", node.path(), items.len());
                node.fault(message, format!("write at most {STEPS_MAX}"));
            }
            let step = |node: &Node<'_>| Some(Located::new(node.text()?.to_owned(), node.span()));
            let steps = items.iter().filter_map(step).collect();
            Some(Located::new(ScriptEntry::Steps(steps), node.span()))
        }
        (Some(_), Some(script)) => {
            let message = format!("`{}` has a `behaviour` and a `script`", section.path());
            section.faults().add(script.key(), script.path(), message, "write one of the two");
            None
        }
        (None, None) => {
            let message = format!("missing `behaviour` or `script` in `{}`", section.path());
            let remedy = "write `behaviour = \"echo\"`, or `script = [\"429\", \"ok\"]`";
            section.faults().add_absent(section.at(), section.path(), message, remedy);
            None
        }
    }
}
