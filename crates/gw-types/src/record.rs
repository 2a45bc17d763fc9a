//! The one record that every admitted request leaves: every decision, no content.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    BoundedText, CacheControl, CapabilitySet, Classification, CredentialName, DeploymentName, ErrorKind,
    KeyName, ModelName, Money, Operation, Outcome, RequestId, Residency, RouteName, TaskClass, TenantId,
    TokenCount, Usage, UtcTime,
};

/// What happened to one request.
///
/// Durations are in microseconds, money in pico-USD. The schema is closed: there is no field that could hold a prompt
/// or a completion. What is absent, an empty list, or nearly always zero or false is left out of the serialised form,
/// which halves what a ledger writes; reading it back gives the whole record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountingRecord {
    /// The request's id, as `x-request-id` gave it to the caller.
    pub id: RequestId,
    /// The tenant.
    pub tenant: TenantId,
    /// The tenant's key.
    pub key: KeyName,
    /// When the request arrived.
    pub started: UtcTime,
    /// Digest of the configuration that decided.
    pub config: BoundedText,
    /// The caller's own id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<BoundedText>,
    /// The caller's trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<BoundedText>,
    /// The caller's prompt version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_version: Option<BoundedText>,
    /// The caller's schema version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<BoundedText>,
    /// What the request was, as far as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<FactsRecord>,
    /// The route that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteName>,
    /// The first candidate, as long as all are well: an ill one keeps its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<DeploymentName>,
    /// The deployment that answered (for a cache hit: the one that gave the stored answer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<DeploymentName>,
    /// The version of the serving deployment's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_version: Option<BoundedText>,
    /// The model that the provider says has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_model: Option<BoundedText>,
    /// The request whose answer was given again, for an idempotency key that was used before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<RequestId>,
    /// The request whose call made the answer, where it came from the cache or from a call that is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RequestId>,
    /// How the decision came about.
    pub decision: DecisionRecord,
    /// The provider calls, in order.
    pub attempts: Vec<AttemptRecord>,
    /// What the cache did.
    pub cache: CacheState,
    /// What the call used.
    pub usage: Usage,
    /// What the call cost.
    pub cost: Money,
    /// What the call would have cost that an answer from the cache stood in for: its usage then at the price of now.
    #[serde(default, skip_serializing_if = "is_default")]
    pub saved: Money,
    /// Whether a class without a price of its own took the text price.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priced_by_fallback: bool,
    /// What was reserved for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved: Money,
    /// What the provider billed beyond the bound that it was sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overrun: Money,
    /// What was spent on the side: embedding, judging.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_costs: Vec<SideCost>,
    /// Fields that a translation dropped or approximated: of the request by their paths in the caller's format, of the
    /// answer behind `answer.`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<BoundedText>,
    /// Whether the answer keeps to the JSON schema that the request carried; absent: it carried none, or nobody checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<AnswerSchema>,
    /// How the request ended.
    #[serde(with = "by_name")]
    pub outcome: Outcome,
    /// The kind of error that ended it.
    #[serde(with = "by_name_optional", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
    /// Where the time went.
    pub latency: LatencySplit,
}

/// What a request was: enough to decide over it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactsRecord {
    /// What the caller wanted done.
    pub operation: Operation,
    /// The model asked for.
    pub model: BoundedText,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// The task class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_class: Option<TaskClass>,
    /// The classification that applied.
    pub classification: Classification,
    /// The groups of regions that were demanded, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residency: Vec<Residency>,
    /// What the deployment had to be able to do.
    pub needs: CapabilitySet,
    /// UTF-8 bytes of text.
    pub text_bytes: u64,
    /// Number of messages.
    pub messages: u32,
    /// Bytes of tool definitions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_bytes: u64,
    /// Number of images.
    #[serde(default, skip_serializing_if = "is_default")]
    pub images: u32,
    /// Whether audio goes in or is asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub audio: bool,
    /// Answers asked for.
    pub choices: u32,
    /// The estimate of the input tokens, as routes match by it: the same whatever was learnt.
    pub estimated_input: TokenCount,
    /// The estimate for the deployment that was asked last, by what its answers have shown; absent: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_input: Option<TokenCount>,
    /// The estimate of each answer's output tokens that windows of tokens counted; absent: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_output: Option<TokenCount>,
    /// The output bound that the caller named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_output: Option<TokenCount>,
    /// The output bound that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bound: Option<TokenCount>,
    /// Whether the request changes state elsewhere.
    #[serde(default, skip_serializing_if = "is_default")]
    pub side_effecting: bool,
    /// What the caller said about the cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache_control: CacheControl,
    /// The whole budget of time, in milliseconds.
    pub deadline_ms: u64,
    /// The caller's end-user label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<BoundedText>,
    /// What the request's metadata says under the names that the operator keeps in records, in the order of these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagRecord>,
}

/// One pair of a request's metadata that the operator wants to see in records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagRecord {
    /// The name, as the configuration has it.
    pub name: BoundedText,
    /// What the caller wrote.
    pub value: BoundedText,
}

