//! What a caller is told that was let through by too few limits.

use std::time::Duration;

use gw_errors::{ErrorKind, GatewayError};
use gw_types::MonoTime;
use smallvec::SmallVec;

use crate::{Denied, Scope, Subject, admission::RateRefusals, config::names, quota::Refusal, slots::NoSlot};

/// A refusal by one or more rates of a tenant; nothing was taken from any.
#[derive(Clone, Debug)]
pub struct LimitRefusal {
    /// `RateLimited`, naming the limits. `retry_after` is tight and the largest of all; where a limit could never hold
    /// so much there is none, and the error forbids a retry.
    pub error: GatewayError,
    /// Every limit that refused, by its name in the configuration.
    pub refused_by: SmallVec<[&'static str; 2]>,
}

impl LimitRefusal {
    pub(crate) fn by_rates(refused: &RateRefusals, now: MonoTime) -> Self {
        let denied = all_denied(refused);
        let refused_by: SmallVec<[&'static str; 2]> = denied.iter().map(|(_, name, _)| *name).collect();
        let named: Vec<_> = denied.iter().map(|(_, name, why)| ((*name).to_owned(), *why)).collect();
        Self { error: rate_error(&named, now), refused_by }
    }
}

/// One limit of one scope that refused; displays as `scope:name.limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLimit {
    /// The scope.
    pub scope: Scope,
    /// The limit's name in the configuration.
    pub limit: &'static str,
}

impl std::fmt::Display for RefusedLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.scope, self.limit)
    }
}

/// A refusal by one or more limits of one or more scopes; nothing was taken from any.
#[derive(Clone, Debug)]
pub struct ScopeRefusal {
    /// The error for the caller; its subject names every limit that refused, as far as there is room. `retry_after` is
    /// the largest of all; where a limit could never hold so much there is none, and the error forbids a retry.
    pub error: GatewayError,
    /// Every limit that refused, in lock order.
    pub refused_by: Vec<RefusedLimit>,
}

impl From<ScopeRefusal> for GatewayError {
    fn from(refusal: ScopeRefusal) -> Self {
        refusal.error
    }
}

impl ScopeRefusal {
    pub(crate) fn by_rates(subject: &Subject, refused: &RateRefusals, now: MonoTime) -> Self {
        let denied = all_denied(refused);
        let refused_by = limits(subject, denied.iter().map(|(at, name, _)| (*at, *name)));
        let named: Vec<_> =
            refused_by.iter().zip(&denied).map(|(limit, (_, _, why))| (limit.to_string(), *why)).collect();
        Self { error: rate_error(&named, now), refused_by }
    }

    pub(crate) fn by_budgets(subject: &Subject, refused: &[(usize, Refusal)]) -> Self {
        let refused_by = limits(subject, refused.iter().map(|(at, _)| (*at, names::BUDGET)));
        Self { error: Refusal::hardest(refused).into_error().with_subject(&joined(&refused_by)), refused_by }
    }

    pub(crate) fn by_slots(subject: &Subject, refused: &[(usize, NoSlot)]) -> Self {
        let refused_by = limits(subject, refused.iter().map(|(at, why)| (*at, why.limit())));
        let hardest = refused.iter().map(|(_, why)| *why).min().unwrap_or(NoSlot::Pool);
        Self { error: hardest.into_error().with_subject(&joined(&refused_by)), refused_by }
    }
}

fn limits(subject: &Subject, refused: impl Iterator<Item = (usize, &'static str)>) -> Vec<RefusedLimit> {
    let named = |(at, limit)| Some(RefusedLimit { scope: subject.node(at)?.scope().clone(), limit });
    refused.filter_map(named).collect()
}

fn joined(limits: &[RefusedLimit]) -> String {
    limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn all_denied(refusals: &RateRefusals) -> Vec<(usize, &'static str, Denied)> {
    refusals
        .iter()
        .flat_map(|(at, refused)| {
            let both = [(names::REQUESTS, refused.requests), (names::TOKENS, refused.tokens)];
            both.into_iter().filter_map(move |(name, denied)| Some((*at, name, denied?)))
        })
        .collect()
}

fn rate_error(named: &[(String, Denied)], now: MonoTime) -> GatewayError {
    let impossible: Vec<_> = named
        .iter()
        .filter(|(_, why)| *why == Denied::NeverPossible)
        .map(|(name, _)| name.as_str())
        .collect();
    if !impossible.is_empty() {
        return GatewayError::new(
            ErrorKind::RateLimited,
            "the request is larger than the limit can ever hold",
        )
        .with_subject(&impossible.join(", "))
        .without_retry();
    }
    let all: Vec<_> = named.iter().map(|(name, _)| name.as_str()).collect();
    GatewayError::new(ErrorKind::RateLimited, "the rate limit is reached")
        .with_subject(&all.join(", "))
        .with_retry_after(longest_wait(named, now))
}

/// Returns the time until every limit has enough.
fn longest_wait(named: &[(String, Denied)], now: MonoTime) -> Duration {
    let wait = |denied: Denied| match denied {
        Denied::NotUntil(at) => at.saturating_since(now),
        Denied::NeverPossible => Duration::ZERO,
    };
    named.iter().map(|(_, denied)| wait(*denied)).max().unwrap_or_default()
}
