//! What every connection needs: the parts that were put in, and the state of the server itself.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use gw_config::ServerSettings;
use gw_exec::Gateway;
use gw_types::{Clock, KeyStore, Ledger};

use crate::{Reloads, Tokens, lifecycle::Lifecycle, metrics::Metrics};

/// How long a connection may be idle between two requests. Longer than the pools of the official clients keep theirs,
/// so that the side that closes is the side that sends.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a client may take no byte of an answer before it is given up.
pub(crate) const WRITE_STALL: Duration = Duration::from_secs(10);

/// How long the rest of an unread body is thrown away before the connection closes under it.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// The most that is thrown away, in bytes.
pub(crate) const LINGER_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// The largest head of a request, in bytes; also what a connection buffers of a body that comes in, and of an answer
/// that its client does not take.
pub(crate) const BUFFER_BYTES_MAX: usize = 64 * 1_024;

/// What every connection needs.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: ServerSettings,
    pub(crate) clock: Arc<dyn Clock>,
    /// Absent where the configuration is from no file.
    pub(crate) reloads: OnceLock<Arc<Reloads>>,
    /// Absent where nobody could issue tokens.
    pub(crate) tokens: OnceLock<Tokens>,
    pub(crate) lifecycle: Lifecycle,
    /// When the server was built, in seconds since 1970: the age of every model it lists.
    pub(crate) created: i64,
}

impl App {
    /// Returns whether the ledger takes records now.
    pub(crate) fn ledger_has_place(&self) -> bool {
        let has_place = self.ledger.take_place();
        if has_place {
            self.ledger.give_place_back();
        }
        has_place
    }
}
