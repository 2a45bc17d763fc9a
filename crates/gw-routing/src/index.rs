//! Finds the routes that match a model's name, without asking the others.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use gw_types::ModelName;
use smallvec::SmallVec;

use crate::ModelPattern;

/// Lists that are merged without an allocation: one of the exact name, and one for each beginning of another.
const LISTS: usize = 6;

/// Up to 64 neighbouring routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The place of the first of them, divided by 64.
    pub(crate) word: usize,
    /// One bit a route, the lowest for the first.
    pub(crate) bits: u64,
}

impl Block {
    fn of(route: usize) -> Self {
        Self { word: route / 64, bits: 1 << (route % 64) }
    }

    /// Returns whether no route is in the block.
    pub(crate) const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Returns whether the route, which is one of the 64, is in the block.
    pub(crate) const fn has(self, route: usize) -> bool {
        self.bits >> (route % 64) & 1 != 0
    }
}

/// The places of the routes, ascending.
impl Iterator for Block {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let lowest = (self.bits != 0).then(|| self.bits.trailing_zeros() as usize)?;
        self.bits &= self.bits - 1;
        Some(self.word * 64 + lowest)
    }
}

/// A set of routes: blocks ascending, none of them empty, so that few routes among many take little room.
type Blocks = Vec<Block>;

fn insert(blocks: &mut Blocks, route: usize) {
    let one = Block::of(route);
    match blocks.last_mut() {
        Some(last) if last.word == one.word => last.bits |= one.bits,
        _ => blocks.push(one),
    }
}

/// Finds routes by the name of a model.
///
/// A look-up costs one hash of the name, one binary search among the beginnings of wildcards, and one step for each 64
/// neighbouring routes some of which take the name; where none does, they are never looked at. The memory is proportional
/// to the patterns written.
#[derive(Debug, Default)]
pub(crate) struct ModelIndex {
    // A fixed hash is enough: the keys come from the configuration, and a caller can only look up.
    exact: HashMap<ModelName, Blocks, FixedState>,
    /// Sorted by their texts. The empty beginning belongs to routes of every model.
    prefixes: Vec<Prefix>,
}

/// What names may begin with, and the routes that take such names.
#[derive(Debug)]
struct Prefix {
    text: Box<str>,
    routes: Blocks,
    /// The longest other beginning that this one begins with, as its place.
    parent: Option<usize>,
}

impl ModelIndex {
    /// Returns the index of lists of patterns; their places are what a look-up returns. An empty list takes every name.
    pub(crate) fn new<'a>(routes: impl IntoIterator<Item = &'a [ModelPattern]>) -> Self {
        let mut exact: HashMap<ModelName, Blocks, FixedState> = HashMap::default();
        let mut prefixes: BTreeMap<&str, Blocks> = BTreeMap::new();
        for (route, models) in routes.into_iter().enumerate() {
            for name in models.iter().filter_map(|pattern| pattern.exact()) {
                insert(exact.entry(name.clone()).or_default(), route);
            }
            for prefix in models.iter().filter_map(|pattern| pattern.prefix()) {
                insert(prefixes.entry(prefix).or_default(), route);
            }
            if models.is_empty() {
                insert(prefixes.entry("").or_default(), route);
            }
        }
        let mut index = Self { exact, prefixes: Vec::with_capacity(prefixes.len()) };
        for (text, routes) in prefixes {
            let parent = index.longest_prefix(text);
            index.prefixes.push(Prefix { text: Box::from(text), routes, parent });
        }
        index
    }

    /// Returns the routes that match the name, in their order, none twice.
    pub(crate) fn matching<'a>(&'a self, model: &str) -> impl Iterator<Item = usize> + use<'a> {
        self.blocks(model).flatten()
    }

    /// Returns the routes that match the name, 64 at a time, in their order. Allocates nothing where at most [`LISTS`]
    /// lists are merged.
    pub(crate) fn blocks<'a>(&'a self, model: &str) -> Matching<'a> {
        let mut lists = SmallVec::new();
        lists.extend(self.exact.get(model).map(Blocks::as_slice));
        let mut at = self.longest_prefix(model);
        while let Some(prefix) = at.map(|place| &self.prefixes[place]) {
            lists.push(prefix.routes.as_slice());
            at = prefix.parent;
        }
        Matching { lists }
    }

    /// Returns the place of the longest beginning of the text.
    ///
    /// Whatever stands between a beginning of the text and the text itself in the order of texts has that beginning too;
    /// so the nearest one before the text either is a beginning of it or descends from the longest.
    fn longest_prefix(&self, text: &str) -> Option<usize> {
        let mut at = self.prefixes.partition_point(|prefix| *prefix.text <= *text).checked_sub(1);
        while let Some(prefix) = at.map(|place| &self.prefixes[place])
            && !text.starts_with(&*prefix.text)
        {
            at = prefix.parent;
        }
        at
    }

    // === what the analysis splits by ===

    /// Returns the names that routes list exactly, sorted.
    pub(crate) fn exact_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.exact.keys().map(ModelName::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Returns the beginnings, sorted.
    pub(crate) fn beginnings(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(|prefix| &*prefix.text)
    }

    /// Returns whether the name is listed exactly.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.exact.contains_key(name)
    }

    /// Returns the longest beginning of the name.
    pub(crate) fn beginning_of(&self, name: &str) -> Option<&str> {
        self.longest_prefix(name).map(|place| &*self.prefixes[place].text)
    }
}

