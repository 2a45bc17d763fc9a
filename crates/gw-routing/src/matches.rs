//! Gate one: what the author of a route says.
//!
//! Nothing here looks at a deployment. The model's name is not checked here either: [`crate::index`] only ever offers
//! routes that match it.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use gw_types::{Capability, CapabilitySet, Classification, TaskClass, TenantId, TokenCount};

use crate::{
    Mismatch, RouteMatch, RouteQuery, RoutingConfig,
    hash::Share,
    residency::{GroupSet, ResidencyGroups},
};

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

    /// Returns how many tenants have numbers; the numbers are those below.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn give(&mut self, tenant: &TenantId) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(tenant.clone()).or_insert(next)
    }
}

/// A key of metadata with the values that it may have, sorted.
type Allowed = (Box<str>, Box<[Box<str>]>);

/// A [`RouteMatch`] made quick to ask: sorted lists and words of bits.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// By their numbers, sorted; `None`: all.
    tenants: Option<Box<[usize]>>,
    /// One bit a classification.
    classifications: u8,
    streaming: Option<bool>,
    needs: CapabilitySet,
    /// One of them must be demanded; empty: no condition.
    residency: GroupSet,
    input_min: u64,
    input_max: u64,
    task_classes: Box<[TaskClass]>,
    /// Both sorted.
    metadata: Box<[Allowed]>,
    share: Option<Share>,
}

impl Matcher {
    /// Returns the matcher of what a policy says under a name, and gives its tenants their numbers. The policy is one
    /// without faults.
    pub(crate) fn new(
        name: &str,
        matches: &RouteMatch,
        config: &RoutingConfig,
        groups: &ResidencyGroups,
        numbers: &mut TenantNumbers,
    ) -> Self {
        Self {
            tenants: tenants(matches, config, numbers),
            classifications: classifications(matches),
            streaming: matches.streaming,
            needs: matches.needs,
            residency: groups.set(&matches.residency).unwrap_or_default(),
            input_min: matches.input_tokens_at_least.map_or(0, TokenCount::get),
            input_max: matches.input_tokens_at_most.map_or(u64::MAX, TokenCount::get),
            task_classes: sorted(matches.task_classes.iter().cloned()),
            metadata: metadata(&matches.metadata),
            share: matches.share_percent.map(|percent| Share::new(name, percent)),
        }
    }

    /// Returns whether the route is for the tenant with the number; `None`: one that no route names.
    pub(crate) fn is_for(&self, tenant: Option<usize>) -> bool {
        self.tenants
            .as_ref()
            .is_none_or(|listed| tenant.is_some_and(|tenant| listed.binary_search(&tenant).is_ok()))
    }

    /// Returns the numbers of the tenants that the route names, sorted.
    pub(crate) fn tenants(&self) -> &[usize] {
        self.tenants.as_deref().unwrap_or_default()
    }

    /// Returns the first condition that does not hold, whoever asks and for whatever model. `demanded` are the groups of
    /// regions that the query demands.
    pub(crate) fn mismatch(&self, query: &RouteQuery<'_>, demanded: Option<GroupSet>) -> Option<Mismatch> {
        if !self.takes_classification(query.classification) {
            Some(Mismatch::Classification)
        } else if !self.takes_streaming(query.stream) {
            Some(Mismatch::Streaming)
        } else if !self.takes_needs(query.needs) {
            Some(Mismatch::Needs)
        } else if !self.takes_residency(demanded) {
            Some(Mismatch::Residency)
        } else if !self.takes_input(query.input_tokens()) {
            Some(Mismatch::InputTokens)
        } else if !self.takes_task_class(query.task_class) {
            Some(Mismatch::TaskClass)
        } else if !self.takes_metadata(query.metadata) {
            Some(Mismatch::Metadata)
        } else if !self.takes_share(query.share_key) {
            Some(Mismatch::Share)
        } else {
            None
        }
    }

    pub(crate) const fn takes_classification(&self, classification: Classification) -> bool {
        self.classifications & bit(classification) != 0
    }

    pub(crate) fn takes_streaming(&self, stream: bool) -> bool {
        self.streaming.is_none_or(|wanted| wanted == stream)
    }

    pub(crate) const fn takes_needs(&self, needs: CapabilitySet) -> bool {
        needs.covers(self.needs)
    }

