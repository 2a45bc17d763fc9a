//! What is declared refused: asked before any route is.

use crate::{
    RouteQuery, RoutingConfig,
    index::ModelIndex,
    matches::{Matcher, TenantNumbers},
    residency::{GroupSet, ResidencyGroups},
};

/// The name under which declarations are matched; none of them has a share, which is all that a name is for.
const NAME: &str = "refused";

/// The declarations, by model.
#[derive(Debug)]
pub(crate) struct Refusals {
    index: ModelIndex,
    /// In the order of the configuration.
    pub(crate) matchers: Box<[Matcher]>,
}

impl Refusals {
    /// Returns the declarations of a policy without faults, and gives their tenants numbers.
    pub(crate) fn new(config: &RoutingConfig, groups: &ResidencyGroups, tenants: &mut TenantNumbers) -> Self {
        let matcher = |one| Matcher::new(NAME, one, config, groups, tenants);
        Self {
            index: ModelIndex::new(config.refused.iter().map(|one| one.models.as_slice())),
            matchers: config.refused.iter().map(matcher).collect(),
        }
    }

    /// Returns the first declaration that takes the request. Costs one step for each that knows the model.
    pub(crate) fn first(
        &self,
        query: &RouteQuery<'_>,
        tenants: &TenantNumbers,
        demanded: Option<GroupSet>,
    ) -> Option<usize> {
        if self.matchers.is_empty() {
            return None;
        }
        let tenant = tenants.get(query.tenant);
        let takes = |place: &usize| {
            let matcher = &self.matchers[*place];
            matcher.is_for(tenant) && matcher.mismatch(query, demanded).is_none()
        };
        self.index.matching(query.model).find(takes)
    }
}
