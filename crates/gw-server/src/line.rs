//! What a client's connection, its I/O and its requests tell each other.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use gw_types::MonoTime;

use crate::app::App;

/// Stands for "no deadline".
const NEVER: u64 = u64::MAX;

/// One client's connection, as its I/O and its requests share it. Every field is a hint for one task, so relaxed
/// loads and stores are enough.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) app: Arc<App>,
    /// Where the client is; an IPv4 address that is mapped into IPv6 as itself.
    pub(crate) peer: IpAddr,
    calls: AtomicU32,
    active: AtomicU32,
    body_deadline: AtomicU64,
    body_expired: AtomicBool,
    unread: AtomicBool,
}

impl Line {
    pub(crate) fn new(app: Arc<App>, peer: IpAddr) -> Self {
        Self {
            app,
            peer,
            calls: AtomicU32::new(0),
            active: AtomicU32::new(0),
            body_deadline: AtomicU64::new(NEVER),
            body_expired: AtomicBool::new(false),
            unread: AtomicBool::new(false),
        }
    }

    /// Returns how many requests have begun, wrapping.
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns whether a request is being answered.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    /// Returns until when the client's body has to be here.
    pub(crate) fn body_deadline(&self) -> Option<MonoTime> {
        let nanos = self.body_deadline.load(Ordering::Relaxed);
        (nanos != NEVER).then(|| MonoTime::from_nanos(nanos))
    }

    /// Says until when the client's body has to be here; `None`: it is here, or nobody waits for it.
    pub(crate) fn expect_body(&self, until: Option<MonoTime>) {
        self.body_deadline.store(until.map_or(NEVER, MonoTime::nanos), Ordering::Relaxed);
    }

    /// Notes that the body did not come in time.
    pub(crate) fn expire_body(&self) {
        self.body_expired.store(true, Ordering::Relaxed);
        self.expect_body(None);
    }

    /// Returns whether the body did not come in time.
    pub(crate) fn body_expired(&self) -> bool {
        self.body_expired.load(Ordering::Relaxed)
    }

    /// Says whether the client may still be sending a body that nobody reads.
    pub(crate) fn set_unread(&self, unread: bool) {
        self.unread.store(unread, Ordering::Relaxed);
    }

    /// Returns whether the client may still be sending a body that nobody reads.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }
}

/// A request in flight: counted from the end of its head to the end of its answer, whatever ends it.
#[derive(Debug)]
pub(crate) struct InFlight {
    line: Arc<Line>,
    counted: bool,
}

impl InFlight {
    /// Counts a request of the data plane, which a drain waits for.
    pub(crate) fn data(line: Arc<Line>) -> Self {
        line.app.lifecycle.enter();
        Self::begin(line, true)
    }

    /// Counts a request of the admin plane, which no drain waits for.
    pub(crate) fn admin(line: Arc<Line>) -> Self {
        Self::begin(line, false)
    }

    fn begin(line: Arc<Line>, counted: bool) -> Self {
        line.calls.fetch_add(1, Ordering::Relaxed);
        line.active.fetch_add(1, Ordering::Relaxed);
        Self { line, counted }
    }

    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.line.active.fetch_sub(1, Ordering::Relaxed);
        if self.counted {
            self.line.app.lifecycle.leave();
        }
    }
}
