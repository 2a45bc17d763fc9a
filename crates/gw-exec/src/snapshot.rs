//! The gateway's limits and estimates at one instant, for metrics and the admin plane.

use gw_cache::{CacheUsage, InvalidationScope, JudgeReport, PartitionReport};
use gw_limits::{Accuracy, PoolSnapshot};
use gw_types::{CredentialName, DeploymentName, TokenCount};

use crate::{SharedSnapshot, health::BreakerSnapshot, pinned::Pinned, state::State};

/// Slots, queue, deployments and estimates, each read at once; not all of them at the same instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySnapshot {
    /// The pool of slots and the queue for it.
    pub pool: PoolSnapshot,
    /// Every deployment, in configuration order.
    pub deployments: Vec<DeploymentSnapshot>,
    /// How good the estimates of tokens were.
    pub accuracy: Accuracy,
    /// The store of shared limits; `None`: this process is alone.
    pub shared_limits: Option<SharedSnapshot>,
}

/// How busy a deployment is, and how well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentSnapshot {
    /// The deployment.
    pub name: DeploymentName,
    /// Calls in flight.
    pub in_use: u32,
    /// Calls in flight at most; `None`: no limit.
    pub limit: Option<u32>,
    /// Tokens in flight; `None`: not limited and not counted.
    pub tokens_in_flight: Option<TokenCount>,
    /// Whether it is asked at all.
    pub breaker: BreakerSnapshot,
    /// The credentials that it is called with, in configured order, if there are several.
    pub credentials: Vec<CredentialSnapshot>,
}

/// How well a credential is, at one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialSnapshot {
    /// Its name in the configuration.
    pub name: CredentialName,
    /// Whether it is used at all.
    pub breaker: BreakerSnapshot,
}

/// What the caches hold and have decided, at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheReport {
    /// What both tiers hold.
    pub held: CacheScopeUsage,
    /// Provider calls that are shared or could be, in flight.
    pub in_flight: usize,
    /// What every partition of the semantic tier has decided, by tenant, route and primary.
    pub partitions: Vec<PartitionReport>,
    /// How often feedback contradicted a judge.
    pub judge: JudgeReport,
}

/// What both tiers hold, or what goes out of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheScopeUsage {
    /// Answers by equal request.
    pub exact: CacheUsage,
    /// Answers by similar request.
    pub semantic: CacheUsage,
}

impl CacheReport {
    pub(crate) fn read(state: &State) -> Self {
        let everything = InvalidationScope::default();
        Self {
            held: CacheScopeUsage {
                exact: state.exact.usage(),
                semantic: state.semantic.matching(&everything),
            },
            in_flight: state.shared.len(),
            partitions: state.decisions.report(|partition| state.semantic.usage(partition).entries),
            judge: state.decisions.judge(),
        }
    }
}

impl GatewaySnapshot {
    pub(crate) fn read(state: &State, policy: &Pinned) -> Self {
        let (now, utc) = (state.clock.now(), state.clock.utc());
        let deployment = |(index, target): (usize, &crate::Target)| {
            let held = policy.target_state(index);
            DeploymentSnapshot {
                name: target.deployment.name.clone(),
                in_use: held.slots.as_ref().map_or(0, |slots| slots.in_use()),
                limit: held.slots.as_ref().and_then(|slots| slots.limit()),
                tokens_in_flight: held.lane.tokens.as_ref().map(|tokens| tokens.in_use()),
                breaker: held.breaker.snapshot(now, utc),
                credentials: held
                    .credentials
                    .iter()
                    .map(|(name, breaker)| CredentialSnapshot {
                        name: name.clone(),
                        breaker: breaker.snapshot(now, utc),
                    })
                    .collect(),
            }
        };
        Self {
            pool: state.limits.pool(),
            deployments: policy.targets().iter().enumerate().map(deployment).collect(),
            accuracy: state.estimator.accuracy(),
            shared_limits: state.shared_limits.as_ref().map(|shared| shared.snapshot()),
        }
    }
}
