//! `/admin/v1/cache`, `/admin/v1/cache/invalidate` and `/admin/v1/feedback`: what the caches hold and have decided, what
//! is to be forgotten, and what somebody says about a similar answer.

use std::borrow::Cow;

use gw_exec::{CacheScopeUsage, CacheUsage, InvalidationScope};
use gw_types::{ErrorKind, GatewayError, RequestId};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{json as answer_json, not_found};
use crate::{answer::Answer, app::App};

/// Answers with what both tiers hold and what every partition of the semantic tier has decided.
pub(super) fn report(app: &App) -> Result<Answer, GatewayError> {
    let report = app.gateway.cache_report();
    answer_json(&json!({
        "held": held(report.held),
        "in_flight": report.in_flight,
        "judge": report.judge,
        "partitions": report.partitions,
    }))
}

/// Forgets the answers of a scope, or says what would be forgotten: `tenant`, `route`, `before_epoch`, `dry_run`
/// (`true` unless it says `false`). Without any of the first three everything goes.
///
/// # Errors
/// `InvalidRequest` for a query that cannot be read.
pub(super) fn invalidate(app: &App, query: Option<&str>) -> Result<Answer, GatewayError> {
    let mut scope = InvalidationScope::default();
    let mut dry_run = true;
    let known =
        "known: `tenant`, `route`, `before_epoch` (a number), `dry_run` (`true` or `false`), each once";
    read(query, known, |name, value| match name {
        "tenant" => value.parse().ok().map(|tenant| scope.tenant = Some(tenant)),
        "route" => value.parse().ok().map(|route| scope.route = Some(route)),
        "before_epoch" => value.parse().ok().map(|epoch| scope.before_epoch = Some(epoch)),
        "dry_run" => value.parse().ok().map(|dry| dry_run = dry),
        _ => None,
    })?;
    let gone =
        if dry_run { app.gateway.cache_matching(&scope) } else { app.gateway.invalidate_cache(&scope) };
    answer_json(&json!({"dry_run": dry_run, "entries": held(gone)}))
}

/// Takes a label: `request`, the id of a request that met a similar answer, and `right`, whether that answer was right
/// for it, or would have been.
///
/// # Errors
/// `InvalidRequest` for a query that cannot be read; not found where no such request waits for a label.
pub(super) fn feedback(app: &App, query: Option<&str>) -> Result<Answer, GatewayError> {
    let (mut request, mut right) = (None, None);
    let known = "known: `request` (an `x-request-id`) and `right` (`true` or `false`), each once";
    read(query, known, |name, value| match name {
        "request" => RequestId::try_from(value.to_owned()).ok().map(|id| request = Some(id)),
        "right" => value.parse().ok().map(|is| right = Some(is)),
        _ => None,
    })?;
    let (Some(request), Some(right)) = (request, right) else { return Err(malformed(known)) };
    if app.gateway.feedback(&request, right) {
        return answer_json(&json!({"status": "taken"}));
    }
    Err(not_found("no request of that id met a similar answer lately that still wants a label"))
}

fn held(usage: CacheScopeUsage) -> Value {
    let tier = |usage: CacheUsage| json!({"entries": usage.entries, "bytes": usage.bytes});
    json!({"exact": tier(usage.exact), "semantic": tier(usage.semantic)})
}

/// Reads a query strictly: every name once, every value as it must be.
fn read(
    query: Option<&str>,
    known: &'static str,
    mut take: impl FnMut(&str, &str) -> Option<()>,
) -> Result<(), GatewayError> {
    let mut seen: Vec<&str> = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().unwrap_or(Cow::Borrowed(""));
        if seen.contains(&name) || take(name, &value).is_none() {
            return Err(malformed(known).with_param(name));
        }
        seen.push(name);
    }
    Ok(())
}

fn malformed(known: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::InvalidRequest, known)
}
