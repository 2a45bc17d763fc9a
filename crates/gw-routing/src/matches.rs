//! Gate one: what the author of a route says.
//!
//! Nothing here looks at a deployment. The model's name is not checked here either: [`crate::index`] only ever offers
//! routes that match it.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use gw_types::{Classification, TaskClass, TenantId};

use crate::{RouteMatch, RouteQuery};

/// Gives every tenant that some route names a number, so that a request's tenant is compared as text once and not once
/// a route.
#[derive(Debug, Default)]
pub(crate) struct TenantNumbers {
    // A fixed hash is enough: the keys come from the configuration, and a caller can only look up.
    numbers: HashMap<TenantId, usize, FixedState>,
}

impl TenantNumbers {
    /// Returns the tenant's number; `None`: no route names it.
    pub(crate) fn get(&self, tenant: &TenantId) -> Option<usize> {
        self.numbers.get(tenant).copied()
    }

    fn give(&mut self, tenant: &TenantId) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(tenant.clone()).or_insert(next)
    }
}

/// A [`RouteMatch`] made quick to ask: sorted lists and a word of bits.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// By their numbers.
    tenants: Box<[usize]>,
    task_classes: Box<[TaskClass]>,
    /// One bit a classification.
    classifications: u8,
}

impl Matcher {
    /// Returns the matcher of a route, and gives its tenants their numbers.
    pub(crate) fn new(matches: &RouteMatch, numbers: &mut TenantNumbers) -> Self {
        let listed = if matches.classifications.is_empty() {
            &Classification::ALL[..]
        } else {
            &matches.classifications
        };
        Self {
            tenants: sorted(matches.tenants.iter().map(|tenant| numbers.give(tenant))),
            task_classes: sorted(matches.task_classes.iter().cloned()),
            classifications: listed.iter().fold(0, |bits, one| bits | bit(*one)),
        }
    }

    /// Returns whether the route is for the tenant with the number; `None`: one that no route names.
    pub(crate) fn is_for(&self, tenant: Option<usize>) -> bool {
        holds(&self.tenants, tenant.as_ref())
    }

    /// Returns whether the route is for such work on such data, whoever asks.
    pub(crate) fn takes(&self, query: &RouteQuery<'_>) -> bool {
        self.classifications & bit(query.classification) != 0 && holds(&self.task_classes, query.task_class)
    }
}

const fn bit(classification: Classification) -> u8 {
    1 << classification as u8
}

fn sorted<T: Ord>(list: impl Iterator<Item = T>) -> Box<[T]> {
    let mut list: Vec<T> = list.collect();
    list.sort_unstable();
    list.into()
}

fn holds<T: Ord>(list: &[T], asked: Option<&T>) -> bool {
    list.is_empty() || asked.is_some_and(|asked| list.binary_search(asked).is_ok())
}

#[cfg(test)]
mod tests {
    use gw_types::{Classification, TaskClass, TenantId};

    use super::{Matcher, TenantNumbers};
    use crate::{RouteMatch, RouteQuery};

    fn check(matches: &RouteMatch, asked: (&str, Option<&str>, Classification), expected: bool) {
        let tenant = TenantId::new(asked.0).unwrap();
        let task_class = asked.1.map(|name| TaskClass::new(name).unwrap());
        let query = RouteQuery { task_class: task_class.as_ref(), ..RouteQuery::new("m", &tenant, asked.2) };
        let mut numbers = TenantNumbers::default();
        let matcher = Matcher::new(matches, &mut numbers);
        assert_eq!(
            matcher.is_for(numbers.get(&tenant)) && matcher.takes(&query),
            expected,
            "{matches:?} {asked:?}"
        );
    }

    #[test]
    fn empty_lists_take_everything() {
        for classification in Classification::ALL {
            check(&RouteMatch::default(), ("a", None, classification), true);
            check(&RouteMatch::default(), ("b", Some("reasoning"), classification), true);
        }
    }

    #[test]
    fn every_list_must_hold() {
        use Classification::{Internal, Public, Restricted};
        let matches = RouteMatch {
            models: Vec::new(),
            task_classes: vec!["reasoning".parse().unwrap(), "chat".parse().unwrap()],
            classifications: vec![Restricted, Public],
            tenants: vec!["b".parse().unwrap(), "a".parse().unwrap()],
        };
        check(&matches, ("a", Some("chat"), Restricted), true);
        check(&matches, ("b", Some("reasoning"), Public), true);
        check(&matches, ("c", Some("chat"), Restricted), false);
        check(&matches, ("a", Some("batch"), Restricted), false);
        check(&matches, ("a", None, Restricted), false);
        check(&matches, ("a", Some("chat"), Internal), false);
    }
}
