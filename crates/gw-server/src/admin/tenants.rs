//! `/admin/v1/tenants`: limits and how far they are used.

use gw_exec::{BucketSnapshot, BudgetSnapshot, TenantSnapshot};
use gw_types::{GatewayError, TenantId};
use serde::Serialize;

use super::json;
use crate::{answer::Answer, app::App, rfc3339};

#[derive(Debug, Serialize)]
struct Tenants {
    tenants: Vec<Tenant>,
}

/// A tenant; a limit that it does not have is `null`.
#[derive(Debug, Serialize)]
struct Tenant {
    id: TenantId,
    budget: Option<Budget>,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    concurrency: Concurrency,
}

/// A money window; amounts in micro-USD, spent and reserved rounded up.
#[derive(Debug, Serialize)]
struct Budget {
    window: &'static str,
    limit_micros: u64,
    spent_micros: u64,
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
    let tenants = app
        .gateway
        .policy()
        .tenants()
        .into_iter()
        .filter_map(|id| app.gateway.tenant_snapshot(&id).map(|snapshot| tenant(id, &snapshot)))
        .collect();
    json(&Tenants { tenants })
}

fn tenant(id: TenantId, snapshot: &TenantSnapshot) -> Tenant {
    Tenant {
        id,
        budget: snapshot.budget.as_ref().map(budget),
        requests: snapshot.requests.as_ref().map(bucket),
        tokens: snapshot.tokens.as_ref().map(bucket),
        concurrency: Concurrency {
            limit: snapshot.concurrency.limit,
            reserved: snapshot.concurrency.reserved,
            in_use: snapshot.concurrency.in_use,
        },
    }
}

fn budget(budget: &BudgetSnapshot) -> Budget {
    Budget {
        window: budget.window.as_str(),
        limit_micros: budget.limit.micros_rounded_up(),
        spent_micros: budget.spent.micros_rounded_up(),
        reserved_micros: budget.reserved.micros_rounded_up(),
        resets_at: rfc3339::text(budget.resets_at),
    }
}

fn bucket(bucket: &BucketSnapshot) -> Bucket {
    Bucket { limit: bucket.limit, remaining: bucket.remaining }
}
