//! The signals that ask a command to end.

use tokio::signal::unix::{SignalKind, signal};

/// Listens for SIGTERM and SIGINT; what is returned resolves at the first of them.
///
/// # Errors
/// The system gives no notice of signals.
pub(crate) fn stop_asked() -> Result<impl Future<Output = ()>, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("error: cannot listen for signals: {error}"));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
