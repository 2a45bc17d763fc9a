//! Puts the deployments that may answer into an order.
//!
//! A strategy only orders: it neither adds nor removes. Ties go to the one that stands first in the route.

mod latency;
mod ring;
mod state;

use gw_types::Random;
use smallvec::SmallVec;

pub(crate) use self::ring::Ring;
pub use self::state::{BoundStrategies, StrategyState};
use crate::{Live, Strategy};

/// Deployments by place, in an order.
pub(crate) type Chain = SmallVec<[usize; 8]>;

/// What the strategy of one route knows beforehand.
#[derive(Debug)]
pub(crate) struct Arranger {
    pub(crate) strategy: Strategy,
    /// The weight of each deployment of the route; empty unless weighted.
    pub(crate) weights: Box<[u32]>,
    /// Present if sticky.
    pub(crate) ring: Option<Ring>,
}

/// One decision's view of a route.
pub(crate) struct Arranging<'a> {
    /// The route, as its place.
    pub(crate) route: usize,
    /// Its deployments as written.
    pub(crate) deployments: &'a [usize],
    /// The request's key for the ring.
    pub(crate) affinity: Option<u64>,
    pub(crate) live: &'a Live<'a>,
}

/// How far a chain follows the ring; the rest stand as written.
const FROM_RING: usize = 4;

impl Arranger {
    /// Puts the chain, which stands as written, into the strategy's order. Adds the random numbers used to `draws`.
    pub(crate) fn arrange(&self, at: &Arranging<'_>, chain: &mut Chain, draws: &mut SmallVec<[u64; 2]>) {
        if chain.len() < 2 {
            return;
        }
        match self.strategy {
            Strategy::Ordered => {}
            Strategy::Weighted => self.by_turn(at, chain),
            Strategy::Cheapest => chain.sort_by_cached_key(|place| (at.live.worst_case)(*place)),
            Strategy::Fastest => fastest_first(at.live, chain, draws),
            Strategy::LeastBusy => by_load(at.live, chain),
            Strategy::Sticky => match (&self.ring, at.affinity) {
                (Some(ring), Some(key)) => by_ring(ring, key, at, chain),
                (Some(_), None) | (None, _) => by_load(at.live, chain),
            },
        }
    }

    fn by_turn(&self, at: &Arranging<'_>, chain: &mut Chain) {
        // The chain stands as written, so it is a subsequence of the route.
        let mut rest = at.deployments.iter().zip(&self.weights).enumerate();
        let candidates = chain
            .iter()
            .filter_map(|wanted| {
                let (place, (_, weight)) = rest.find(|(_, (deployment, _))| *deployment == wanted)?;
                Some((place, *weight))
            })
            .collect();
        if let Some(turn) = at.live.strategies.wheel(at.route).and_then(|wheel| wheel.turn(&candidates)) {
            chain[..=turn].rotate_right(1);
        }
    }
}

fn by_load(live: &Live<'_>, chain: &mut Chain) {
    chain.sort_by_cached_key(|place| (live.in_flight)(*place));
}

/// Power of two choices (Mitzenmacher 2001): two are drawn, and the one with the lower estimate times load goes first, the
/// other second. That is nearly as good as the best of all, and no herd runs to one that looks idle.
fn fastest_first(live: &Live<'_>, chain: &mut Chain, draws: &mut SmallVec<[u64; 2]>) {
    let (first, second) = if chain.len() == 2 { (0, 1) } else { two_of(chain.len(), live.random, draws) };
    let cost = |at: usize| {
        let load = (live.in_flight)(chain[at]).saturating_add(1);
        // Loads are far below 2^53, where a float still counts exactly.
        live.strategies.latency(chain[at], live.now) * load as f64
    };
    let (first, second) = (first.min(second), first.max(second));
    let second_is_better = cost(second).total_cmp(&cost(first)).is_lt();
    let (winner, loser) = (chain[first], chain[second]);
    chain.remove(second);
    chain.remove(first);
    let (winner, loser) = if second_is_better { (loser, winner) } else { (winner, loser) };
    chain.insert(0, loser);
    chain.insert(0, winner);
}

/// Draws two different numbers below `count`, which is above 1.
fn two_of(count: usize, random: &dyn Random, draws: &mut SmallVec<[u64; 2]>) -> (usize, usize) {
    let mut below = |bound: usize| {
        let bits = random.next_u64();
        draws.push(bits);
        // Lemire's multiplication; the product's high half is below `bound`.
        usize::try_from((u128::from(bits) * bound as u128) >> 64).unwrap_or_default()
    };
    let first = below(count);
    let second = below(count - 1);
    (first, if second < first { second } else { second + 1 })
}

/// The first of the ring within its bound goes first; the others of the ring follow, then the rest as written.
fn by_ring(ring: &Ring, key: u64, at: &Arranging<'_>, chain: &mut Chain) {
    let load = at.live.in_flight;
    let total = chain.iter().fold(0_u64, |sum, place| sum.saturating_add(load(*place)));
    let count = chain.len();
    let is_candidate = |place: usize| at.deployments.get(place).is_some_and(|one| chain.contains(one));
    let mut ordered: Chain = ring
        .owners_from(key, FROM_RING.min(count), is_candidate)
        .into_iter()
        .map(|place| at.deployments[place])
        .collect();
    let has_room = |place: &usize| ring::within_bound(load(*place), total, count);
    // Past the followed part of the ring somebody is within the bound: not everyone is above the mean.
    let rest = chain.iter().copied().filter(|place| !ordered.contains(place)).collect::<Chain>();
    ordered.extend(rest);
    if let Some(first) = ordered.iter().position(has_room) {
        ordered[..=first].rotate_right(1);
    }
    *chain = ordered;
}

#[cfg(test)]
mod tests;
