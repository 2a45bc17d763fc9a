//! Passes over most routes that do not match with a few bits each.
//!
//! A policy for many tenants, task classes, classifications or values of metadata of one model has many routes that know
//! the model and few that match. For each of them there is a row with one bit a route, so that a route is ruled out
//! without being looked at. What a row says is what the route's matcher says: the rows are made of it.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
};

use foldhash::fast::FixedState;
use gw_types::{Classification, TaskClass};
use smallvec::SmallVec;

use crate::{RouteQuery, decide::Rule, index::Block, matches::TenantNumbers};

/// One bit a route.
type Row = Box<[u64]>;

/// The keys of metadata that have rows: those that most routes ask for. The others are left to the matchers.
const METADATA_KEYS: usize = 4;

/// The rows of what routes name, and the row of everything else.
#[derive(Debug)]
struct Named<T> {
    // A fixed hash is enough: the keys come from the configuration, and a caller can only look up.
    rows: HashMap<T, Row, FixedState>,
    other: Row,
}

impl<T: Hash + Eq> Named<T> {
    fn of<Q: Hash + Eq + ?Sized>(&self, asked: Option<&Q>) -> &[u64]
    where
        T: Borrow<Q>,
    {
        asked.and_then(|asked| self.rows.get(asked)).unwrap_or(&self.other)
    }
}

/// A key of metadata, with the rows of its values.
type Key = (Box<str>, Named<Box<str>>);

/// The rows of one router. Equal rows of tenants are held once.
#[derive(Debug)]
pub(crate) struct Screen {
    /// The row of each tenant that some route names, by its number.
    tenants: Box<[usize]>,
    tenant_rows: Box<[Row]>,
    any_tenant: Row,
    task_classes: Named<TaskClass>,
    /// At most [`METADATA_KEYS`] of them.
    metadata: Box<[Key]>,
    classifications: [Row; Classification::ALL.len()],
    streaming: [Row; 2],
}

/// The rows of one query.
#[derive(Debug)]
pub(crate) struct Screened<'a> {
    tenant: &'a [u64],
    task_class: &'a [u64],
    classification: &'a [u64],
    streaming: &'a [u64],
    metadata: SmallVec<[&'a [u64]; METADATA_KEYS]>,
}

impl Screen {
    /// Returns the rows of the rules. The memory is that of the distinct rows and of one number a tenant.
    pub(crate) fn new(rules: &[Rule], numbers: &TenantNumbers) -> Self {
        let row = |takes: &dyn Fn(&Rule) -> bool| row(rules, takes);
        let any_tenant = row(&|rule| rule.matcher.is_for(None));
        let (tenants, tenant_rows) = tenant_rows(rules, numbers, &any_tenant);
        Self {
            tenants,
            tenant_rows,
            any_tenant,
            task_classes: task_classes(rules),
            metadata: metadata(rules),
            classifications: Classification::ALL
                .map(|one| row(&|rule: &Rule| rule.matcher.takes_classification(one))),
            streaming: [false, true].map(|one| row(&|rule: &Rule| rule.matcher.takes_streaming(one))),
        }
    }

    /// Returns the rows for a query of the tenant with the number; `None`: one that no route names.
    pub(crate) fn of(&self, query: &RouteQuery<'_>, tenant: Option<usize>) -> Screened<'_> {
        let row = tenant.and_then(|number| self.tenant_rows.get(*self.tenants.get(number)?));
        let value =
            |wanted: &str| query.metadata.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        Screened {
            tenant: row.unwrap_or(&self.any_tenant),
            task_class: self.task_classes.of(query.task_class),
            classification: &self.classifications[query.classification as usize],
            streaming: &self.streaming[usize::from(query.stream)],
            metadata: self.metadata.iter().map(|(key, values)| values.of(value(key))).collect(),
        }
    }
}

fn row(rules: &[Rule], takes: &dyn Fn(&Rule) -> bool) -> Row {
    let mut row = vec![0_u64; rules.len().div_ceil(64)];
    for (place, _) in rules.iter().enumerate().filter(|(_, rule)| takes(rule)) {
        row[place / 64] |= 1 << (place % 64);
    }
    row.into()
}

fn task_classes(rules: &[Rule]) -> Named<TaskClass> {
    let named: BTreeSet<&TaskClass> = rules.iter().flat_map(|rule| rule.matcher.task_classes()).collect();
    let of =
        |class: &TaskClass| (class.clone(), row(rules, &|rule| rule.matcher.takes_task_class(Some(class))));
    Named {
        rows: named.into_iter().map(of).collect(),
        other: row(rules, &|rule| rule.matcher.takes_task_class(None)),
    }
}

fn metadata(rules: &[Rule]) -> Box<[Key]> {
    let mut asked: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for (key, values) in rules.iter().flat_map(|rule| rule.matcher.metadata()) {
        let (routes, known) = asked.entry(key).or_default();
        *routes += 1;
        known.extend(values);
    }
    let mut keys: Vec<_> = asked.into_iter().collect();
    // The sort is stable, so that equal policies have equal rows.
    keys.sort_by_key(|(_, (routes, _))| std::cmp::Reverse(*routes));
    keys.truncate(METADATA_KEYS);
    let named = |(key, (_, values)): (&str, (usize, BTreeSet<&str>))| {
        let of =
            |value: &str| (Box::from(value), row(rules, &|rule| rule.matcher.takes_value(key, Some(value))));
        let other = row(rules, &|rule| rule.matcher.takes_value(key, None));
        (Box::from(key), Named { rows: values.into_iter().map(of).collect(), other })
    };
    keys.into_iter().map(named).collect()
}

fn tenant_rows(rules: &[Rule], numbers: &TenantNumbers, any: &Row) -> (Box<[usize]>, Box<[Row]>) {
    let mut rows = vec![any.clone(); numbers.len()];
    for (place, rule) in rules.iter().enumerate() {
        for tenant in rule.matcher.tenants() {
            rows[*tenant][place / 64] |= 1 << (place % 64);
        }
    }
    let mut distinct: BTreeMap<Row, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    let tenants = rows
        .into_iter()
        .map(|row| {
            *distinct.entry(row).or_insert_with_key(|row| {
                kept.push(row.clone());
                kept.len() - 1
            })
        })
        .collect();
    (tenants, kept.into())
}

impl Screened<'_> {
    /// Returns those of the routes that are for the tenant.
    pub(crate) fn for_tenant(&self, routes: Block) -> Block {
        Block { bits: routes.bits & self.tenant[routes.word], ..routes }
    }

    /// Returns those of the routes that take the query's task class, classification, streaming and, as far as there are
    /// rows for it, metadata.
    pub(crate) fn passing(&self, routes: Block) -> Block {
        let word = routes.word;
        let row = self.task_class[word] & self.classification[word] & self.streaming[word];
        let bits = self.metadata.iter().fold(routes.bits & row, |bits, row| bits & row[word]);
        Block { bits, ..routes }
    }
}
