//! What a request took from its tenant's rates, and the refusal.

use std::{sync::Arc, time::Duration};

use gw_errors::{ErrorKind, GatewayError};
use gw_types::{MonoTime, TokenCount};
use smallvec::SmallVec;

use crate::{
    Denied, TenantLimits,
    config::names,
    rates::{Refused, Taken},
};

/// One request and its tokens, taken from the tenant's rates.
///
/// Dropped unsettled it gives everything back: that is what a refusal further on does.
#[must_use = "dropping it gives everything back"]
#[derive(Debug)]
pub struct Admission {
    tenant: Arc<TenantLimits>,
    /// `None` once settled.
    taken: Option<Taken>,
}

impl Admission {
    pub(crate) fn new(tenant: Arc<TenantLimits>, taken: Taken) -> Self {
        Self { tenant, taken: Some(taken) }
    }

    /// Keeps the request and replaces the tokens that were taken by those that were used.
    ///
    /// Fewer: the rest goes back. More: the excess is debited, and what comes next waits until it is repaid.
    pub fn settle(mut self, actual: TokenCount, now: MonoTime) {
        if let Some(taken) = self.taken.take() {
            self.tenant.state().rates.settle_tokens(taken, actual.get(), now);
        }
    }

    /// Keeps the request, which is load, and gives the tokens back: the answer came from a cache.
    pub fn settle_hit(mut self) {
        if let Some(taken) = self.taken.take() {
            self.tenant.state().rates.give_back(Taken { requests: None, ..taken });
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.tenant.state().rates.give_back(taken);
        }
    }
}

/// A refusal by one or more rates; nothing was taken from any.
#[derive(Clone, Debug)]
pub struct LimitRefusal {
    /// `RateLimited`, naming the limits. `retry_after` is tight and the largest of all; where a limit could never hold
    /// so much there is none, and the error forbids a retry.
    pub error: GatewayError,
    /// Every limit that refused, by its name in the configuration.
    pub refused_by: SmallVec<[&'static str; 2]>,
}

impl LimitRefusal {
    pub(crate) fn new(refused: Refused, now: MonoTime) -> Self {
        let all = [(names::REQUESTS, refused.requests), (names::TOKENS, refused.tokens)];
        let refused_by = all.iter().filter_map(|(name, denied)| denied.map(|_| *name)).collect();
        let impossible = all.iter().find(|(_, denied)| *denied == Some(Denied::NeverPossible));
        let error = match impossible {
            Some((name, _)) => GatewayError::new(
                ErrorKind::RateLimited,
                "the request is larger than the limit can ever hold",
            )
            .with_subject(name)
            .without_retry(),
            None => GatewayError::new(ErrorKind::RateLimited, "the rate limit is reached")
                .with_subject(&joined(&refused_by))
                .with_retry_after(longest_wait(&all, now)),
        };
        Self { error, refused_by }
    }
}

fn joined(names: &SmallVec<[&'static str; 2]>) -> String {
    names.join(", ")
}

/// Returns the time until every limit has enough.
fn longest_wait(all: &[(&'static str, Option<Denied>)], now: MonoTime) -> Duration {
    let wait = |denied: &Denied| match denied {
        Denied::NotUntil(at) => at.saturating_since(now),
        Denied::NeverPossible => Duration::ZERO,
    };
    all.iter().filter_map(|(_, denied)| denied.as_ref().map(wait)).max().unwrap_or_default()
}
