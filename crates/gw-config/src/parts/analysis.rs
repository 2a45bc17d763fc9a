//! What the policy does with every class of requests, brought back to its place in the file.

use std::{num::NonZeroU32, sync::Arc};

use gw_routing::{
    RoutingConfig,
    analysis::{Finding, FindingKind, PolicyFacts, TenantFacts, TimingFacts, analyse},
};
use gw_types::{Deployment, DeploymentName, RouteName, TenantId};

use super::routing;
use crate::{
    config::Config,
    diagnostics::{Diagnostic, Severity},
    file::{Callers, KeyEntry, RouteEntry, TenantEntry},
    reader::Faults,
    report,
    source::{Located, Span},
};

/// Returns everything that the analysis is told, from a configuration whose parts are sound.
pub(crate) fn facts(
    config: &Config,
    routing: RoutingConfig,
    deployments: Vec<Arc<Deployment>>,
) -> PolicyFacts {
    let tenant = |(id, entry): (&TenantId, &Located<TenantEntry>)| TenantFacts {
        id: id.clone(),
        default_classification: entry.value.default_classification,
        residency: entry.value.residency.clone(),
        budgeted: is_budgeted(config, &entry.value),
        budgeted_keys: entry
            .value
            .keys
            .iter()
            .filter(|key| has_budget(key))
            .map(|key| key.name.clone())
            .collect(),
        has_keys: config.callers != Callers::WithKey || !entry.value.keys.is_empty(),
    };
    let attempts = |route: &Located<RouteEntry>| (route.value.name.clone(), route.value.max_attempts);
    let attempts: std::collections::BTreeMap<RouteName, NonZeroU32> =
        config.file.routes.iter().map(attempts).collect();
    let unstated = config.file.deployments.iter().filter(|(_, entry)| !entry.value.latency_stated);
    PolicyFacts {
        routing,
        deployments,
        tenants: config.file.tenants.iter().map(tenant).collect(),
        budgeted_models: config
            .file
            .models
            .iter()
            .filter(|(_, entry)| !entry.value.budgets.is_empty())
            .map(|(model, _)| model.clone())
            .collect(),
        timing: TimingFacts {
            deadline: config.file.server.default_deadline,
            attempts_of_routes: attempts,
            latency_undeclared: unstated.map(|(name, _)| name.clone()).collect(),
            ..TimingFacts::default()
        },
    }
}

/// Returns whether what a tenant's requests cost is always held against some budget: its own, one above it, or one of
/// each of its keys. That of a model or of single keys holds for some requests only, and that of a deployment for what
/// goes there.
fn is_budgeted(config: &Config, tenant: &TenantEntry) -> bool {
    let mut above = tenant.organisation.as_ref();
    let mut budgeted = !tenant.limits.budgets.is_empty() || !config.file.limits.limits.budgets.is_empty();
    budgeted |= !tenant.keys.is_empty() && tenant.keys.iter().all(has_budget);
    // An organisation is above itself at most where the limits were refused; no chain is longer than the list.
    for _ in 0..config.file.organisations.len() {
        let Some(entry) = above.and_then(|id| config.file.organisations.get(&id.value)) else { break };
        budgeted |= !entry.value.limits.budgets.is_empty();
        above = entry.value.parent.as_ref();
    }
    budgeted
}

fn has_budget(key: &KeyEntry) -> bool {
    !key.limits.budgets.is_empty()
}

/// Returns what the analysis finds, errors first. Faults of names are added to `faults`, and then nothing is found.
pub(super) fn findings(config: &Config, facts: &PolicyFacts, faults: &Faults) -> Vec<Diagnostic> {
    match analyse(facts) {
        Ok(report) => {
            let errors = report.errors.iter().map(|finding| diagnostic(config, finding, Severity::Error));
            let warnings =
                report.warnings.iter().map(|finding| diagnostic(config, finding, Severity::Warning));
            errors.chain(warnings).collect()
        }
        Err(errors) => {
            errors.iter().for_each(|error| routing::report(error, config, faults));
            Vec::new()
        }
    }
}

fn diagnostic(config: &Config, finding: &Finding, severity: Severity) -> Diagnostic {
    let (span, path) = place(config, finding);
    let message = match &finding.witness {
        Some(witness) => format!("{finding}; a request that shows it: {witness}"),
        None => finding.to_string(),
    };
    Diagnostic::at(&config.source, span, &path, message, finding.fix())
        .found_by(severity, finding.kind.code())
        .shown_by(finding.witness.as_ref().map(report::witness_json))
}

/// Returns the place of what has to be changed.
fn place(config: &Config, finding: &Finding) -> (Span, String) {
    let Finding { kind, route, deployment, tenant, witness: _ } = finding;
    let (route, deployment, tenant) = (route.as_ref(), deployment.as_ref(), tenant.as_ref());
    match kind {
        FindingKind::DeadDeployment(_) | FindingKind::PartlyUsable(_) => in_route(config, route, deployment),
        FindingKind::PriceMissing
        | FindingKind::LatencyMissing
        | FindingKind::MinAttemptAboveTimeout
        | FindingKind::UnreachableDeployment(_) => of_deployment(config, deployment),
        FindingKind::TenantReachesNothing => of_tenant(config, tenant),
        FindingKind::RefusesNothing(place) => {
            let span = config.file.refused.get(*place).map_or(Span::default(), |refused| refused.span);
            (span, format!("refused[{place}]"))
        }
        FindingKind::Unserved(_)
        | FindingKind::UnservedDemand { .. }
        | FindingKind::NoRoute(_)
        | FindingKind::Shadowed(_)
        | FindingKind::Unsatisfiable
        | FindingKind::Overlap(_)
        | FindingKind::DeadlineTooShort { .. }
        | FindingKind::TooManyClasses(_) => in_route(config, route, None),
    }
}

/// Returns the place of a route, or of a deployment in its chain.
fn in_route(
    config: &Config,
    route: Option<&RouteName>,
    deployment: Option<&DeploymentName>,
) -> (Span, String) {
    let entry = route.and_then(|name| config.file.routes.iter().find(|entry| entry.value.name == *name));
    let Some(entry) = entry else { return (Span::default(), "routes".to_owned()) };
    let path = format!("routes[{}]", entry.value.index);
    let mut chain = entry.value.deployments.iter().enumerate();
    match chain.find(|(_, one)| Some(&one.value) == deployment) {
        Some((at, one)) => (one.span, format!("{path}.deployments[{at}]")),
        None => (entry.span, path),
    }
}

fn of_deployment(config: &Config, name: Option<&DeploymentName>) -> (Span, String) {
    let found = name.and_then(|name| Some((config.file.deployments.get(name)?.span, name)));
    found.map_or_else(
        || (Span::default(), "deployments".to_owned()),
        |(span, name)| (span, format!("deployments.{name}")),
    )
}

fn of_tenant(config: &Config, id: Option<&TenantId>) -> (Span, String) {
    let found = id.and_then(|id| Some((config.file.tenants.get(id)?.span, id)));
    found
        .map_or_else(|| (Span::default(), "tenants".to_owned()), |(span, id)| (span, format!("tenants.{id}")))
}
