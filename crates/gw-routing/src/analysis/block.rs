//! The classes of requests of one group of models and one group of tenants.

use std::collections::BTreeMap;

use gw_types::{CapabilitySet, KeyName, Residency, RouteName, TaskClass, TenantId};

use super::{
    CLASSES_MAX, PolicyFacts, RequestClass, TenantFacts, Witness, dimensions,
    mask::Mask,
    partition::{ModelClass, TenantClass, model_classes, tenant_classes},
    side::{RulePlace, RuleRef, Side},
    sizes::Size,
};
use crate::{RoutingError, hash::Share};

// Dimensions of a block: classification, residency, needs, size, task class, metadata, share. The first four are demands
// that a request makes or not; the least demand stands first.
pub(super) const CLASSIFICATION: usize = 0;
pub(super) const NEEDS: usize = 2;
pub(super) const DEMANDS: usize = 4;
pub(super) const DIMENSIONS: usize = 7;

/// Everything that is told apart, of one policy or of two.
#[derive(Debug)]
pub(super) struct Atlas<'a> {
    pub(super) sides: Vec<Side<'a>>,
    pub(super) rules: Vec<RuleRef>,
    pub(super) models: Vec<ModelClass>,
    pub(super) tenants: Vec<TenantClass<'a>>,
    pub(super) blocks: Vec<Block>,
    /// How many classes there are; the blocks are whole only if it is within [`CLASSES_MAX`].
    pub(super) count: u128,
    /// Where there are too many: the first route of the requests that pass the bound.
    pub(super) passed_at: Option<RuleRef>,
}

/// Models and tenants between whose requests nothing distinguishes but the seven dimensions.
#[derive(Debug)]
pub(super) struct Block {
    /// Pairs of a class of models and a class of tenants; at least one.
    pub(super) pairs: Vec<(usize, usize)>,
    /// What takes such requests: first the routes in their order, then the refusals; side by side. Masks of rules count
    /// in this order.
    pub(super) rules: Vec<RuleRef>,
    /// The deployments of these routes, as (side, place); masks of deployments count in this order.
    pub(super) deployments: Vec<(usize, usize)>,
    /// Whether a budget keeps some of them from some requests, on each side.
    pub(super) budgeted: Vec<bool>,
    pub(super) dimensions: [Vec<Value>; DIMENSIONS],
}

/// One value of a dimension: all that nothing distinguishes.
#[derive(Debug)]
pub(super) struct Value {
    /// The rules that take it.
    pub(super) rules: Mask,
    /// The deployments whose facts allow it.
    pub(super) deployments: Mask,
    /// What is in it; the least first.
    pub(super) choices: Vec<Choice>,
}

/// What a request has in one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Classification(gw_types::Classification),
    Residency(Option<Residency>),
    Needs(CapabilitySet),
    Size(Size),
    TaskClass(Option<TaskClass>),
    Metadata(Vec<(String, String)>),
    Share(Vec<Part>),
}

/// Whether a request is in the share of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) route: RouteName,
    pub(super) percent: u8,
    pub(super) is_in: bool,
}

/// One class of requests of a block.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// The place of the value in each dimension.
    pub(super) at: [usize; DIMENSIONS],
    pub(super) rules: Mask,
    pub(super) deployments: Mask,
}

impl<'a> Atlas<'a> {
    /// Tells apart what the policies tell apart.
    pub(super) fn new(policies: &[&'a PolicyFacts]) -> Result<Self, Vec<RoutingError>> {
        let sides = policies.iter().map(|facts| Side::new(facts)).collect::<Result<Vec<_>, _>>()?;
        let rules: Vec<RuleRef> = sides.iter().enumerate().flat_map(|(at, side)| side.rules(at)).collect();
        let models = model_classes(&sides);
        let tenants = tenant_classes(&sides, &rules);
        let mut atlas = Self { sides, rules, models, tenants, blocks: Vec::new(), count: 0, passed_at: None };
        (atlas.blocks, atlas.count, atlas.passed_at) = atlas.blocks();
        Ok(atlas)
    }

    pub(super) fn is_within_bounds(&self) -> bool {
        self.count <= CLASSES_MAX
    }

    /// Returns the facts of a block's tenants on a side.
    pub(super) fn tenant(&self, block: &Block, side: usize) -> Option<&'a TenantFacts> {
        self.tenants[block.pairs[0].1].facts[side]
    }

