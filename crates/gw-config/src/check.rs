//! `gw check`: everything that can be known of a configuration without opening a socket or a store.

use std::sync::Arc;

use gw_routing::analysis::PolicyFacts;
use gw_types::{Clock, ManualClock};

use crate::{Config, Diagnostics, Environment, parts::Parts};

/// A configuration whose parts fit together.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The configuration.
    pub config: Config,
    /// How many of each there are: providers, deployments, routes, tenants.
    pub counts: [(&'static str, usize); 4],
    /// What the analysis of the routes found that is no error.
    pub warnings: Diagnostics,
    pub(crate) facts: PolicyFacts,
}

impl Checked {
    /// Builds the parts of a configuration that was read, and lets them go again.
    ///
    /// # Errors
    /// Every fault that the parts find, and what the analysis of the routes proves wrong.
    pub fn of(config: Config) -> Result<Self, Diagnostics> {
        // Nothing waits and nothing is timed, so any clock does.
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let parts = Parts::of(&config, None, &clock)?;
        let warnings = parts.warnings()?;
        let file = &config.file;
        let counts = [
            ("providers", file.providers.len()),
            ("deployments", file.deployments.len()),
            ("routes", file.routes.len()),
            ("tenants", file.tenants.len()),
        ];
        Ok(Self { config, counts, warnings, facts: parts.facts })
    }

    /// Returns the same if nothing was found at all.
    ///
    /// # Errors
    /// Every warning, as an error.
    pub fn strict(self) -> Result<Self, Diagnostics> {
        if self.warnings.is_empty() { Ok(self) } else { Err(self.warnings.strict()) }
    }
}

/// Reads and checks the text of a configuration; `name` is the file's path, for messages and relative paths.
///
/// What it accepts, [`crate::Composition::build`] builds, unless the ledger's file cannot be opened.
///
/// # Errors
/// Every fault at once. Only what the parts say about each other (regions without a deployment, shares above the pool)
/// waits until each of them is sound.
pub fn check(text: &str, name: &str, environment: &dyn Environment) -> Result<Checked, Diagnostics> {
    Checked::of(Config::parse(text, name, environment)?)
}
