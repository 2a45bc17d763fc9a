//! The connections to one origin: how many calls there may be, and who gets which connection.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use gw_types::{ErrorKind, GatewayError, ProviderName};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinHandle, time::Instant};

use super::{
    dial::{DialFault, Dialer},
    h1::H1,
    h2::{H2, H2Place, Listed},
    sweep,
};

/// An idle connection is closed after this; below the 60 s and more after which common front ends close theirs, so
/// that a call seldom meets a connection that is just being closed.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(50);

/// How long the end of a body whose last event was seen may take to arrive in the background.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The connections to one origin.
///
/// A call holds one of `slots` from before it has a connection until its body has ended or was dropped, so calls in
/// flight never exceed the cap. Over HTTP/1.1 a connection is in a call, idle, or closed: a dropped call drops its
/// connection in the same moment, so open sockets never exceed the cap either.
pub(super) struct Pool {
    pub(super) name: ProviderName,
    dialer: Dialer,
    secure: bool,
    http2: bool,
    /// What ALPN chose last: one of the constants below.
    learned: AtomicU8,
    connect_timeout: Duration,
    pool_wait_timeout: Duration,
    max: u32,
    slots: Semaphore,
    /// Held while the first HTTP/2 connection is opened, so that a burst does not open one a call.
    opening: tokio::sync::Mutex<()>,
    pub(super) state: Mutex<State>,
    /// Wakes the sweep; idle connections are polled with it.
    pub(super) watcher: OnceLock<Waker>,
    sweep: OnceLock<JoinHandle<()>>,
}

#[derive(Default)]
pub(super) struct State {
    /// Last in, first out, so that the rest can grow old.
    #[expect(
        clippy::vec_box,
        reason = "a connection is large and moves between list and call at every request"
    )]
    pub(super) idle: Vec<Box<H1>>,
    /// Each holds a slot, so there are at most `max`.
    pub(super) draining: Vec<Draining>,
    pub(super) shared: Vec<Listed>,
}

/// A connection whose answer is known to be complete, but whose body has not been marked as ended yet.
pub(super) struct Draining {
    pub(super) connection: Box<H1>,
    pub(super) body: Incoming,
    pub(super) until: Instant,
    pub(super) slot: Slot,
}

/// The right to one call, given back on drop.
pub(super) struct Slot(Arc<Pool>);

/// A connection for one call.
pub(super) enum Taken {
    Own(Box<H1>),
    Shared(H2Place),
}

const UNKNOWN: u8 = 0;
const HTTP1: u8 = 1;
const HTTP2: u8 = 2;

/// What a pool is made of.
pub(super) struct PoolParts {
    pub(super) name: ProviderName,
    pub(super) dialer: Dialer,
    pub(super) secure: bool,
    pub(super) http2: bool,
    pub(super) connect_timeout: Duration,
    pub(super) pool_wait_timeout: Duration,
    pub(super) max: u32,
}

impl Pool {
    pub(super) fn new(parts: PoolParts) -> Arc<Self> {
        let PoolParts { name, dialer, secure, http2, connect_timeout, pool_wait_timeout, max } = parts;
        Arc::new(Self {
            name,
            dialer,
            secure,
            http2,
            learned: AtomicU8::new(if http2 { UNKNOWN } else { HTTP1 }),
            connect_timeout,
            pool_wait_timeout,
            max,
            slots: Semaphore::new(max as usize),
            opening: tokio::sync::Mutex::new(()),
            state: Mutex::new(State::default()),
            watcher: OnceLock::new(),
            sweep: OnceLock::new(),
        })
    }

    pub(super) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub(super) fn max(&self) -> u32 {
        self.max
    }

    pub(super) fn in_use(&self) -> u32 {
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        self.max.saturating_sub(free)
    }

    /// Waits for the right to one call, first come, first served.
    ///
    /// # Errors
    /// `Overloaded` after the pool-wait limit.
    pub(super) async fn slot(self: &Arc<Self>) -> Result<Slot, GatewayError> {
        let permit = match self.slots.try_acquire() {
            Ok(permit) => Ok(permit),
            Err(_) => match tokio::time::timeout(self.pool_wait_timeout, self.slots.acquire()).await {
                Ok(Ok(permit)) => Ok(permit),
                Ok(Err(_)) | Err(_) => Err(()),
            },
        };
        match permit {
            Ok(permit) => {
                // The slot gives it back by hand: an owned permit would be a second count of references a call.
                permit.forget();
                Ok(Slot(Arc::clone(self)))
            }
            Err(()) => Err(GatewayError::new(
                ErrorKind::Overloaded,
                "no connection to the provider became free in the time allowed",
            )
            .with_subject(self.name.as_str())),
        }
    }

