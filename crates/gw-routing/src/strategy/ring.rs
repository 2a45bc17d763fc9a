//! A hash ring: each key has its place, and a deployment that comes or goes moves only the keys next to it.

use smallvec::SmallVec;

use crate::hash::StableHash;

/// Consistent hashing (Karger and others, 1997). The load bound of [`within_bound`] is that of Mirrokni, Thorup and
/// Zadimoghaddam (2018).
#[derive(Debug)]
pub(crate) struct Ring {
    /// Points with the deployment that owns them, as its place in the route; sorted.
    points: Box<[(u64, u16)]>,
}

impl Ring {
    /// Points of each deployment: the shares of deployments then differ by about an eighth.
    const POINTS: u64 = 64;

    /// Returns the ring of a route's deployments.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let owned = names.into_iter().zip(0_u16..).flat_map(|(name, owner)| {
            let seed = StableHash::new().with(name.as_bytes());
            (0..Self::POINTS).map(move |point| (seed.with(&point.to_le_bytes()).finish(), owner))
        });
        let mut points: Vec<(u64, u16)> = owned.collect();
        points.sort_unstable();
        Self { points: points.into() }
    }

    /// Returns the first `count` of the deployments that `wanted` takes, in the order of the ring from the key on.
    pub(crate) fn owners_from(
        &self,
        key: u64,
        count: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> SmallVec<[usize; 8]> {
        let start = self.points.partition_point(|(point, _)| *point < key);
        let (before, after) = self.points.split_at(start);
        let mut found = SmallVec::new();
        for owner in after.iter().chain(before).map(|(_, owner)| usize::from(*owner)) {
            if found.len() >= count {
                break;
            }
            if !found.contains(&owner) && wanted(owner) {
                found.push(owner);
            }
        }
        found
    }
}

/// Returns whether a deployment may take one call more: at most five quarters of the mean, rounded up, with the call
/// counted in.
pub(crate) fn within_bound(load: u64, total: u64, deployments: usize) -> bool {
    let (total, count) = (u128::from(total) + 1, deployments.max(1) as u128);
    u128::from(load) < (total * 5).div_ceil(count * 4)
}

#[cfg(test)]
mod tests {
    use super::{Ring, within_bound};

    fn first(ring: &Ring, key: u64) -> usize {
        ring.owners_from(key, 1, |_| true)[0]
    }

    #[test]
    fn every_deployment_has_about_its_share_of_the_keys() {
        let ring = Ring::new(["a", "b", "c", "d"]);
        let mut shares = [0_u32; 4];
        for n in 0..4_000_u64 {
            shares[first(&ring, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))] += 1;
        }
        assert!(shares.iter().all(|share| (600..=1_500).contains(share)), "{shares:?}");
    }

    #[test]
    fn a_deployment_that_goes_moves_only_its_own_keys() {
        let (all, fewer) = (Ring::new(["a", "b", "c", "d"]), Ring::new(["a", "b", "c"]));
        for n in 0..1_000_u64 {
            let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let before = first(&all, key);
            assert!(before == 3 || first(&fewer, key) == before);
        }
    }

    #[test]
    fn the_order_from_a_key_holds_each_once() {
        let ring = Ring::new(["a", "b", "c", "d"]);
        let mut order = ring.owners_from(7, 4, |owner| owner != 2);
        assert_eq!(order.len(), 3);
        order.sort_unstable();
        assert_eq!(order.as_slice(), [0, 1, 3]);
    }

    #[test]
    fn the_bound_is_five_quarters_of_the_mean() {
        // 8 in flight and one coming over 4: the mean is 2.25, so at most 3 at one of them.
        assert!(within_bound(2, 8, 4));
        assert!(!within_bound(3, 8, 4));
        assert!(within_bound(0, 0, 4));
        assert!(!within_bound(1, 0, 4));
        assert!(within_bound(5, 5, 1));
    }
}
