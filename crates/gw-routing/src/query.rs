//! What is asked of the router: the facts of one request.

use gw_types::{CapabilitySet, Classification, Residency, RouteName, TaskClass, TenantId, TokenCount};

/// Holds the facts of one request, tenant's defaults and floors already applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteQuery<'a> {
    /// The model asked for, as the caller wrote it.
    pub model: &'a str,
    /// The caller's tenant.
    pub tenant: &'a TenantId,
    /// The routes that the caller's key is for; empty: all.
    pub routes: &'a [RouteName],
    /// The task class, if any.
    pub task_class: Option<&'a TaskClass>,
    /// How sensitive the request's data is.
    pub classification: Classification,
    /// The groups of regions demanded. A deployment's region must be in all of them; empty: anywhere.
    pub residency: &'a [Residency],
    /// What the deployment must be able to do.
    pub needs: CapabilitySet,
    /// A number of input tokens that the request has at least. Too large a figure keeps requests from deployments that
    /// could have served them; 0 keeps none away.
    pub input_tokens_at_least: TokenCount,
    /// The output bound that the caller named; `None`: none named, and no deployment is too small for the answer.
    pub output_tokens: Option<TokenCount>,
    /// Whether the request's cost is held against a budget: what has no price is out.
    pub budgeted: bool,
    /// Whether audio goes in or is asked for.
    pub audio: bool,
    /// Whether images go in.
    pub images: bool,
    /// The estimate of the input tokens, for routes that match by size. Where it is below `input_tokens_at_least`, that
    /// counts.
    pub input_tokens_estimate: TokenCount,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The request's metadata: keys and values. Of a key that stands twice the first value counts.
    pub metadata: &'a [(&'a str, &'a str)],
    /// What the caller wants to be in or out of shares by: a user, a conversation.
    pub share_key: Option<&'a str>,
    /// A hash over the tenant and the beginning of the prompt, for [`crate::Strategy::Sticky`]. A hash: no text of a
    /// prompt comes into this crate.
    pub affinity: Option<u64>,
}

impl<'a> RouteQuery<'a> {
    /// Returns a query that demands nothing beyond the model, the tenant and the classification.
    pub const fn new(model: &'a str, tenant: &'a TenantId, classification: Classification) -> Self {
        Self {
            model,
            tenant,
            routes: &[],
            task_class: None,
            classification,
            residency: &[],
            needs: CapabilitySet::EMPTY,
            input_tokens_at_least: TokenCount::ZERO,
            output_tokens: None,
            budgeted: false,
            audio: false,
            images: false,
            input_tokens_estimate: TokenCount::ZERO,
            stream: false,
            metadata: &[],
            share_key: None,
            affinity: None,
        }
    }

    /// Returns the input tokens that routes match by.
    pub(crate) fn input_tokens(&self) -> u64 {
        self.input_tokens_estimate.get().max(self.input_tokens_at_least.get())
    }
}