    /// Returns the blocks, and how many classes they have. Where there are too many the rest is not made, and the first
    /// route of those that pass the bound is returned too.
    fn blocks(&self) -> (Vec<Block>, u128, Option<RuleRef>) {
        type Told<'a> = Vec<Option<(gw_types::Classification, Option<&'a Residency>)>>;
        type Key<'a> = (Vec<usize>, Told<'a>, Vec<bool>);
        let (mut blocks, mut count) = (Vec::<Block>::new(), 0_u128);
        let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
        let tells_budgets: Vec<bool> = self.rules.iter().map(|rule| self.tells_budgets(*rule)).collect();
        for (model, class) in self.models.iter().enumerate() {
            for (tenant, of) in self.tenants.iter().enumerate() {
                let local: Vec<usize> =
                    class.rules.iter().copied().filter(|rule| of.rules.contains(*rule)).collect();
                let is_route = |rule: &usize| matches!(self.rules[*rule].place, RulePlace::Route(_));
                let Some(first) = local.iter().find(|rule| is_route(rule)).map(|rule| self.rules[*rule])
                else {
                    continue;
                };
                let told = of
                    .facts
                    .iter()
                    .map(|facts| facts.map(|one| (one.default_classification, one.residency.as_ref())));
                // Where everything has its price, a budget distinguishes nothing.
                let matters = |side: usize| {
                    local.iter().any(|rule| self.rules[*rule].side == side && tells_budgets[*rule])
                };
                let budgeted: Vec<bool> = (0..self.sides.len())
                    .map(|side| (class.budgeted[side] || of.budgeted[side]) && matters(side))
                    .collect();
                let key = (local.clone(), told.collect(), budgeted.clone());
                let place = *places.entry(key).or_insert(blocks.len());
                match blocks.get_mut(place) {
                    Some(block) => block.pairs.push((model, tenant)),
                    None => {
                        let Some(block) = self.block((model, tenant), &local, budgeted) else {
                            return (blocks, u128::MAX, Some(first));
                        };
                        count = count.saturating_add(block.count());
                        blocks.push(block);
                    }
                }
                if count > CLASSES_MAX {
                    return (blocks, count, Some(first));
                }
            }
        }
        (blocks, count, None)
    }

    /// Returns whether some deployment of the rule is kept from some requests by a budget.
    fn tells_budgets(&self, rule: RuleRef) -> bool {
        let side = &self.sides[rule.side];
        match rule.place {
            RulePlace::Route(route) => {
                side.rule(route).deployments.iter().any(|place| !side.router.facts[*place].fits_budgets())
            }
            RulePlace::Refused(_) => false,
        }
    }

    fn block(&self, pair: (usize, usize), local: &[usize], budgeted: Vec<bool>) -> Option<Block> {
        let rules: Vec<RuleRef> = local.iter().map(|rule| self.rules[*rule]).collect();
        let mut deployments: Vec<(usize, usize)> = rules
            .iter()
            .filter_map(|rule| match rule.place {
                RulePlace::Route(route) => Some((rule.side, &self.sides[rule.side].rule(route).deployments)),
                RulePlace::Refused(_) => None,
            })
            .flat_map(|(side, places)| places.iter().map(move |place| (side, *place)))
            .collect();
        deployments.sort_unstable();
        deployments.dedup();
        let tenants = &self.tenants[pair.1].facts;
        let dimensions = dimensions::of(&self.sides, (tenants, &budgeted), &rules, &deployments)?;
        Some(Block { pairs: vec![pair], rules, deployments, budgeted, dimensions })
    }

    /// Returns the request that stands for the class.
    pub(super) fn witness(&self, block: &Block, class: &Class) -> Witness {
        let (model, tenants) = block.pairs[0];
        let facts = self.tenants[tenants].facts.iter().flatten();
        let floors = facts.clone().filter_map(|facts| facts.residency.clone());
        let mut witness = Witness {
            model: self.models[model].example.clone(),
            tenant: self.tenants[tenants].ids[0].clone(),
            key: self.tenants[tenants].keys[0].clone(),
            task_class: None,
            classification: gw_types::Classification::Public,
            residency: floors.take(1).collect(),
            needs: CapabilitySet::EMPTY,
            input_tokens_estimate: gw_types::TokenCount::ZERO,
            input_tokens_at_least: gw_types::TokenCount::ZERO,
            output_tokens: None,
            metadata: Vec::new(),
            share_key: None,
            budgeted: block.budgeted.contains(&true),
        };
        for choice in block.values(class).filter_map(|value| value.choices.first()) {
            choice.write(&mut witness);
        }
        witness
    }

    /// Returns the class in words.
    pub(super) fn request_class(&self, block: &Block, class: &Class) -> RequestClass {
        let mut models: Vec<String> =
            block.pairs.iter().flat_map(|(model, _)| self.models[*model].labels.iter().cloned()).collect();
        models.sort_unstable();
        models.dedup();
        let mut words = RequestClass {
            models,
            tenants: self.tenant_ids(block),
            keys: self.keys(block),
            classifications: Vec::new(),
            residency: Vec::new(),
            task_classes: Vec::new(),
            shares: Vec::new(),
            example: self.witness(block, class),
        };
        for choice in block.values(class).flat_map(|value| &value.choices) {
            match choice {
                Choice::Classification(one) => words.classifications.push(*one),
                Choice::Residency(group) => words.residency.push(group.clone()),
                Choice::TaskClass(one) => words.task_classes.push(one.clone()),
                Choice::Share(parts) if words.shares.is_empty() => {
                    words.shares = parts.iter().map(|part| (part.route.clone(), part.is_in)).collect();
                }
                Choice::Share(_) => {}
                Choice::Needs(_) | Choice::Size(_) | Choice::Metadata(_) => {}
            }
        }
        words
    }

    /// Returns the tenants of a block, sorted.
    pub(super) fn tenant_ids(&self, block: &Block) -> Vec<TenantId> {
        let ids = block.pairs.iter().flat_map(|(_, tenants)| self.tenants[*tenants].ids.iter().cloned());
        std::collections::BTreeSet::from_iter(ids).into_iter().collect()
    }
}

