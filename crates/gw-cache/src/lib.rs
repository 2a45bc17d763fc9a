//! Answers from the past, and the one rule about what may be remembered.
//!
//! The exact cache answers a request that was asked before, word for word; the semantic cache answers one that asks
//! the same thing in nearly the same words. A tenant is part of every key's type, so no answer crosses from one to
//! another. Equal requests in flight share one call ([`flight`]); whether a similar answer may be served is decided by a
//! threshold or by a measured bound ([`verify`]). Only [`storable`] makes a [`Storable`], so only complete answers that may be kept get in.
//!
//! The crate calls no provider, reads no clock (the instant is an argument), starts no task and draws no random
//! number: the same calls in the same order leave the same entries, on every machine.
//!
//! ```
//! use std::time::Duration;
//! use gw_cache::{CacheConfig, CacheKey, CachePolicy, CachedAnswer, ExactCache, KeyParts, WriteRule, storable};
//! use gw_types::{
//!     AnswerFacts, CacheControl, Classification, DeploymentName, FinishReason, MonoTime, Operation, RequestId,
//!     RouteName, Temperature, TenantId,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (tenant, route, primary) =
//!     (TenantId::new("wholesale")?, RouteName::new("chat")?, DeploymentName::new("ptu")?);
//! let parts = KeyParts {
//!     tenant: &tenant,
//!     route: &route,
//!     primary: &primary,
//!     model_version: None,
//!     operation: Operation::Chat,
//!     policy_digest: "7f",
//! };
//! let policy = CachePolicy { exact: true, ttl: Duration::from_secs(300), ..CachePolicy::default() };
//! let rule = WriteRule {
//!     policy: &policy,
//!     cache_control: CacheControl::Default,
//!     side_effecting: false,
//!     classification: Classification::Internal,
//!     temperature: Temperature::Zero,
//!     complete: true,
//! };
//! let answer = CachedAnswer {
//!     raw: Some("{}".into()),
//!     completion: None,
//!     facts: AnswerFacts { finish: Some(FinishReason::Stop), content_bytes: 2, ..AnswerFacts::default() },
//!     serving: primary.clone(),
//!     model_version: None,
//!     origin: RequestId::from_bits(1),
//! };
//!
//! let cache = ExactCache::new(CacheConfig::default());
//! let key = CacheKey::new(&parts, br#"{"model": "m", "temperature": 0}"#).ok_or("no JSON object")?;
//! cache.put(key, storable(&rule, answer)?, MonoTime::ZERO);
//!
//! // Order of keys, blanks and the spelling of numbers do not matter; whether a stream is asked for does not either.
//! let again = CacheKey::new(&parts, br#"{"temperature":0.0,"model":"m","stream":true}"#).ok_or("no JSON object")?;
//! assert!(cache.get(&again, MonoTime::ZERO).is_some());
//! assert!(cache.get(&again, MonoTime::ZERO.saturating_add(policy.ttl)).is_none());
//! # Ok(())
//! # }
//! ```

mod answer;
mod canonical;
mod decisions;
mod embed;
/// Replays labelled questions through the real semantic cache, and counts.
pub mod evaluate;
mod exact;
/// Single-flight: equal requests in flight share one upstream call.
pub mod flight;
mod guard;
mod invalidate;
mod key;
#[cfg(all(test, loom))]
mod models;
mod policy;
mod semantic;
mod sync;
/// Verified decisions: similar answers are served only while a measured bound on wrong ones holds.
pub mod verify;
mod write;

pub use self::{
    answer::CachedAnswer,
    canonical::says_the_same,
    decisions::{Decisions, JudgeReport, PartitionReport, SemanticDecision, Unlabelled},
    embed::{BuiltInEmbedder, Embedder, HashingEmbedder, WordEmbedder},
    exact::{CacheConfig, CacheUsage, ExactCache},
    invalidate::InvalidationScope,
    key::{CacheKey, KeyParts, Partition},
    policy::{CachePolicy, SemanticPolicy, TemperaturePolicy, may_read},
    semantic::{Features, Probe, SemanticCache, SemanticConfig, SemanticHit, SemanticMatch},
    write::{NotStored, Storable, WriteRule, storable},
};
