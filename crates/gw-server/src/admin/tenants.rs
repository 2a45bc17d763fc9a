//! `/admin/v1/tenants`: limits and how far they are used.

use gw_exec::{
    BucketSnapshot, ConcurrencySnapshot, QuotaSnapshot, QuotaWindow, ScopeSnapshot, TenantSnapshot,
};
use gw_types::{GatewayError, Money, TenantId};
use serde::Serialize;

use super::json;
use crate::{answer::Answer, app::App};

#[derive(Debug, Serialize)]
struct Tenants {
    tenants: Vec<Tenant>,
}

/// A tenant; a limit that it does not have is `null`.
#[derive(Debug, Serialize)]
struct Tenant {
    id: TenantId,
    /// The first budget of a calendar window.
    budget: Option<Budget>,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    concurrency: Concurrency,
    /// Every budget, in the order of the configuration, where `budget` is not all there is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    budgets: Vec<Budget>,
    /// What holds for it together with others: its organisations and the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    above: Vec<Above>,
}

/// A scope that the tenant shares with others.
#[derive(Debug, Serialize)]
struct Above {
    scope: String,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    concurrency: Concurrency,
    budgets: Vec<Budget>,
}

/// A money window; amounts in micro-USD, spent and reserved rounded up.
#[derive(Debug, Serialize)]
struct Budget {
    window: &'static str,
    /// The length of a rolling window, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    rolling_s: Option<u64>,
    /// The time zone of a calendar window, where it is not UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    limit_micros: u64,
    spent_micros: u64,
    /// The same, exactly: as the costs in the records, whose sum it is.
    spent_pico: Money,
    reserved_micros: u64,
    resets_at: String,
}

#[derive(Debug, Serialize)]
struct Bucket {
    limit: u64,
    remaining: u64,
}

#[derive(Debug, Serialize)]
struct Concurrency {
    limit: Option<u32>,
    reserved: u32,
    in_use: u32,
}

pub(super) fn list(app: &App) -> Result<Answer, GatewayError> {
    let tenant = |id: TenantId| {
        let own = app.gateway.tenant_snapshot(&id)?;
        let scopes = app.gateway.scope_snapshots(&id);
        Some(tenant(id, &own, &scopes))
    };
    json(&Tenants { tenants: app.gateway.policy().tenants().into_iter().filter_map(tenant).collect() })
}

fn tenant(id: TenantId, own: &TenantSnapshot, scopes: &[ScopeSnapshot]) -> Tenant {
    let is_own = |scope: &&ScopeSnapshot| scope.scope.is_tenant();
    let budgets = scopes.iter().find(is_own).map_or(&[][..], |scope| &scope.budgets);
    let first = budgets.iter().find(|budget| matches!(budget.window, QuotaWindow::Calendar { .. }));
    let is_all = first.is_some() && budgets.len() == 1;
    Tenant {
        id,
        budget: first.map(budget),
        requests: own.requests.as_ref().map(bucket),
        tokens: own.tokens.as_ref().map(bucket),
        concurrency: concurrency(own.concurrency),
        budgets: if is_all { Vec::new() } else { budgets.iter().map(budget).collect() },
        above: scopes.iter().filter(|scope| !is_own(scope)).map(above).collect(),
    }
}

fn above(scope: &ScopeSnapshot) -> Above {
    Above {
        scope: scope.scope.to_string(),
        requests: scope.requests.as_ref().map(bucket),
        tokens: scope.tokens.as_ref().map(bucket),
        concurrency: concurrency(scope.concurrency),
        budgets: scope.budgets.iter().map(budget).collect(),
    }
}

fn budget(budget: &QuotaSnapshot) -> Budget {
    let (window, rolling_s, time_zone) = match &budget.window {
        QuotaWindow::Calendar { window, zone } => {
            let zone = zone.as_str();
            (window.as_str(), None, (zone != "UTC").then(|| zone.to_owned()))
        }
        QuotaWindow::Rolling { length } => ("rolling", Some(length.as_secs()), None),
    };
    Budget {
        window,
        rolling_s,
        time_zone,
        limit_micros: budget.limit.micros_rounded_up(),
        spent_micros: budget.spent.micros_rounded_up(),
        spent_pico: budget.spent,
        reserved_micros: budget.reserved.micros_rounded_up(),
        resets_at: budget.resets_at.to_rfc3339(),
    }
}

fn bucket(bucket: &BucketSnapshot) -> Bucket {
    Bucket { limit: bucket.limit, remaining: bucket.remaining }
}

fn concurrency(concurrency: ConcurrencySnapshot) -> Concurrency {
    Concurrency { limit: concurrency.limit, reserved: concurrency.reserved, in_use: concurrency.in_use }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_exec::{
        ConcurrencySnapshot, QuotaSnapshot, QuotaWindow, Scope, ScopeSnapshot, TenantSnapshot, Window, Zone,
    };
    use gw_types::{Money, TenantId, UtcTime};
    use serde_json::{Value, json};

    use super::tenant;

    fn cap(window: QuotaWindow) -> QuotaSnapshot {
        QuotaSnapshot {
            window,
            limit: Money::from_micros(9),
            spent: Money::from_pico(1),
            reserved: Money::ZERO,
            resets_at: UtcTime::from_micros(0),
        }
    }

    fn shown(budgets: Vec<QuotaSnapshot>, above: Option<Scope>) -> Value {
        let id = TenantId::new("acme").unwrap();
        let concurrency = ConcurrencySnapshot { limit: None, reserved: 0, in_use: 0 };
        let own = TenantSnapshot { requests: None, tokens: None, concurrency, budget: None };
        let scope =
            |scope, budgets| ScopeSnapshot { scope, requests: None, tokens: None, concurrency, budgets };
        let mut scopes = vec![scope(Scope::Tenant(id.clone()), budgets)];
        scopes.extend(above.map(|above| scope(above, vec![])));
        serde_json::to_value(tenant(id, &own, &scopes)).unwrap()
    }

    fn day(zone: &str) -> QuotaWindow {
        QuotaWindow::Calendar { window: Window::Day, zone: Zone::new(zone).unwrap() }
    }

    #[test]
    fn one_budget_of_the_calendar_is_all_there_is_to_show() {
        let page = shown(vec![cap(day("UTC"))], None);
        let keys: Vec<_> = page.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["budget", "concurrency", "id", "requests", "tokens"]);
        let amounts = json!({"window": "day", "limit_micros": 9, "spent_micros": 1, "spent_pico": 1,
            "reserved_micros": 0, "resets_at": "1970-01-01T00:00:00Z"});
        assert_eq!(page["budget"], amounts);
    }

    #[test]
    fn further_budgets_and_shared_scopes_stand_beside_it() {
        let rolling = cap(QuotaWindow::Rolling { length: Duration::from_secs(60) });
        let page = shown(vec![rolling, cap(day("Europe/London"))], Some(Scope::Global));
        assert_eq!(page["budget"]["time_zone"], "Europe/London");
        let windows: Vec<_> = page["budgets"].as_array().unwrap().iter().map(|one| &one["window"]).collect();
        assert_eq!(windows, ["rolling", "day"]);
        assert_eq!(
            (&page["budgets"][0]["rolling_s"], &page["above"][0]["scope"]),
            (&json!(60), &json!("global"))
        );
        assert!(shown(vec![], None)["budget"].is_null());
    }
}
