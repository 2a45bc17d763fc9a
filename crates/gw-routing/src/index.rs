//! Finds the routes that match a model's name, without asking the others.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use gw_types::ModelName;

use crate::RouteConfig;

/// Finds routes by the name of a model.
///
/// A look-up costs one hash of the name and one step for each route that lists it or has a wildcard. The memory is
/// proportional to the patterns written: a route stands once at each of its names and once among the open ones.
#[derive(Debug, Default)]
pub(crate) struct ModelIndex {
    // A fixed hash is enough: the keys come from the configuration, and a caller can only look up.
    exact: HashMap<ModelName, Vec<usize>, FixedState>,
    /// Routes with a wildcard or without any model, in their order.
    open: Vec<OpenRoute>,
}

/// A route that takes names which it does not list.
#[derive(Debug)]
struct OpenRoute {
    route: usize,
    /// What a name may begin with; the empty text for a route of every model.
    prefixes: Vec<Box<str>>,
}

impl ModelIndex {
    /// Returns the index of the routes; their places are what a look-up returns.
    pub(crate) fn new(routes: &[RouteConfig]) -> Self {
        let mut index = Self::default();
        for (route, config) in routes.iter().enumerate() {
            let models = &config.matches.models;
            for name in models.iter().filter_map(|pattern| pattern.exact()) {
                let places = index.exact.entry(name.clone()).or_default();
                // A name written twice in one route counts once.
                if places.last() != Some(&route) {
                    places.push(route);
                }
            }
            let mut prefixes: Vec<Box<str>> =
                models.iter().filter_map(|pattern| pattern.prefix().map(Box::from)).collect();
            if models.is_empty() {
                prefixes.push(Box::from(""));
            }
            if !prefixes.is_empty() {
                index.open.push(OpenRoute { route, prefixes });
            }
        }
        index
    }

    /// Returns the routes that match the name, in their order, none twice. Allocates nothing.
    pub(crate) fn matching<'a>(&'a self, model: &'a str) -> Matching<'a> {
        Matching { exact: self.exact.get(model).map_or(&[], Vec::as_slice), open: &self.open, model }
    }
}

impl OpenRoute {
    fn takes(&self, model: &str) -> bool {
        self.prefixes.iter().any(|prefix| model.starts_with(&**prefix))
    }
}

/// Merges two ascending lists of routes.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    exact: &'a [usize],
    open: &'a [OpenRoute],
    model: &'a str,
}

impl Iterator for Matching<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while let Some((first, rest)) = self.open.split_first()
            && !first.takes(self.model)
        {
            self.open = rest;
        }
        let exact = self.exact.first().copied();
        let open = self.open.first().map(|open| open.route);
        let next = match (exact, open) {
            (Some(exact), Some(open)) => exact.min(open),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return None,
        };
        // A route that lists the name and has a wildcard for it stands in both lists.
        if exact == Some(next) {
            self.exact = &self.exact[1..];
        }
        if open == Some(next) {
            self.open = &self.open[1..];
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::ModelIndex;
    use crate::{RouteConfig, RouteMatch};

    fn check(routes: &[&[&str]], model: &str, expected: &[usize]) {
        let routes: Vec<RouteConfig> = routes
            .iter()
            .map(|patterns| RouteConfig {
                matches: RouteMatch {
                    models: patterns.iter().map(|pattern| pattern.parse().unwrap()).collect(),
                    ..RouteMatch::default()
                },
                ..RouteConfig::new("r".parse().unwrap(), Vec::new())
            })
            .collect();
        let found: Vec<usize> = ModelIndex::new(&routes).matching(model).collect();
        assert_eq!(found, expected, "{model}");
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
}
