//! A provider on a real socket that fails on command.

mod calls;
mod connection;
mod faults;
mod play;
mod server;

use std::{io, net::SocketAddr, sync::Arc};

use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

pub use self::calls::{CallOutcome, SeenCall};
use self::{
    faults::Faults,
    server::{Command, Shared, serve},
};
use crate::{Fault, FaultScript};

/// A fake provider: an HTTP/1.1 server on a loopback port of its own that plays a script and writes down what it saw.
///
/// Every byte it sends stands in the script; each step is one write. Pauses take real time; a test that must not
/// depend on time waits at the gate instead. Dropping the value closes the port and every connection.
#[derive(Debug)]
pub struct FakeProvider {
    addr: SocketAddr,
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    server: JoinHandle<()>,
}

impl FakeProvider {
    /// Starts a provider that plays the script. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// No port could be opened.
    pub async fn start(script: FaultScript) -> io::Result<Self> {
        Self::start_with_faults(Faults::script(script)).await
    }

    /// Starts a provider that asks the handler what to do with each request. `RefuseConnection` closes the connection
    /// of the request that it is returned for, and refuses later ones.
    ///
    /// # Errors
    /// No port could be opened.
    pub async fn start_with(
        handler: impl Fn(&SeenCall) -> Fault + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_with_faults(Faults::handler(handler)).await
    }

    async fn start_with_faults(faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (commands, obeyed) = mpsc::channel(16);
        let shared = Arc::new(Shared::new(faults, commands.clone()));
        let listening = shared.faults.take_refusal();
        let listener = if listening { None } else { Some(listener) };
        shared.set_refusing(listener.is_none());
        let server = tokio::spawn(serve(listener, obeyed, Arc::clone(&shared)));
        Ok(Self { addr, shared, commands, server })
    }

    /// Returns the address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns `http://127.0.0.1:PORT/v1`, as OpenAI-compatible clients are configured.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// Returns the calls so far, oldest first; the latest 10,000 are kept.
    pub fn calls(&self) -> Vec<SeenCall> {
        self.shared.calls.all()
    }

    /// Waits until so many calls have come in, whole; returns those that are kept.
    pub async fn wait_for_calls(&self, count: usize) -> Vec<SeenCall> {
        self.shared.calls.wait_until(|seen, _| seen >= count).await
    }

    /// Waits until the calls satisfy a condition; returns them.
    pub async fn wait_until(&self, condition: impl Fn(&[SeenCall]) -> bool + Send + Sync) -> Vec<SeenCall> {
        self.shared.calls.wait_until(|_, calls| condition(calls)).await
    }

    /// Waits until the client has gone away from so many calls; returns all calls.
    pub async fn wait_for_client_gone(&self, count: usize) -> Vec<SeenCall> {
        let gone = |call: &&SeenCall| call.outcome == CallOutcome::ClientGone;
        self.wait_until(|calls| calls.iter().filter(gone).count() >= count).await
    }

    /// Lets one waiting, or the next coming, step pass the gate.
    pub fn open_gate(&self) {
        self.shared.gate.add_permits(1);
    }

    /// Closes the port: later connections are refused, idle ones are closed, calls in progress go on.
    pub async fn stop_listening(&self) {
        self.shared.stop_listening().await;
    }

    /// Opens the port again.
    ///
    /// # Errors
    /// The port cannot be opened, for instance because someone else has taken it.
    pub async fn listen_again(&self) -> io::Result<()> {
        let listener = TcpListener::bind(self.addr).await?;
        let (done, obeyed) = oneshot::channel();
        let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
        self.commands.send(Command::Listen(listener, done)).await.map_err(gone)?;
        obeyed.await.map_err(|_| io::Error::from(io::ErrorKind::NotConnected))
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        // The server owns the tasks of its connections, so they end with it.
        self.server.abort();
    }
}
