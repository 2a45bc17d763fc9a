//! The pace of each deployment and its tokens in flight: what a call waits for beside a slot.

use std::{collections::HashMap, num::NonZeroU64, sync::Arc};

use foldhash::fast::FixedState;
use gw_limits::{Pacer, TokenBudget};
use gw_types::{DeploymentName, MonoTime};
use parking_lot::Mutex;

use crate::policy::DeploymentPolicy;

/// What a deployment's calls wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) pacer: Option<Arc<Pacer>>,
    pub(crate) tokens: Option<Arc<TokenBudget>>,
}

impl Lane {
    /// Returns whether there is anything to wait for.
    pub(crate) fn is_open(&self) -> bool {
        self.pacer.is_none() && self.tokens.is_none()
    }
}

/// Every deployment's. They outlive a reload: the key is the deployment's name, and those that wait keep their places.
#[derive(Debug, Default)]
pub(crate) struct Lanes(Mutex<HashMap<DeploymentName, Lane, FixedState>>);

impl Lanes {
    /// Sets what a policy says; names come from the configuration, so the map is bounded by it.
    pub(crate) fn set(&self, name: &DeploymentName, policy: &DeploymentPolicy, now: MonoTime) -> Lane {
        // One after another: a burst would arrive as what it is.
        const BURST: NonZeroU64 = NonZeroU64::MIN;
        let mut lanes = self.0.lock();
        let lane = lanes.entry(name.clone()).or_default();
        lane.pacer = policy.requests_per_second.map(|rate| match lane.pacer.take() {
            Some(pacer) => {
                pacer.set_rate(rate, BURST, now);
                pacer
            }
            None => Arc::new(Pacer::new(rate, BURST, now)),
        });
        lane.tokens = policy.in_flight_tokens.map(|capacity| match lane.tokens.take() {
            Some(budget) => {
                budget.set_capacity(capacity);
                budget
            }
            None => Arc::new(TokenBudget::new(capacity)),
        });
        lane.clone()
    }
}
