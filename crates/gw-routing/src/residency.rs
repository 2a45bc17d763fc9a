//! Groups of regions, and the regions' membership as one bit a group.

use std::collections::{BTreeMap, BTreeSet};

use gw_types::{Region, Residency};

/// Holds the names of the groups, sorted; the place of a name is its bit.
#[derive(Debug)]
pub(crate) struct ResidencyGroups {
    names: Box<[Residency]>,
}

/// A set of groups, one bit each: what a region is in, or what a request demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupSet(u64);

impl ResidencyGroups {
    /// The most groups there can be: one bit of a word each.
    pub(crate) const COUNT_MAX: usize = 64;

    /// Takes the names of at most [`Self::COUNT_MAX`] groups.
    pub(crate) fn new(groups: &BTreeMap<Residency, BTreeSet<Region>>) -> Self {
        debug_assert!(groups.len() <= Self::COUNT_MAX, "the number of groups is checked before");
        Self { names: groups.keys().cloned().collect() }
    }

    /// Returns the names, sorted.
    pub(crate) fn names(&self) -> &[Residency] {
        &self.names
    }

    /// Returns the groups that contain the region. The groups must be those that `self` was made of.
    pub(crate) fn containing(groups: &BTreeMap<Residency, BTreeSet<Region>>, region: &Region) -> GroupSet {
        let bit = |(place, (_, regions)): (usize, (_, &BTreeSet<Region>))| {
            u64::from(regions.contains(region)).checked_shl(u32::try_from(place).unwrap_or(u32::MAX))
        };
        GroupSet(groups.iter().enumerate().filter_map(bit).fold(0, std::ops::BitOr::bitor))
    }

    /// Returns the set of the named groups; `None` if one of them does not exist.
    pub(crate) fn set(&self, demanded: &[Residency]) -> Option<GroupSet> {
        demanded.iter().try_fold(GroupSet::default(), |set, name| {
            let place = self.names.binary_search(name).ok()?;
            Some(GroupSet(set.0 | 1 << place))
        })
    }
}

impl GroupSet {
    /// Returns whether every group of `demanded` is in `self`.
    pub(crate) const fn covers(self, demanded: Self) -> bool {
        demanded.0 & !self.0 == 0
    }

    /// Returns whether the sets have a group in common.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether there is no group in the set.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use gw_types::{Region, Residency};

    use super::ResidencyGroups;

    fn groups() -> BTreeMap<Residency, BTreeSet<Region>> {
        let group = |name: &str, regions: &[&str]| {
            (name.parse().unwrap(), regions.iter().map(|region| region.parse().unwrap()).collect())
        };
        BTreeMap::from([
            group("onshore", &["uk-south", "uk-west"]),
            group("eu", &["uk-south", "west-europe"]),
        ])
    }

    fn check(region: &str, demanded: &[&str], expected: Option<bool>) {
        let demanded: Vec<Residency> = demanded.iter().map(|name| name.parse().unwrap()).collect();
        let has = ResidencyGroups::containing(&groups(), &region.parse().unwrap());
        let allowed = ResidencyGroups::new(&groups()).set(&demanded).map(|demanded| has.covers(demanded));
        assert_eq!(allowed, expected, "{region} {demanded:?}");
    }

    #[test]
    fn a_region_must_be_in_every_demanded_group() {
        check("us", &[], Some(true));
        check("us", &["eu"], Some(false));
        check("uk-south", &["eu", "onshore"], Some(true));
        check("uk-west", &["onshore"], Some(true));
        check("uk-west", &["eu", "onshore"], Some(false));
        check("uk-west", &["onshore", "onshore"], Some(true));
        check("uk-south", &["onshore", "onshroe"], None);
    }

    #[test]
    fn the_last_of_the_most_groups_has_its_bit() {
        let many: BTreeMap<Residency, BTreeSet<Region>> = (0..ResidencyGroups::COUNT_MAX)
            .map(|n| {
                (format!("g{n:02}").parse().unwrap(), BTreeSet::from([format!("r{n}").parse().unwrap()]))
            })
            .collect();
        let has = ResidencyGroups::containing(&many, &"r63".parse().unwrap());
        let groups = ResidencyGroups::new(&many);
        assert!(has.covers(groups.set(&["g63".parse().unwrap()]).unwrap()));
        assert!(!has.covers(groups.set(&["g62".parse().unwrap()]).unwrap()));
    }
}
