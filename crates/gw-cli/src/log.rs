//! The log: one line an event on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts the log.
///
/// # Errors
/// The filter cannot be read.
pub(crate) fn start(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("error: the log filter cannot be read: {error}"))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(|error| format!("error: {error}"))
}
