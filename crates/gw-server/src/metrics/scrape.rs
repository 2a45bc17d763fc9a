//! The page that a scrape reads, with the gauges of that moment.

use std::sync::atomic::Ordering;

use gw_exec::{Accuracy, BreakerState, DeploymentSnapshot, SharedSnapshot};
use gw_types::Money;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{Label, Metrics, TenantLabels, names::TENANT_LABELS_MAX};
use crate::app::App;

/// Gauges that are read when somebody looks.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    /// One scrape at a time: names that a reload took away are cleared and written anew.
    turn: Mutex<()>,
    in_flight: Gauge,
    draining: Gauge,
    ledger_has_place: Gauge,
    ledger_failing: Gauge,
    ledger_used: Gauge,
    ledger_places: Gauge,
    waiting: Gauge,
    shared_slots: Gauge,
    shared_slots_in_use: Gauge,
    budget_limit: Family<TenantLabels, Gauge>,
    budget_spent: Family<TenantLabels, Gauge>,
    budget_reserved: Family<TenantLabels, Gauge>,
    slots: Family<TenantLabels, Gauge>,
    deployments: Deployments,
    estimates: Estimates,
    shared_limits: SharedLimits,
}

/// The store of limits that replicas share.
#[derive(Debug, Default)]
struct SharedLimits {
    lost: Gauge,
    failures: Counter,
    pending: Gauge,
}

/// How busy each deployment is, and how well.
#[derive(Debug, Default)]
struct Deployments {
    in_use: Family<DeploymentLabels, Gauge>,
    limit: Family<DeploymentLabels, Gauge>,
    tokens: Family<DeploymentLabels, Gauge>,
    breakers: Family<BreakerLabels, Gauge>,
    credentials: Family<CredentialLabels, Gauge>,
}

/// How good the estimates of tokens were.
#[derive(Debug, Default)]
struct Estimates {
    error_ppm: Gauge,
    made: Family<EstimateLabels, Counter>,
    covered: Family<EstimateLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeploymentLabels {
    deployment: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EstimateLabels {
    of: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BreakerLabels {
    deployment: Label,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CredentialLabels {
    deployment: Label,
    credential: Label,
    state: &'static str,
}

impl Gauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            ("requests_in_flight", "Requests of the data plane in flight", &self.in_flight),
            ("draining", "1 from the beginning of a shutdown", &self.draining),
            ("ledger_has_place", "1 while the ledger takes records", &self.ledger_has_place),
            ("ledger_failing", "1 while the ledger cannot be written", &self.ledger_failing),
            (
                "ledger_queue_used",
                "Places of the ledger in use: requests in flight and records not stored yet",
                &self.ledger_used,
            ),
            ("ledger_queue_places", "Places of the ledger", &self.ledger_places),
            ("queue_waiting", "Requests that wait for a slot", &self.waiting),
            ("shared_slots", "Slots that no tenant has reserved", &self.shared_slots),
            ("shared_slots_in_use", "Shared slots in use", &self.shared_slots_in_use),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for (name, help, family) in [
            ("budget_limit_micro_usd", "Budget of the window", &self.budget_limit),
            ("budget_spent_micro_usd", "Spent in the window, rounded up", &self.budget_spent),
            ("budget_reserved_micro_usd", "Held for requests in flight, rounded up", &self.budget_reserved),
            ("tenant_slots_in_use", "Calls at once", &self.slots),
        ] {
            registry.register(name, help, family.clone());
        }
        self.deployments.register(registry);
        self.estimates.register(registry);
        self.shared_limits.register(registry);
    }

    fn read(&self, app: &App) {
        let phase = app.lifecycle.phase();
        self.in_flight.set(i64::try_from(app.lifecycle.in_flight()).unwrap_or(i64::MAX));
        self.draining.set(i64::from(phase != crate::lifecycle::Phase::Serving));
        self.ledger_has_place.set(i64::from(app.ledger_has_place()));
        self.ledger_failing.set(i64::from(app.ledger.is_failing()));
        if let Some(queue) = app.ledger.queue() {
            self.ledger_used.set(count(queue.used));
            self.ledger_places.set(count(queue.places));
        }
        self.read_tenants(app);
        let snapshot = app.gateway.snapshot();
        self.waiting.set(count(snapshot.pool.waiting));
        self.shared_slots.set(snapshot.pool.shared.into());
        self.shared_slots_in_use.set(snapshot.pool.shared_in_use.into());
        self.deployments.read(&snapshot.deployments);
        self.estimates.read(&snapshot.accuracy);
        if let Some(shared) = snapshot.shared_limits {
            self.shared_limits.read(shared);
        }
    }

    fn read_tenants(&self, app: &App) {
        for family in [&self.budget_limit, &self.budget_spent, &self.budget_reserved, &self.slots] {
            // What a reload took away would go on showing its last state.
            family.clear();
        }
        for tenant in app.gateway.policy().tenants().into_iter().take(TENANT_LABELS_MAX) {
            let Some(snapshot) = app.gateway.tenant_snapshot(&tenant) else { continue };
            let labels = TenantLabels { tenant: Label::of_tenant(&tenant) };
            self.slots.get_or_create(&labels).set(snapshot.concurrency.in_use.into());
            if let Some(budget) = snapshot.budget {
                self.budget_limit.get_or_create(&labels).set(micros(budget.limit));
                self.budget_spent.get_or_create(&labels).set(micros(budget.spent));
                self.budget_reserved.get_or_create(&labels).set(micros(budget.reserved));
            }
        }
    }
}

impl SharedLimits {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "shared_limits_lost",
            "1 while the store of shared limits does not answer",
            self.lost.clone(),
        );
        registry.register(
            "shared_limits_failures",
            "Questions that the store of shared limits did not answer",
            self.failures.clone(),
        );
        registry.register(
            "shared_settlements_pending",
            "Settlements that the store of shared limits has not confirmed",
            self.pending.clone(),
        );
    }

