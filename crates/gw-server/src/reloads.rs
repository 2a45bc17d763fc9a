//! Reloads, whoever asks for them: a signal, a file that changed, the admin plane.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use gw_config::{Diagnostics, Fingerprint, Reloaded, Reloader, Watch};
use tokio::{sync::Mutex, task::spawn_blocking};

use crate::{Metrics, Telemetry};

/// How often the files are looked at. A change is taken up once it stands still from one look to the next.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Reloads one after the other, and tells the log and the metrics what became of each.
#[derive(Debug)]
pub struct Reloads {
    reloader: Arc<Reloader>,
    metrics: Arc<Metrics>,
    telemetry: Option<Arc<Telemetry>>,
    turn: Mutex<()>,
    /// What the files said when they were last read, whoever asked for it.
    tried: parking_lot::Mutex<Option<Fingerprint>>,
}

impl Reloads {
    /// Returns reloads through `reloader`; `metrics` are those of the server, which learn the names of each policy.
    pub fn new(reloader: Reloader, metrics: Arc<Metrics>) -> Self {
        Self {
            reloader: Arc::new(reloader),
            metrics,
            telemetry: None,
            turn: Mutex::new(()),
            tried: parking_lot::Mutex::new(None),
        }
    }

    /// Lets whoever tells a collector of requests learn the providers of each configuration.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Option<Arc<Telemetry>>) -> Self {
        Self { telemetry, ..self }
    }

    /// Reads the file again and puts it in force, after whatever reload is under way; `cause` stands in the log.
    ///
    /// # Errors
    /// Every error of the configuration; the old one goes on.
    pub async fn reload(&self, cause: &'static str) -> Result<Reloaded, Diagnostics> {
        let _turn = self.turn.lock().await;
        let now = self.look().await;
        *self.tried.lock() = Some(now);
        let reloader = Arc::clone(&self.reloader);
        let compiled = match spawn_blocking(move || reloader.compile()).await {
            Ok(compiled) => compiled,
            Err(lost) if lost.is_panic() => resume_unwind(lost.into_panic()),
            // The runtime is going down: nothing is to be changed any more.
            Err(_) => Ok(None),
        };
        let reloaded = match compiled {
            Ok(compiled) => self.reloader.apply(compiled).await,
            Err(faults) => Err(faults),
        };
        self.tell(cause, &reloaded);
        reloaded
    }

    fn tell(&self, cause: &'static str, reloaded: &Result<Reloaded, Diagnostics>) {
        match reloaded {
            Ok(Reloaded::Unchanged { digest }) => {
                self.metrics.reloaded("unchanged");
                tracing::info!(cause, %digest, "the configuration has not changed");
            }
            Ok(Reloaded::Changed { before, digest, warnings }) => {
                self.metrics.learn(&self.reloader.gateway().policy());
                if let Some(telemetry) = &self.telemetry {
                    telemetry.learn(self.reloader.providers_by_convention());
                }
                self.metrics.reloaded("changed");
                if before == digest {
                    tracing::info!(cause, %digest, "what stands outside of the file has changed and is in force");
                } else {
                    tracing::info!(cause, %before, %digest, "another configuration is in force");
                }
                for warning in warnings.iter() {
                    tracing::warn!("{warning}");
                }
            }
            Err(faults) => {
                self.metrics.reloaded("refused");
                let digest = self.reloader.gateway().policy().digest().clone();
                tracing::error!(cause, %digest, errors = faults.iter().len(), "a configuration was refused");
                for fault in faults.iter() {
                    tracing::error!("{fault}");
                }
            }
        }
    }

    /// Reloads whenever the file, or one that it names, says something else; never ends.
    pub async fn watch(&self) {
        let mut seen = self.look().await;
        let mut watch = Watch::new(seen);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.look().await;
            if !watch.look(now) {
                continue;
            }
            let before = std::mem::replace(&mut seen, now);
            let tried = *self.tried.lock();
            if tried != Some(now) {
                // What became of it was told.
                drop(self.reload(now.cause_since(&tried.unwrap_or(before))).await);
            }
        }
    }

    async fn look(&self) -> Fingerprint {
        let reloader = Arc::clone(&self.reloader);
        match spawn_blocking(move || reloader.fingerprint()).await {
            Ok(fingerprint) => fingerprint,
            Err(lost) if lost.is_panic() => resume_unwind(lost.into_panic()),
            Err(_) => std::future::pending().await,
        }
    }
}
