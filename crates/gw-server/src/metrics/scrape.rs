//! The page that a scrape reads, with the gauges of that moment.

use std::sync::atomic::Ordering;

use gw_exec::{BreakerState, GatewaySnapshot};
use gw_types::Money;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{Label, Metrics, TenantLabels};
use crate::app::App;

/// Gauges that are read when somebody looks.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    in_flight: Gauge,
    draining: Gauge,
    ledger_has_place: Gauge,
    budget_limit: Family<TenantLabels, Gauge>,
    budget_spent: Family<TenantLabels, Gauge>,
    budget_reserved: Family<TenantLabels, Gauge>,
    slots: Family<TenantLabels, Gauge>,
    breakers: Family<BreakerLabels, Gauge>,
    shared_lost: Gauge,
    shared_failures: Counter,
    shared_pending: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BreakerLabels {
    deployment: Label,
    state: &'static str,
}

impl Gauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "requests_in_flight",
            "Requests of the data plane in flight",
            self.in_flight.clone(),
        );
        registry.register("draining", "1 from the beginning of a shutdown", self.draining.clone());
        registry.register(
            "ledger_has_place",
            "1 while the ledger takes records",
            self.ledger_has_place.clone(),
        );
        registry.register("budget_limit_micro_usd", "Budget of the window", self.budget_limit.clone());
        registry.register(
            "budget_spent_micro_usd",
            "Spent in the window, rounded up",
            self.budget_spent.clone(),
        );
        registry.register(
            "budget_reserved_micro_usd",
            "Held for requests in flight, rounded up",
            self.budget_reserved.clone(),
        );
        registry.register("tenant_slots_in_use", "Calls at once", self.slots.clone());
        registry.register(
            "breaker_state",
            "1 for the state that the deployment's breaker is in",
            self.breakers.clone(),
        );
        registry.register(
            "shared_limits_lost",
            "1 while the store of shared limits does not answer",
            self.shared_lost.clone(),
        );
        registry.register(
            "shared_limits_failures",
            "Questions that the store of shared limits did not answer",
            self.shared_failures.clone(),
        );
        registry.register(
            "shared_settlements_pending",
            "Settlements that the store of shared limits has not confirmed",
            self.shared_pending.clone(),
        );
    }

    fn read(&self, app: &App) {
        let phase = app.lifecycle.phase();
        self.in_flight.set(i64::try_from(app.lifecycle.in_flight()).unwrap_or(i64::MAX));
        self.draining.set(i64::from(phase != crate::lifecycle::Phase::Serving));
        self.ledger_has_place.set(i64::from(app.ledger_has_place()));
        for tenant in app.gateway.policy().tenants() {
            let Some(snapshot) = app.gateway.tenant_snapshot(&tenant) else { continue };
            let labels = TenantLabels { tenant: Label::of_tenant(&tenant) };
            self.slots.get_or_create(&labels).set(snapshot.concurrency.in_use.into());
            if let Some(budget) = snapshot.budget {
                self.budget_limit.get_or_create(&labels).set(micros(budget.limit));
                self.budget_spent.get_or_create(&labels).set(micros(budget.spent));
                self.budget_reserved.get_or_create(&labels).set(micros(budget.reserved));
            }
        }
        let snapshot = app.gateway.snapshot();
        self.read_breakers(&snapshot);
        if let Some(shared) = snapshot.shared_limits {
            self.shared_lost.set(i64::from(shared.lost));
            self.shared_failures.inner().store(shared.failures, Ordering::Relaxed);
            self.shared_pending.set(i64::try_from(shared.pending).unwrap_or(i64::MAX));
        }
    }

    fn read_breakers(&self, snapshot: &GatewaySnapshot) {
        // What a reload took away would go on showing its last state.
        self.breakers.clear();
        for deployment in &snapshot.deployments {
            for state in BreakerState::ALL {
                let labels = BreakerLabels {
                    deployment: Label::Deployment(deployment.name.clone()),
                    state: state.as_str(),
                };
                self.breakers.get_or_create(&labels).set(i64::from(deployment.breaker.state == state));
            }
        }
    }
}

fn micros(amount: Money) -> i64 {
    i64::try_from(amount.micros_rounded_up()).unwrap_or(i64::MAX)
}

impl Metrics {
    /// Returns the page in the `OpenMetrics` text format.
    pub(crate) fn page(&self, app: &App) -> String {
        self.gauges.read(app);
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
