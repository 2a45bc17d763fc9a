//! What is counted, and the page that shows it.
//!
//! Everything about requests is computed from their records, so metrics and records cannot disagree. Every label value
//! comes from a closed set: kinds and states of the code, names of the configuration. Nothing that a client or a
//! provider writes can make a series.

mod ledger;
mod names;
mod phases;
mod scrape;

use gw_exec::Policy;
use gw_types::{AccountingRecord, CacheState, Outcome};
use parking_lot::RwLock;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

pub use self::ledger::MetricsLedger;
use self::{
    names::{Label, Names, TENANT_LABELS_MAX, TenantCounters},
    phases::Phases,
    scrape::Gauges,
};
use crate::refusal::Reason;

/// Counts what the gateway does.
///
/// Fed with every record by [`MetricsLedger`] and with refusals by the server; shown by `/metrics`. Counting a record
/// costs a few hash look-ups and takes no lock that a scrape holds for long.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    names: RwLock<Names>,
    requests: Family<RequestLabels, Counter>,
    attempts: Family<AttemptLabels, Counter>,
    unclassified: Family<DeploymentLabels, Counter>,
    caches: [Counter; CACHE_STATES.len()],
    refusals: Family<ReasonLabels, Counter>,
    phases: Phases,
    per_tenant: PerTenant,
    overrun: Counter,
    connections: Gauge,
    reloads: Family<ResultLabels, Counter>,
    untold: Counter,
    messages_lost: Counter,
    gauges: Gauges,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    outcome: &'static str,
    error: &'static str,
    operation: &'static str,
    route: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    deployment: Label,
    error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeploymentLabels {
    deployment: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TenantLabels {
    pub(crate) tenant: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantOutcomeLabels {
    tenant: Label,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    tenant: Label,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

const CACHE_STATES: [CacheState; 5] =
    [CacheState::Bypass, CacheState::Miss, CacheState::Exact, CacheState::Semantic, CacheState::Coalesced];

/// What is counted by tenant.
#[derive(Debug, Default)]
struct PerTenant {
    requests: Family<TenantOutcomeLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    cost: Family<TenantLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Returns metrics at zero that know no name of the configuration yet: until [`Metrics::learn`], names are `other`.
    pub fn new() -> Self {
        let cache = Family::<CacheLabels, Counter>::default();
        let mut metrics = Self {
            registry: Registry::with_prefix("gw"),
            names: RwLock::default(),
            requests: Family::default(),
            attempts: Family::default(),
            unclassified: Family::default(),
            caches: CACHE_STATES
                .map(|state| cache.get_or_create_owned(&CacheLabels { state: state.as_str() })),
            refusals: Family::default(),
            phases: Phases::default(),
            per_tenant: PerTenant::default(),
            overrun: Counter::default(),
            connections: Gauge::default(),
            reloads: Family::default(),
            untold: Counter::default(),
            messages_lost: Counter::default(),
            gauges: Gauges::default(),
        };
        metrics.register(cache);
        metrics
    }

    fn register(&mut self, cache: Family<CacheLabels, Counter>) {
        let registry = &mut self.registry;
        registry.register("requests", "Requests by their final outcome", self.requests.clone());
        registry.register(
            "attempts",
            "Provider calls; error is none where they worked",
            self.attempts.clone(),
        );
        registry.register(
            "unclassified_errors",
            "Provider errors of a shape that the gateway does not know",
            self.unclassified.clone(),
        );
        registry.register("cache", "Requests by what the cache did", cache);
        registry.register("refusals", "Requests turned away at the door, by reason", self.refusals.clone());
        self.phases.register(registry);
        registry.register(
            "tenant_requests",
            "Requests of a tenant by their final outcome",
            self.per_tenant.requests.clone(),
        );
        registry.register("tokens", "Tokens used, by class", self.per_tenant.tokens.clone());
        registry.register(
            "cost_pico_usd",
            "Cost of calls and side costs, exact",
            self.per_tenant.cost.clone(),
        );
        registry.register("overrun_pico_usd", "Billed beyond the bound that was sent", self.overrun.clone());
        registry.register("connections", "Client connections open", self.connections.clone());
        registry.register(
            "config_reloads",
            "Times that the configuration was read again, by what became of it",
            self.reloads.clone(),
        );
        for (name, help, counter) in [
            ("telemetry_untold", "Requests whose spans no collector got", &self.untold),
            ("telemetry_messages_lost", "Messages that the collector did not take", &self.messages_lost),
        ] {
            registry.register(name, help, counter.clone());
        }
        self.gauges.register(registry);
    }

    /// Learns the names of a policy: its deployments and tenants keep their own series from then on. A route needs no
    /// learning: a record names none but those of the configuration. Of the tenants, the first 1,000 by name have series
    /// of their own; the others share one.
    pub fn learn(&self, policy: &Policy) {
        let tenants = policy.tenants().into_iter().take(TENANT_LABELS_MAX).map(|tenant| {
            let counters = self.per_tenant.counters(&Label::of_tenant(&tenant));
            (tenant, counters)
        });
        let names = Names::of(policy, tenants.collect(), self.per_tenant.counters(&Label::Other));
        *self.names.write() = names;
    }

    /// Counts a finished request.
    pub(crate) fn observe(&self, record: &AccountingRecord) {
        let names = self.names.read();
        let labels = RequestLabels {
            outcome: record.outcome.as_str(),
            error: record.error.map_or("none", gw_types::ErrorKind::as_str),
            operation: record.facts.as_ref().map_or("unread", |facts| facts.operation.as_str()),
            route: record.route.as_ref().map_or(Label::None, |route| Label::Route(route.clone())),
        };
        self.requests.get_or_create(&labels).inc();
        for attempt in &record.attempts {
            let error = attempt.error.map_or("none", gw_types::ErrorKind::as_str);
            let deployment = names.deployment(&attempt.deployment);
            if attempt.unclassified {
                self.unclassified.get_or_create(&DeploymentLabels { deployment: deployment.clone() }).inc();
            }
            self.phases.attempt(&deployment, attempt.duration_us);
            self.attempts.get_or_create(&AttemptLabels { deployment, error }).inc();
        }
        if let Some(counter) = CACHE_STATES.iter().position(|state| *state == record.cache) {
            self.caches[counter].inc();
        }
        self.phases.observe(record);
        self.overrun.inc_by(pico(record.overrun.pico()));
        if let Some(tenant) = names.tenant(&record.tenant) {
            tenant.add(record);
        }
    }

    /// Counts a request that was turned away at the door.
    pub(crate) fn refused(&self, reason: Reason) {
        self.refusals.get_or_create(&ReasonLabels { reason: reason.as_str() }).inc();
    }

    /// Counts a time that the configuration was read again.
    pub(crate) fn reloaded(&self, result: &'static str) {
        self.reloads.get_or_create(&ResultLabels { result }).inc();
    }

    /// Counts requests whose spans no collector got.
    pub(crate) fn untold(&self, requests: u64) {
        self.untold.inc_by(requests);
    }

    /// Counts a message that the collector did not take.
    pub(crate) fn message_lost(&self) {
        self.messages_lost.inc();
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn connection(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl PerTenant {
    fn counters(&self, tenant: &Label) -> TenantCounters {
        let tokens = |class| self.tokens.get_or_create_owned(&TokenLabels { tenant: tenant.clone(), class });
        TenantCounters {
            requests: Outcome::ALL.map(|outcome| {
                let outcome = outcome.as_str();
                self.requests.get_or_create_owned(&TenantOutcomeLabels { tenant: tenant.clone(), outcome })
            }),
            input: tokens("input"),
            cached_input: tokens("cached_input"),
            output: tokens("output"),
            cost: self.cost.get_or_create_owned(&TenantLabels { tenant: tenant.clone() }),
        }
    }
}

impl TenantCounters {
    fn add(&self, record: &AccountingRecord) {
        let usage = &record.usage;
        if let Some(counter) = Outcome::ALL.iter().position(|outcome| *outcome == record.outcome) {
            self.requests[counter].inc();
        }
        self.input.inc_by(usage.input_total().saturating_sub(usage.cached_input).get());
        self.cached_input.inc_by(usage.cached_input.get());
        self.output.inc_by(usage.output_total().get());
        self.cost.inc_by(cost(record));
    }
}

/// Returns what a request cost, with what was spent beside it, in pico-USD.
fn cost(record: &AccountingRecord) -> u64 {
    pico(record.side_costs.iter().fold(record.cost.pico(), |sum, side| sum.saturating_add(side.cost.pico())))
}

/// Returns an amount of pico-USD as a counter holds it: at most 18 million USD a step.
fn pico(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
