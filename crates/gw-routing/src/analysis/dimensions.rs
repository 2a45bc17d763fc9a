//! Splits each dimension of a block, and only where something distinguishes its values.

use std::collections::BTreeSet;

use gw_types::{Capability, CapabilitySet, Classification, RouteName, TenantId, TokenCount};

use super::{
    TenantFacts,
    block::{Choice, DIMENSIONS, Part, Value},
    mask::Mask,
    side::{RulePlace, RuleRef, Side},
    sizes::Cuts,
};
use crate::{RouteQuery, matches::Matcher};

/// Shares that may divide the keys of one block: each doubles the classes.
const SHARES_MAX: usize = 16;
/// Values that the metadata of one block may have.
const METADATA_MAX: usize = 100_000;

/// What the values of one block are asked of.
struct Ground<'a> {
    sides: &'a [Side<'a>],
    tenants: &'a [Option<&'a TenantFacts>],
    budgeted: &'a [bool],
    rules: &'a [RuleRef],
    deployments: &'a [(usize, usize)],
    /// Somebody to ask as where it does not matter who asks.
    nobody: TenantId,
}

/// Returns the values of every dimension, the least demand first; none is empty. `None`: there are more than anybody
/// could look at.
pub(super) fn of(
    sides: &[Side<'_>],
    (tenants, budgeted): (&[Option<&TenantFacts>], &[bool]),
    rules: &[RuleRef],
    deployments: &[(usize, usize)],
) -> Option<[Vec<Value>; DIMENSIONS]> {
    let nobody = tenants.iter().flatten().next()?.id.clone();
    let ground = Ground { sides, tenants, budgeted, rules, deployments, nobody };
    Some([
        ground.classifications(),
        ground.residency(),
        ground.needs(),
        ground.sizes(),
        ground.task_classes(),
        ground.metadata()?,
        ground.shares()?,
    ])
}

impl<'a> Ground<'a> {
    fn matcher(&self, rule: usize) -> &'a Matcher {
        let rule = self.rules[rule];
        self.sides[rule.side].matcher(rule.place)
    }

    fn taking(&self, takes: impl Fn(&Matcher) -> bool) -> Mask {
        Mask::of(self.rules.len(), |rule| takes(self.matcher(rule)))
    }

    fn every_deployment(&self) -> Mask {
        Mask::of(self.deployments.len(), |_| true)
    }

    /// Returns the deployments that allow what `demand` adds to a query that demands nothing, on a side.
    fn allowing(&self, demand: impl Fn(&mut RouteQuery<'_>, usize)) -> Mask {
        Mask::of(self.deployments.len(), |at| {
            let (side, place) = self.deployments[at];
            let mut query = RouteQuery::new("", &self.nobody, Classification::Public);
            demand(&mut query, side);
            self.sides[side].allows(place, &query)
        })
    }

    fn classifications(&self) -> Vec<Value> {
        let lowest = self.tenants.iter().flatten().map(|tenant| tenant.default_classification).min();
        let values = Classification::ALL.into_iter().filter(|one| Some(*one) >= lowest).map(|one| Value {
            rules: self.taking(|matcher| matcher.takes_classification(one)),
            deployments: self.allowing(|query, _| query.classification = one),
            choices: vec![Choice::Classification(one)],
        });
        // Below a tenant's default lies no request: with two policies the defaults themselves distinguish.
        let defaults: BTreeSet<Classification> =
            self.tenants.iter().flatten().map(|tenant| tenant.default_classification).collect();
        if defaults.len() > 1 { values.collect() } else { merged(values) }
    }

    fn residency(&self) -> Vec<Value> {
        let groups: BTreeSet<_> = self.sides.iter().flat_map(|side| side.router.residency.names()).collect();
        let floors: Vec<_> = self.tenants.iter().flatten().map(|tenant| tenant.residency.as_ref()).collect();
        let further = groups.into_iter().filter(|group| !floors.iter().all(|floor| *floor == Some(*group)));
        merged(std::iter::once(None).chain(further.map(Some)).map(|group| {
            let demanded = |side: usize| -> Vec<_> {
                let floor = self.tenants[side].and_then(|tenant| tenant.residency.as_ref());
                floor.into_iter().chain(group).cloned().collect()
            };
            let demanded: Vec<Vec<_>> = (0..self.sides.len()).map(demanded).collect();
            let takes = |rule: usize| {
                let side = self.rules[rule].side;
                self.matcher(rule).takes_residency(self.sides[side].router.residency.set(&demanded[side]))
            };
            let allows = |at: usize| {
                let (side, place) = self.deployments[at];
                let neutral = RouteQuery::new("", &self.nobody, Classification::Public);
                self.sides[side].allows(place, &RouteQuery { residency: &demanded[side], ..neutral })
            };
            Value {
                rules: Mask::of(self.rules.len(), takes),
                deployments: Mask::of(self.deployments.len(), allows),
                choices: vec![Choice::Residency(group.cloned())],
            }
        }))
    }

    /// Sets that nothing distinguishes are merged after each capability: what comes later cannot part them again, because
    /// every condition speaks of one capability at a time.
    fn needs(&self) -> Vec<Value> {
        let named = (0..self.rules.len())
            .fold(CapabilitySet::EMPTY, |set, rule| set_union(set, self.matcher(rule).named_needs()));
        let can: Vec<CapabilitySet> = self
            .deployments
            .iter()
            .map(|(side, place)| self.sides[*side].facts.deployments[*place].capabilities)
            .collect();
        let has = |capability| can.iter().any(|set| set.contains(capability));
        let (chat, embeddings) = (Capability::Chat, Capability::Embeddings);
        let is_embedding = has(embeddings) || named.contains(embeddings);
        let is_chat = has(chat) || named.contains(chat) || !is_embedding;
        let mut sets: Vec<CapabilitySet> = [(chat, is_chat), (embeddings, is_embedding)]
            .into_iter()
            .filter_map(|(operation, there_is)| there_is.then_some(CapabilitySet::EMPTY.with(operation)))
            .collect();
        let mut told = CapabilitySet::EMPTY.with(chat).with(embeddings);
        // Not what deployments declare but what they answer: with a budget, the price of images divides too.
        let divides = |capability: &Capability| {
            let alone = self.need(CapabilitySet::EMPTY.with(*capability), CapabilitySet::EMPTY).deployments;
            let some = !alone.is_empty();
            named.contains(*capability) || some && alone != self.every_deployment()
        };
        let further = Capability::ALL
            .into_iter()
            .filter(|one| !matches!(one, Capability::Chat | Capability::Embeddings));
        for capability in further.filter(divides) {
            told = told.with(capability);
            sets = sets.iter().copied().chain(sets.iter().map(|set| set.with(capability))).collect();
            let mut seen = BTreeSet::new();
            sets.retain(|set| {
                let value = self.need(*set, told);
                seen.insert((value.rules, value.deployments))
            });
        }
        merged(sets.into_iter().map(|set| self.need(set, told)))
    }

    /// Returns the value of a set of needs, as far as the capabilities in `told` decide.
    fn need(&self, needs: CapabilitySet, told: CapabilitySet) -> Value {
        let streams = needs.contains(Capability::Streaming);
        let takes = |matcher: &Matcher| {
            let open = matcher.named_needs().without(told);
            matcher.takes_needs(set_union(needs, open))
                && (!told.contains(Capability::Streaming) || matcher.takes_streaming(streams))
        };
        Value {
            rules: self.taking(takes),
            deployments: self.allowing(|query, side| {
                query.needs = needs;
                query.audio = needs.contains(Capability::Audio);
                query.images = needs.contains(Capability::Vision);
                query.budgeted = self.budgeted[side];
            }),
            choices: vec![Choice::Needs(needs)],
        }
    }

    fn sizes(&self) -> Vec<Value> {
        let mut cuts = Cuts::default();
        for (least, most) in (0..self.rules.len()).map(|rule| self.matcher(rule).input()) {
            cuts.input.extend([u128::from(least), u128::from(most) + 1]);
        }
        for (side, place) in self.deployments {
            let deployment = &self.sides[*side].facts.deployments[*place];
            let above = |tokens: TokenCount| u128::from(tokens.get()) + 1;
            cuts.total.extend(deployment.context_window.map(above));
            cuts.output.extend(deployment.max_output_tokens.map(above));
        }
        let values = cuts.sizes().into_iter().map(|size| Value {
            rules: self.taking(|matcher| matcher.takes_input(size.estimate.max(size.at_least))),
            deployments: self.allowing(|query, _| {
                query.input_tokens_at_least = TokenCount::new(size.at_least);
                query.output_tokens = size.output();
            }),
            choices: vec![Choice::Size(size)],
        });
        let mut values = merged(values);
        // Too large for each of them: what they cannot do, and no gap of the policy. The least size always stays.
        let mut is_least = true;
        values.retain(|value| std::mem::take(&mut is_least) || !value.deployments.is_empty());
        values
    }

    fn task_classes(&self) -> Vec<Value> {
        let named: BTreeSet<_> =
            (0..self.rules.len()).flat_map(|rule| self.matcher(rule).task_classes()).collect();
        merged(std::iter::once(None).chain(named.into_iter().map(Some)).map(|class| Value {
            rules: self.taking(|matcher| matcher.takes_task_class(class)),
            deployments: self.every_deployment(),
            choices: vec![Choice::TaskClass(class.cloned())],
        }))
    }

    fn metadata(&self) -> Option<Vec<Value>> {
        let mut keys: std::collections::BTreeMap<&str, BTreeSet<&str>> = std::collections::BTreeMap::new();
        for rule in 0..self.rules.len() {
            for (key, values) in self.matcher(rule).metadata() {
                keys.entry(key).or_default().extend(values);
            }
        }
        let start = Value {
            rules: Mask::of(self.rules.len(), |_| true),
            deployments: self.every_deployment(),
            choices: vec![Choice::Metadata(Vec::new())],
        };
        keys.into_iter().try_fold(vec![start], |values, (key, named)| {
            let choices: Vec<Option<&str>> =
                std::iter::once(None).chain(named.into_iter().map(Some)).collect();
            let taken: Vec<Mask> = choices
                .iter()
                .map(|choice| self.taking(|matcher| matcher.takes_value(key, *choice)))
                .collect();
            let further = values.iter().flat_map(|value| {
                choices.iter().zip(&taken).map(|(choice, taken)| Value {
                    rules: value.rules.and(taken),
                    deployments: value.deployments.clone(),
                    choices: vec![with_metadata(value, key, *choice)],
                })
            });
            let mut values = merged(further);
            // Only the least of each is asked about; what else is in it would only be carried along.
            values.iter_mut().for_each(|value| value.choices.truncate(1));
            (values.len() <= METADATA_MAX).then_some(values)
        })
    }

    fn shares(&self) -> Option<Vec<Value>> {
        let names = |rule: usize| match self.rules[rule].place {
            RulePlace::Route(route) => Some(self.sides[self.rules[rule].side].route_name(route).clone()),
            RulePlace::Refused(_) => None,
        };
        let dividing: BTreeSet<_> = (0..self.rules.len())
            .filter(|rule| self.matcher(*rule).dividing_share().is_some())
            .filter_map(|rule| Some((names(rule)?, self.matcher(rule).dividing_share()?.percent())))
            .collect();
        if dividing.len() > SHARES_MAX {
            return None;
        }
        // Of one route's shares in two policies the larger holds the smaller: they part the keys in three, not in four.
        let patterns = combinations(&dividing);
        let value = |pattern: Vec<Part>| {
            let is_in = |rule: usize| {
                let matcher = self.matcher(rule);
                match (matcher.dividing_share(), names(rule)) {
                    (Some(share), Some(name)) => pattern
                        .iter()
                        .any(|part| part.is_in && part.route == name && part.percent == share.percent()),
                    (Some(_), None) | (None, _) => matcher.takes_share(None),
                }
            };
            Value {
                rules: Mask::of(self.rules.len(), is_in),
                deployments: self.every_deployment(),
                choices: vec![Choice::Share(pattern.clone())],
            }
        };
        Some(merged(patterns.into_iter().map(value)))
    }
}

/// Returns every way of being in some shares and not in others; nowhere first.
fn combinations(shares: &BTreeSet<(RouteName, u8)>) -> Vec<Vec<Part>> {
    shares.iter().fold(vec![Vec::new()], |ways, (route, percent)| {
        let step = |way: &Vec<Part>, is_in: bool| {
            // Sorted by percent: whoever is in the smaller share of a route is in its larger one too.
            let is_forced = way.iter().any(|part| part.route == *route && part.is_in);
            let part = Part { route: route.clone(), percent: *percent, is_in };
            (is_in || !is_forced).then(|| way.iter().cloned().chain([part]).collect())
        };
        [false, true]
            .into_iter()
            .flat_map(|is_in| ways.iter().filter_map(move |way| step(way, is_in)))
            .collect()
    })
}

fn with_metadata(value: &Value, key: &str, choice: Option<&str>) -> Choice {
    let mut metadata = match value.choices.first() {
        Some(Choice::Metadata(metadata)) => metadata.clone(),
        Some(_) | None => Vec::new(),
    };
    metadata.extend(choice.map(|choice| (key.to_owned(), choice.to_owned())));
    Choice::Metadata(metadata)
}

fn set_union(one: CapabilitySet, other: CapabilitySet) -> CapabilitySet {
    one.iter().chain(other.iter()).collect()
}

/// Merges values that nothing distinguishes; the first of each stays the first.
fn merged(values: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for value in values {
        let key = (value.rules.clone(), value.deployments.clone());
        let place = *places.entry(key).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(one) => one.choices.extend(value.choices),
            None => merged.push(value),
        }
    }
    merged
}
