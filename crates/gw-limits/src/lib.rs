//! Decides whether a request of a tenant may go, and holds what it must give back.
//!
//! Four limits, all in integers: requests and tokens a minute ([`Bucket`]), money a calendar window
//! ([`Reservation`]), calls at once ([`Slot`], [`DeploymentSlot`]). A refusal in one of them takes nothing from any
//! other. What is taken is owned by a guard that gives it back when dropped, so no way out of a request can leak it.
//!
//! The crate reads no clock, waits for nothing, and holds no lock across a call of its own: instants are passed in, an
//! answer comes at once. Queues, pacing and limits shared between processes are deliberately absent.
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
//!
//! let limits = Limits::new(config, now).unwrap();
//! let tenant = limits.tenant(&id).unwrap();
//! let admission = tenant.admit(TokenCount::new(500), now).unwrap();
//! let mut reservation = tenant.reserve(Money::from_micros(400), utc).unwrap();
//! let slot = tenant.slot().unwrap();
//! reservation.dispatched();
//! // ... the call ...
//! drop(slot);
//! assert_eq!(reservation.commit(Money::from_micros(300)), Money::ZERO);
//! admission.settle(TokenCount::new(420), now);
//!
//! let after = tenant.snapshot(now, utc);
//! assert_eq!(after.tokens.unwrap().remaining, 400_000 - 420);
//! assert_eq!(after.budget.unwrap().spent, Money::from_micros(300));
//! ```

mod admission;
mod bucket;
mod config;
mod gauge;
mod limits;
mod quota;
mod rates;
mod reservation;
mod slots;
mod snapshot;
mod tenant;
mod window;

pub use self::{
    admission::{Admission, LimitRefusal},
    bucket::{Bucket, Denied, Rate},
    config::{BudgetConfig, InvalidLimits, LimitsConfig, TenantLimitsConfig},
    limits::Limits,
    reservation::Reservation,
    slots::{DeploymentSlot, DeploymentSlots, Slot},
    snapshot::{BucketSnapshot, BudgetSnapshot, ConcurrencySnapshot, TenantSnapshot},
    tenant::TenantLimits,
    window::Window,
};
