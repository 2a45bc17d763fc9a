//! Limits of scopes beside and above the tenant, as configured, and what is refused about them.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, num::NonZeroU64, time::Duration};

use gw_types::{DeploymentName, KeyName, ModelName, Money, TenantId};
use serde::{Deserialize, Deserializer};

use crate::{
    BudgetConfig, InvalidLimits, Scope, Window, Zone,
    config::{ValidTenant, names},
};

/// Organisations above one tenant, at most.
pub(crate) const ORGANISATIONS_MAX: usize = 4;
/// Caps on money of one scope, at most: an hour, a day, a week and a month, for instance.
pub(crate) const QUOTAS_MAX: usize = 4;

/// What one scope may use. By default there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeLimitsConfig {
    /// Requests a minute, and in one burst. `None`: no limit; 0 is refused.
    pub requests_per_minute: Option<u64>,
    /// Input and output tokens a minute, and in one burst. `None`: no limit; 0 is refused.
    pub tokens_per_minute: Option<u64>,
    /// Calls at once. `None`: no limit; 0 is refused. A deployment's stands in [`LimitsConfig`] instead.
    ///
    /// [`LimitsConfig`]: crate::LimitsConfig
    pub max_concurrency: Option<u32>,
    /// Money, each cap for itself; at most 4. At a change of the configuration they are told apart by their place.
    pub budgets: Vec<QuotaConfig>,
}

/// A hard cap on money.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaConfig {
    /// What may be spent in one window; 0 is refused. Deserialises as `limit_micros`, in micro-USD.
    #[serde(rename = "limit_micros", deserialize_with = "micros")]
    pub limit: Money,
    /// The window.
    pub window: QuotaWindow,
    /// What is reserved of it for a request.
    #[serde(default)]
    pub estimate: BudgetEstimate,
}

/// What a cap on money reserves for a request until it is known what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetEstimate {
    /// The most that it can cost: the cap is never passed.
    #[default]
    Bound,
    /// What 99 of 100 have cost, as soon as enough answers were seen; before that the most. A miss is overrun.
    Calibrated,
}

/// The window that a cap on money counts in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QuotaWindow {
    /// A window of the calendar of a time zone.
    Calendar {
        /// The kind of window.
        window: Window,
        /// The time zone; UTC if it is not named.
        #[serde(default)]
        zone: Zone,
    },
    /// Every stretch of a length. What was spent counts for the length and at most a sixteenth more.
    Rolling {
        /// The length; less than 16 microseconds is refused. Deserialises as `length_s`, in seconds.
        #[serde(rename = "length_s", deserialize_with = "seconds")]
        length: Duration,
    },
}

fn micros<'de, D: Deserializer<'de>>(from: D) -> Result<Money, D::Error> {
    u64::deserialize(from).map(Money::from_micros)
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_secs)
}

impl From<BudgetConfig> for QuotaConfig {
    fn from(BudgetConfig { limit, window }: BudgetConfig) -> Self {
        let window = QuotaWindow::Calendar { window, zone: Zone::UTC };
        Self { limit, window, estimate: BudgetEstimate::Bound }
    }
}

/// What is limited beside tenants and deployments, and more of those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopesConfig {
    /// Keys of tenants; each at most once.
    pub keys: Vec<(TenantId, KeyName, ScopeLimitsConfig)>,
    /// Tenants that have more than [`TenantLimitsConfig`] can say; each at most once, and only tenants that stand
    /// there.
    ///
    /// [`TenantLimitsConfig`]: crate::TenantLimitsConfig
    pub tenants: Vec<(TenantId, TenantScopeConfig)>,
    /// Organisations; each at most once.
    pub organisations: Vec<(TenantId, OrganisationConfig)>,
    /// Models, as callers name them; each at most once.
    pub models: Vec<(ModelName, ScopeLimitsConfig)>,
    /// Deployments' rates and budgets; each at most once.
    pub deployments: Vec<(DeploymentName, ScopeLimitsConfig)>,
    /// Everything together.
    pub global: ScopeLimitsConfig,
}

/// A tenant's place among organisations, and its further caps on money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantScopeConfig {
    /// The organisation that the tenant belongs to.
    pub parent: Option<TenantId>,
    /// Caps beside the tenant's `budget`; at most 4 with that one.
    pub budgets: Vec<QuotaConfig>,
}

/// An organisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrganisationConfig {
    /// The organisation that it belongs to.
    pub parent: Option<TenantId>,
    /// What all its tenants may use together.
    pub limits: ScopeLimitsConfig,
}

