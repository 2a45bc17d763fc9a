//! Limits of every scope.

use gw_limits::{
    InvalidLimits, InvalidScopes, LimitsConfig, OrganisationConfig, QuotaConfig, Scope, ScopeLimitsConfig,
    ScopesConfig, TenantLimitsConfig, TenantScopeConfig,
};
use gw_types::{DeploymentName, KeyName, ModelName, TenantId};

use crate::{
    config::Config,
    file::{KeyEntry, OrganisationEntry, RouteEntry, ScopeEntry, TenantEntry},
    nearest,
    reader::Faults,
    source::{Located, Span},
};

/// Returns the calls at once of all tenants together.
pub(crate) fn pool_capacity(config: &Config) -> u32 {
    let written = config.file.limits.pool_capacity;
    written.map_or(config.file.server.max_concurrency, |capacity| capacity.value)
}

/// Returns the limits of tenants and deployments.
pub(crate) fn config(config: &Config) -> LimitsConfig {
    let file = &config.file;
    LimitsConfig {
        tenants: file.tenants.iter().map(|(id, tenant)| (id.clone(), tenant_limits(&tenant.value))).collect(),
        deployments: file
            .deployments
            .iter()
            .map(|(name, deployment)| (name.clone(), deployment.value.max_concurrency))
            .collect(),
        pool_capacity: pool_capacity(config),
    }
}

/// Budgets stand with the scopes, where each has a time zone; so a budget keeps its place whatever its window becomes.
fn tenant_limits(tenant: &TenantEntry) -> TenantLimitsConfig {
    TenantLimitsConfig {
        requests_per_minute: tenant.limits.requests_per_minute,
        tokens_per_minute: tenant.limits.tokens_per_minute,
        max_concurrency: tenant.limits.max_concurrency,
        reserved_concurrency: tenant.reserved_concurrency,
        budget: None,
    }
}

/// Returns the limits of all other scopes.
pub(crate) fn scopes(config: &Config) -> ScopesConfig {
    let file = &config.file;
    let tenant = |(id, tenant): (&TenantId, &Located<TenantEntry>)| {
        let TenantEntry { organisation, limits, .. } = &tenant.value;
        let parent = organisation.as_ref().map(|organisation| organisation.value.clone());
        (id.clone(), TenantScopeConfig { parent, budgets: budgets(limits) })
    };
    let organisation = |(id, entry): (&TenantId, &Located<OrganisationEntry>)| {
        let OrganisationEntry { parent, limits } = &entry.value;
        let parent = parent.as_ref().map(|parent| parent.value.clone());
        (id.clone(), OrganisationConfig { parent, limits: scope(limits) })
    };
    let deployments = file.deployments.iter().filter(|(_, entry)| entry.value.limits.limits_anything());
    ScopesConfig {
        keys: keys(config)
            .map(|(tenant, _, key)| (tenant.clone(), key.name.clone(), scope(&key.limits)))
            .collect(),
        tenants: file.tenants.iter().map(tenant).collect(),
        organisations: file.organisations.iter().map(organisation).collect(),
        models: file.models.iter().map(|(name, entry)| (name.clone(), scope(&entry.value))).collect(),
        deployments: deployments.map(|(name, entry)| (name.clone(), scope(&entry.value.limits))).collect(),
        global: scope(&file.limits.limits),
    }
}

/// Returns the keys that have limits of their own, with their tenant and their place there.
fn keys(config: &Config) -> impl Iterator<Item = (&TenantId, usize, &KeyEntry)> {
    config.file.tenants.iter().flat_map(|(id, tenant)| {
        let keys = tenant.value.keys.iter().enumerate();
        keys.filter(|(_, key)| key.limits.limits_anything()).map(move |(at, key)| (id, at, key))
    })
}

fn scope(entry: &ScopeEntry) -> ScopeLimitsConfig {
    ScopeLimitsConfig {
        requests_per_minute: entry.requests_per_minute,
        tokens_per_minute: entry.tokens_per_minute,
        max_concurrency: entry.max_concurrency,
        budgets: budgets(entry),
    }
}

fn budgets(entry: &ScopeEntry) -> Vec<QuotaConfig> {
    let quota = |budget: &Located<crate::file::BudgetEntry>| QuotaConfig {
        limit: budget.value.limit,
        window: budget.value.window.clone(),
        estimate: budget.value.estimate,
    };
    entry.budgets.iter().map(quota).collect()
}

/// Refuses limits of a model that no route is for: they would limit nothing, and nobody would notice.
pub(super) fn check_models(config: &Config, faults: &Faults) {
    let routes = &config.file.routes;
    for (name, entry) in &config.file.models {
        if routes.iter().any(|route| is_for(&route.value, name)) {
            continue;
        }
        let known: Vec<&str> = routes
            .iter()
            .flat_map(|route| route.value.matches.models.iter().map(|model| model.value.as_str()))
            .collect();
        let message = format!("no route is for model `{name}`, so its limits hold nothing back");
        let expected = nearest::remedy(name.as_str(), known);
        faults.add(entry.span, &format!("models.{name}"), message, expected);
    }
}