    fn read(&self, shared: SharedSnapshot) {
        self.lost.set(i64::from(shared.lost));
        self.failures.inner().store(shared.failures, Ordering::Relaxed);
        self.pending.set(i64::try_from(shared.pending).unwrap_or(i64::MAX));
    }
}

impl Deployments {
    fn register(&self, registry: &mut Registry) {
        for (name, help, family) in [
            ("deployment_slots_in_use", "Calls in flight", &self.in_use),
            ("deployment_slots", "Calls in flight at most, where that is limited", &self.limit),
            ("deployment_tokens_in_flight", "Tokens in flight, where they are limited", &self.tokens),
        ] {
            registry.register(name, help, family.clone());
        }
        registry.register(
            "breaker_state",
            "1 for the state that the deployment's breaker is in",
            self.breakers.clone(),
        );
        registry.register(
            "credential_breaker_state",
            "1 for the state that the breaker of one of several credentials is in",
            self.credentials.clone(),
        );
    }

    fn read(&self, deployments: &[DeploymentSnapshot]) {
        for family in [&self.in_use, &self.limit, &self.tokens] {
            family.clear();
        }
        self.breakers.clear();
        self.credentials.clear();
        for deployment in deployments {
            let label = Label::Deployment(deployment.name.clone());
            let labels = DeploymentLabels { deployment: label.clone() };
            self.in_use.get_or_create(&labels).set(deployment.in_use.into());
            if let Some(limit) = deployment.limit {
                self.limit.get_or_create(&labels).set(limit.into());
            }
            if let Some(tokens) = deployment.tokens_in_flight {
                self.tokens.get_or_create(&labels).set(i64::try_from(tokens.get()).unwrap_or(i64::MAX));
            }
            for state in BreakerState::ALL {
                let labels = BreakerLabels { deployment: label.clone(), state: state.as_str() };
                self.breakers.get_or_create(&labels).set(i64::from(deployment.breaker.state == state));
                for one in &deployment.credentials {
                    let labels = CredentialLabels {
                        deployment: label.clone(),
                        credential: Label::Credential(one.name.clone()),
                        state: state.as_str(),
                    };
                    self.credentials.get_or_create(&labels).set(i64::from(one.breaker.state == state));
                }
            }
        }
    }
}

impl Estimates {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "estimate_input_error_ppm",
            "The recent mean error of the estimates of input tokens, in millionths",
            self.error_ppm.clone(),
        );
        registry.register(
            "estimates",
            "Estimates of tokens that an answer has shown to be right or wrong",
            self.made.clone(),
        );
        registry.register(
            "estimates_covered",
            "Those that were high enough; of the outputs nine in ten are to be expected",
            self.covered.clone(),
        );
    }

    fn read(&self, accuracy: &Accuracy) {
        self.error_ppm.set(i64::try_from(accuracy.input_error_ppm).unwrap_or(i64::MAX));
        for (of, made, covered) in [
            ("input", accuracy.inputs, accuracy.inputs_covered),
            ("output", accuracy.outputs, accuracy.outputs_covered),
        ] {
            // The estimator counts; these only show it.
            self.made.get_or_create(&EstimateLabels { of }).inner().store(made, Ordering::Relaxed);
            self.covered.get_or_create(&EstimateLabels { of }).inner().store(covered, Ordering::Relaxed);
        }
    }
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn micros(amount: Money) -> i64 {
    i64::try_from(amount.micros_rounded_up()).unwrap_or(i64::MAX)
}

impl Metrics {
    /// Returns the page in the `OpenMetrics` text format. Without a server, gauges are as they were last.
    pub(crate) fn page(&self, app: Option<&App>) -> String {
        let _turn = self.gauges.turn.lock();
        if let Some(app) = app {
            self.gauges.read(app);
        }
        let mut page = String::new();
        // Writing into a string cannot fail, and no label or metric of gw fails to encode.
        let _ = text::encode(&mut page, &self.registry);
        page
    }

    #[cfg(test)]
    pub(super) fn counters(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        page
    }
}
