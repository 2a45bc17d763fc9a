//! One key of a tenant: what is known of it, what it is for, and its own limits.

use std::collections::BTreeSet;

use gw_limits::Zone;
use gw_routing::ModelPattern;
use gw_types::{Classification, IssuerName, KeyName, Network, RouteName, UtcTime};
use jiff::{Timestamp, civil::Date, civil::Time, tz::TimeZone};
use serde::{Serialize, Serializer};

use super::{
    CLASSIFICATIONS,
    limits::{self, ScopeEntry},
    tenant::{QueueEntry, queue},
};
use crate::{
    keys::{Claims, StoredKey},
    reader::{Node, Section, quotable},
    secret::{ListenerSecret, Outside},
    source::Located,
};

/// One key.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KeyEntry {
    pub(crate) name: KeyName,
    pub(crate) source: Located<KeySource>,
    /// The key before it, while both hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<PreviousEntry>,
    #[serde(flatten)]
    pub(crate) use_of: KeyUse,
    #[serde(flatten)]
    pub(crate) limits: ScopeEntry,
    /// As the tenant's, where the key does not say.
    pub(crate) queue: QueueEntry,
    /// Whether it is kept in the ledger's database and not in the file.
    #[serde(skip)]
    pub(crate) is_stored: bool,
}

/// What a key is for; what is empty or absent narrows nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct KeyUse {
    /// Patterns of models, each checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) models: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Located<RouteName>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) classification_ceiling: Option<Classification>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_text")]
    pub(crate) networks: Vec<Network>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_instant")]
    pub(crate) expires: Option<UtcTime>,
}

/// A key that was replaced and still holds for a while.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PreviousEntry {
    pub(crate) hash: StoredKey,
    #[serde(serialize_with = "instant")]
    pub(crate) expires: UtcTime,
}

/// What is known of a key.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum KeySource {
    /// The line that `gw keys create` printed.
    Stored(StoredKey),
    /// The key itself, found elsewhere.
    Found(ListenerSecret),
    /// None: its callers present tokens of an issuer.
    Issued(IssuedEntry),
}

/// Whose tokens stand for a key.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct IssuedEntry {
    pub(crate) issuer: IssuerName,
    /// What they must say.
    pub(crate) claims: Claims,
}

/// Claims that one key may ask for.
const CLAIMS_MAX: usize = 16;

