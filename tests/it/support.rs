//! What the tests are built of: configurations, a house in this process, the real program, a client.

mod asking;
mod client;
mod collector;
mod gateway;
mod house;
mod process;
mod raw;
mod sse;
mod toml;

pub(crate) use self::{
    asking::{Ask, chat, key_of},
    client::{Answer, Call},
    collector::{Collector, Told},
    gateway::{Gw, metric, series},
    house::{House, cost_by},
    process::{Program, run_gw},
    raw::{Raw, raw_chat},
    sse::{Events, said},
    toml::Toml,
};

use std::{future::Future, time::Duration};

/// How long anything may take before a test gives up; nothing takes a tenth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often a condition that sends no signal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits for the future, and for no longer than the test's patience.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} did not happen in time"),
    }
}

/// Looks again and again until there is something.
pub(crate) async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    within(what, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })
    .await
}