/// Says what is wrong with the limits of a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScopes {
    /// The limits of tenants and deployments themselves.
    #[error(transparent)]
    Limits(#[from] InvalidLimits),
    /// A limit of 0 would refuse everything.
    #[error("`{limit}` of `{scope}` must not be 0; leave it out for no limit")]
    Zero {
        /// The scope.
        scope: Scope,
        /// The limit's name in the configuration.
        limit: &'static str,
    },
    /// A rolling window that is empty, or too short for its parts.
    #[error("the rolling window of a budget of `{scope}` must be at least 16 microseconds long")]
    EmptyWindow {
        /// The scope.
        scope: Scope,
    },
    /// More caps on money than a scope may have.
    #[error("`{scope}` has {count} budgets; at most 4 are possible")]
    TooManyBudgets {
        /// The scope.
        scope: Scope,
        /// How many there are.
        count: usize,
    },
    /// A deployment's calls at once, in the wrong place.
    #[error("`max_concurrency` of `{scope}` stands with the deployment itself")]
    Misplaced {
        /// The scope.
        scope: Scope,
    },
    /// A scope stands twice.
    #[error("`{scope}` is configured twice")]
    Duplicate {
        /// The scope.
        scope: Scope,
    },
    /// A scope belongs to a tenant, deployment or organisation that is not configured.
    #[error("`{scope}` needs `{missing}`, which is not configured")]
    Missing {
        /// The scope.
        scope: Scope,
        /// What it names.
        missing: Scope,
    },
    /// An organisation is its own parent, at some remove.
    #[error("`{scope}` is its own parent, directly or through others")]
    Cycle {
        /// The organisation.
        scope: Scope,
    },
    /// More organisations stand above a tenant than may.
    #[error("`{scope}` has more than 4 organisations above it")]
    TooDeep {
        /// The tenant.
        scope: Scope,
    },
}

/// One scope's limits, none of them zero. The place of a cap on money is its name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLimits {
    pub(crate) requests: Option<NonZeroU64>,
    pub(crate) tokens: Option<NonZeroU64>,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) reserved_concurrency: u32,
    pub(crate) budgets: Vec<Option<QuotaConfig>>,
}

impl From<&ScopeLimitsConfig> for NodeLimits {
    fn from(limits: &ScopeLimitsConfig) -> Self {
        Self {
            requests: limits.requests_per_minute.and_then(NonZeroU64::new),
            tokens: limits.tokens_per_minute.and_then(NonZeroU64::new),
            max_concurrency: limits.max_concurrency,
            reserved_concurrency: 0,
            budgets: limits.budgets.iter().cloned().map(Some).collect(),
        }
    }
}

impl NodeLimits {
    /// A tenant's limits: its `budget` first, also where there is none, then the others.
    pub(crate) fn of_tenant(tenant: &ValidTenant, more: &[QuotaConfig]) -> Self {
        let first = tenant.budget.map(QuotaConfig::from);
        Self {
            requests: tenant.requests,
            tokens: tenant.tokens,
            max_concurrency: tenant.max_concurrency,
            reserved_concurrency: tenant.reserved_concurrency,
            budgets: std::iter::once(first).chain(more.iter().cloned().map(Some)).collect(),
        }
    }
}

/// Scopes whose limits may be applied as they stand.
#[derive(Debug, Default)]
pub(crate) struct ValidScopes {
    /// All but tenants.
    pub(crate) nodes: BTreeMap<Scope, NodeLimits>,
    pub(crate) tenants: BTreeMap<TenantId, ValidMembership>,
}

/// A tenant's further caps, and the organisations above it, nearest first.
#[derive(Debug, Default)]
pub(crate) struct ValidMembership {
    pub(crate) budgets: Vec<QuotaConfig>,
    pub(crate) organisations: Vec<TenantId>,
}