    /// Returns a connection: a kept one that still stands, else a new one.
    ///
    /// # Errors
    /// `Transport`, never ambiguous: nothing was sent.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Taken, GatewayError> {
        if let Some(kept) = self.kept() {
            return Ok(kept);
        }
        if self.learned.load(Ordering::Relaxed) == HTTP1 {
            return self.open().await;
        }
        let opening = self.opening.lock().await;
        if let Some(kept) = self.kept() {
            return Ok(kept);
        }
        if self.learned.load(Ordering::Relaxed) == HTTP1 {
            // Learned while waiting: nothing to share, so nothing to wait for.
            drop(opening);
        }
        self.open().await
    }

    fn kept(&self) -> Option<Taken> {
        if self.learned.load(Ordering::Relaxed) == HTTP2 {
            let state = self.state.lock();
            if let Some(place) = state.shared.iter().find_map(|listed| listed.connection.place()) {
                return Some(Taken::Shared(place));
            }
        }
        // Without a waker: this only asks whether the provider has closed it meanwhile.
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            // One lock a turn: dropping a connection closes a socket, which is not done under the lock.
            let mut connection = self.state.lock().idle.pop()?;
            if connection.is_usable(&mut cx) {
                return Some(Taken::Own(connection));
            }
        }
    }

    async fn open(self: &Arc<Self>) -> Result<Taken, GatewayError> {
        sweep::start(self, &self.sweep);
        let transport = |message| GatewayError::new(ErrorKind::Transport, message);
        match tokio::time::timeout(self.connect_timeout, self.open_unbounded()).await {
            Ok(Ok(taken)) => Ok(taken),
            Ok(Err(DialFault::Refused)) => Err(transport("the provider refused the connection")),
            Ok(Err(DialFault::Failed)) => Err(transport("the connection to the provider could not be made")),
            Err(_) => Err(transport("the connection to the provider was not made in the time allowed")),
        }
    }

    async fn open_unbounded(&self) -> Result<Taken, DialFault> {
        let dialed = self.dialer.dial().await?;
        let http2 = dialed.negotiated_http2 || (self.http2 && !self.secure);
        self.learned.store(if http2 { HTTP2 } else { HTTP1 }, Ordering::Relaxed);
        if !http2 {
            return Ok(Taken::Own(H1::new(dialed.wire).await.map_err(|_| DialFault::Failed)?));
        }
        let place = H2::open(dialed.wire).await.map_err(|_| DialFault::Failed)?;
        let listed = Listed { connection: Arc::clone(place.connection()), unused_since: None };
        let mut state = self.state.lock();
        state.shared.retain(|listed| !listed.connection.is_closed());
        state.shared.push(listed);
        Ok(Taken::Shared(place))
    }

    /// Keeps a connection whose answer has ended, if it can take another call.
    pub(super) fn keep(&self, mut connection: Box<H1>) {
        // Polled with the sweep's waker, so that the sweep hears of the provider closing it.
        let watcher = self.watcher.get().map_or(Waker::noop(), |waker| waker);
        if connection.is_usable(&mut Context::from_waker(watcher)) {
            connection.idle_since = Some(Instant::now());
            self.state.lock().idle.push(connection);
        }
    }

    /// Closes the connections that have lain idle since `since` or longer: one of their age was silent.
    pub(super) fn close_idle_since(&self, since: Instant) {
        let mut state = self.state.lock();
        let (old, young) = std::mem::take(&mut state.idle)
            .into_iter()
            .partition::<Vec<_>, _>(|connection| connection.idle_since.is_none_or(|idle| idle <= since));
        state.idle = young;
        drop(state);
        // Sockets are closed without the lock.
        drop(old);
    }

    /// Reads the rest of a body in the background, for a short time, so that the connection can be kept.
    pub(super) fn drain(&self, connection: Box<H1>, body: Incoming, slot: Slot) {
        let until = Instant::now() + DRAIN_MAX;
        self.state.lock().draining.push(Draining { connection, body, until, slot });
        if let Some(watcher) = self.watcher.get() {
            watcher.wake_by_ref();
        }
    }
}

impl Slot {
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.slots.add_permits(1);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweep) = self.sweep.get() {
            sweep.abort();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.name)
            .field("dialer", &self.dialer)
            .field("in_use", &self.in_use())
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}
