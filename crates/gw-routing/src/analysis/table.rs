//! The served table: who answers which requests, and why the others do not.

use std::fmt;

use gw_types::DeploymentName;

use super::{
    Outcome, PolicyFacts, RequestClass,
    block::{Atlas, Block, Class},
    outcome::{Offer, Offers, Verdict, name, offers, outcome, verdict},
};
use crate::{ExclusionReason, RoutingError, admissible::Demand};

/// Lists every class of requests with what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The classes, at most as many as were asked for.
    pub rows: Vec<Row>,
    /// How many classes there are; above [`super::CLASSES_MAX`] no row is given.
    pub classes: u128,
}

/// One class of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The requests.
    pub class: RequestClass,
    /// What becomes of them.
    pub outcome: Outcome,
    /// The deployments that do not answer, of all that some route of the model and the tenant names.
    pub out: Vec<(DeploymentName, OutReason)>,
}

/// Says why a deployment does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutReason {
    /// Something stands against it, whatever routes say.
    Excluded(ExclusionReason),
    /// The route that wins does not name it.
    NotInRoute,
    /// The route that wins allows no fallback.
    NoFallback,
    /// No route takes the request.
    NoRoute,
    /// Such requests are declared refused.
    Refused,
}

impl fmt::Display for OutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Excluded(reason) => reason.as_str(),
            Self::NotInRoute => "not_in_route",
            Self::NoFallback => "no_fallback",
            Self::NoRoute => "no_route",
            Self::Refused => "declared_refused",
        })
    }
}

/// Returns the table of a policy, its first `rows_max` rows; models in the order of their names, tenants as given.
///
/// # Errors
/// Every fault of the policy's names.
pub fn served_table(facts: &PolicyFacts, rows_max: usize) -> Result<Table, Vec<RoutingError>> {
    let atlas = Atlas::new(&[facts])?;
    let mut table = Table { rows: Vec::new(), classes: atlas.count };
    if !atlas.is_within_bounds() {
        return Ok(table);
    }
    for block in &atlas.blocks {
        let offers = offers(&atlas.sides[0], 0, block);
        block.each(|class| {
            if table.rows.len() < rows_max {
                table.rows.push(row(&atlas, block, &offers, class));
            }
        });
    }
    Ok(table)
}

fn row(atlas: &Atlas<'_>, block: &Block, offers: &Offers, class: &Class) -> Row {
    let request = atlas.request_class(block, class);
    let winner = match verdict(offers, class) {
        Verdict::Served(place) => Some(&offers[place]),
        Verdict::Unserved { .. } | Verdict::NoRoute | Verdict::Refused(_) => None,
    };
    let chain: Vec<usize> = winner.map_or_else(Vec::new, |offer| offer.chain(class).collect());
    let is_refused = matches!(verdict(offers, class), Verdict::Refused(_));
    let others = (0..block.deployments.len()).filter(|one| !chain.contains(one));
    let out = others.map(|one| {
        let reason = match fact(atlas, block, &request, one) {
            Some(fact) => OutReason::Excluded(fact),
            None if is_refused => OutReason::Refused,
            None => otherwise(winner, one),
        };
        (name(atlas, block, one).clone(), reason)
    });
    Row { out: out.collect(), outcome: outcome(atlas, 0, block, offers, class), class: request }
}

/// Returns the fact against one of a block's deployments.
fn fact(atlas: &Atlas<'_>, block: &Block, request: &RequestClass, one: usize) -> Option<ExclusionReason> {
    let (side, place) = block.deployments[one];
    let router = &atlas.sides[side].router;
    request.example.ask(|query| router.facts[place].against(&Demand::new(query, &router.residency)))
}

fn otherwise(winner: Option<&Offer>, one: usize) -> OutReason {
    match winner {
        None => OutReason::NoRoute,
        Some(offer) if !offer.chain.contains(&one) => OutReason::NotInRoute,
        Some(offer) if !offer.allowed.contains(one) => OutReason::Excluded(ExclusionReason::OtherModel),
        Some(_) => OutReason::NoFallback,
    }
}
