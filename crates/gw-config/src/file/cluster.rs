//! `[cluster]`: what replicas limit together.

use std::time::Duration;

use gw_exec::LossPolicy;
use gw_stores::RedisLimits;
use serde::{Serialize, Serializer};

use crate::{
    reader::{Node, Section},
    secret::{FoundSecret, Outside},
    source::Located,
};

/// `[cluster]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClusterEntry {
    /// The server's address; it may hold a password.
    pub(crate) redis: Located<FoundSecret>,
    #[serde(rename = "timeout_ms", serialize_with = "millis")]
    pub(crate) timeout: Duration,
    pub(crate) on_loss: OnLossEntry,
}

/// Where the server is lost: what decides.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct OnLossEntry {
    #[serde(serialize_with = "word")]
    pub(crate) budget: LossPolicy,
    #[serde(serialize_with = "word")]
    pub(crate) rate: LossPolicy,
}

/// What one question may take where the file does not say, in ms.
const TIMEOUT_MS: u64 = 100;
/// The longest, in ms: the request waits for it.
const TIMEOUT_MS_MAX: i64 = 2_000;

const WORDS: [(&str, LossPolicy); 2] = [("closed", LossPolicy::Closed), ("local", LossPolicy::Local)];

/// Reads the table; absent: the process is alone.
pub(super) fn read(node: Option<Node<'_>>, outside: Outside<'_>) -> Option<ClusterEntry> {
    let mut section = node?.section()?;
    let redis =
        section.required("redis", "{ env = \"GW_REDIS_URL\" }").and_then(|node| redis(&node, outside));
    let timeout = section.count("timeout_ms", 1..=TIMEOUT_MS_MAX).unwrap_or(TIMEOUT_MS);
    let on_loss = section.optional("on_loss").and_then(|node| node.section()).map(on_loss);
    section.finish();
    Some(ClusterEntry {
        redis: redis?,
        timeout: Duration::from_millis(timeout),
        on_loss: on_loss.unwrap_or(OnLossEntry { budget: LossPolicy::Closed, rate: LossPolicy::Local }),
    })
}

fn redis(node: &Node<'_>, outside: Outside<'_>) -> Option<Located<FoundSecret>> {
    let found = outside.secret(node)?;
    if let Err(refused) = RedisLimits::check(&found.value.value) {
        node.fault(
            format!("what `{}` names is {refused}", node.path()),
            "correct it; TLS is not available in this version",
        );
        return None;
    }
    Some(found)
}

fn on_loss(mut section: Section<'_>) -> OnLossEntry {
    let mut read = |key: &'static str, default| {
        section.optional(key).and_then(|node| node.choice(key, &WORDS)).unwrap_or(default)
    };
    let (budget, rate) = (read("budget", LossPolicy::Closed), read("rate", LossPolicy::Local));
    section.finish();
    OnLossEntry { budget, rate }
}

fn word<S: Serializer>(policy: &LossPolicy, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match policy {
        LossPolicy::Closed => "closed",
        LossPolicy::Local => "local",
    })
}

fn millis<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u128(duration.as_millis())
}
