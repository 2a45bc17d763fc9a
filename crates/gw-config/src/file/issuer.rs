//! `[issuers.X]`: who signs tokens that callers may present instead of a key.

use std::{path::PathBuf, time::Duration};

use gw_adapters::FetchClient;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    keys::TokenAlgorithm,
    reader::{Node, Section, quotable},
    secret::Outside,
    source::Located,
};

/// `[issuers.X]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct IssuerEntry {
    /// What `iss` must say.
    pub(crate) issuer: Located<String>,
    /// One of what `aud` must say.
    pub(crate) audience: Vec<String>,
    /// Where the public keys are.
    pub(crate) keys: Located<JwksEntry>,
    pub(crate) algorithms: Vec<TokenAlgorithm>,
    #[serde(rename = "leeway_s", serialize_with = "seconds")]
    pub(crate) leeway: Duration,
}

/// Where the public keys of an issuer are.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JwksEntry {
    /// At an address.
    Url(String),
    /// In a file.
    File(JwksFile),
}

/// A file of public keys.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JwksFile {
    pub(crate) path: PathBuf,
    /// What it says: another text is another configuration.
    pub(crate) text: String,
}

/// By how much the clocks of gw and the issuer may differ where the file does not say, in s.
const LEEWAY_S: u64 = 60;
/// The most, in s.
const LEEWAY_S_MAX: i64 = 600;
/// Audiences of one issuer at most.
const AUDIENCES_MAX: usize = 16;

/// The algorithms that are taken where the file does not say: what issuers use, one by key.
const DEFAULT: [TokenAlgorithm; 4] =
    [TokenAlgorithm::Rs256, TokenAlgorithm::Ps256, TokenAlgorithm::Es256, TokenAlgorithm::EdDsa];

/// Reads an issuer.
pub(super) fn read(node: &Node<'_>, outside: Outside<'_>) -> Option<IssuerEntry> {
    let mut section = node.section()?;
    let issuer = section
        .required("issuer", "\"https://login.example.com\"")
        .and_then(|node| Some(Located::new(node.text()?.to_owned(), node.span())));
    let audience = section.required("audience", "[\"gw\"]").and_then(|node| audiences(&node));
    let (url, file) = (section.optional("jwks_url"), section.optional("jwks_file"));
    let algorithms = algorithms(&mut section);
    let leeway = section.count("leeway_s", 0..=LEEWAY_S_MAX).unwrap_or(LEEWAY_S);
    section.finish();
    let keys = match (url, file) {
        (Some(url), None) => address(&url),
        (None, Some(file)) => key_file(&file, outside),
        (Some(_), Some(_)) | (None, None) => {
            node.fault(
                format!("`{}` must have one of `jwks_url` and `jwks_file`", node.path()),
                "write `jwks_url = \"https://...\"`, the `jwks_uri` of the issuer, or `jwks_file = \"PATH\"`",
            );
            None
        }
    };
    let leeway = Duration::from_secs(leeway);
    Some(IssuerEntry { issuer: issuer?, audience: audience?, keys: keys?, algorithms: algorithms?, leeway })
}

fn audiences(node: &Node<'_>) -> Option<Vec<String>> {
    let items = node.filled_list()?;
    if items.len() > AUDIENCES_MAX {
        node.fault(
            format!("`{}` has {} items", node.path(), items.len()),
            format!("write at most {AUDIENCES_MAX}"),
        );
        return None;
    }
    items.iter().map(|item| item.text().map(str::to_owned)).collect()
}

/// Reads the algorithms. Only those with a public and a private half are known: whoever may check such a token cannot
/// make one.
fn algorithms(section: &mut Section<'_>) -> Option<Vec<TokenAlgorithm>> {
    let Some(node) = section.optional("algorithms") else { return Some(DEFAULT.to_vec()) };
    let words = TokenAlgorithm::ALL.map(|algorithm| (algorithm.as_str(), algorithm));
    let read = |node: &Node<'_>| {
        let text = node.raw_text().unwrap_or_default();
        if text.eq_ignore_ascii_case("none") || text.starts_with("HS") {
            node.fault(
                format!(
                    "`{}`: `{}` is no signature that only the issuer can make",
                    node.path(),
                    quotable(text)
                ),
                "write an algorithm with a public key, such as `RS256` or `ES256`",
            );
            return None;
        }
        node.choice("algorithm", &words)
    };
    node.filled_list()?.iter().map(read).collect()
}

fn address(node: &Node<'_>) -> Option<Located<JwksEntry>> {
    let text = node.text()?;
    let wrong = match FetchClient::check_url(text) {
        Err(wrong) => wrong,
        Ok(()) if text.starts_with("http://") && !is_loopback(text) => {
            "must begin with `https://`: whoever could change the keys on the way could make tokens"
        }
        Ok(()) => return Some(Located::new(JwksEntry::Url(text.to_owned()), node.span())),
    };
    node.fault(format!("`{}` {wrong}", node.path()), "write the `jwks_uri` of the issuer");
    None
}

/// Returns whether a URL that begins with `http://` stays on this machine.
fn is_loopback(url: &str) -> bool {
    let rest = url.trim_start_matches("http://");
    let host = match rest.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => rest.split(['/', ':', '?']).next(),
    };
    let host = host.unwrap_or_default();
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn key_file(node: &Node<'_>, outside: Outside<'_>) -> Option<Located<JwksEntry>> {
    let path = node.text()?;
    let read = outside.file(path).and_then(|bytes| {
        let text = String::from_utf8(bytes).ok().filter(|text| has_public_key(text));
        text.ok_or_else(|| {
            (
                format!("file `{path}` holds no public key that tokens could be checked with"),
                "put a JSON Web Key Set there, `{\"keys\": [...]}`, with keys of the type RSA, EC or OKP"
                    .to_owned(),
            )
        })
    });
    let text = match read {
        Ok(text) => text,
        // Nobody comes in with a token, so that the file may as well be elsewhere.
        Err(_) if !outside.callers.come_in() => String::new(),
        Err((message, remedy)) => {
            node.fault(message, remedy);
            return None;
        }
    };
    let file = JwksFile { path: path.into(), text };
    Some(Located::new(JwksEntry::File(file), node.span()))
}

fn has_public_key(text: &str) -> bool {
    let set: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let keys = set["keys"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |key: &Value, members: &[&str]| members.iter().all(|member| key[member].is_string());
    keys.iter().any(|key| match key["kty"].as_str() {
        Some("RSA") => has(key, &["n", "e"]),
        Some("EC") => has(key, &["crv", "x", "y"]),
        Some("OKP") => has(key, &["crv", "x"]),
        Some(_) | None => false,
    })
}

fn seconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(duration.as_secs())
}
