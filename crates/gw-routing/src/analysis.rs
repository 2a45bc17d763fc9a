//! Proves what a policy does with every request that could come.
//!
//! Requests are infinitely many, but a policy tells only so many apart. The analysis splits each dimension (model, tenant,
//! classification, residency, needs, sizes, task class, metadata, share) only where a route, a deployment, a tenant or a
//! declared refusal distinguishes it, and runs the two gates on every class that is left. The conditions are conjunctions
//! of one condition a dimension, so a class's verdict is the intersection of its dimensions' verdicts, and nothing is
//! sampled or guessed. At most [`crate::analysis::CLASSES_MAX`] classes are looked at; a policy that tells more apart is refused.
//!
//! What counts as a request:
//! - The tenants are those given, each at or above its default classification and within its residency floor; a request
//!   demands at most one group of regions more.
//! - It is a chat or an embedding. It needs streaming exactly if it streams, vision if it has images, audio if it has
//!   audio. The input that it has at least is no more than the estimate.
//! - A capability in which the deployments of a model do not differ (nor, under a budget, in its price) and which no
//!   route names divides nothing: if they have it, it changes no answer; if they lack it, whoever needs it is refused, as
//!   is a request too large for each of them. Such requests are what the deployments cannot do, and no gap of the policy.
//!
//! ```
//! use gw_routing::{RouteConfig, RoutingConfig, analysis::{PolicyFacts, analyse}};
//!
//! let facts = PolicyFacts { routing: RoutingConfig::default(), ..PolicyFacts::default() };
//! let report = analyse(&facts).map_err(|faults| faults[0].clone())?;
//! assert!(report.errors.is_empty());
//! # Ok::<(), gw_routing::RoutingError>(())
//! ```

mod block;
mod diff;
mod dimensions;
mod facts;
mod finding;
mod mask;
mod outcome;
mod partition;
mod request;
mod side;
mod sizes;
mod table;
mod timing;
mod verdicts;
mod words;

pub use self::{
    diff::{Change, Diff, diff},
    facts::{PolicyFacts, TenantFacts, TimingFacts},
    finding::{DemandKind, Finding, FindingKind, Report, Severity},
    outcome::Outcome,
    request::{RequestClass, Witness},
    table::{OutReason, Row, Table, served_table},
    verdicts::analyse,
};

/// The most classes of requests that are looked at.
pub const CLASSES_MAX: u128 = 1_000_000;

#[cfg(test)]
mod tests;
