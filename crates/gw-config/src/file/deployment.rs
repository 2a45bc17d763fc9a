//! `[deployments.X]`: the facts about a model at an endpoint in a region.

use std::{num::NonZeroU32, time::Duration};

use gw_types::{
    BoundedText, CapabilitySet, Classification, DeploymentTiming, ModelName, Pricing, ProviderName, Region,
    TokenCount,
};
use serde::Serialize;

use super::{
    CLASSIFICATIONS, Names, known,
    limits::{self, CONCURRENCY_MAX, ScopeEntry},
    written,
};
use crate::{
    catalogue::Difference,
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
    pub(crate) region: Located<Region>,
    pub(crate) classification_ceiling: Classification,
    /// The model of the catalogue that the deployment runs.
    pub(crate) catalogue: Option<String>,
    /// Where the file says something else than the catalogue.
    #[serde(skip)]
    pub(crate) differences: Vec<Difference>,
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
    #[serde(flatten)]
    pub(crate) limits: ScopeEntry,
    pub(crate) tokens: TokensEntry,
    pub(crate) requests_per_second_milli: Option<NonZeroU32>,
    pub(crate) in_flight_tokens: Option<TokenCount>,
}

/// `tokens`: how the model counts what is no text, and how its tokenizer is called. Absent: as most models do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TokensEntry {
    pub(crate) vocabulary: Option<VocabularyEntry>,
    pub(crate) per_message: Option<TokenCount>,
    pub(crate) per_request: Option<TokenCount>,
    pub(crate) per_image: Option<TokenCount>,
}

/// A family of tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VocabularyEntry {
    O200k,
    Cl100k,
}

/// The region of a deployment that names none. No residency group holds it unless the group says so.
const REGION: &str = "unspecified";

/// The largest number of tokens of a window or an answer.
pub(super) const TOKENS_MAX: i64 = 1_000_000_000;

/// Attempts at one deployment for one request.
const ATTEMPTS_MAX: u32 = 10;

/// The fastest pace, in calls a second.
const PER_SECOND_MAX: u32 = 1_000_000;

/// Reads one deployment.
pub(super) fn read(node: &Node<'_>, at: Span, names: &Names) -> Option<DeploymentEntry> {
    let mut section = node.section()?;
    let provider = section
        .required("provider", "\"NAME\"")
        .and_then(|node| node.reference::<ProviderName>("provider", &names.providers));
    let model = section.required("model", "\"gpt-4.1\"").and_then(|node| node.name::<ModelName>());
    let family = section.optional("family").and_then(|node| node.name::<ModelName>());
    let region = section.optional("region").and_then(|node| node.name::<Region>());
    let ceiling = section
        .optional("classification_ceiling")
        .and_then(|node| node.choice("classification", &CLASSIFICATIONS));
    let model_version = section.optional("model_version").and_then(|node| node.label());
    let kind = provider.as_ref().and_then(|name| names.provider_kinds.get(name.value.as_str()));
    let kind = kind.map_or("", String::as_str);
    let known = known::model(&mut section, kind, model.as_ref().map(|model| &model.value));
    let facts = known::facts(&mut section, kind, model.as_ref().map(|model| &model.value), known.as_ref());
    let timing = timing(&mut section, at);
    let latency_stated = section.optional("expected_latency_ms").is_some();
    let max_attempts = section.positive("max_attempts", ATTEMPTS_MAX).unwrap_or(NonZeroU32::MIN);
    let max_concurrency = section.positive("max_concurrency", CONCURRENCY_MAX);
    let zone = limits::zone(&mut section);
    let limits = limits::rates_and_budgets(&mut section, &zone);
    let pace = section.optional("requests_per_second");
    let pace = pace.and_then(|node| node.thousandths(PER_SECOND_MAX, "2.5"));
    let in_flight_tokens = section.count("in_flight_tokens", 1..=TOKENS_MAX);
    let tokens = section.optional("tokens").map(|node| tokens(&node)).unwrap_or_default();
    section.finish();
    Some(DeploymentEntry {
        provider: provider?,
        model: model?.value,
        family: family.map(|family| family.value),
        model_version,
        region: region.or_else(|| Some(Located::new(Region::new(REGION).ok()?, at)))?,
        classification_ceiling: ceiling.unwrap_or(Classification::Internal),
        catalogue: known.map(|(name, _)| name),
        differences: facts.differences,
        capabilities: facts.capabilities,
        context_window: facts.window,
        max_output_tokens: facts.output,
        price: facts.price?,
        timing,
        latency_stated,
        max_attempts,
        max_concurrency,
        limits,
        tokens,
        requests_per_second_milli: pace.and_then(NonZeroU32::new),
        in_flight_tokens: in_flight_tokens.map(TokenCount::new),
    })
}

fn tokens(node: &Node<'_>) -> TokensEntry {
    /// Tokens of one message, request or image.
    const OVERHEAD_MAX: i64 = 1_000_000;
    const VOCABULARIES: [(&str, VocabularyEntry); 2] =
        [("o200k", VocabularyEntry::O200k), ("cl100k", VocabularyEntry::Cl100k)];
    let Some(mut section) = node.section() else { return TokensEntry::default() };
    let mut count = |key: &'static str| section.count(key, 0..=OVERHEAD_MAX).map(TokenCount::new);
    let [per_message, per_request, per_image] = ["per_message", "per_request", "per_image"].map(&mut count);
    let vocabulary = section.optional("vocabulary").and_then(|node| node.choice("vocabulary", &VOCABULARIES));
    section.finish();
    TokensEntry { vocabulary, per_message, per_request, per_image }
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
