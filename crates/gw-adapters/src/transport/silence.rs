//! Peers that have vanished: what a call that heard nothing says about other connections.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{fault::SendFault, h2::H2, pool::Pool};

/// A call that is given up earlier than this says nothing about its connection: its client has left, or another call
/// was quicker.
const SUSPICIOUS: Duration = Duration::from_secs(1);

/// Listens for a call's answer on a connection. Where none came for long, by a limit here or because the caller gave up,
/// the connections that nothing newer was heard of take no more calls. An honest provider that was merely slow costs
/// them, and so some handshakes.
pub(super) struct Listening<'a> {
    to: Option<To<'a>>,
    since: Instant,
}

enum To<'a> {
    /// Kept connections that have been idle for as long as the one in use had been.
    Kept { pool: &'a Pool, idle_since: Instant },
    /// A shared one, and the answers that had come over it.
    Shared { connection: Arc<H2>, answers: u64 },
}

impl<'a> Listening<'a> {
    /// Listens on a connection of one call; one that is new says nothing about others.
    pub(super) fn on_own(pool: &'a Pool, idle_since: Option<Instant>) -> Self {
        let to = idle_since.map(|idle_since| To::Kept { pool, idle_since });
        Self { to, since: Instant::now() }
    }

    /// Listens on a connection of many calls.
    pub(super) fn on_shared(connection: &Arc<H2>) -> Self {
        let to = To::Shared { connection: Arc::clone(connection), answers: connection.answers() };
        Self { to: Some(to), since: Instant::now() }
    }

    /// Ends with what was heard.
    pub(super) fn end(mut self, fault: Option<&SendFault>) {
        let to = self.to.take();
        if fault.is_some_and(|fault| fault.is_silence()) {
            suspect(to);
        }
    }
}

/// Dropped before it has ended: the caller has given up.
impl Drop for Listening<'_> {
    fn drop(&mut self) {
        if self.to.is_some() && self.since.elapsed() >= SUSPICIOUS {
            suspect(self.to.take());
        }
    }
}

fn suspect(to: Option<To<'_>>) {
    match to {
        Some(To::Kept { pool, idle_since }) => pool.close_idle_since(idle_since),
        Some(To::Shared { connection, answers }) => connection.suspect(answers),
        None => {}
    }
}
