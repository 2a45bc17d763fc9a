//! Which models and which tenants are told apart.

use std::collections::{BTreeMap, VecDeque};

use gw_types::{Classification, ModelName, Residency, TenantId};

use super::{
    TenantFacts,
    mask::Mask,
    side::{RuleRef, Side},
};
use crate::index::ModelIndex;

/// Models that the same rules take.
#[derive(Debug)]
pub(super) struct ModelClass {
    /// The rules, as places in all rules; ascending.
    pub(super) rules: Vec<usize>,
    /// Names and beginnings, as patterns write them.
    pub(super) labels: Vec<String>,
    /// One model of the class.
    pub(super) example: ModelName,
}

/// Tenants that nothing distinguishes.
#[derive(Debug)]
pub(super) struct TenantClass<'a> {
    pub(super) ids: Vec<TenantId>,
    /// One of them, on each side; `None`: the side does not know it.
    pub(super) facts: Vec<Option<&'a TenantFacts>>,
    /// The rules that are for them.
    pub(super) rules: Mask,
}

/// Returns the classes of models, in the order of their first name.
pub(super) fn model_classes(sides: &[Side<'_>]) -> Vec<ModelClass> {
    let index = ModelIndex::new(sides.iter().flat_map(Side::patterns));
    let mut named: Vec<(String, String)> =
        index.exact_names().into_iter().map(|name| (name.to_owned(), name.to_owned())).collect();
    for beginning in index.beginnings() {
        named.extend(open_name(&index, beginning).map(|name| (format!("{beginning}*"), name)));
    }
    let mut classes: Vec<ModelClass> = Vec::new();
    let mut places: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for (label, example) in named {
        let Ok(example) = ModelName::new(&example) else { continue };
        let rules: Vec<usize> = index.matching(example.as_str()).collect();
        let place = *places.entry(rules.clone()).or_insert(classes.len());
        match classes.get_mut(place) {
            Some(class) => class.labels.push(label),
            None => classes.push(ModelClass { rules, labels: vec![label], example }),
        }
    }
    classes
}

/// Returns a name that begins so, that nothing lists exactly and that has no longer beginning; `None`: there is none.
///
/// Walks the names in the order of their length. Every name that is looked at in vain is listed exactly, so there are no
/// more steps than names.
fn open_name(index: &ModelIndex, beginning: &str) -> Option<String> {
    const LETTERS: &str =
        "abcdefghijklmnopqrstuvwxyz0123456789-._/:@ABCDEFGHIJKLMNOPQRSTUVWXYZ+=~!#$%&()*;<>?[]^{|}";
    let mut waiting = VecDeque::from([beginning.to_owned()]);
    while let Some(name) = waiting.pop_front() {
        let is_open = |longer: &String| index.beginning_of(longer) == Some(beginning);
        for longer in LETTERS.chars().map(|letter| format!("{name}{letter}")).filter(is_open) {
            if !index.lists(&longer) {
                return Some(longer);
            }
            waiting.push_back(longer);
        }
    }
    // The bare beginning is the least telling example, so it comes last.
    (!beginning.is_empty() && !index.lists(beginning)).then(|| beginning.to_owned())
}

/// Returns the classes of tenants, in the order in which they are given.
pub(super) fn tenant_classes<'a>(sides: &[Side<'a>], rules: &[RuleRef]) -> Vec<TenantClass<'a>> {
    type Key<'a> = (Vec<Option<(Classification, Option<&'a Residency>, bool)>>, Mask);
    let of_sides: Vec<BTreeMap<&TenantId, &'a TenantFacts>> =
        sides.iter().map(|side| side.facts.tenants.iter().map(|one| (&one.id, one)).collect()).collect();
    let mut classes: Vec<TenantClass<'a>> = Vec::new();
    let mut places: BTreeMap<Key<'a>, usize> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for tenant in sides.iter().flat_map(|side| &side.facts.tenants) {
        if !seen.insert(&tenant.id) {
            continue;
        }
        let facts: Vec<Option<&TenantFacts>> =
            of_sides.iter().map(|side| side.get(&tenant.id).copied()).collect();
        let is_for = |rule: usize| {
            let rule = rules[rule];
            facts[rule.side].is_some_and(|facts| sides[rule.side].is_for(rule.place, facts))
        };
        let mask = Mask::of(rules.len(), is_for);
        let told = |facts: &Option<&'a TenantFacts>| {
            facts.map(|facts| (facts.default_classification, facts.residency.as_ref(), facts.budgeted))
        };
        let key = (facts.iter().map(told).collect(), mask.clone());
        let place = *places.entry(key).or_insert(classes.len());
        match classes.get_mut(place) {
            Some(class) => class.ids.push(tenant.id.clone()),
            None => classes.push(TenantClass { ids: vec![tenant.id.clone()], facts, rules: mask }),
        }
    }
    classes
}
