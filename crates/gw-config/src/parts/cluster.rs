//! Limits that replicas share: what they can be, and where they are kept.

use std::sync::Arc;

use gw_exec::{QuotaWindow, SharedConfig};
use gw_limits::SharedLimit;
use gw_stores::RedisLimits;

use crate::{config::Config, diagnostics::Diagnostics, file::ScopeEntry, reader::Faults, source::Span};

/// Refuses limits that the shared store cannot keep, rather than keep them in each replica alone.
pub(super) fn check(config: &Config, faults: &Faults) {
    if config.file.cluster.is_none() {
        return;
    }
    let file = &config.file;
    for (id, tenant) in &file.tenants {
        one(&format!("tenants.{id}"), tenant.span, &tenant.value.limits, faults);
        for key in &tenant.value.keys {
            one(&format!("tenants.{id}.keys.{}", key.name), key.source.span, &key.limits, faults);
        }
    }
    for (id, organisation) in &file.organisations {
        one(&format!("organisations.{id}"), organisation.span, &organisation.value.limits, faults);
    }
    for (name, model) in &file.models {
        one(&format!("models.{name}"), model.span, &model.value, faults);
    }
    one("limits", Span::default(), &file.limits.limits, faults);
}

fn one(path: &str, span: Span, limits: &ScopeEntry, faults: &Faults) {
    for budget in &limits.budgets {
        let path = format!("{path}.budget");
        if matches!(budget.value.window, QuotaWindow::Rolling { .. }) {
            let message =
                format!("`{path}`: a rolling window with `[cluster]` is not available in this version");
            faults.add(
                budget.span,
                &path,
                message,
                "write a window of the calendar, such as `window = \"day\"`",
            );
        }
        if budget.value.limit > SharedLimit::BUDGET_MAX {
            let message = format!("`{path}` is larger than a budget that replicas share may be");
            faults.add(budget.span, &path, message, "write at most `limit_micros = 4_000_000_000_000`");
        }
    }
    let rates = [
        ("requests_per_minute", limits.requests_per_minute),
        ("tokens_per_minute", limits.tokens_per_minute),
    ];
    for (key, _) in
        rates.into_iter().filter(|(_, rate)| rate.is_some_and(|rate| rate > SharedLimit::RATE_MAX))
    {
        let path = format!("{path}.{key}");
        let message = format!("`{path}` is larger than a rate that replicas share may be");
        faults.add(span, &path, message, "write at most 150_000_000");
    }
}

/// Returns where limits are shared; `None`: the process is alone. Connects to nothing yet.
pub(crate) fn shared(config: &Config) -> Result<Option<SharedConfig>, Diagnostics> {
    let Some(cluster) = &config.file.cluster else { return Ok(None) };
    let store = RedisLimits::new(&cluster.redis.value.value).map_err(|refused| {
        let message = format!("what `cluster.redis` names is {refused}");
        config.diagnose(vec![super::fault(cluster.redis.span, "cluster.redis", message, "correct it")])
    })?;
    Ok(Some(SharedConfig {
        store: Arc::new(store),
        timeout: cluster.timeout,
        budget_on_loss: cluster.on_loss.budget,
        rate_on_loss: cluster.on_loss.rate,
    }))
}
