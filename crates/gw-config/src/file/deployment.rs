//! `[deployments.X]`: the facts about a model at an endpoint in a region.

use std::{num::NonZeroU32, time::Duration};

use gw_types::{
    BoundedText, Capability, CapabilitySet, Classification, DeploymentTiming, ModelName, Pricing,
    ProviderName, Region, TokenCount,
};
use serde::Serialize;

use super::{CLASSIFICATIONS, Names, price, written};
use crate::{
    reader::{Node, Section},
    source::{Located, Span},
};

/// `[deployments.X]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeploymentEntry {
    pub(crate) provider: Located<ProviderName>,
    pub(crate) model: ModelName,
    /// The family of models that fallbacks stay in; `None`: not known, and fallbacks are not held to it.
    pub(crate) family: Option<ModelName>,
    pub(crate) model_version: Option<BoundedText>,
    pub(crate) region: Region,
    pub(crate) classification_ceiling: Classification,
    pub(crate) capabilities: CapabilitySet,
    pub(crate) context_window: Option<TokenCount>,
    pub(crate) max_output_tokens: Option<TokenCount>,
    pub(crate) price: Pricing,
    #[serde(serialize_with = "written::timing")]
    pub(crate) timing: DeploymentTiming,
    /// Whether the file says `expected_latency_ms`, or it is a default.
    #[serde(skip)]
    pub(crate) latency_stated: bool,
    pub(crate) max_attempts: NonZeroU32,
    pub(crate) max_concurrency: Option<NonZeroU32>,
}

/// The region of a deployment that names none. No residency group holds it unless the group says so.
const REGION: &str = "unspecified";

/// What a deployment can do where it does not say.
const CAPABILITIES: CapabilitySet = CapabilitySet::EMPTY.with(Capability::Chat).with(Capability::Streaming);

/// The largest number of tokens of a window or an answer.
const TOKENS_MAX: i64 = 1_000_000_000;

/// Attempts at one deployment for one request.
const ATTEMPTS_MAX: u32 = 10;

/// Calls in flight at one deployment.
const CONCURRENCY_MAX: u32 = 1_000_000;

/// Reads one deployment.
pub(super) fn read(node: &Node<'_>, at: Span, names: &Names) -> Option<DeploymentEntry> {
    let mut section = node.section()?;
    let provider = section
        .required("provider", "\"NAME\"")
        .and_then(|node| node.reference::<ProviderName>("provider", &names.providers));
    let model = section.required("model", "\"gpt-4.1\"").and_then(|node| node.name::<ModelName>());
    let family = section.optional("family").and_then(|node| node.name::<ModelName>());
    let price = section
        .required(
            "price",
            "{ input = 2_000_000, output = 8_000_000 }`, `price = \"free\"` or `price = \"unpriced\"",
        )
        .and_then(|node| price::read(&node));
    let region = section.optional("region").and_then(|node| node.name::<Region>()).map(|name| name.value);
    let ceiling = section
        .optional("classification_ceiling")
        .and_then(|node| node.choice("classification", &CLASSIFICATIONS));
    let model_version = section.optional("model_version").and_then(|node| node.label());
    let capabilities = capabilities(&mut section);
    let (context_window, max_output_tokens) = sizes(&mut section);
    let timing = timing(&mut section, at);
    let latency_stated = section.optional("expected_latency_ms").is_some();
    let max_attempts = section.positive("max_attempts", ATTEMPTS_MAX).unwrap_or(NonZeroU32::MIN);
    let max_concurrency = section.positive("max_concurrency", CONCURRENCY_MAX);
    section.finish();
    Some(DeploymentEntry {
        provider: provider?,
        model: model?.value,
        family: family.map(|family| family.value),
        model_version,
        region: region.or_else(|| Region::new(REGION).ok())?,
        classification_ceiling: ceiling.unwrap_or(Classification::Internal),
        capabilities,
        context_window,
        max_output_tokens,
        price: price?,
        timing,
        latency_stated,
        max_attempts,
        max_concurrency,
    })
}

fn capabilities(section: &mut Section<'_>) -> CapabilitySet {
    let words = Capability::ALL.map(|capability| (capability.as_str(), capability));
    section
        .choices("capabilities", "capability", &words)
        .map_or(CAPABILITIES, |capabilities| capabilities.into_iter().collect())
}

fn sizes(section: &mut Section<'_>) -> (Option<TokenCount>, Option<TokenCount>) {
    let window = section.count("context_window", 1..=TOKENS_MAX);
    let node = section.optional("max_output_tokens");
    let output = node
        .as_ref()
        .and_then(|node| node.whole(1..=TOKENS_MAX))
        .and_then(|tokens| u64::try_from(tokens).ok());
    if let (Some(window), Some(output), Some(node)) = (window, output, node)
        && output > window
    {
        node.fault(
            format!("`{}` is above `context_window`: `{output}`", node.path()),
            format!("write at most {window}"),
        );
    }
    (window.map(TokenCount::new), output.map(TokenCount::new))
}

fn timing(section: &mut Section<'_>, at: Span) -> DeploymentTiming {
    let default = DeploymentTiming::default();
    let spans = ["expected_latency_ms", "min_attempt_ms"].map(|key| (key, section.optional(key)));
    let expected = section.millis("expected_latency_ms");
    let least = section.millis("min_attempt_ms");
    let written = section.millis("attempt_timeout_ms");
    let most = written.unwrap_or_else(|| default.attempt_timeout.max(expected.unwrap_or(Duration::ZERO)));
    let timing = DeploymentTiming {
        expected_latency: expected.unwrap_or(default.expected_latency.min(most)),
        min_attempt: least.unwrap_or(default.min_attempt.min(most)),
        attempt_timeout: most,
        stream_idle: section.millis("stream_idle_timeout_ms").unwrap_or(default.stream_idle),
    };
    for ((key, node), time) in spans.into_iter().zip([timing.expected_latency, timing.min_attempt]) {
        if time > most {
            let path = format!("{}.{key}", section.path());
            let message = format!("`{path}` is above `attempt_timeout_ms`: `{}`", time.as_millis());
            let span = node.map_or(at, |node| node.span());
            section.faults().add(span, &path, message, format!("write at most {}", most.as_millis()));
        }
    }
    timing
}
