//! The server: two listeners, their connections, and the drain that ends them.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use gw_config::ServerSettings;
use gw_exec::Gateway;
use gw_types::{KeyStore, Ledger, MonoTime};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{
    Reloads, Telemetry, Tokens,
    addresses::Addresses,
    app::App,
    connection,
    lifecycle::{Lifecycle, Phase},
    metrics::Metrics,
    refusal::Reason,
    service::Plane,
};

/// Connections of the admin plane at once.
const ADMIN_CONNECTIONS_MAX: u32 = 64;

/// How long to wait after a failed accept: for want of descriptors, the next one would fail at once as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long clients may take for the last bytes of what is ended at the end of a drain.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerParts {
    /// Answers the requests.
    pub gateway: Arc<Gateway>,
    /// Knows the callers.
    pub keys: Arc<dyn KeyStore>,
    /// Holds the records; the same that the gateway writes to.
    pub ledger: Arc<dyn Ledger>,
    /// Counts; the same that the gateway's ledger feeds through [`crate::MetricsLedger`].
    pub metrics: Arc<Metrics>,
    /// Bounds and times. The addresses are not read: sockets come in through [`Listeners`].
    pub settings: ServerSettings,
}

/// The open sockets of a server.
#[derive(Debug)]
pub struct Listeners {
    /// The data plane.
    pub data: TcpListener,
    /// The admin plane; `None`: there is none.
    pub admin: Option<TcpListener>,
}

impl Listeners {
    /// Opens the sockets that the settings name.
    ///
    /// # Errors
    /// The operating system's, with the address in its text.
    pub async fn bind(settings: &ServerSettings) -> io::Result<Self> {
        let data = bind(settings.listen).await?;
        let admin = bind(settings.admin_listen).await?;
        Ok(Self { data, admin: Some(admin) })
    }
}

async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on `{address}`: {error}"));
    TcpListener::bind(address).await.map_err(named)
}

/// The HTTP server of a gateway.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
}

impl Server {
    /// Returns a server over its parts. Serves nothing until [`Server::run`].
    pub fn new(parts: ServerParts) -> Self {
        let clock = Arc::clone(parts.gateway.clock());
        parts.metrics.learn(&parts.gateway.policy());
        Self {
            app: Arc::new(App {
                gateway: parts.gateway,
                keys: parts.keys,
                ledger: parts.ledger,
                metrics: parts.metrics,
                settings: parts.settings,
                created: clock.utc().seconds(),
                clock,
                reloads: OnceLock::new(),
                tokens: OnceLock::new(),
                lifecycle: Lifecycle::default(),
            }),
        }
    }

    /// Lets callers present tokens in the place of keys.
    #[must_use]
    pub fn with_tokens(self, tokens: Tokens) -> Self {
        // A second call changes nothing.
        drop(self.app.tokens.set(tokens));
        self
    }

    /// Has a collector told of the server's gauges, beside what telemetry learns from records.
    #[must_use]
    pub fn with_telemetry(self, telemetry: &Telemetry) -> Self {
        telemetry.tell_of(&self.app);
        self
    }

    /// Lets the admin plane ask for reloads.
    #[must_use]
    pub fn with_reloads(self, reloads: Arc<Reloads>) -> Self {
        // Whoever comes second changes nothing: there is one file.
        let _ = self.app.reloads.set(reloads);
        self
    }

    /// Serves until `shutdown` is ready, then drains; returns once every connection is closed and the ledger is flushed.
    ///
    /// From the shutdown on, `/readyz` answers 503. New requests are served for `drain_grace`, then refused with 503 and
    /// `retry-after`. What is in flight at the end of `drain_timeout` gets an error in the form of its answer and is
    /// settled. Dropping the future closes everything at once.
    pub async fn run(self, listeners: Listeners, shutdown: impl Future<Output = ()>) {
        let app = &self.app;
        let data = accept(app, Plane::Data, listeners.data, app.settings.max_connections);
        let admin = async {
            if let Some(admin) = listeners.admin {
                accept(app, Plane::Admin, admin, ADMIN_CONNECTIONS_MAX).await;
            }
        };
        let drain = async {
            shutdown.await;
            drain(app).await;
        };
        tokio::join!(drain, data, admin);
        // What goes on without a connection: nobody waits for a shared call any more, so it ends now.
        tokio::select! {
            () = app.gateway.finish() => {}
            () = app.clock.sleep_until(after(app, LAST_BYTES)) => {}
        }
        app.ledger.flush().await;
    }
}

/// Takes the server from serving to closing.
async fn drain(app: &App) {
    let begun = app.clock.now();
    let (grace, timeout) = (app.settings.drain_grace, app.settings.drain_timeout);
    tracing::info!(in_flight = app.lifecycle.in_flight(), "the server drains");
    app.lifecycle.advance(Phase::Grace);
    app.clock.sleep_until(begun.saturating_add(grace.min(timeout))).await;
    app.lifecycle.advance(Phase::Refusing);
    tokio::select! {
        () = app.lifecycle.idle() => {}
        () = app.clock.sleep_until(begun.saturating_add(timeout)) => {
            tracing::warn!(in_flight = app.lifecycle.in_flight(), "requests are ended by the end of the drain");
        }
    }
    app.gateway.ends();
    app.lifecycle.advance(Phase::Closing);
}

/// Takes connections until the server closes, then waits for them, and for no longer than their last bytes may take.
async fn accept(app: &Arc<App>, plane: Plane, listener: TcpListener, connections_max: u32) {
    let places = Arc::new(Semaphore::new(usize::try_from(connections_max).unwrap_or(Semaphore::MAX_PERMITS)));
    let addresses =
        app.settings.max_connections_per_address.filter(|_| plane == Plane::Data).map(Addresses::new);
    let mut connections = JoinSet::new();
    loop {
        // Ended connections are forgotten here; there are never more than there are places.
        while connections.try_join_next().is_some() {}
        let next = tokio::select! {
            biased;
            () = app.lifecycle.closing() => break,
            next = next(&places, &listener) => next,
        };
        let Some((place, stream, peer)) = next else {
            tracing::warn!("a connection could not be taken");
            app.clock.sleep_until(after(app, ACCEPT_PAUSE)).await;
            continue;
        };
        let address = peer.ip().to_canonical();
        let address_place = match addresses.as_ref().map(|addresses| addresses.take(address)) {
            Some(None) => {
                app.metrics.refused(Reason::AddressConnections);
                continue;
            }
            taken => taken.flatten(),
        };
        let app = Arc::clone(app);
        connections.spawn(async move {
            let gauge = app.metrics.connection();
            connection::serve(Arc::clone(&app), plane, stream, address).await;
            drop((gauge, place, address_place));
        });
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = all => {}
        () = app.clock.sleep_until(after(app, LAST_BYTES)) => {}
    }
    connections.shutdown().await;
}

fn after(app: &App, duration: Duration) -> MonoTime {
    app.clock.now().saturating_add(duration)
}

/// Waits for a place and a connection to fill it; `None` if the operating system has none to give.
async fn next(
    places: &Arc<Semaphore>,
    listener: &TcpListener,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    let (stream, peer) = listener.accept().await.ok()?;
    Some((place, stream, peer))
}
