//! Decides whether, and when, a request may go, and holds what it must give back.
//!
//! Four limits, all in integers: requests and tokens a minute ([`Bucket`]), money a window of the calendar or of time
//! ([`Reservation`]), calls at once ([`Slot`], [`DeploymentSlot`]). They apply to every [`Scope`] that a request
//! concerns: [`Limits::subject`] brings these together, and a [`Subject`] decides in all of them before it takes from
//! any. A refusal takes nothing anywhere. What is taken is owned by a guard that gives it back when dropped, so no way
//! out of a request can leak it. [`TenantLimits`] is the case of one scope.
//!
//! Who may wait does so in a fair queue ([`Subject::acquire`]), at a pace ([`Pacer`]) or for tokens in flight
//! ([`TokenBudget`]). How many tokens a request will use is learnt by the [`Estimator`]. Settlements that come from
//! elsewhere, late or twice find their reservation in a [`ReservationBook`].
//!
//! The crate reads no clock but the one that it is handed, has no runtime and no task of its own, and holds no lock
//! across a call out of it. What several processes limit together is asked of a store behind [`SharedLimits`].
//!
//! ```
//! use gw_limits::{BudgetConfig, Limits, LimitsConfig, TenantLimitsConfig, Window};
//! use gw_types::{Money, MonoTime, TenantId, TokenCount, UtcTime};
//!
//! let id = TenantId::new("wholesale").unwrap();
//! let tenant = TenantLimitsConfig {
//!     requests_per_minute: Some(600),
//!     tokens_per_minute: Some(400_000),
//!     budget: Some(BudgetConfig { limit: Money::from_micros(1_000), window: Window::Day }),
//!     ..TenantLimitsConfig::default()
//! };
//! let config = LimitsConfig { tenants: vec![(id.clone(), tenant)], deployments: vec![], pool_capacity: 64 };
//! let (now, utc) = (MonoTime::ZERO, UtcTime::from_micros(0));
//! let limits = Limits::new(config, now).unwrap();
//! let tenant = limits.tenant(&id).unwrap();
//! let admission = tenant.admit(TokenCount::new(500), now).unwrap();
//! let mut reservation = tenant.reserve(Money::from_micros(400), utc).unwrap();
//! let slot = tenant.slot().unwrap();
//! reservation.dispatched();
//! assert_eq!(reservation.commit(Money::from_micros(300)), Money::ZERO);
//! admission.settle(TokenCount::new(420), now);
//! let after = tenant.snapshot(now, utc);
//! assert_eq!(after.budget.unwrap().spent, Money::from_micros(300));
//! ```

mod admission;
mod book;
mod bucket;
mod config;
mod estimate;
mod gauge;
mod in_flight;
mod limits;
mod line;
#[cfg(all(test, loom))]
mod models;
mod node;
mod pacing;
mod queue;
mod quota;
mod rates;
mod refusal;
mod registry;
mod reservation;
mod scope;
mod scopes;
mod shared;
mod slots;
mod snapshot;
mod subject;
mod sync;
mod tenant;
mod window;
mod zone;

pub use self::{
    admission::Admission,
    book::{BookTotals, ReservationBook, ReservationState, Settlement},
    bucket::{Bucket, Denied, Rate},
    config::{BudgetConfig, InvalidLimits, LimitsConfig, TenantLimitsConfig},
    estimate::{Accuracy, Estimator, InputEstimate, MilliTokens, OutputScale, Vocabulary},
    in_flight::{TokenBudget, TokenWait, TokensInFlight},
    limits::{BudgetPeriod, Limits},
    pacing::{PaceWait, Pacer},
    queue::{PoolSnapshot, Priority, Ticket, Waiting},
    refusal::{LimitRefusal, RefusedLimit, ScopeRefusal},
    reservation::{Reservation, Worth},
    scope::Scope,
    scopes::{
        BudgetEstimate, InvalidScopes, OrganisationConfig, QuotaConfig, QuotaWindow, ScopeLimitsConfig,
        ScopesConfig, TenantScopeConfig,
    },
    shared::{
        SharedAsked, SharedLimit, SharedLimits, SharedLost, SharedSettlement, SharedTake, SharedUse,
        SharedVerdict,
    },
    slots::{DeploymentSlot, DeploymentSlots, Slot},
    snapshot::{
        BucketSnapshot, BudgetSnapshot, ConcurrencySnapshot, QuotaSnapshot, ScopeSnapshot, TenantSnapshot,
    },
    subject::{Subject, SubjectIds},
    tenant::TenantLimits,
    window::Window,
    zone::{UnknownZone, Zone},
};