impl ValidScopes {
    /// Returns every fault at once: keys, tenants, organisations, models, deployments, the whole.
    pub(crate) fn new(
        config: &ScopesConfig,
        tenants: &[(TenantId, ValidTenant)],
        deployments: &[DeploymentName],
    ) -> Result<Self, Vec<InvalidScopes>> {
        let mut check = Check { valid: Self::default(), faults: Vec::new() };
        let first_budgets: BTreeMap<_, usize> =
            tenants.iter().map(|(tenant, limits)| (tenant, usize::from(limits.budget.is_some()))).collect();
        let known = |tenant: &TenantId| first_budgets.contains_key(tenant);
        for (tenant, key, limits) in &config.keys {
            let scope = Scope::Key(tenant.clone(), key.clone());
            check.needs(&scope, Scope::Tenant(tenant.clone()), known(tenant));
            check.add(scope, limits);
        }
        let parents: BTreeMap<_, _> = config
            .organisations
            .iter()
            .map(|(id, organisation)| (id, organisation.parent.as_ref()))
            .collect();
        for (tenant, place) in &config.tenants {
            let scope = Scope::Tenant(tenant.clone());
            check.needs(&scope, scope.clone(), known(tenant));
            let first = first_budgets.get(tenant).copied().unwrap_or(0);
            check.budgets(&scope, &place.budgets, QUOTAS_MAX - first);
            let organisations = check.above(&scope, place.parent.as_ref(), &parents);
            let membership = ValidMembership { budgets: place.budgets.clone(), organisations };
            if check.valid.tenants.insert(tenant.clone(), membership).is_some() {
                check.faults.push(InvalidScopes::Duplicate { scope });
            }
        }
        for (id, organisation) in &config.organisations {
            let scope = Scope::Organisation(id.clone());
            if let Some(parent) = &organisation.parent {
                check.needs(&scope, Scope::Organisation(parent.clone()), parents.contains_key(parent));
            }
            check.acyclic(&scope, id, &parents);
            check.add(scope, &organisation.limits);
        }
        for (model, limits) in &config.models {
            check.add(Scope::Model(model.clone()), limits);
        }
        for (deployment, limits) in &config.deployments {
            let scope = Scope::Deployment(deployment.clone());
            check.needs(&scope, scope.clone(), deployments.contains(deployment));
            if limits.max_concurrency.is_some() {
                check.faults.push(InvalidScopes::Misplaced { scope: scope.clone() });
            }
            check.add(scope, limits);
        }
        if config.global != ScopeLimitsConfig::default() {
            check.add(Scope::Global, &config.global);
        }
        if check.faults.is_empty() { Ok(check.valid) } else { Err(check.faults) }
    }
}

type Parents<'a> = BTreeMap<&'a TenantId, Option<&'a TenantId>>;

struct Check {
    valid: ValidScopes,
    faults: Vec<InvalidScopes>,
}

impl Check {
    fn add(&mut self, scope: Scope, limits: &ScopeLimitsConfig) {
        let zeros = [
            (names::REQUESTS, limits.requests_per_minute == Some(0)),
            (names::TOKENS, limits.tokens_per_minute == Some(0)),
            (names::CONCURRENCY, limits.max_concurrency == Some(0)),
        ];
        for (limit, _) in zeros.into_iter().filter(|(_, zero)| *zero) {
            self.faults.push(InvalidScopes::Zero { scope: scope.clone(), limit });
        }
        self.budgets(&scope, &limits.budgets, QUOTAS_MAX);
        if self.valid.nodes.insert(scope.clone(), NodeLimits::from(limits)).is_some() {
            self.faults.push(InvalidScopes::Duplicate { scope });
        }
    }

    fn budgets(&mut self, scope: &Scope, budgets: &[QuotaConfig], most: usize) {
        for budget in budgets {
            if budget.limit.is_zero() {
                self.faults.push(InvalidScopes::Zero { scope: scope.clone(), limit: names::BUDGET });
            }
            let too_short = |length: Duration| length < Duration::from_micros(16);
            if matches!(budget.window, QuotaWindow::Rolling { length } if too_short(length)) {
                self.faults.push(InvalidScopes::EmptyWindow { scope: scope.clone() });
            }
        }
        if budgets.len() > most {
            let count = budgets.len() + QUOTAS_MAX - most;
            self.faults.push(InvalidScopes::TooManyBudgets { scope: scope.clone(), count });
        }
    }

    fn needs(&mut self, scope: &Scope, missing: Scope, known: bool) {
        if !known {
            self.faults.push(InvalidScopes::Missing { scope: scope.clone(), missing });
        }
    }

    /// The organisations above a tenant, nearest first.
    fn above(&mut self, scope: &Scope, parent: Option<&TenantId>, parents: &Parents<'_>) -> Vec<TenantId> {
        let mut above = Vec::with_capacity(ORGANISATIONS_MAX);
        let mut next = parent;
        while let Some(organisation) = next {
            if !parents.contains_key(organisation) {
                // An organisation's missing parent is told with the organisation.
                if above.is_empty() {
                    self.needs(scope, Scope::Organisation(organisation.clone()), false);
                }
                break;
            }
            if above.contains(organisation) {
                break;
            }
            if above.len() == ORGANISATIONS_MAX {
                self.faults.push(InvalidScopes::TooDeep { scope: scope.clone() });
                break;
            }
            above.push(organisation.clone());
            next = parents.get(organisation).copied().flatten();
        }
        above
    }

    /// Steps up at most as often as there are organisations.
    fn acyclic(&mut self, scope: &Scope, id: &TenantId, parents: &Parents<'_>) {
        let mut next = parents.get(id).copied().flatten();
        for _ in 0..parents.len() {
            match next {
                Some(parent) if parent == id => {
                    self.faults.push(InvalidScopes::Cycle { scope: scope.clone() });
                    return;
                }
                Some(parent) => next = parents.get(parent).copied().flatten(),
                None => return,
            }
        }
    }
}