/// Returns whether a route may be for the model; a pattern that cannot be read is reported elsewhere and may.
fn is_for(route: &RouteEntry, model: &ModelName) -> bool {
    let models = &route.matches.models;
    let takes = |pattern: &Located<String>| {
        gw_routing::ModelPattern::new(&pattern.value).map_or(true, |pattern| pattern.matches(model.as_str()))
    };
    models.is_empty() || models.iter().any(takes)
}

/// Brings a fault back to the setting that caused it.
pub(super) fn report(error: &InvalidScopes, config: &Config, faults: &Faults) {
    match error {
        InvalidScopes::Limits(error) => report_limits(error, config, faults),
        InvalidScopes::Cycle { scope: Scope::Organisation(id) } => {
            let (span, path) = parent(config, id);
            let message = format!("organisation `{id}` is its own parent, directly or through others");
            faults.add(span, &path, message, "name another parent, or remove `parent` from one of them");
        }
        InvalidScopes::TooDeep { scope: Scope::Tenant(id) } => {
            let entry = config.file.tenants.get(id);
            let organisation = entry.and_then(|entry| entry.value.organisation.as_ref());
            let span = organisation.map_or(Span::default(), |organisation| organisation.span);
            let message = format!("tenant `{id}` has more than 4 organisations above it");
            let path = format!("tenants.{id}.organisation");
            faults.add(span, &path, message, "name an organisation with at most 3 above it");
        }
        InvalidScopes::Zero { scope, .. }
        | InvalidScopes::EmptyWindow { scope }
        | InvalidScopes::TooManyBudgets { scope, .. }
        | InvalidScopes::Misplaced { scope }
        | InvalidScopes::Duplicate { scope }
        | InvalidScopes::Missing { scope, .. }
        | InvalidScopes::Cycle { scope }
        | InvalidScopes::TooDeep { scope } => {
            let (span, path) = place(config, scope);
            super::report_said(faults, span, &path, &error.to_string());
        }
    }
}

/// Returns the place of an organisation's `parent`.
fn parent(config: &Config, id: &TenantId) -> (Span, String) {
    let entry = config.file.organisations.get(id);
    let written = entry.and_then(|entry| entry.value.parent.as_ref()).map(|parent| parent.span);
    let span = written.or(entry.map(|entry| entry.span)).unwrap_or_default();
    (span, format!("organisations.{id}.parent"))
}

/// Returns the place of a scope.
fn place(config: &Config, scope: &Scope) -> (Span, String) {
    let file = &config.file;
    match scope {
        Scope::Key(tenant, key) => of_key(config, tenant, key),
        Scope::Tenant(id) => (span_of(file.tenants.get(id)), format!("tenants.{id}")),
        Scope::Organisation(id) => (span_of(file.organisations.get(id)), format!("organisations.{id}")),
        Scope::Model(name) => (span_of(file.models.get(name)), format!("models.{name}")),
        Scope::Deployment(name) => (span_of(file.deployments.get(name)), format!("deployments.{name}")),
        Scope::Global => (Span::default(), "limits".to_owned()),
    }
}

fn of_key(config: &Config, tenant: &TenantId, name: &KeyName) -> (Span, String) {
    let mut keys = keys(config);
    let found = keys.find(|(of, _, key)| *of == tenant && key.name == *name);
    let (span, at) = found.map_or((Span::default(), 0), |(_, at, key)| (key.source.span, at));
    (span, format!("tenants.{tenant}.keys[{at}]"))
}

fn span_of<T>(entry: Option<&Located<T>>) -> Span {
    entry.map_or(Span::default(), |entry| entry.span)
}

fn report_limits(error: &InvalidLimits, config: &Config, faults: &Faults) {
    let place = |tenant: &TenantId| (span_of(config.file.tenants.get(tenant)), format!("tenants.{tenant}"));
    let pool = match config.file.limits.pool_capacity {
        Some(_) => "limits.pool_capacity",
        None => "server.max_concurrency",
    };
    match error {
        InvalidLimits::ReservedAbovePool { tenant, largest, sum, capacity } => {
            let (span, path) = place(tenant);
            faults.add(
                span,
                &format!("{path}.reserved_concurrency"),
                format!(
                    "`reserved_concurrency` of all tenants adds up to {sum}, above `{pool}` of {capacity}"
                ),
                format!("raise `{pool}`, or lower a share; the largest is {largest}, of tenant `{tenant}`"),
            );
        }
        InvalidLimits::NothingLeft { tenant } => {
            let (span, path) = place(tenant);
            let capacity = pool_capacity(config);
            faults.add(
                span,
                &path,
                format!("the shares of other tenants leave nothing of `{pool}` to tenant `{tenant}`"),
                format!("write `reserved_concurrency`, or raise `{pool}` above {capacity}"),
            );
        }
        InvalidLimits::Zero { tenant, .. }
        | InvalidLimits::ReservedAboveMax { tenant, .. }
        | InvalidLimits::DuplicateTenant { tenant } => {
            let (span, path) = place(tenant);
            super::report_said(faults, span, &path, &error.to_string());
        }
        InvalidLimits::EmptyPool => {
            super::report_said(faults, Span::default(), pool, &error.to_string());
        }
        InvalidLimits::DuplicateDeployment { deployment } => {
            let name: &DeploymentName = deployment;
            let span = span_of(config.file.deployments.get(name));
            super::report_said(faults, span, &format!("deployments.{name}"), &error.to_string());
        }
    }
}
