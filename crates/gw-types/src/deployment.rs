//! The facts about a deployment: a model at an endpoint in a region.

use std::{num::NonZeroU32, time::Duration};

use crate::{
    BoundedText, CapabilitySet, Classification, DeploymentName, ModelName, Pricing, ProviderName, Region,
    TokenCount,
};

/// What is true of a deployment, whatever the routes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The deployment's name.
    pub name: DeploymentName,
    /// The provider that serves it.
    pub provider: ProviderName,
    /// The model as the provider knows it.
    pub model: ModelName,
    /// The model's version, for the record.
    pub model_version: Option<BoundedText>,
    /// Where it runs.
    pub region: Region,
    /// The most sensitive data that it may see.
    pub classification_ceiling: Classification,
    /// What it can do.
    pub capabilities: CapabilitySet,
    /// Input and output together, in tokens; `None`: unknown, and no request is kept away for its size.
    pub context_window: Option<TokenCount>,
    /// The longest answer; `None`: unknown.
    pub max_output_tokens: Option<TokenCount>,
    /// What it costs.
    pub pricing: Pricing,
    /// How long its calls take and may take.
    pub timing: DeploymentTiming,
    /// Attempts at this deployment for one request; 1: the chain is the first retry.
    pub max_attempts: NonZeroU32,
    /// Calls in flight at once; `None`: no limit of its own.
    pub max_concurrency: Option<NonZeroU32>,
}

/// How long a deployment's calls take and may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeploymentTiming {
    /// What a call usually takes; a fallback needs at least this much of the deadline left.
    pub expected_latency: Duration,
    /// The shortest time in which an attempt makes sense.
    pub min_attempt: Duration,
    /// The longest an attempt may take; for streams, until the first content event.
    pub attempt_timeout: Duration,
    /// The longest pause between two events of a stream that has begun; keep-alives do not count.
    pub stream_idle: Duration,
}

impl Default for DeploymentTiming {
    /// Returns 1 s expected, 100 ms at least, 60 s at most, 60 s idle.
    fn default() -> Self {
        Self {
            expected_latency: Duration::from_secs(1),
            min_attempt: Duration::from_millis(100),
            attempt_timeout: Duration::from_secs(60),
            stream_idle: Duration::from_secs(60),
        }
    }
}
