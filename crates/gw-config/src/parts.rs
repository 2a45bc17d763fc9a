//! What a configuration makes, short of everything that opens a socket or a store.
//!
//! The parts check themselves while they are made; every fault that they find is brought back to its place in the file.

mod analysis;
mod cluster;
mod keys;
mod limits;
mod notices;
mod pass_through;
mod providers;
mod routing;
mod waiting;

use std::sync::Arc;

use gw_exec::{Policy, PolicyConfig, Target};
use gw_limits::Limits;
use gw_routing::analysis::PolicyFacts;
use gw_types::{Clock, Deployment, DeploymentName, ManualClock};

pub(crate) use self::{
    cluster::shared,
    limits::{config as limits_config, pool_capacity, scopes as scopes_config},
    providers::{Built, transport},
    routing::report,
};
use crate::{
    config::Config,
    diagnostics::{Diagnostic, Diagnostics, Severity},
    file::DeploymentEntry,
    keys::{IssuerTable, KeyTable},
    reader::{Fault, Faults},
    source::{Located, Span},
};

/// The parts of a gateway.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) keys: KeyTable,
    pub(crate) issuers: IssuerTable,
    pub(crate) built: Built,
    /// The policy as the analysis sees it.
    pub(crate) facts: PolicyFacts,
    /// What the analysis of the routes found.
    pub(crate) findings: Vec<Diagnostic>,
}

impl Parts {
    /// Makes the parts. Providers that did not change since `before` are taken over.
    ///
    /// # Errors
    /// Every fault that any of them finds. What the routes make of each class of requests is looked at only where each
    /// of them is sound: a condition that could not be read would hold for everything.
    pub(crate) fn of(
        config: &Config,
        before: Option<(&Config, &Built)>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, Diagnostics> {
        let faults = Faults::default();
        let built = providers::build(config, before, clock, &faults);
        let targets = targets(config, &built);
        let routing = routing::config(config, &faults);
        let deployments = targets.iter().map(|target| Arc::clone(&target.deployment)).collect();
        let facts = analysis::facts(config, routing.clone(), deployments);
        let policy_config = PolicyConfig {
            digest: config.digest(),
            routing,
            targets,
            deployments: waiting::deployments(config),
            routes: routing::policies(config, &faults),
            tenants: waiting::tenants(config),
            default_deadline: config.file.server.default_deadline,
            max_deadline: config.file.server.max_deadline,
        };
        let policy = Policy::new(policy_config)
            .map(|policy| policy.with_record_tags(config.file.ledger.tags.clone()))
            .map_err(|errors| errors.into_iter().for_each(|error| report(&error, config, &faults)));
        let mut findings =
            if faults.is_empty() { analysis::findings(config, &facts, &faults) } else { Vec::new() };
        findings.extend(notices::notices(config));
        findings.extend(config.stored.notes.iter().map(notices::of_key));
        limits::check_models(config, &faults);
        cluster::check(config, &faults);
        let limits = Limits::with_scopes(limits::config(config), &limits::scopes(config), clock.now())
            .map_err(|errors| errors.into_iter().for_each(|error| limits::report(&error, config, &faults)));
        let keys = keys::table(config, &faults);
        let issuers = keys::issuers(config, &faults);
        match (policy, limits, faults.is_empty()) {
            (Ok(policy), Ok(limits), true) => {
                Ok(Self { policy, limits, keys, issuers, built, facts, findings })
            }
            (Ok(_) | Err(()), Ok(_) | Err(()), _) => Err(config.diagnose(faults.into_list())),
        }
    }
}

impl Parts {
    /// Returns what was found that is no error.
    ///
    /// # Errors
    /// Every error that was found: what the analysis of the routes proves wrong.
    pub(crate) fn warnings(&self) -> Result<Diagnostics, Diagnostics> {
        let is_error = |finding: &&Diagnostic| finding.severity() == Severity::Error;
        let errors: Vec<Diagnostic> = self.findings.iter().filter(is_error).cloned().collect();
        if errors.is_empty() {
            Ok(Diagnostics::new(self.findings.clone()))
        } else {
            Err(Diagnostics::new(errors))
        }
    }
}

/// Brings faults of limits back to their places.
pub(crate) fn limits_refused(errors: &[gw_limits::InvalidScopes], config: &Config) -> Diagnostics {
    let faults = Faults::default();
    errors.iter().for_each(|error| limits::report(error, config, &faults));
    config.diagnose(faults.into_list())
}

/// Returns what single parts find in a file that has faults, so that one run shows them all.
///
/// Only what the rest of the file has no say in is looked at, and nothing that already has a fault: a fault that is
/// merely the consequence of another one helps nobody.
pub(crate) fn further_faults(config: &Config, known: &[Fault]) -> Vec<Fault> {
    let faults = Faults::default();
    // Nothing waits and nothing is timed, so any clock does.
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    providers::build(config, None, &clock, &faults);
    routing::config(config, &faults);
    keys::table(config, &faults);
    let mut further = faults.into_list();
    further.retain(|fault| !known.iter().any(|other| element(&other.path) == element(&fault.path)));
    further
}

/// Returns the table that a path is in: `providers.up` of `providers.up.base_url`, `routes[0]` of `routes[0].match`.
fn element(path: &str) -> &str {
    let end = if path.starts_with("routes[") || path.starts_with("refused[") {
        path.find('.')
    } else {
        path.match_indices('.').nth(1).map(|(at, _)| at)
    };
    path.get(..end.unwrap_or(path.len())).unwrap_or(path)
}

fn targets(config: &Config, built: &Built) -> Vec<Target> {
    let target =
        |(name, entry): (&DeploymentName, &Located<DeploymentEntry>)| built.target(facts(name, &entry.value));
    config.file.deployments.iter().map(target).collect()
}

/// Returns what is true of a deployment.
fn facts(name: &DeploymentName, entry: &DeploymentEntry) -> Deployment {
    Deployment {
        name: name.clone(),
        provider: entry.provider.value.clone(),
        model: entry.model.clone(),
        model_version: entry.model_version.clone(),
        region: entry.region.value.clone(),
        classification_ceiling: entry.classification_ceiling,
        capabilities: entry.capabilities,
        context_window: entry.context_window,
        max_output_tokens: entry.max_output_tokens,
        pricing: entry.price.clone(),
        timing: entry.timing,
        max_attempts: entry.max_attempts,
        max_concurrency: entry.max_concurrency,
    }
}

/// Reports a fault that a part describes as `what is wrong; what to write`.
fn report_said(faults: &Faults, span: Span, path: &str, said: &str) {
    let (message, expected) = said.split_once("; ").unwrap_or((said, ""));
    faults.add(span, path, message.to_owned(), expected);
}

/// Makes a fault for the configuration as a whole.
pub(crate) fn fault(span: Span, path: &str, message: String, expected: &str) -> Fault {
    Fault { span, path: path.to_owned(), message, expected: expected.to_owned(), absent: false }
}

#[cfg(test)]
pub(crate) mod tests;