    pub(crate) fn takes_residency(&self, demanded: Option<GroupSet>) -> bool {
        self.residency.is_empty() || demanded.is_some_and(|demanded| self.residency.meets(demanded))
    }

    pub(crate) const fn takes_input(&self, tokens: u64) -> bool {
        self.input_min <= tokens && tokens <= self.input_max
    }

    pub(crate) fn takes_task_class(&self, task_class: Option<&TaskClass>) -> bool {
        self.task_classes.is_empty()
            || task_class.is_some_and(|asked| self.task_classes.binary_search(asked).is_ok())
    }

    pub(crate) fn takes_metadata(&self, metadata: &[(&str, &str)]) -> bool {
        let value = |wanted: &str| metadata.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        self.metadata.iter().all(|(key, values)| takes(values, value(key)))
    }

    pub(crate) fn takes_share(&self, key: Option<&str>) -> bool {
        self.share.is_none_or(|share| share.takes(key))
    }

    // === what the analysis splits by ===

    /// Returns the route's share if some keys are in it and others are not.
    pub(crate) fn dividing_share(&self) -> Option<Share> {
        self.share.filter(Share::divides)
    }

    /// Returns whether the route asks nothing of the key, or the value; `None`: the request does not have the key.
    pub(crate) fn takes_value(&self, key: &str, value: Option<&str>) -> bool {
        let asked = self.metadata.iter().find(|(asked, _)| **asked == *key);
        asked.is_none_or(|(_, values)| takes(values, value))
    }

    /// Returns the metadata that the route asks for.
    pub(crate) fn metadata(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
        self.metadata.iter().map(|(key, values)| (&**key, values.iter().map(|value| &**value)))
    }

    /// Returns the task classes that the route names.
    pub(crate) fn task_classes(&self) -> &[TaskClass] {
        &self.task_classes
    }

    /// Returns the capabilities that the route names, streaming included.
    pub(crate) fn named_needs(&self) -> CapabilitySet {
        match self.streaming {
            Some(_) => self.needs.with(Capability::Streaming),
            None => self.needs,
        }
    }

    /// Returns the fewest and the most input tokens.
    pub(crate) const fn input(&self) -> (u64, u64) {
        (self.input_min, self.input_max)
    }

    /// Returns whether the route names classifications.
    pub(crate) fn names_classifications(&self) -> bool {
        Classification::ALL.into_iter().any(|one| !self.takes_classification(one))
    }

    /// Returns whether the route names groups of regions.
    pub(crate) const fn names_residency(&self) -> bool {
        !self.residency.is_empty()
    }
}

fn takes(values: &[Box<str>], value: Option<&str>) -> bool {
    value.is_some_and(|value| values.binary_search_by(|one| (**one).cmp(value)).is_ok())
}

fn tenants(
    matches: &RouteMatch,
    config: &RoutingConfig,
    numbers: &mut TenantNumbers,
) -> Option<Box<[usize]>> {
    if matches.tenants.is_empty() && matches.tenant_groups.is_empty() {
        return None;
    }
    let members = matches.tenant_groups.iter().filter_map(|group| config.tenant_groups.get(group)).flatten();
    Some(sorted(matches.tenants.iter().chain(members).map(|tenant| numbers.give(tenant))))
}

fn classifications(matches: &RouteMatch) -> u8 {
    let listed =
        if matches.classifications.is_empty() { &Classification::ALL[..] } else { &matches.classifications };
    let highest = matches.classification_at_most.unwrap_or(Classification::Restricted);
    listed.iter().filter(|one| **one <= highest).fold(0, |bits, one| bits | bit(*one))
}

fn metadata(asked: &BTreeMap<String, Vec<String>>) -> Box<[Allowed]> {
    let text = |text: &String| Box::from(text.as_str());
    asked.iter().map(|(key, values)| (text(key), sorted(values.iter().map(text)))).collect()
}

const fn bit(classification: Classification) -> u8 {
    1 << classification as u8
}

fn sorted<T: Ord>(list: impl Iterator<Item = T>) -> Box<[T]> {
    let mut list: Vec<T> = list.collect();
    list.sort_unstable();
    list.into()
}

#[cfg(test)]
mod tests;