/// Reads the keys of a tenant.
pub(super) fn read_all(
    section: &mut Section<'_>,
    outside: Outside<'_>,
    zone: &Zone,
    waiting: QueueEntry,
) -> Vec<KeyEntry> {
    let nodes = section.optional("keys").and_then(|node| node.list()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    nodes.iter().filter_map(|node| read(node, outside, (zone, waiting), &mut seen)).collect()
}

/// Reads one key.
pub(crate) fn read(
    node: &Node<'_>,
    outside: Outside<'_>,
    (zone, waiting): (&Zone, QueueEntry),
    seen: &mut BTreeSet<KeyName>,
) -> Option<KeyEntry> {
    let mut section = node.section()?;
    let name = section.required("name", "\"NAME\"").and_then(|node| {
        let name = node.name::<KeyName>()?.value;
        if !seen.insert(name.clone()) {
            node.fault(format!("key `{name}` stands twice"), "write another name");
        }
        Some(name)
    });
    let hash = section.optional("hash");
    let secret = section.optional("secret");
    let issuer = section.optional("issuer");
    let claims = section.optional("claims");
    let previous = section.optional("previous").and_then(|node| previous(&node));
    let use_of = use_of(&mut section);
    let limits = limits::read(&mut section, zone);
    let queue = queue(&mut section, waiting);
    section.finish();
    if let (Some(claims), None) = (&claims, &issuer) {
        claims
            .fault(format!("`{}` without an `issuer`", claims.path()), "name the issuer whose tokens say so");
    }
    let source = match (hash, secret, issuer) {
        (Some(hash), None, None) => Located::new(KeySource::Stored(stored(&hash)?), hash.span()),
        (None, Some(secret), None) => {
            let (found, ()) = outside.listener_secret(&secret, |_| ())?;
            Located::new(KeySource::Found(found.value), found.span)
        }
        (None, None, Some(issuer)) => issued(&issuer, claims.as_ref(), previous.as_ref())?,
        _ => {
            node.fault(
                format!("`{}` must have one of `hash`, `secret` and `issuer`", node.path()),
                "write `hash = \"gwk1:...\"` from `gw keys create`, or `secret = { env = \"NAME\" }`",
            );
            return None;
        }
    };
    Some(KeyEntry { name: name?, source, previous, use_of, limits, queue, is_stored: false })
}

/// Reads whose tokens stand for the key, and what they must say.
fn issued(
    issuer: &Node<'_>,
    claims: Option<&Node<'_>>,
    previous: Option<&PreviousEntry>,
) -> Option<Located<KeySource>> {
    if previous.is_some() {
        issuer.fault(
            format!("`{}` beside `previous`", issuer.path()),
            "leave `previous` out: the issuer changes its keys by itself",
        );
    }
    let name = issuer.name::<IssuerName>()?;
    let claims = match claims {
        Some(claims) => read_claims(claims)?,
        None => Claims::new(),
    };
    Some(Located::new(KeySource::Issued(IssuedEntry { issuer: name.value, claims }), issuer.span()))
}

fn read_claims(node: &Node<'_>) -> Option<Claims> {
    let section = node.section()?;
    let mut claims = Claims::new();
    for (name, value) in section.entries() {
        let values = if value.is_list() {
            value.filled_list()?.iter().map(|item| item.text().map(str::to_owned)).collect::<Option<_>>()?
        } else {
            [value.text()?.to_owned()].into()
        };
        claims.insert(name.value.to_owned(), values);
    }
    if claims.is_empty() || claims.len() > CLAIMS_MAX {
        node.fault(
            format!("`{}` has {} claims", node.path(), claims.len()),
            format!("write 1 to {CLAIMS_MAX}, or leave it out for every token of the issuer"),
        );
        return None;
    }
    Some(claims)
}

fn list<'t>(section: &mut Section<'t>, key: &'static str) -> Vec<Node<'t>> {
    section.optional(key).and_then(|node| node.filled_list()).unwrap_or_default()
}

fn use_of(section: &mut Section<'_>) -> KeyUse {
    KeyUse {
        models: list(section, "models").iter().filter_map(model).collect(),
        routes: list(section, "routes").iter().filter_map(Node::name::<RouteName>).collect(),
        classification_ceiling: section
            .optional("classification_ceiling")
            .and_then(|node| node.choice("classification", &CLASSIFICATIONS)),
        networks: list(section, "networks").iter().filter_map(network).collect(),
        expires: section.optional("expires").and_then(|node| moment(&node)),
    }
}

fn model(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    match ModelPattern::new(text) {
        Ok(_) => Some(text.to_owned()),
        Err(invalid) => {
            node.fault(
                format!("`{}` is no model: {invalid}", node.path()),
                "write a name, or a beginning and `*`",
            );
            None
        }
    }
}

fn network(node: &Node<'_>) -> Option<Network> {
    let text = node.text()?;
    match text.parse() {
        Ok(network) => Some(network),
        Err(invalid) => {
            let message = format!("`{}` is no network: `{}`", node.path(), quotable(text));
            node.fault(message, invalid.to_string());
            None
        }
    }
}

/// Reads a day or an instant.
fn moment(node: &Node<'_>) -> Option<UtcTime> {
    let text = node.text()?;
    let midnight = |day: Date| TimeZone::UTC.to_timestamp(day.to_datetime(Time::midnight())).ok();
    let at = text.parse::<Timestamp>().ok().or_else(|| text.parse().ok().and_then(midnight));
    if at.is_none() {
        let message = format!("`{}` is no instant: `{}`", node.path(), quotable(text));
        node.fault(message, "write `\"2030-01-31\"` or `\"2030-01-31T12:00:00Z\"`");
    }
    at.map(|at| UtcTime::from_micros(at.as_microsecond()))
}

fn previous(node: &Node<'_>) -> Option<PreviousEntry> {
    let mut section = node.section()?;
    let hash = section.required("hash", "\"gwk1:...\"").and_then(|node| stored(&node));
    let expires = section.required("expires", "\"2030-01-31T12:00:00Z\"").and_then(|node| moment(&node));
    section.finish();
    Some(PreviousEntry { hash: hash?, expires: expires? })
}

fn stored(node: &Node<'_>) -> Option<StoredKey> {
    let text = node.text()?;
    if let Some(key) = StoredKey::parse(text) {
        return Some(key);
    }
    let message = if text.starts_with("gwk1_") {
        format!("`{}` must not hold the key itself", node.path())
    } else {
        format!("`{}` is no stored key", node.path())
    };
    node.fault(message, "write the line `gwk1:...` that `gw keys create` printed");
    None
}

/// Leaves out the keys that are not in the file: they are no part of its digest.
pub(super) fn of_file<S: Serializer>(keys: &[KeyEntry], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(keys.iter().filter(|key| !key.is_stored))
}

fn as_text<S: Serializer>(networks: &[Network], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(networks.iter().map(ToString::to_string))
}

#[expect(clippy::ref_option, reason = "the signature that `serialize_with` calls")]
fn as_instant<S: Serializer>(at: &Option<UtcTime>, to: S) -> Result<S::Ok, S::Error> {
    at.map(UtcTime::to_rfc3339).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that `serialize_with` calls")]
fn instant<S: Serializer>(at: &UtcTime, to: S) -> Result<S::Ok, S::Error> {
    at.to_rfc3339().serialize(to)
}
