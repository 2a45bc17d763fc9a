//! Rules, gates and candidate chains: where a request may go, decided without doing anything.
//!
//! A route says what its author wants: which models, tenants, task classes and classifications go to which deployments,
//! in which order (gate one). The facts say what is possible: regions, ceilings, capabilities, sizes, prices (gate two).
//! Gate two only ever removes, so an author cannot grant what a deployment cannot do. Routes are tried by
//! (priority, name), and the first one whose chain is not empty wins: a specific rule that cannot be satisfied does not
//! hide a general one that can, unless it says so.
//!
//! The crate calls nobody and waits for nothing. Time, chance, health, load and cost come in through a [`Live`], and
//! what a strategy has to remember is the caller's ([`StrategyState`]); without them a decision is a pure function.
//! Every name is checked when a [`Router`] is made, and every fault is reported at once.
//!
//! ```
//! use std::sync::Arc;
//!
//! use gw_routing::{ExclusionReason, RouteConfig, RouteQuery, Router, RoutingConfig};
//! use gw_types::{
//!     CapabilitySet, Classification, Deployment, DeploymentName, DeploymentTiming, ModelName, Pricing,
//!     ProviderName, Region, RouteName, TenantId, TokenCount,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let deployment = |name, classification_ceiling| -> Result<_, gw_types::InvalidName> {
//!     Ok(Arc::new(Deployment {
//!         name: DeploymentName::new(name)?,
//!         provider: ProviderName::new("azure-uk")?,
//!         model: ModelName::new("gpt-4.1")?,
//!         model_version: None,
//!         region: Region::new("uk-south")?,
//!         classification_ceiling,
//!         capabilities: CapabilitySet::EMPTY,
//!         context_window: Some(TokenCount::new(128_000)),
//!         max_output_tokens: None,
//!         pricing: Pricing::Free,
//!         timing: DeploymentTiming::default(),
//!         max_attempts: std::num::NonZeroU32::MIN,
//!         max_concurrency: None,
//!     }))
//! };
//! let deployments =
//!     [deployment("shared", Classification::Internal)?, deployment("ptu", Classification::Restricted)?];
//! let route = RouteConfig::new(
//!     RouteName::new("any")?,
//!     vec![DeploymentName::new("shared")?, DeploymentName::new("ptu")?],
//! );
//! let config = RoutingConfig { routes: vec![route], ..RoutingConfig::default() };
//! let router = Router::new(config, &deployments).map_err(|faults| faults[0].clone())?;
//!
//! let tenant = TenantId::new("wholesale")?;
//! let selection = router.candidates(&RouteQuery::new("gpt-4.1", &tenant, Classification::Restricted));
//! assert_eq!(selection.chain.as_slice(), [1]);
//! assert_eq!(selection.exclusions[0].reason, ExclusionReason::ClassificationCeiling);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod admissible;
/// The policy compiler: what a policy does with every class of requests, proved before any traffic.
pub mod analysis;
mod config;
mod decide;
mod errors;
mod explain;
mod group;
mod hash;
mod index;
mod live;
mod matches;
mod pattern;
mod query;
mod refusals;
mod residency;
mod router;
mod screen;
mod selection;
mod strategy;
mod validate;

pub use self::{
    config::{OnUnavailable, RouteConfig, RouteMatch, RoutingConfig, Strategy},
    errors::RoutingError,
    explain::{DeploymentStep, DeploymentVerdict, Explanation, RouteOutcome, RouteStep},
    group::TenantGroup,
    live::{AllAvailable, Availability, Live, Standing},
    pattern::{InvalidPattern, ModelPattern},
    query::RouteQuery,
    router::Router,
    selection::{Exclusion, ExclusionReason, Mismatch, Selection},
    strategy::{BoundStrategies, StrategyState},
};
