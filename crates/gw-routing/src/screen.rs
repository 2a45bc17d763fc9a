//! Passes over most routes that do not match with a few bits each.
//!
//! A policy for many tenants, task classes or classifications of one model has many routes that know the model and few
//! that match. For each tenant, task class and classification there is a row with one bit a route, so that a route is
//! ruled out without being looked at. What a row says is what the route's matcher says: the rows are made of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;
use gw_types::{Classification, TaskClass};

use crate::{RouteQuery, decide::Rule, matches::TenantNumbers};

/// One bit a route.
type Row = Box<[u64]>;

/// The rows of one router. Equal rows of tenants are held once.
#[derive(Debug)]
pub(crate) struct Screen {
    /// The row of each tenant that some route names, by its number.
    tenants: Box<[usize]>,
    tenant_rows: Box<[Row]>,
    any_tenant: Row,
    // A fixed hash is enough: the keys come from the configuration, and a caller can only look up.
    task_classes: HashMap<TaskClass, Row, FixedState>,
    any_task_class: Row,
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
}

impl Screen {
    /// Returns the rows of the rules. The memory is that of the distinct rows and of one number a tenant.
    pub(crate) fn new(rules: &[Rule], numbers: &TenantNumbers) -> Self {
        let row = |takes: &dyn Fn(&Rule) -> bool| {
            let mut row = vec![0_u64; rules.len().div_ceil(64)];
            for (place, _) in rules.iter().enumerate().filter(|(_, rule)| takes(rule)) {
                row[place / 64] |= 1 << (place % 64);
            }
            Row::from(row)
        };
        let any_tenant = row(&|rule| rule.matcher.is_for(None));
        let (tenants, tenant_rows) = tenant_rows(rules, numbers, &any_tenant);
        let named: BTreeSet<&TaskClass> = rules.iter().flat_map(|rule| rule.matcher.task_classes()).collect();
        let task_class = |class: &TaskClass| {
            (class.clone(), row(&|rule: &Rule| rule.matcher.takes_task_class(Some(class))))
        };
        Self {
            tenants,
            tenant_rows,
            any_tenant,
            task_classes: named.into_iter().map(task_class).collect(),
            any_task_class: row(&|rule| rule.matcher.takes_task_class(None)),
            classifications: Classification::ALL
                .map(|one| row(&|rule: &Rule| rule.matcher.takes_classification(one))),
            streaming: [false, true].map(|one| row(&|rule: &Rule| rule.matcher.takes_streaming(one))),
        }
    }

    /// Returns the rows for a query of the tenant with the number; `None`: one that no route names.
    pub(crate) fn of(&self, query: &RouteQuery<'_>, tenant: Option<usize>) -> Screened<'_> {
        let row = tenant.and_then(|number| self.tenant_rows.get(*self.tenants.get(number)?));
        let task_class = query.task_class.and_then(|class| self.task_classes.get(class));
        Screened {
            tenant: row.unwrap_or(&self.any_tenant),
            task_class: task_class.unwrap_or(&self.any_task_class),
            classification: &self.classifications[query.classification as usize],
            streaming: &self.streaming[usize::from(query.stream)],
        }
    }
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
    /// Returns whether the route is for the tenant.
    pub(crate) fn is_for(&self, route: usize) -> bool {
        has(self.tenant[route / 64], route)
    }

    /// Returns whether the route takes the query's task class, classification and streaming.
    pub(crate) fn passes(&self, route: usize) -> bool {
        let word = route / 64;
        has(self.task_class[word] & self.classification[word] & self.streaming[word], route)
    }
}

const fn has(word: u64, route: usize) -> bool {
    word >> (route % 64) & 1 != 0
}