/// Merges sets of routes.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    lists: SmallVec<[&'a [Block]; LISTS]>,
}

impl Iterator for Matching<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let word = self.lists.iter().filter_map(|list| list.first()).map(|block| block.word).min()?;
        let mut bits = 0;
        for list in &mut self.lists {
            if let Some((first, rest)) = list.split_first()
                && first.word == word
            {
                bits |= first.bits;
                *list = rest;
            }
        }
        Some(Block { word, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::ModelIndex;
    use crate::ModelPattern;

    fn check(routes: &[&[&str]], model: &str, expected: &[usize]) {
        let routes: Vec<Vec<ModelPattern>> = routes
            .iter()
            .map(|patterns| patterns.iter().map(|pattern| pattern.parse().unwrap()).collect())
            .collect();
        let index = ModelIndex::new(routes.iter().map(Vec::as_slice));
        let found: Vec<usize> = index.matching(model).collect();
        assert_eq!(found, expected, "{model}");
        let slow = |place: &usize| {
            routes[*place].is_empty() || routes[*place].iter().any(|pattern| pattern.matches(model))
        };
        assert_eq!(found, (0..routes.len()).filter(slow).collect::<Vec<_>>(), "{model}");
    }

    #[test]
    fn finds_by_name_beginning_or_both_in_order() {
        let routes: &[&[&str]] =
            &[&["gpt-4", "gpt-4"], &["gpt-*"], &[], &["gpt-*", "gpt-4"], &["claude"], &["*", "g*"]];
        check(routes, "gpt-4", &[0, 1, 2, 3, 5]);
        check(routes, "gpt-5", &[1, 2, 3, 5]);
        check(routes, "claude", &[2, 4, 5]);
        check(routes, "", &[2, 5]);
        check(&[&["gpt-4"], &["claude"]], "gpt", &[]);
        check(&[], "gpt-4", &[]);
    }

    #[test]
    fn routes_far_apart_are_found_in_order() {
        let mut routes: Vec<&[&str]> = vec![&["other"]; 300];
        for place in [0, 63, 64, 200, 299] {
            routes[place] = &["gpt-4"];
        }
        routes[64] = &["gpt-*", "gpt-4"];
        routes[128] = &["gpt-*"];
        check(&routes, "gpt-4", &[0, 63, 64, 128, 200, 299]);
        check(&routes, "gpt-5", &[64, 128]);
    }

    #[test]
    fn the_longest_beginning_is_found_behind_its_neighbours() {
        let routes: &[&[&str]] = &[&["a*"], &["ab*"], &["abc*"], &["abd*"], &["b*"], &["abcx*"]];
        check(routes, "abz", &[0, 1]);
        check(routes, "abcz", &[0, 1, 2]);
        check(routes, "abe", &[0, 1]);
        check(routes, "az", &[0]);
        check(routes, "aa", &[0]);
        check(routes, "c", &[]);
    }
}
