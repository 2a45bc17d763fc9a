//! Reload: a changed configuration is compiled whole and put in force, or refused whole while the old one goes on.

mod fixed;
mod watch;

use std::{path::PathBuf, sync::Arc};

use gw_exec::Gateway;
use gw_types::{BoundedText, Ledger};

pub use self::watch::{Fingerprint, Watch};
use crate::{
    Config, Diagnostics, Environment, ServerSettings,
    composition::{InForce, Live, spend},
    parts::{self, Parts},
    server_settings,
};

/// Puts changed configurations in force.
///
/// What a request began with it keeps: the policy that it pinned, the providers and connections that it uses. Counters,
/// reservations, breakers and caches outlive the change. Reloads must follow each other: who triggers them from several
/// places takes turns.
pub struct Reloader {
    environment: Arc<dyn Environment>,
    gateway: Arc<Gateway>,
    live: Arc<Live>,
    server: ServerSettings,
    ledger: Arc<dyn Ledger>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// A changed configuration whose parts fit together, not yet in force.
#[derive(Debug)]
pub struct Compiled {
    config: Config,
    parts: Parts,
    warnings: Diagnostics,
}

/// What a reload did.
#[derive(Clone, Debug)]
pub enum Reloaded {
    /// Nothing: text and secrets say what they said before.
    Unchanged {
        /// Digest of the configuration in force.
        digest: BoundedText,
    },
    /// Another configuration is in force.
    Changed {
        /// Digest of the configuration before.
        before: BoundedText,
        /// Digest of the configuration in force.
        digest: BoundedText,
        /// What was found that does not refuse it.
        warnings: Diagnostics,
    },
}

impl Reloader {
    pub(crate) fn new(
        environment: Arc<dyn Environment>,
        gateway: Arc<Gateway>,
        live: Arc<Live>,
        server: ServerSettings,
        ledger: Arc<dyn Ledger>,
    ) -> Self {
        Self { environment, gateway, live, server, ledger }
    }

    /// Returns the file that is read.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.live.in_force.load().config.source.name())
    }

    pub(crate) fn in_force(&self) -> Arc<InForce> {
        self.live.in_force.load_full()
    }

    /// Returns the gateway that is changed.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Reads the file and compiles it, analysis of the routes included. Changes nothing. Takes up to a second for large
    /// policies, so it belongs on a thread that may be busy; `None`: nothing has changed.
    ///
    /// # Errors
    /// Every error of the configuration at once, and every setting of the server and the ledger that only a restart can
    /// change.
    pub fn compile(&self) -> Result<Option<Compiled>, Diagnostics> {
        let config = Config::load(&self.path(), &*self.environment)?.with_stored_keys()?;
        let in_force = self.live.in_force.load();
        let old = &in_force.config;
        let same_keys = config.stored.changes == old.stored.changes;
        if same_keys && config.outside == old.outside && config.digest() == old.digest() {
            return Ok(None);
        }
        fixed::check(old, &config)?;
        let parts = Parts::of(&config, Some((old, &in_force.built)), self.gateway.clock())?;
        let warnings = parts.warnings()?;
        Ok(Some(Compiled { config, parts, warnings }))
    }

    /// Puts a compiled configuration in force; the next request sees all of it.
    ///
    /// Budgets that are new are filled from the ledger. Dropping the future before it ends leaves the old configuration
    /// in force, or the new one with the last records not yet counted in new budgets.
    ///
    /// # Errors
    /// The ledger cannot be read; then nothing was changed.
    pub async fn apply(&self, compiled: Option<Compiled>) -> Result<Reloaded, Diagnostics> {
        let before = self.gateway.policy().digest().clone();
        let Some(Compiled { config, parts, warnings }) = compiled else {
            return Ok(Reloaded::Unchanged { digest: before });
        };
        let digest = parts.policy.digest().clone();
        let (clock, limits) = (self.gateway.clock(), self.gateway.limits());
        let utc = clock.utc();
        let new = spend::unknown(&parts.limits, utc, &limits.budgets(utc));
        let spent = spend::read(&config, new.clone(), &*self.ledger, utc).await?;
        let scopes = parts::scopes_config(&config);
        // The same limits were just made, so they are no fault.
        let changed = limits.reconfigure_scopes(parts::limits_config(&config), &scopes, clock.now());
        if let Err(errors) = changed {
            return Err(parts::limits_refused(&errors, &config));
        }
        spent.put(limits);
        self.server.admin_keys.replace(server_settings::admin_keys(&config));
        self.server.tls.replace(server_settings::tls(&config));
        self.server.admin_tls.replace(server_settings::admin_tls(&config));
        self.live.keys.replace(parts.keys);
        self.live.issuers.store(Arc::new(parts.issuers));
        self.gateway.reload(parts.policy);
        let again = config.clone();
        self.live.in_force.store(Arc::new(InForce { config, built: parts.built }));
        if !new.is_empty() {
            // What was spent while the ledger was read is counted once it is stored.
            self.ledger.flush().await;
            if let Ok(spent) = spend::read(&again, new, &*self.ledger, utc).await {
                spent.put(limits);
            }
        }
        Ok(Reloaded::Changed { before, digest, warnings })
    }

    /// Returns what the files of the configuration say now: the one that is read, those that it names, and the keys in
    /// the ledger.
    pub fn fingerprint(&self) -> Fingerprint {
        let in_force = self.live.in_force.load();
        let path = self.path();
        let files = std::iter::once(&path).chain(in_force.config.outside.files());
        Fingerprint::of(files, &*self.environment).with_keys(in_force.config.key_changes())
    }
}

#[cfg(test)]
mod tests;
