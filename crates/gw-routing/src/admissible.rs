//! Gate two: what the facts allow.
//!
//! Nothing here looks at a route. The gate answers with a reason against a deployment or with nothing, so it can remove
//! a candidate and never add one.

use gw_types::{CapabilitySet, Classification, Deployment, Pricing};

use crate::{
    ExclusionReason, RouteQuery,
    residency::{GroupSet, ResidencyGroups},
};

/// What one request demands of any deployment.
#[derive(Debug)]
pub(crate) struct Demand {
    /// `None`: a demanded group does not exist, and no region is in it.
    pub(crate) residency: Option<GroupSet>,
    classification: Classification,
    needs: CapabilitySet,
    /// Input and output together, in tokens; `None`: beyond what can be counted.
    total_tokens: Option<u64>,
    output_tokens: u64,
    budgeted: bool,
    audio: bool,
    images: bool,
}

/// The facts of one deployment that decide, side by side: a decision over a hundred of them stays in a few cache lines.
#[derive(Debug)]
pub(crate) struct Facts {
    groups: GroupSet,
    ceiling: Classification,
    capabilities: CapabilitySet,
    context_window: Option<u64>,
    max_output: Option<u64>,
    /// Whether it has a budget of its own.
    budgeted: bool,
    priced: bool,
    audio_priced: bool,
    images_priced: bool,
}

impl Demand {
    /// Returns what the query demands.
    pub(crate) fn new(query: &RouteQuery<'_>, groups: &ResidencyGroups) -> Self {
        let output_tokens = query.output_tokens.map_or(0, |tokens| tokens.get());
        Self {
            residency: groups.set(query.residency),
            classification: query.classification,
            needs: query.needs,
            total_tokens: query.input_tokens_at_least.get().checked_add(output_tokens),
            output_tokens,
            budgeted: query.budgeted,
            audio: query.audio,
            images: query.images,
        }
    }
}

impl Facts {
    /// Returns the facts of a deployment whose region is in the groups; `budgeted`: it has a budget of its own.
    pub(crate) fn new(deployment: &Deployment, groups: GroupSet, budgeted: bool) -> Self {
        let has_price_for = |audio, images| match &deployment.pricing {
            Pricing::PerToken(price) => price.require(audio, images).is_ok(),
            Pricing::Free => true,
            Pricing::Unpriced => false,
        };
        Self {
            groups,
            ceiling: deployment.classification_ceiling,
            capabilities: deployment.capabilities,
            context_window: deployment.context_window.map(|tokens| tokens.get()),
            max_output: deployment.max_output_tokens.map(|tokens| tokens.get()),
            budgeted,
            priced: deployment.pricing.fits_a_budget(),
            audio_priced: has_price_for(true, false),
            images_priced: has_price_for(false, true),
        }
    }

    /// Returns whether no budget keeps the deployment from any request: whatever it is paid for has its price.
    pub(crate) const fn fits_budgets(&self) -> bool {
        self.priced && self.audio_priced && self.images_priced
    }

    /// Returns the first fact that stands against the demand, in the order of [`ExclusionReason::ALL`].
    pub(crate) fn against(&self, demand: &Demand) -> Option<ExclusionReason> {
        let budgeted = demand.budgeted || self.budgeted;
        let is_missing_price = demand.audio && !self.audio_priced || demand.images && !self.images_priced;
        if !demand.residency.is_some_and(|groups| self.groups.covers(groups)) {
            Some(ExclusionReason::Residency)
        } else if demand.classification > self.ceiling {
            Some(ExclusionReason::ClassificationCeiling)
        } else if !self.capabilities.covers(demand.needs) {
            Some(ExclusionReason::Capability)
        } else if self.context_window.is_some_and(|window| demand.total_tokens.is_none_or(|sum| sum > window))
        {
            Some(ExclusionReason::ContextWindow)
        } else if self.max_output.is_some_and(|longest| demand.output_tokens > longest) {
            Some(ExclusionReason::MaxOutput)
        } else if budgeted && !self.priced {
            Some(ExclusionReason::Unpriced)
        } else if budgeted && is_missing_price {
            Some(ExclusionReason::MissingPrice)
        } else {
            None
        }
    }
}
