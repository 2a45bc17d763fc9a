//! What a decision sees of the moment: time, health, load, cost and chance, all through seams.

use gw_types::{Money, MonoTime, Random};

use crate::BoundStrategies;

/// Says whether a deployment may be called now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Available,
    /// Not before this instant, as far as is known.
    Until(MonoTime),
}

/// Knows the health of deployments: breakers, cooldowns, ejections.
///
/// # Contract
/// Answers at once and changes nothing. Within one decision the same deployment has the same standing. A deployment is
/// named by its place in the list that the router was made with.
pub trait Availability {
    /// Returns whether the deployment may be called now.
    fn state(&self, deployment: usize) -> Standing;
}

/// Finds every deployment available.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllAvailable;

impl Availability for AllAvailable {
    fn state(&self, _deployment: usize) -> Standing {
        Standing::Available
    }
}

/// The moment of one decision. A strategy asks only for what it needs, so the closures may be dear.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    /// The time of the decision.
    pub now: MonoTime,
    /// Which deployments may be called.
    pub availability: &'a dyn Availability,
    /// The calls in flight at a deployment, this request not among them.
    pub in_flight: &'a dyn Fn(usize) -> u64,
    /// The most that this request can cost at a deployment.
    pub worst_case: &'a dyn Fn(usize) -> Money,
    /// The source of chance.
    pub random: &'a dyn Random,
    /// What strategies remember, bound to this router.
    pub strategies: &'a BoundStrategies,
}

impl std::fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("now", &self.now).finish_non_exhaustive()
    }
}
