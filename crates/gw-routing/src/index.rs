//! Finds the routes that match a model's name, without asking the others.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use gw_types::ModelName;
use smallvec::SmallVec;

use crate::ModelPattern;

/// Lists that are merged without an allocation: one of the exact name, and one for each beginning of another.
const LISTS: usize = 6;

/// Finds routes by the name of a model.
///
/// A look-up costs one hash of the name, one binary search among the beginnings of wildcards, and one step for each route
/// that takes the name; routes that do not are never looked at. The memory is proportional to the patterns written.
#[derive(Debug, Default)]
pub(crate) struct ModelIndex {
    // A fixed hash is enough: the keys come from the configuration, and a caller can only look up.
    exact: HashMap<ModelName, Vec<usize>, FixedState>,
    /// Sorted by their texts. The empty beginning belongs to routes of every model.
    prefixes: Vec<Prefix>,
}

/// What names may begin with, and the routes that take such names.
#[derive(Debug)]
struct Prefix {
    text: Box<str>,
    /// Ascending.
    routes: Vec<usize>,
    /// The longest other beginning that this one begins with, as its place.
    parent: Option<usize>,
}

impl ModelIndex {
    /// Returns the index of lists of patterns; their places are what a look-up returns. An empty list takes every name.
    pub(crate) fn new<'a>(routes: impl IntoIterator<Item = &'a [ModelPattern]>) -> Self {
        let mut exact: HashMap<ModelName, Vec<usize>, FixedState> = HashMap::default();
        let mut prefixes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (route, models) in routes.into_iter().enumerate() {
            // A pattern written twice in one route counts once.
            let stand = |places: &mut Vec<usize>| {
                if places.last() != Some(&route) {
                    places.push(route);
                }
            };
            for name in models.iter().filter_map(|pattern| pattern.exact()) {
                stand(exact.entry(name.clone()).or_default());
            }
            for prefix in models.iter().filter_map(|pattern| pattern.prefix()) {
                stand(prefixes.entry(prefix).or_default());
            }
            if models.is_empty() {
                stand(prefixes.entry("").or_default());
            }
        }
        let mut index = Self { exact, prefixes: Vec::with_capacity(prefixes.len()) };
        for (text, routes) in prefixes {
            let parent = index.longest_prefix(text);
            index.prefixes.push(Prefix { text: Box::from(text), routes, parent });
        }
        index
    }

    /// Returns the routes that match the name, in their order, none twice. Allocates nothing where at most
    /// [`LISTS`] lists are merged.
    pub(crate) fn matching<'a>(&'a self, model: &str) -> Matching<'a> {
        let mut lists = SmallVec::new();
        lists.extend(self.exact.get(model).map(Vec::as_slice));
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

/// Merges ascending lists of routes.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    lists: SmallVec<[&'a [usize]; LISTS]>,
}

impl Iterator for Matching<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if let [only] = self.lists.as_mut_slice() {
            let (first, rest) = only.split_first()?;
            *only = rest;
            return Some(*first);
        }
        let next = self.lists.iter().filter_map(|list| list.first()).min().copied()?;
        // A route that lists the name and has a wildcard for it stands in more than one list.
        for list in &mut self.lists {
            if let Some((first, rest)) = list.split_first()
                && *first == next
            {
                *list = rest;
            }
        }
        Some(next)
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
