//! Which models and which tenants are told apart.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gw_types::{Classification, KeyName, ModelName, Residency, TenantId};

use super::{
    TenantFacts,
    mask::Mask,
    side::{RuleRef, Side},
};
use crate::{ModelPattern, index::ModelIndex};

/// Models that the same rules take and that are held against a budget alike.
#[derive(Debug)]
pub(super) struct ModelClass {
    /// The rules, as places in all rules; ascending.
    pub(super) rules: Vec<usize>,
    /// Names and beginnings, as patterns write them.
    pub(super) labels: Vec<String>,
    /// One model of the class.
    pub(super) example: ModelName,
    /// Whether a budget holds for it, on each side.
    pub(super) budgeted: Vec<bool>,
}

/// Tenants that nothing distinguishes; of a tenant some of whose keys have a budget, those keys or the others.
#[derive(Debug)]
pub(super) struct TenantClass<'a> {
    pub(super) ids: Vec<TenantId>,
    /// For each of them a key that stands for the class; `None`: every key does that has no budget of its own.
    pub(super) keys: Vec<Option<KeyName>>,
    /// Whether a budget holds for them, on each side.
    pub(super) budgeted: Vec<bool>,
    /// One of them, on each side; `None`: the side does not know it.
    pub(super) facts: Vec<Option<&'a TenantFacts>>,
    /// The rules that are for them.
    pub(super) rules: Mask,
}

/// Returns the classes of models, in the order of their first name.
pub(super) fn model_classes(sides: &[Side<'_>]) -> Vec<ModelClass> {
    let budgeted = budgeted_models(sides);
    let patterns = sides.iter().flat_map(Side::patterns);
    let rules_count = patterns.clone().count();
    // Behind the rules, so that a name with a budget is a name of its own under whatever pattern.
    let index = ModelIndex::new(patterns.chain(budgeted.iter().map(Vec::as_slice)));
    let mut named: Vec<(String, String)> =
        index.exact_names().into_iter().map(|name| (name.to_owned(), name.to_owned())).collect();
    for beginning in index.beginnings() {
        named.extend(open_name(&index, beginning).map(|name| (format!("{beginning}*"), name)));
    }
    let mut classes: Vec<ModelClass> = Vec::new();
    let mut places: BTreeMap<(Vec<usize>, Vec<bool>), usize> = BTreeMap::new();
    for (label, example) in named {
        let Ok(example) = ModelName::new(&example) else { continue };
        let rules: Vec<usize> =
            index.matching(example.as_str()).take_while(|rule| *rule < rules_count).collect();
        let budgeted: Vec<bool> =
            sides.iter().map(|side| side.facts.budgeted_models.contains(&example)).collect();
        let place = *places.entry((rules.clone(), budgeted.clone())).or_insert(classes.len());
        match classes.get_mut(place) {
            Some(class) => class.labels.push(label),
            None => classes.push(ModelClass { rules, labels: vec![label], example, budgeted }),
        }
    }
    classes
}

/// Returns the models with budgets, as one list a side that has some: an empty list would stand for every model.
fn budgeted_models(sides: &[Side<'_>]) -> Vec<Vec<ModelPattern>> {
    let of_side = |side: &Side<'_>| -> Vec<ModelPattern> {
        side.facts.budgeted_models.iter().filter_map(|name| ModelPattern::new(name.as_str()).ok()).collect()
    };
    sides.iter().map(of_side).filter(|list| !list.is_empty()).collect()
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
    type Key<'a> = (Vec<Option<(Classification, Option<&'a Residency>)>>, Vec<bool>, Mask);
    let of_sides: Vec<BTreeMap<&TenantId, &'a TenantFacts>> =
        sides.iter().map(|side| side.facts.tenants.iter().map(|one| (&one.id, one)).collect()).collect();
    let mut classes: Vec<TenantClass<'a>> = Vec::new();
    let mut places: BTreeMap<Key<'a>, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
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
            facts.map(|facts| (facts.default_classification, facts.residency.as_ref()))
        };
        for (budgeted, key) in kinds_of_keys(&facts) {
            let told = (facts.iter().map(told).collect(), budgeted.clone(), mask.clone());
            let place = *places.entry(told).or_insert(classes.len());
            match classes.get_mut(place) {
                Some(class) => {
                    class.ids.push(tenant.id.clone());
                    class.keys.push(key);
                }
                None => classes.push(TenantClass {
                    ids: vec![tenant.id.clone()],
                    keys: vec![key],
                    budgeted,
                    facts: facts.clone(),
                    rules: mask.clone(),
                }),
            }
        }
    }
    classes
}

/// Returns the ways in which a tenant's keys are held against budgets, on each side, with a key for each; those without a
/// budget of their own first.
fn kinds_of_keys(facts: &[Option<&TenantFacts>]) -> Vec<(Vec<bool>, Option<KeyName>)> {
    let kind = |key: Option<&KeyName>| -> Vec<bool> {
        let has_own = |facts: &TenantFacts| key.is_some_and(|key| facts.budgeted_keys.contains(key));
        facts.iter().map(|facts| facts.is_some_and(|facts| facts.budgeted || has_own(facts))).collect()
    };
    let named: BTreeSet<&KeyName> = facts.iter().flatten().flat_map(|facts| &facts.budgeted_keys).collect();
    let mut kinds: Vec<(Vec<bool>, Option<KeyName>)> = Vec::new();
    for key in std::iter::once(None).chain(named.into_iter().map(Some)) {
        let budgeted = kind(key);
        if kinds.iter().all(|(known, _)| *known != budgeted) {
            kinds.push((budgeted, key.cloned()));
        }
    }
    kinds
}
