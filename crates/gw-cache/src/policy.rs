//! What a route says about its cache, and the read rule.

use std::time::Duration;

use gw_types::{CacheControl, Classification, Temperature};
use serde::{Deserialize, Serialize};

use crate::SemanticDecision;

/// What a route says about its cache.
///
/// The default keeps nothing: a cache is on only where a route switches it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// Whether equal requests are answered from the cache.
    pub exact: bool,
    /// How long an answer may be used; zero keeps nothing.
    pub ttl: Duration,
    /// Which requests may be cached, by what they say about chance.
    pub temperature: TemperaturePolicy,
    /// The most sensitive data that may be kept.
    pub cache_ceiling: Classification,
    /// Whether, and how near, similar requests are answered from the cache.
    pub semantic: Option<SemanticPolicy>,
    /// What decides about similar requests; the threshold of `semantic` is then the least similarity of a would-be hit.
    pub decision: SemanticDecision,
    /// Whether tools are pure: what an answer that calls them asks for is the same whenever it is asked for, and changes
    /// nothing. Only then may such an answer be kept.
    pub pure_tools: bool,
    /// The epoch of the route's knowledge: answers of another one are never found.
    pub epoch: u64,
}

impl CachePolicy {
    /// How long an answer may be used where a route names no time: five minutes.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(300);

    /// Returns whether the route keeps anything at all.
    pub fn is_on(&self) -> bool {
        (self.exact || self.semantic.is_some()) && !self.ttl.is_zero()
    }

    pub(crate) fn allows_temperature(&self, temperature: Temperature) -> bool {
        match (self.temperature, temperature) {
            (TemperaturePolicy::Any, _) | (TemperaturePolicy::Zero, Temperature::Zero) => true,
            (TemperaturePolicy::Zero, Temperature::Absent | Temperature::Above) => false,
        }
    }
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            exact: false,
            ttl: Self::DEFAULT_TTL,
            temperature: TemperaturePolicy::Any,
            cache_ceiling: Classification::Restricted,
            semantic: None,
            decision: SemanticDecision::Fixed,
            pure_tools: false,
            epoch: 0,
        }
    }
}

/// Says which requests may be cached, by what they say about chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TemperaturePolicy {
    /// All: who asks again within the time to live gets the same answer, whatever the temperature.
    #[default]
    Any,
    /// Only requests that say temperature 0 themselves; an absent temperature is the provider's default, not 0.
    Zero,
}

/// How near a similar request must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticPolicy {
    /// The least cosine similarity of a hit, in thousandths: 0..=1000. The guards hold at every threshold.
    pub threshold_milli: u32,
}

impl SemanticPolicy {
    /// The threshold where a route names none.
    ///
    /// With [`crate::HashingEmbedder`] one changed word in ten still passes. At 850 it is one in seven, and there one
    /// word is often the whole difference.
    pub const DEFAULT_THRESHOLD_MILLI: u32 = 900;
}

impl Default for SemanticPolicy {
    fn default() -> Self {
        Self { threshold_milli: Self::DEFAULT_THRESHOLD_MILLI }
    }
}

/// Returns whether a request may be answered from the cache: the read rule.
///
/// It mirrors the write rule, so that a request which could not have left an answer does not get one either.
pub fn may_read(
    policy: &CachePolicy,
    cache_control: CacheControl,
    side_effecting: bool,
    classification: Classification,
    temperature: Temperature,
) -> bool {
    let asked = match cache_control {
        CacheControl::Default | CacheControl::OnlyIfCached => true,
        CacheControl::NoStore | CacheControl::NoCache => false,
    };
    asked
        && policy.is_on()
        && !side_effecting
        && classification <= policy.cache_ceiling
        && policy.allows_temperature(temperature)
}
