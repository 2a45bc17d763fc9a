//! Limits that several processes keep together: what is asked of the store that they share.

use std::time::Duration;

use async_trait::async_trait;
use gw_errors::{ErrorKind, GatewayError};
use gw_types::{Money, TokenCount, UtcTime};
use smallvec::SmallVec;

use crate::{
    QuotaWindow, RefusedLimit, Scope, ScopeRefusal, Subject, Worth, config::names, node::NodeState,
    quota::Quota, subject::SCOPES_MAX,
};

/// One limit of one scope, and what a request takes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLimit {
    /// Whose limit it is.
    pub scope: Scope,
    /// What is counted, up to where, and how much of it is asked for.
    pub take: SharedTake,
}

/// What is taken of one shared limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedTake {
    /// Requests a minute: a bucket that holds a minute's and fills evenly, as [`crate::Bucket`] does.
    Requests {
        /// How many a minute; from 1 to [`SharedLimit::RATE_MAX`].
        per_minute: u64,
    },
    /// Tokens a minute, in a bucket of the same kind.
    Tokens {
        /// How many a minute; from 1 to [`SharedLimit::RATE_MAX`].
        per_minute: u64,
        /// How many are asked for.
        amount: u64,
    },
    /// Money in a window of the calendar.
    Budget {
        /// What may be spent in it; at most [`SharedLimit::BUDGET_MAX`].
        limit: Money,
        /// What is held until the request is settled.
        amount: Money,
        /// When the window begins: windows that begin together are one.
        start: UtcTime,
        /// When it ends.
        end: UtcTime,
    },
}

impl SharedLimit {
    /// The largest rate that is exact in a store that computes with 53 bits: 150 million a minute.
    pub const RATE_MAX: u64 = 150_000_000;
    /// The largest budget of which twice as much fits into 63 bits of pico-USD: four million USD.
    pub const BUDGET_MAX: Money = Money::from_micros(4_000_000_000_000);

    /// Returns whether it limits money.
    pub const fn is_budget(&self) -> bool {
        match self.take {
            SharedTake::Budget { .. } => true,
            SharedTake::Requests { .. } | SharedTake::Tokens { .. } => false,
        }
    }

    /// Returns the limit by its name in the configuration.
    pub fn named(&self) -> RefusedLimit {
        let limit = match self.take {
            SharedTake::Requests { .. } => names::REQUESTS,
            SharedTake::Tokens { .. } => names::TOKENS,
            SharedTake::Budget { .. } => names::BUDGET,
        };
        RefusedLimit { scope: self.scope.clone(), limit }
    }
}

/// What a store answers that could be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedVerdict {
    /// Everything was taken.
    Taken,
    /// Nothing was taken. Every limit that refused, by its place in what was asked, with the time until it has room;
    /// `None`: it can never hold so much.
    Refused(Vec<(usize, Option<Duration>)>),
}

impl SharedLimit {
    /// Returns what the caller is told of limits that refused, by their places in what was asked.
    pub fn refusal(asked: &[Self], refused: &[(usize, Option<Duration>)]) -> ScopeRefusal {
        let named = |(at, wait): &(usize, Option<Duration>)| Some((asked.get(*at)?, *wait));
        let refused: Vec<(&Self, Option<Duration>)> = refused.iter().filter_map(named).collect();
        let (kind, message) = if refused.iter().any(|(limit, _)| limit.is_budget()) {
            (ErrorKind::QuotaExceeded, "the budget does not hold what this request may cost")
        } else {
            (ErrorKind::RateLimited, "the rate limit is reached")
        };
        let never: Vec<_> = refused.iter().filter(|(_, wait)| wait.is_none()).collect();
        let tell = if never.is_empty() { refused.iter().collect() } else { never };
        let refused_by: Vec<RefusedLimit> = refused.iter().map(|(limit, _)| limit.named()).collect();
        let subject = tell.iter().map(|(limit, _)| limit.named().to_string()).collect::<Vec<_>>().join(", ");
        let error = GatewayError::new(kind, message).with_subject(&subject);
        let longest = tell.iter().map(|(_, wait)| *wait).collect::<Option<Vec<_>>>();
        let error = match longest.and_then(|waits| waits.into_iter().max()) {
            Some(wait) => error.with_retry_after(wait),
            None => error.without_retry(),
        };
        ScopeRefusal { error, refused_by }
    }
}

/// What a request used of what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSettlement {
    /// The number that it was taken under.
    pub id: u128,
    /// What was asked for then.
    pub limits: Vec<SharedLimit>,
    /// What it used.
    pub used: SharedUse,
}

/// How much a request used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedUse {
    /// Nothing, the request itself included: no provider was called.
    Nothing,
    /// So many tokens and so much money; the request counts.
    Used(TokenCount, Money),
}

/// Says that the store could not be asked, or did not do it: the answer is neither yes nor no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store of shared limits cannot be reached")]
pub struct SharedLost;