impl Atlas<'_> {
    /// Returns the keys of tenants of whose requests only some are in the block, by the key; sorted.
    fn keys(&self, block: &Block) -> Vec<(TenantId, KeyName)> {
        let of_block = || {
            block.pairs.iter().flat_map(|(_, place)| {
                let class = &self.tenants[*place];
                class.ids.iter().zip(&class.keys)
            })
        };
        let is_whole = |tenant: &TenantId| of_block().any(|(id, key)| id == tenant && key.is_none());
        let named = of_block().filter(|(id, _)| !is_whole(id));
        let keys = named.filter_map(|(id, key)| Some((id.clone(), key.clone()?)));
        std::collections::BTreeSet::from_iter(keys).into_iter().collect()
    }
}

impl Block {
    fn count(&self) -> u128 {
        self.dimensions.iter().map(|values| values.len() as u128).fold(1, u128::saturating_mul)
    }

    /// Shows every class once.
    pub(super) fn each(&self, mut show: impl FnMut(&Class)) {
        let all = |count| Mask::of(count, |_| true);
        let start = Class {
            at: [0; DIMENSIONS],
            rules: all(self.rules.len()),
            deployments: all(self.deployments.len()),
        };
        self.walk(0, &start, &mut show);
    }

    fn walk(&self, dimension: usize, class: &Class, show: &mut impl FnMut(&Class)) {
        let Some(values) = self.dimensions.get(dimension) else { return show(class) };
        for (place, value) in values.iter().enumerate() {
            let mut next = Class {
                at: class.at,
                rules: class.rules.and(&value.rules),
                deployments: class.deployments.and(&value.deployments),
            };
            next.at[dimension] = place;
            self.walk(dimension + 1, &next, show);
        }
    }

    /// Returns the class at other places.
    pub(super) fn class(&self, at: [usize; DIMENSIONS]) -> Class {
        let all = |count| Mask::of(count, |_| true);
        let start = Class { at, rules: all(self.rules.len()), deployments: all(self.deployments.len()) };
        self.dimensions.iter().zip(at).fold(start, |class, (values, place)| Class {
            at,
            rules: class.rules.and(&values[place].rules),
            deployments: class.deployments.and(&values[place].deployments),
        })
    }

    pub(super) fn values<'b>(&'b self, class: &'b Class) -> impl Iterator<Item = &'b Value> {
        self.dimensions.iter().zip(class.at).map(|(values, place)| &values[place])
    }
}

impl Choice {
    fn write(&self, witness: &mut Witness) {
        match self {
            Self::Classification(classification) => witness.classification = *classification,
            Self::Residency(group) => witness.residency.extend(group.clone()),
            Self::Needs(needs) => witness.needs = *needs,
            Self::Size(size) => {
                witness.input_tokens_estimate = gw_types::TokenCount::new(size.estimate);
                witness.input_tokens_at_least = gw_types::TokenCount::new(size.at_least);
                witness.output_tokens = size.output();
            }
            Self::TaskClass(class) => witness.task_class.clone_from(class),
            Self::Metadata(metadata) => witness.metadata.clone_from(metadata),
            Self::Share(parts) => witness.share_key = share_key(parts),
        }
    }
}

/// Returns a key that is in the shares it should be in and in no other; `None` for no share at all, and where the search
/// ends before one is found: many small shares together may have no key among the first million.
fn share_key(parts: &[Part]) -> Option<String> {
    const TRIES: u32 = 1_000_000;
    if parts.iter().all(|part| !part.is_in) {
        return None;
    }
    let shares: Vec<(Share, bool)> =
        parts.iter().map(|part| (Share::new(part.route.as_str(), part.percent), part.is_in)).collect();
    (0..TRIES)
        .map(|n| format!("key-{n}"))
        .find(|key| shares.iter().all(|(share, is_in)| share.takes(Some(key)) == *is_in))
}
