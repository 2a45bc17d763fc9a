//! Which classes of requests change between two policies.

use std::collections::BTreeMap;

use gw_types::TenantId;

use super::{
    Outcome, PolicyFacts, Witness,
    block::Atlas,
    outcome::{offers, outcome},
};
use crate::RoutingError;

/// Lists what changes from one policy to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The changes, in the order in which their first class stands in the table of both.
    pub changes: Vec<Change>,
    /// How many classes the two policies together tell apart; above [`super::CLASSES_MAX`] no change is given.
    pub classes: u128,
}

/// Requests whose outcome changes in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What became of them.
    pub old: Outcome,
    /// What becomes of them.
    pub new: Outcome,
    /// How many classes change so.
    pub classes: u64,
    /// The models, as patterns write them.
    pub models: Vec<String>,
    /// The tenants.
    pub tenants: Vec<TenantId>,
    /// One of the requests, with the floor and the budget that the old policy gives its tenant, where it knows it.
    pub witness: Witness,
}

/// Returns which classes of requests go elsewhere under the new policy: to another route, another chain, or nowhere.
///
/// Exact: the classes are those that the two policies together tell apart, each decided under both.
///
/// # Errors
/// Every fault of the names of the policy that has some; of the old one, if both have.
pub fn diff(old: &PolicyFacts, new: &PolicyFacts) -> Result<Diff, Vec<RoutingError>> {
    let atlas = Atlas::new(&[old, new])?;
    let mut diff = Diff { changes: Vec::new(), classes: atlas.count };
    if !atlas.is_within_bounds() {
        return Ok(diff);
    }
    let mut places: BTreeMap<(Outcome, Outcome), usize> = BTreeMap::new();
    for block in &atlas.blocks {
        let [before, after] = [0, 1].map(|side| offers(&atlas.sides[side], side, block));
        let models = || block.pairs.iter().flat_map(|(model, _)| atlas.models[*model].labels.iter().cloned());
        block.each(|class| {
            let old = outcome(&atlas, 0, block, &before, class);
            let new = outcome(&atlas, 1, block, &after, class);
            if old == new {
                return;
            }
            let place = *places.entry((old.clone(), new.clone())).or_insert_with(|| {
                let witness = atlas.witness(block, class);
                let (models, tenants) = (Vec::new(), Vec::new());
                diff.changes.push(Change { old, new, classes: 0, models, tenants, witness });
                diff.changes.len() - 1
            });
            let change = &mut diff.changes[place];
            change.classes += 1;
            change.models.extend(models().filter(|model| !change.models.contains(model)).collect::<Vec<_>>());
            let tenants = atlas.tenant_ids(block);
            change.tenants.extend(
                tenants.into_iter().filter(|tenant| !change.tenants.contains(tenant)).collect::<Vec<_>>(),
            );
        });
    }
    Ok(diff)
}
