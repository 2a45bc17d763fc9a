//! Where the time of requests goes, as histograms.

use std::time::Duration;

use gw_types::AccountingRecord;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
    registry::Registry,
};

use super::Label;

/// Upper bounds of whole requests and of what others take, in seconds.
const SECONDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// Upper bounds of gw's own work, in seconds.
const OWN_SECONDS: [f64; 10] =
    [0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 1.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeploymentLabels {
    deployment: Label,
}

/// The phases of a request, each with a histogram. A phase that a request did not have is no sample.
#[derive(Debug)]
pub(super) struct Phases {
    total: Histogram,
    queue: Histogram,
    backoff: Histogram,
    first_byte: Histogram,
    rest: Histogram,
    own: Histogram,
    attempts: Family<DeploymentLabels, Histogram>,
}

impl Default for Phases {
    fn default() -> Self {
        let seconds = || Histogram::new(SECONDS);
        Self {
            total: seconds(),
            queue: seconds(),
            backoff: seconds(),
            first_byte: seconds(),
            rest: seconds(),
            own: Histogram::new(OWN_SECONDS),
            attempts: Family::new_with_constructor(|| Histogram::new(SECONDS)),
        }
    }
}

impl Phases {
    pub(super) fn register(&self, registry: &mut Registry) {
        for (name, help, histogram) in [
            ("request_seconds", "From arrival to the last byte", &self.total),
            ("queue_seconds", "Waiting for slots, of requests that waited", &self.queue),
            ("backoff_seconds", "Waiting between attempts, of requests that waited", &self.backoff),
            (
                "upstream_first_byte_seconds",
                "From the first call to the first byte of the answer",
                &self.first_byte,
            ),
            ("upstream_rest_seconds", "From the first byte of the answer to the last", &self.rest),
            ("own_seconds", "The gateway's own work", &self.own),
        ] {
            registry.register(name, help, histogram.clone());
        }
        registry.register("attempt_seconds", "Provider calls, each to its end", self.attempts.clone());
    }

    pub(super) fn observe(&self, record: &AccountingRecord) {
        let latency = &record.latency;
        self.total.observe(seconds(latency.total_us));
        self.own.observe(seconds(latency.own_us));
        let answered = latency.upstream_first_byte_us > 0;
        for (histogram, micros) in [
            (&self.queue, latency.queue_us),
            (&self.backoff, latency.backoff_us),
            (&self.first_byte, latency.upstream_first_byte_us),
            (&self.rest, if answered { latency.upstream_rest_us } else { 0 }),
        ] {
            if micros > 0 {
                histogram.observe(seconds(micros));
            }
        }
    }

    /// Notes how long a call took, in microseconds.
    pub(super) fn attempt(&self, deployment: &Label, micros: u64) {
        let labels = DeploymentLabels { deployment: deployment.clone() };
        self.attempts.get_or_create(&labels).observe(seconds(micros));
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}
