//! A hash that is the same in every build, on every machine, for ever.
//!
//! Shares and rings must give one key the same place in all replicas and after every upgrade, which hash functions made
//! for maps do not promise.

/// FNV-1a over 64 bits (Fowler, Noll, Vo), finished with the mixer of MurmurHash3 so that the high bits are usable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StableHash(u64);

impl StableHash {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;

    /// Returns the hash of nothing yet.
    pub(crate) const fn new() -> Self {
        Self(Self::OFFSET)
    }

    /// Takes in one part. Parts do not run together: `ab`, `c` differs from `a`, `bc`.
    #[must_use]
    pub(crate) fn with(self, part: &[u8]) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(Self::PRIME);
        // No name and no UTF-8 text holds the byte 0xff.
        Self(step(part.iter().copied().fold(self.0, step), 0xff))
    }

    /// Returns 64 bits that look uniform.
    pub(crate) const fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

/// A share of the keys, in percent, that is another set of keys for each route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    salted: StableHash,
    percent: u8,
}

impl Share {
    /// Returns the share of a route; `percent` is at most 100.
    pub(crate) fn new(route: &str, percent: u8) -> Self {
        Self { salted: StableHash::new().with(route.as_bytes()), percent }
    }

    /// Returns whether the key is in the share. Without a key: only if everything is.
    pub(crate) fn takes(&self, key: Option<&str>) -> bool {
        self.percent >= 100 || key.is_some_and(|key| self.percentile(key) < u64::from(self.percent))
    }

    /// Returns whether some keys are in the share and others are not.
    pub(crate) const fn divides(&self) -> bool {
        self.percent > 0 && self.percent < 100
    }

    /// Returns how many of a hundred keys are in the share.
    pub(crate) const fn percent(&self) -> u8 {
        self.percent
    }

    fn percentile(&self, key: &str) -> u64 {
        let wide = u128::from(self.salted.with(key.as_bytes()).finish()) * 100;
        u64::try_from(wide >> 64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Share, StableHash};

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(StableHash::new().finish(), 17_280_346_270_528_514_342);
        assert_ne!(
            StableHash::new().with(b"ab").with(b"c").finish(),
            StableHash::new().with(b"a").with(b"bc").finish()
        );
    }

    #[test]
    fn a_share_takes_about_its_percentage_and_always_the_same_keys() {
        for percent in [0, 1, 10, 50, 99, 100] {
            let share = Share::new("canary", percent);
            let keys: Vec<String> = (0..10_000).map(|n| format!("user-{n}")).collect();
            let taken = keys.iter().filter(|key| share.takes(Some(key))).count();
            let expected = usize::from(percent) * 100;
            assert!(taken.abs_diff(expected) <= 150, "{percent}: {taken}");
            assert!(
                keys.iter()
                    .all(|key| share.takes(Some(key)) == Share::new("canary", percent).takes(Some(key)))
            );
            assert_eq!(share.takes(None), percent == 100);
        }
    }

    #[test]
    fn routes_draw_their_shares_independently() {
        let (a, b) = (Share::new("a", 50), Share::new("b", 50));
        let both = |key: &String| a.takes(Some(key)) && b.takes(Some(key));
        let taken = (0..10_000).map(|n| format!("user-{n}")).filter(both).count();
        assert!(taken.abs_diff(2_500) <= 200, "{taken}");
    }
}
