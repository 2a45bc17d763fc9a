//! Which ids were seen, at a fixed price for each.

use std::{collections::HashSet, hash::BuildHasher};

use foldhash::quality::FixedState;

/// Ids that were seen, kept as 128-bit digests: 16 to 35 bytes each, whatever their length.
///
/// Two of a thousand million different ids are taken for one with a chance of about 1 in 10^21.
#[derive(Clone, Debug, Default)]
pub struct SeenIds {
    digests: HashSet<u128, foldhash::fast::FixedState>,
}

impl SeenIds {
    /// Adds an id; returns whether it is new.
    pub fn insert(&mut self, id: &str) -> bool {
        self.digests.insert(digest(id))
    }

    /// Returns whether the id was seen.
    pub fn contains(&self, id: &str) -> bool {
        self.digests.contains(&digest(id))
    }

    /// Returns how many different ids were seen.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Returns whether none was.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }
}

fn digest(id: &str) -> u128 {
    let half = |seed| u128::from(FixedState::with_seed(seed).hash_one(id));
    half(0x9e37_79b9_7f4a_7c15) << 64 | half(0xc2b2_ae3d_27d4_eb4f)
}

#[cfg(test)]
mod tests {
    use super::SeenIds;

    #[test]
    fn an_id_is_new_once() {
        let mut seen = SeenIds::default();
        assert!(seen.is_empty() && seen.insert("a") && seen.insert("b") && !seen.insert("a"));
        assert!(seen.contains("b") && !seen.contains("c"));
        assert_eq!(seen.len(), 2);
    }
}