/// How a decision came about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionRecord {
    /// The chain, in order.
    pub candidates: Vec<DeploymentName>,
    /// Deployments of matching routes that may not answer, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ExclusionRecord>,
    /// Whether none of the candidates was available, and the chain is the one that recovers first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_resort: bool,
    /// What the limiter said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiter: Option<LimiterVerdict>,
    /// The random numbers drawn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<u64>,
    /// Hexadecimal digest of the cache key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<BoundedText>,
    /// How near the question of a semantic hit was, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity_milli: Option<u32>,
}

/// A deployment that may not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExclusionRecord {
    /// The route that named it.
    pub route: RouteName,
    /// The deployment.
    pub deployment: DeploymentName,
    /// Why not.
    pub reason: BoundedText,
}

/// What the limiter said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimiterVerdict {
    /// Whether the request was let through.
    pub admitted: bool,
    /// The limits that refused, by their names in the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_by: Vec<BoundedText>,
    /// Whether the store of limits that replicas share could not be asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub degraded: bool,
}

impl LimiterVerdict {
    /// The verdict that lets a request through.
    pub const ADMITTED: Self = Self { admitted: true, refused_by: Vec::new(), degraded: false };

    /// Returns the refusal by limits, by their names in the configuration.
    pub const fn refused(refused_by: Vec<BoundedText>) -> Self {
        Self { admitted: false, refused_by, degraded: false }
    }
}

/// One call of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptRecord {
    /// The deployment called.
    pub deployment: DeploymentName,
    /// Which of its provider's credentials it was called with; absent: the provider has one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialName>,
    /// The model that was sent.
    pub model: ModelName,
    /// How it failed; `None`: it did not.
    #[serde(with = "by_name_optional", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
    /// The provider's HTTP status, where it was an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the provider's error has a shape that gw does not know, so that its kind is a guess by its status.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unclassified: bool,
    /// When it began, in microseconds from the request's arrival.
    pub start_us: u64,
    /// How long it took, in microseconds; a stream's runs to its end.
    pub duration_us: u64,
    /// The provider's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_request_id: Option<BoundedText>,
}

/// What the cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Not asked: no cache on the route, or the caller or the request kept out of it.
    #[default]
    Bypass,
    /// Asked, and no entry.
    Miss,
    /// Answered from an equal request.
    Exact,
    /// Answered from a similar request.
    Semantic,
    /// Shared an equal request's call in flight.
    Coalesced,
}

impl CacheState {
    /// Returns the name, as `x-gw-cache` carries it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Miss => "miss",
            Self::Exact => "exact",
            Self::Semantic => "semantic",
            Self::Coalesced => "coalesced",
        }
    }

    /// Returns whether the answer came without a provider call of this request's own.
    pub const fn is_hit(self) -> bool {
        match self {
            Self::Bypass | Self::Miss => false,
            Self::Exact | Self::Semantic | Self::Coalesced => true,
        }
    }
}

/// Whether an answer keeps to the JSON schema that its request carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSchema {
    /// Every finished text of the answer keeps to it.
    Kept,
    /// A finished text of the answer does not.
    Broken,
    /// Nobody could say: no text was finished, or the schema cannot be checked.
    Unchecked,
}

impl AnswerSchema {
    /// Returns the name, as records carry it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::Unchecked => "unchecked",
        }
    }
}

/// Money spent beside the call itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideCost {
    /// What for.
    pub purpose: BoundedText,
    /// The deployment that was called.
    pub deployment: DeploymentName,
    /// How much.
    pub cost: Money,
}

/// Where the time of a request went, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencySplit {
    /// From arrival to the last byte.
    pub total_us: u64,
    /// Waiting for slots.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue_us: u64,
    /// Waiting between attempts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backoff_us: u64,
    /// From the first call to the first byte of the answer that was used, other attempts included.
    pub upstream_first_byte_us: u64,
    /// From that byte to the last.
    pub upstream_rest_us: u64,
    /// gw's own work: the rest.
    pub own_us: u64,
}

/// Says that a field holds what its absence means.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

mod canonical;

mod by_name {
    //! Outcomes by their stable name: their crate knows no serialisation.

    use super::{Deserialize, Deserializer, Outcome, Serializer};

    pub(super) fn serialize<S: Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(outcome.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Outcome, D::Error> {
        let name = String::deserialize(from)?;
        Outcome::from_name(&name).ok_or_else(|| serde::de::Error::custom("unknown outcome"))
    }
}

mod by_name_optional {
    //! Error kinds by their stable name.

    use super::{Deserialize, Deserializer, ErrorKind, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that `serde(with)` calls")]
    pub(super) fn serialize<S: Serializer>(kind: &Option<ErrorKind>, to: S) -> Result<S::Ok, S::Error> {
        kind.map(ErrorKind::as_str).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ErrorKind>, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        name.map(|name| {
            ErrorKind::from_name(&name).ok_or_else(|| serde::de::Error::custom("unknown error kind"))
        })
        .transpose()
    }
}
