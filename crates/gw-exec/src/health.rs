//! The health of deployments: who is asked, who is left alone, and who is tried again.
//!
//! A breaker opens on evidence against its deployment, of kinds whose flag says so and from calls that had their full
//! time; a 429 with a `retry-after` is no evidence, only a rest. Both merely take candidates out of a decision: where all
//! are out, the router names the one that recovers first, and it is asked once.

mod breaker;
mod credentials;
mod history;
mod machine;

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;
use gw_routing::{Availability, ExclusionReason, Standing};
use gw_types::{CredentialName, DeploymentName, MonoTime, Random};
use parking_lot::Mutex;
use smallvec::SmallVec;

pub use self::breaker::{BreakerSnapshot, BreakerState};
pub(crate) use self::{
    breaker::{Breaker, Ticket},
    credentials::{Chosen, Credentials, Tried, concerns_credential},
    machine::{Access, Bar},
};
use crate::pinned::Pinned;

/// Every breaker. They outlive a reload: the key is the deployment's name, and the credential's where there are several.
#[derive(Debug, Default)]
pub(crate) struct Breakers(Mutex<HashMap<Owner, Arc<Breaker>, FixedState>>);

/// Whose breaker it is.
type Owner = (DeploymentName, Option<CredentialName>);

impl Breakers {
    /// Returns the deployment's breaker; names come from the configuration, so the map is bounded by it.
    pub(crate) fn deployment(&self, name: &DeploymentName) -> Arc<Breaker> {
        self.of((name.clone(), None))
    }

    /// Returns the breaker of one of the deployment's credentials.
    pub(crate) fn credential(&self, name: &DeploymentName, credential: &CredentialName) -> Arc<Breaker> {
        self.of((name.clone(), Some(credential.clone())))
    }

    fn of(&self, owner: Owner) -> Arc<Breaker> {
        Arc::clone(self.0.lock().entry(owner).or_default())
    }
}

impl Bar {
    /// Returns the reason, as records hold it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Open | Self::Probing => "breaker_open",
            Self::Cooldown => "cooldown",
        }
    }
}

/// The health of every deployment at the moment of one decision.
pub(crate) struct Moment<'a> {
    pub(crate) policy: &'a Pinned,
    pub(crate) now: MonoTime,
    pub(crate) random: &'a dyn Random,
    /// What was drawn for deployments that get a share: none is drawn for twice.
    pub(crate) draws: RefCell<SmallVec<[(usize, u64); 2]>>,
}

impl Moment<'_> {
    /// Returns the random numbers that were drawn, in order.
    pub(crate) fn into_draws(self) -> SmallVec<[u64; 2]> {
        self.draws.into_inner().into_iter().map(|(_, draw)| draw).collect()
    }

    /// Returns why a deployment is out, as records hold it.
    pub(crate) fn reason(&self, deployment: usize, reason: ExclusionReason) -> &'static str {
        if reason != ExclusionReason::Unavailable {
            return reason.as_str();
        }
        match self.policy.target_state(deployment).look(self.now) {
            Access::Barred { why, .. } => why.as_str(),
            Access::Share(_) => "returning",
            // Another request has changed it since.
            Access::Free | Access::Probe => reason.as_str(),
        }
    }

    fn passes(&self, deployment: usize, share_milli: u64) -> bool {
        let mut draws = self.draws.borrow_mut();
        let known = draws.iter().find(|(of, _)| *of == deployment).map(|(_, draw)| *draw);
        let draw = known.unwrap_or_else(|| {
            let draw = self.random.next_u64();
            draws.push((deployment, draw));
            draw
        });
        // Lemire's multiplication; the product's high half is below 1,000.
        (u128::from(draw) * 1_000) >> 64 < u128::from(share_milli)
    }
}

impl Availability for Moment<'_> {
    fn state(&self, deployment: usize) -> Standing {
        match self.policy.target_state(deployment).look(self.now) {
            Access::Free | Access::Probe => Standing::Available,
            Access::Share(milli) if self.passes(deployment, milli) => Standing::Available,
            Access::Share(_) => Standing::Until(self.now),
            Access::Barred { until, .. } => Standing::Until(until),
        }
    }
}
