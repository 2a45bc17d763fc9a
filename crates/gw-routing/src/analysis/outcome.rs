//! What becomes of a class of requests.

use std::{fmt, ops::Deref};

use gw_types::{DeploymentName, RouteName};

use super::{
    block::{Atlas, Block, CLASSIFICATION, Choice, Class},
    mask::Mask,
    side::{RulePlace, Side},
};

/// Says what becomes of the requests of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Some deployment may answer.
    Served {
        /// The route that wins.
        route: RouteName,
        /// The deployments that may answer: as written, and under a strategy that chooses, all that it chooses among.
        chain: Vec<DeploymentName>,
    },
    /// A route takes the request, and none that takes it has a deployment that may answer.
    Unserved,
    /// Routes know the model, and none takes the request.
    NoRoute,
    /// No route knows the model for this tenant.
    UnknownModel,
    /// The policy does not know the tenant.
    NoTenant,
    /// A declaration says that such requests are refused. Holds its place.
    Refused(usize),
    /// The classification is below the tenant's default, so the request is refused before it comes to a route.
    BelowDefault,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served { route, chain } => {
                write!(f, "{route}:")?;
                chain.iter().try_for_each(|deployment| write!(f, " {deployment}"))
            }
            Self::Unserved => f.write_str("refused: no deployment may answer"),
            Self::NoRoute => f.write_str("refused: no route takes it"),
            Self::UnknownModel => f.write_str("refused: unknown model"),
            Self::NoTenant => f.write_str("refused: unknown tenant"),
            Self::Refused(place) => write!(f, "refused: declared so ({})", place + 1),
            Self::BelowDefault => f.write_str("refused: below the tenant's default classification"),
        }
    }
}

/// Everything that decides over a block's requests: the routes of a side that they may meet, in their order, and what
/// is declared refused.
#[derive(Debug)]
pub(super) struct Offers {
    routes: Vec<Offer>,
    /// Places among the block's rules, with those of the declarations.
    refusals: Vec<(usize, usize)>,
}

impl Deref for Offers {
    type Target = [Offer];

    fn deref(&self) -> &[Offer] {
        &self.routes
    }
}

impl Offers {
    /// Returns the declarations that take the class.
    pub(super) fn refusals<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = usize> {
        self.refusals.iter().filter(|(rule, _)| class.rules.contains(*rule)).map(|(_, place)| *place)
    }
}

/// A route as a block sees it.
#[derive(Debug)]
pub(super) struct Offer {
    /// Its place among the block's rules.
    pub(super) rule: usize,
    /// Its place among the routes of its side.
    pub(super) route: usize,
    /// Its deployments as written, as places among the block's.
    pub(super) chain: Vec<usize>,
    /// Those of them that the route itself never forbids.
    pub(super) allowed: Mask,
    /// Only the first that the facts allow may answer.
    is_pinned: bool,
    fails: bool,
}

/// The verdict over one class on one side, by places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The offer at the place wins.
    Served(usize),
    /// The offer at the place matches first, and nobody serves; `stopped`: one of the offers let no other be asked.
    Unserved { first: usize, stopped: Option<usize> },
    /// No offer matches.
    NoRoute,
    /// A declaration refuses it.
    Refused(usize),
}

/// Returns what decides over a block's requests on a side.
pub(super) fn offers(side: &Side<'_>, at: usize, block: &Block) -> Offers {
    let of_side = block.rules.iter().enumerate().filter(|(_, rule)| rule.side == at);
    let routes = of_side.clone().filter_map(|(rule, one)| match one.place {
        RulePlace::Route(route) => Some((rule, route)),
        RulePlace::Refused(_) => None,
    });
    let refusals = of_side.filter_map(|(rule, one)| match one.place {
        RulePlace::Refused(place) => Some((rule, place)),
        RulePlace::Route(_) => None,
    });
    let refusals = refusals.collect();
    let routes = routes
        .map(|(rule, route)| {
            let known = side.rule(route);
            let place =
                |deployment: &usize| block.deployments.binary_search(&(at, *deployment)).unwrap_or_default();
            let chain: Vec<usize> = known.deployments.iter().map(place).collect();
            let is_allowed = |local: usize| {
                chain.iter().position(|one| *one == local).is_some_and(|at| known.forbids(at).is_none())
            };
            Offer {
                rule,
                route,
                allowed: Mask::of(block.deployments.len(), is_allowed),
                chain,
                is_pinned: known.is_pinned(),
                fails: known.fails,
            }
        })
        .collect();
    Offers { routes, refusals }
}

impl Offer {
    pub(super) fn takes(&self, class: &Class) -> bool {
        class.rules.contains(self.rule)
    }

    /// Returns whether the route has a chain for the class.
    pub(super) fn has_chain(&self, class: &Class) -> bool {
        self.allowed.meets(&class.deployments)
    }

    /// Returns the chain, as places among the block's deployments.
    pub(super) fn chain<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = usize> {
        let open = self.chain.iter().copied();
        let open = open.filter(|one| self.allowed.contains(*one) && class.deployments.contains(*one));
        open.take(if self.is_pinned { 1 } else { usize::MAX })
    }
}

/// Decides over a class as [`crate::Router::candidates`] does.
pub(super) fn verdict(offers: &Offers, class: &Class) -> Verdict {
    // A declaration refuses what some route knows; of a model that none knows, that is what is said.
    if let Some(place) = offers.refusals(class).next().filter(|_| !offers.is_empty()) {
        return Verdict::Refused(place);
    }
    let mut first = None;
    for (place, offer) in offers.iter().enumerate().filter(|(_, offer)| offer.takes(class)) {
        first = first.or(Some(place));
        if offer.has_chain(class) {
            return Verdict::Served(place);
        }
        if offer.fails {
            return Verdict::Unserved { first: first.unwrap_or(place), stopped: Some(place) };
        }
    }
    first.map_or(Verdict::NoRoute, |first| Verdict::Unserved { first, stopped: None })
}

/// Returns the outcome on one side, in names.
pub(super) fn outcome(
    atlas: &Atlas<'_>,
    side: usize,
    block: &Block,
    offers: &Offers,
    class: &Class,
) -> Outcome {
    let Some(tenant) = atlas.tenant(block, side) else { return Outcome::NoTenant };
    let value = &block.dimensions[CLASSIFICATION][class.at[CLASSIFICATION]];
    if let Some(Choice::Classification(classification)) = value.choices.first()
        && *classification < tenant.default_classification
    {
        return Outcome::BelowDefault;
    }
    if offers.is_empty() {
        return Outcome::UnknownModel;
    }
    match verdict(offers, class) {
        Verdict::Served(place) => Outcome::Served {
            route: atlas.sides[side].route_name(offers[place].route).clone(),
            chain: offers[place].chain(class).map(|one| name(atlas, block, one).clone()).collect(),
        },
        Verdict::Unserved { .. } => Outcome::Unserved,
        Verdict::NoRoute => Outcome::NoRoute,
        Verdict::Refused(place) => Outcome::Refused(place),
    }
}

/// Returns the name of one of a block's deployments.
pub(super) fn name<'a>(atlas: &'a Atlas<'_>, block: &Block, deployment: usize) -> &'a DeploymentName {
    let (side, place) = block.deployments[deployment];
    &atlas.sides[side].facts.deployments[place].name
}
