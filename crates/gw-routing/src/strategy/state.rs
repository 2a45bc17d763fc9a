//! What strategies remember from one request to the next, and across reloads.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gw_types::{DeploymentName, MonoTime, RouteName};
use smallvec::SmallVec;

use super::latency::PeakEwma;
use crate::{Router, Strategy};

/// Remembers, by name, what strategies have learnt: whose turn it is, and how fast deployments answer.
///
/// It lives as long as the process. Each router is bound to it once ([`StrategyState::bind`]), so that a decision takes
/// no lock that all requests share. What the newest router does not name is forgotten.
#[derive(Debug, Default)]
pub struct StrategyState(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    wheels: BTreeMap<RouteName, Arc<Wheel>>,
    latencies: BTreeMap<DeploymentName, Arc<PeakEwma>>,
}

/// The memory of one router's strategies, by place.
#[derive(Debug)]
pub struct BoundStrategies {
    /// One for each route; only weighted ones have a wheel.
    wheels: Box<[Option<Arc<Wheel>>]>,
    latencies: Box<[Arc<PeakEwma>]>,
}

impl StrategyState {
    /// Returns the memory for a router; what is remembered of routes and deployments of the same names is kept.
    ///
    /// Costs O(n log n) in the number of names.
    pub fn bind(&self, router: &Router) -> BoundStrategies {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wheel = |route: &crate::RouteConfig| {
            (route.strategy == Strategy::Weighted).then(|| match kept.wheels.get(&route.name) {
                Some(old) if *old.names == *route.deployments => Arc::clone(old),
                old => Arc::new(Wheel::new(&route.deployments, old.map(AsRef::as_ref))),
            })
        };
        let wheels: Box<[_]> = router.routes().map(wheel).collect();
        let latency = |name: &DeploymentName| kept.latencies.get(name).map(Arc::clone).unwrap_or_default();
        let latencies: Box<[_]> = router.deployments().iter().map(latency).collect();
        let of_routes = router.routes().map(|route| route.name.clone()).zip(wheels.iter().cloned());
        kept.wheels = of_routes.filter_map(|(name, wheel)| Some((name, wheel?))).collect();
        kept.latencies = router.deployments().iter().cloned().zip(latencies.iter().cloned()).collect();
        BoundStrategies { wheels, latencies }
    }
}

impl BoundStrategies {
    /// Takes in how long a deployment took to the first token, or to the whole answer where it came at once. For an
    /// attempt that failed give the attempt's timeout, so that what fails fast does not look fast.
    pub fn observe(&self, deployment: usize, to_first_token: Duration, now: MonoTime) {
        if let Some(latency) = self.latencies.get(deployment) {
            latency.observe(to_first_token, now);
        }
    }

    /// Returns the estimated time to the first token in nanoseconds.
    pub(super) fn latency(&self, deployment: usize, now: MonoTime) -> f64 {
        self.latencies.get(deployment).map_or(f64::INFINITY, |latency| latency.nanos(now))
    }

    /// Returns the wheel of a route.
    pub(super) fn wheel(&self, route: usize) -> Option<&Wheel> {
        self.wheels.get(route)?.as_deref()
    }
}

/// Smooth weighted round robin (nginx): over any run of as many requests as the weights sum to, each deployment gets
/// exactly its weight, and the turns of one are spread evenly.
#[derive(Debug)]
pub(super) struct Wheel {
    names: Box<[DeploymentName]>,
    /// One for each deployment of the route. The sum stays zero, so none leaves the range of the weights' sum.
    current: Mutex<Box<[i64]>>,
}

impl Wheel {
    fn new(names: &[DeploymentName], old: Option<&Self>) -> Self {
        let former: BTreeMap<&DeploymentName, i64> = old.map_or_else(BTreeMap::new, |old| {
            let current = old.current.lock().unwrap_or_else(PoisonError::into_inner);
            old.names.iter().zip(current.iter().copied()).collect()
        });
        let current = names.iter().map(|name| former.get(name).copied().unwrap_or_default()).collect();
        Self { names: names.into(), current: Mutex::new(current) }
    }

    /// Returns which of the candidates has its turn, as its place among them, and moves on. A candidate is a place in the
    /// route with its weight. `None`: nobody has a weight.
    pub(super) fn turn(&self, candidates: &SmallVec<[(usize, u32); 8]>) -> Option<usize> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut total, mut best) = (0_i64, None);
        for (at, (place, weight)) in candidates.iter().enumerate().filter(|(_, (_, weight))| *weight > 0) {
            let value = current.get_mut(*place)?;
            *value = value.saturating_add(i64::from(*weight));
            total += i64::from(*weight);
            if best.is_none_or(|(_, highest)| *value > highest) {
                best = Some((at, *value));
            }
        }
        let (at, _) = best?;
        let value = current.get_mut(candidates[at].0)?;
        *value = value.saturating_sub(total);
        Some(at)
    }
}
