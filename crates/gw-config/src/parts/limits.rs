//! Limits of tenants and deployments.

use gw_limits::{BudgetConfig, InvalidLimits, LimitsConfig, TenantLimitsConfig, Window};
use gw_types::TenantId;

use crate::{
    config::Config,
    file::{TenantEntry, WindowEntry},
    reader::Faults,
    source::Span,
};

pub(super) fn config(config: &Config) -> LimitsConfig {
    let file = &config.file;
    LimitsConfig {
        tenants: file.tenants.iter().map(|(id, tenant)| (id.clone(), tenant_limits(&tenant.value))).collect(),
        deployments: file
            .deployments
            .iter()
            .map(|(name, deployment)| (name.clone(), deployment.value.max_concurrency))
            .collect(),
        pool_capacity: file.server.max_concurrency,
    }
}

fn tenant_limits(tenant: &TenantEntry) -> TenantLimitsConfig {
    TenantLimitsConfig {
        requests_per_minute: tenant.requests_per_minute,
        tokens_per_minute: tenant.tokens_per_minute,
        max_concurrency: tenant.max_concurrency,
        reserved_concurrency: tenant.reserved_concurrency,
        budget: tenant
            .budget
            .map(|budget| BudgetConfig { limit: budget.limit, window: window(budget.window) }),
    }
}

/// Returns a budget's window.
pub(crate) fn window(entry: WindowEntry) -> Window {
    match entry {
        WindowEntry::Hour => Window::Hour,
        WindowEntry::Day => Window::Day,
    }
}

pub(super) fn report(error: &InvalidLimits, config: &Config, faults: &Faults) {
    let place = |tenant: &TenantId| {
        let span = config.file.tenants.get(tenant).map_or(Span::default(), |entry| entry.span);
        (span, format!("tenants.{tenant}"))
    };
    let capacity = config.file.server.max_concurrency;
    match error {
        InvalidLimits::ReservedAbovePool { tenant, largest, sum, capacity } => {
            let (span, path) = place(tenant);
            faults.add(
                span,
                &format!("{path}.reserved_concurrency"),
                format!(
                    "`reserved_concurrency` of all tenants adds up to {sum}, above `server.max_concurrency` of {capacity}"
                ),
                format!("raise `server.max_concurrency`, or lower a share; the largest is {largest}, of tenant `{tenant}`"),
            );
        }
        InvalidLimits::NothingLeft { tenant } => {
            let (span, path) = place(tenant);
            faults.add(
                span,
                &path,
                format!("the shares of other tenants leave nothing of `server.max_concurrency` to tenant `{tenant}`"),
                format!("write `reserved_concurrency`, or raise `server.max_concurrency` above {capacity}"),
            );
        }
        InvalidLimits::Zero { tenant, .. }
        | InvalidLimits::ReservedAboveMax { tenant, .. }
        | InvalidLimits::DuplicateTenant { tenant } => {
            let (span, path) = place(tenant);
            super::report_said(faults, span, &path, &error.to_string());
        }
        InvalidLimits::EmptyPool => {
            super::report_said(faults, Span::default(), "server.max_concurrency", &error.to_string());
        }
        InvalidLimits::DuplicateDeployment { deployment } => {
            let span = config.file.deployments.get(deployment).map_or(Span::default(), |entry| entry.span);
            super::report_said(faults, span, &format!("deployments.{deployment}"), &error.to_string());
        }
    }
}
