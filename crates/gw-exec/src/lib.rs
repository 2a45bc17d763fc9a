//! The request pipeline of the gw model gateway.
//!
//! [`Gateway`] takes a request through admission, quota, limits, routing, cache, reservation, attempts and settlement
//! and leaves one record of it, on every path out. It sees no wire format, opens no socket and reads no clock: adapters,
//! ledger, time, chance and ids come in through the seams of `gw-types`.
//!
//! ```
//! use std::time::Duration;
//! use gw_exec::SystemClock;
//! use gw_types::Clock;
//!
//! let clock = SystemClock::default();
//! let deadline = clock.now().saturating_add(Duration::from_secs(3));
//! assert!(deadline.saturating_since(clock.now()) <= Duration::from_secs(3));
//! ```

#![forbid(unsafe_code)]

mod admission;
mod aside;
mod attempts;
mod backoff;
mod batch;
mod budget;
mod embedding;
mod estimate;
mod flight;
mod gateway;
mod health;
mod hedge;
mod held;
mod idempotency;
mod judging;
mod lanes;
mod opening;
mod pinned;
mod pipeline;
mod policy;
mod progress;
mod relay;
mod remember;
mod reply;
mod schema;
mod shared_limits;
mod sharing;
mod snapshot;
mod state;
mod station;
mod storing;
mod system;
mod tasks;
mod timeout;

pub use gw_cache::{CacheUsage, InvalidationScope, JudgeReport, PartitionReport, verify::VerifierReport};
pub use gw_limits::{
    Accuracy, BucketSnapshot, BudgetSnapshot, ConcurrencySnapshot, PoolSnapshot, QuotaSnapshot, QuotaWindow,
    Scope, ScopeSnapshot, TenantSnapshot, Window, Zone,
};

pub use self::{
    batch::{
        BATCH_WORKERS_MAX, Batch, BatchConfig, GenerationRequest, GenerationResult, GenerationStatus, Ids,
        ModelIdentity, OnFailure, Order, SeenIds, Stop,
    },
    embedding::EmbeddingCodec,
    estimate::{input_at_least, input_estimate},
    gateway::{Admitted, Gateway},
    health::{BreakerSnapshot, BreakerState},
    judging::JudgeCodec,
    policy::{
        DeploymentPolicy, KeyScope, Policy, PolicyConfig, QueuePolicy, RouteEmbedder, RoutePolicy, Target,
        TargetCredential, TenantPolicy, TokenFacts,
    },
    relay::{Relay, RelayItem},
    reply::{Body, Failure, KeptEvents, Reply, ReplyHead, Settled, StreamBody},
    shared_limits::{LossPolicy, SharedConfig, SharedSnapshot},
    snapshot::{CacheReport, CacheScopeUsage, CredentialSnapshot, DeploymentSnapshot, GatewaySnapshot},
    state::StateConfig,
    system::{SystemClock, SystemIds, SystemRandom},
};
