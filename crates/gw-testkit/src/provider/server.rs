//! The listener, and one task a connection.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot, watch},
    task::JoinSet,
};

use super::{
    calls::Calls,
    connection::{Connection, Read},
    faults::Faults,
    play::{After, play},
};
use crate::{Fault, script::Wanted, status};

/// Connections at once; more are closed as they come.
const CONNECTIONS_MAX: usize = 4_096;

/// What the connections of one provider share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) faults: Faults,
    pub(super) calls: Calls,
    pub(super) gate: Semaphore,
    refusing: watch::Sender<bool>,
    commands: mpsc::Sender<Command>,
    connections: AtomicU64,
}

/// What the listener is told to do; the other side hears when it is done.
#[derive(Debug)]
pub(super) enum Command {
    Stop(oneshot::Sender<()>),
    Listen(TcpListener, oneshot::Sender<()>),
}

impl Shared {
    pub(super) fn new(faults: Faults, commands: mpsc::Sender<Command>) -> Self {
        Self {
            faults,
            calls: Calls::new(),
            gate: Semaphore::new(0),
            refusing: watch::Sender::new(false),
            commands,
            connections: AtomicU64::new(0),
        }
    }

    pub(super) fn set_refusing(&self, refusing: bool) {
        self.refusing.send_replace(refusing);
    }

    pub(super) async fn stop_listening(&self) {
        let (done, obeyed) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).await.is_ok() {
            // An error says that the server is gone, and its listener with it.
            let _gone = obeyed.await;
        }
    }
}

/// Accepts connections until it is aborted.
pub(super) async fn serve(
    mut listener: Option<TcpListener>,
    mut commands: mpsc::Receiver<Command>,
    shared: Arc<Shared>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(Command::Stop(done)) => {
                    listener = None;
                    shared.set_refusing(true);
                    let _unheard = done.send(());
                }
                Some(Command::Listen(again, done)) => {
                    listener = Some(again);
                    shared.set_refusing(false);
                    let _unheard = done.send(());
                }
                None => return,
            },
            stream = accept(listener.as_ref()) => {
                if let Some(stream) = stream.filter(|_| connections.len() < CONNECTIONS_MAX) {
                    connections.spawn(converse(stream, Arc::clone(&shared)));
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> Option<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.ok().map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// Answers the requests of one connection, one after the other.
async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
    // Each step of a script leaves at once.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection::new(stream, number);
    let mut refusing = shared.refusing.subscribe();
    loop {
        let read = tokio::select! {
            read = connection.read_request() => read,
            _ = refusing.wait_for(|refusing| *refusing), if connection.is_idle() => return,
        };
        let call = match read {
            Read::Call(call) => shared.calls.add(*call),
            Read::Gone => return,
            Read::Malformed => {
                let _written = play(&mut connection, status(400).into(), &shared.gate, 0).await;
                return;
            }
        };
        let wanted = Wanted::read(&call.body, call.number);
        let fault = shared.faults.next(&call, wanted.as_ref());
        if fault == Fault::RefuseConnection || shared.faults.take_refusal() {
            // Before the answer, so that whoever has read it finds the port closed.
            shared.stop_listening().await;
        }
        let fault = render(fault, wanted.as_ref());
        let (outcome, after) = play(&mut connection, fault, &shared.gate, call.number).await;
        shared.calls.end(call.number, outcome);
        match after {
            After::KeepAlive if call.header("connection") != Some("close") => {}
            After::KeepAlive | After::Close => return,
        }
    }
}

/// Replaces a chat answer by what it is for this request.
fn render(fault: Fault, wanted: Option<&Wanted>) -> Fault {
    match fault {
        Fault::Chat(chat) => wanted.map_or_else(|| status(400).into(), |wanted| chat.render(wanted)),
        Fault::SlowHead { delay_ms, then } => {
            Fault::SlowHead { delay_ms, then: Box::new(render(*then, wanted)) }
        }
        Fault::AtGate { then } => Fault::AtGate { then: Box::new(render(*then, wanted)) },
        fault @ (Fault::Answer(_)
        | Fault::Stream(_)
        | Fault::HangBeforeHead
        | Fault::ResetBeforeHead
        | Fault::CloseBeforeHead
        | Fault::RefuseConnection) => fault,
    }
}
