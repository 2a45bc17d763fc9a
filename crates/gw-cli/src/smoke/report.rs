//! The report: what was observed apart from what was measured. `docs/schemas/report.json` is its schema.

use std::time::Duration;

use gw_types::Clock;
use serde::Serialize;

use super::{
    comparison::Way,
    finding::{Finding, Measured, Observed},
};

/// The version of the report's schema.
const VERSION: u32 = 1;

/// What the report is, and is not.
const STATEMENT: &str = "What gw does with a fault server inside its own process, on one thread. It says nothing about \
                         the speed of any provider or model.";

/// One run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    pub(super) statement: &'static str,
    pub(super) passed: bool,
    pub(super) checks: Vec<Checked>,
    pub(super) comparison: Vec<Way>,
    /// Where and when; no other run has the same.
    pub(super) environment: Environment,
}

/// One check and what it came to.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    pub(super) name: &'static str,
    pub(super) claim: &'static str,
    pub(super) passed: bool,
    /// The same in every run.
    observed: Observed,
    /// Times and what follows from them.
    pub(super) measured: Measured,
}

impl Checked {
    pub(super) fn new(name: &'static str, claim: &'static str, finding: Finding) -> Self {
        let Finding { passed, observed, measured, events: _ } = finding;
        Self { name, claim, passed, observed, measured }
    }

    pub(super) fn observed(&self) -> String {
        serde_json::to_string(&self.observed).unwrap_or_default()
    }
}

/// Where and when.
#[derive(Debug, Serialize)]
pub(super) struct Environment {
    pub(super) gw: &'static str,
    pub(super) build: &'static str,
    pub(super) system: &'static str,
    pub(super) architecture: &'static str,
    /// Cores that this process may use; the run itself uses one.
    pub(super) cores: usize,
    pub(super) ended: String,
    pub(super) elapsed_ms: u64,
}

impl Environment {
    pub(super) fn of(clock: &dyn Clock, elapsed: Duration) -> Self {
        Self {
            gw: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            ended: clock.utc().to_rfc3339(),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Report {
    pub(super) fn new(checks: Vec<Checked>, comparison: Vec<Way>, environment: Environment) -> Self {
        let passed = checks.iter().all(|check| check.passed);
        Self { version: VERSION, statement: STATEMENT, passed, checks, comparison, environment }
    }

    pub(super) fn json(&self) -> String {
        // Texts, numbers and lists of them, which JSON can hold.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