/// Keeps limits that several processes share.
///
/// An implementation decides by the store's own clock. Dropping a call may leave what it took in place: it is then
/// charged as if it had been used, never given back on a guess.
#[async_trait]
pub trait SharedLimits: std::fmt::Debug + Send + Sync {
    /// Takes all, or nothing of any. What is taken under an `id` and not settled within `hold` counts as used.
    ///
    /// # Errors
    /// [`SharedLost`] if it is not known whether anything was taken.
    async fn take(
        &self,
        id: u128,
        limits: &[SharedLimit],
        hold: Duration,
    ) -> Result<SharedVerdict, SharedLost>;

    /// Puts what was used in the place of what was taken, once: under an id that is not held it does nothing.
    ///
    /// # Errors
    /// [`SharedLost`] if it may not have been done; it may be repeated.
    async fn settle(&self, settlement: &SharedSettlement) -> Result<(), SharedLost>;
}

/// Limits of one request that need no allocation.
const LIMITS_INLINE: usize = 4;

/// The limits that processes share for one request, deployments' own left out: who calls them is one process's business.
pub type SharedAsked = SmallVec<[SharedLimit; LIMITS_INLINE]>;

impl Subject {
    /// Returns what a request takes of every rate and of every calendar window of money of its scopes, in lock order.
    /// Rolling windows are not shared.
    pub fn shared_limits(&self, tokens: TokenCount, worth: Worth, utc: UtcTime) -> SharedAsked {
        let mut asked = SharedAsked::new();
        for node in self.nodes().take(SCOPES_MAX) {
            if matches!(node.scope(), Scope::Deployment(_)) {
                continue;
            }
            let state = node.lock();
            let takes = rates(&state, tokens).chain(budgets(&state, worth, utc));
            asked.extend(takes.map(|take| SharedLimit { scope: node.scope().clone(), take }));
        }
        asked
    }
}

fn rates(state: &NodeState, tokens: TokenCount) -> impl Iterator<Item = SharedTake> + use<> {
    let (requests, of_tokens) = state.rates.per_minute();
    let amount = tokens.get();
    let requests = requests.map(|per_minute| SharedTake::Requests { per_minute });
    let tokens = of_tokens.map(|per_minute| SharedTake::Tokens { per_minute, amount });
    requests.into_iter().chain(tokens)
}

fn budgets(state: &NodeState, worth: Worth, utc: UtcTime) -> impl Iterator<Item = SharedTake> {
    let take = move |quota: &Quota| {
        let rule = quota.rule().filter(|rule| matches!(rule.window, QuotaWindow::Calendar { .. }))?;
        let (start, end) = quota.bounds(utc)?;
        Some(SharedTake::Budget { limit: rule.limit, amount: worth.by(rule.estimate), start, end })
    };
    state.quotas.iter().filter_map(take)
}

#[cfg(test)]
mod tests {
    use gw_types::{Money, MonoTime, TenantId, TokenCount, UtcTime};

    use super::{SharedLimit, SharedTake};
    use crate::{BudgetConfig, Limits, LimitsConfig, Scope, SubjectIds, TenantLimitsConfig, Window, Worth};

    #[test]
    fn a_request_asks_for_what_its_scopes_limit() {
        let id = TenantId::new("acme").unwrap();
        let limit = Money::from_micros(1_000);
        let tenant = TenantLimitsConfig {
            requests_per_minute: Some(5),
            tokens_per_minute: Some(400),
            budget: Some(BudgetConfig { limit, window: Window::Day }),
            ..TenantLimitsConfig::default()
        };
        let config =
            LimitsConfig { tenants: vec![(id.clone(), tenant)], deployments: vec![], pool_capacity: 4 };
        let limits = Limits::new(config, MonoTime::ZERO).unwrap();
        let subject = limits.subject(&SubjectIds { key: None, tenant: "acme", model: None }).unwrap();
        let worth = Worth { bound: Money::from_micros(30), calibrated: Money::from_micros(20) };
        let noon = UtcTime::from_micros(43_200_000_000);
        let asked = subject.shared_limits(TokenCount::new(70), worth, noon);
        let (start, end) = (UtcTime::from_micros(0), UtcTime::from_micros(86_400_000_000));
        let expected = [
            SharedTake::Requests { per_minute: 5 },
            SharedTake::Tokens { per_minute: 400, amount: 70 },
            SharedTake::Budget { limit, amount: worth.bound, start, end },
        ]
        .map(|take| SharedLimit { scope: Scope::Tenant(id.clone()), take });
        assert_eq!(asked.as_slice(), expected);
        let named: Vec<String> = asked.iter().map(|limit| limit.named().to_string()).collect();
        assert_eq!(
            named,
            ["tenant:acme.requests_per_minute", "tenant:acme.tokens_per_minute", "tenant:acme.budget"]
        );
    }
}
