//! What a network does to connections: a proxy on a real socket that stops, cuts and resets them.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

/// Everything here takes milliseconds; this is only so that a fault fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that one connection holds in each direction.
const PIECE_BYTES: usize = 16 * 1_024;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Bytes go both ways, and so does each end.
    #[default]
    Forwards,
    /// No byte goes either way any more and nobody is told: the peer has vanished and the connection is half open.
    Vanishes,
    /// A proper end towards the client.
    Closes,
    /// A reset towards the client.
    Resets,
    /// What the client says goes on; the first byte of an answer is lost with a reset.
    LosesAnswer,
}

/// How the connections of a proxy stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxySnapshot {
    /// Connections accepted so far.
    pub accepted: usize,
    /// Connections of clients that are open now.
    pub open: usize,
}

/// A proxy between a client and a server on loopback. It ends with its value.
#[derive(Debug)]
pub struct FaultProxy {
    addr: SocketAddr,
    fresh: Arc<Mutex<Link>>,
    orders: watch::Sender<Link>,
    seen: watch::Receiver<ProxySnapshot>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy that forwards everything to `server`.
    ///
    /// # Errors
    /// What the system says of a socket on loopback.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let (count, seen) = watch::channel(ProxySnapshot::default());
        let (orders, heard) = watch::channel(Link::Forwards);
        let fresh = Arc::new(Mutex::new(Link::Forwards));
        let parts = Accepting { listener, server, fresh: Arc::clone(&fresh), heard, count: Arc::new(count) };
        Ok(Self { addr, fresh, orders, seen, accepting: tokio::spawn(parts.accept()) })
    }

    /// Returns where clients connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Says what becomes of the connections that are open now. Takes hold when their tasks run next.
    pub fn set_open(&self, link: Link) {
        self.orders.send_replace(link);
    }

    /// Says what becomes of connections accepted from now on.
    pub fn set_fresh(&self, link: Link) {
        *self.fresh.lock() = link;
    }

    /// Returns how the connections stand.
    #[must_use]
    pub fn snapshot(&self) -> ProxySnapshot {
        *self.seen.borrow()
    }

    /// Waits until the connections stand as asked; returns whether they did in a long time.
    pub async fn wait_for(&self, stand: impl FnMut(&ProxySnapshot) -> bool) -> bool {
        let mut seen = self.seen.clone();
        matches!(timeout(PATIENCE, seen.wait_for(stand)).await, Ok(Ok(_)))
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Accepting {
    listener: TcpListener,
    server: SocketAddr,
    fresh: Arc<Mutex<Link>>,
    heard: watch::Receiver<Link>,
    count: Arc<watch::Sender<ProxySnapshot>>,
}

impl Accepting {
    async fn accept(self) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let Ok((client, _)) = accepted else { return };
                    self.count.send_modify(|seen| (seen.accepted, seen.open) = (seen.accepted + 1, seen.open + 1));
                    let mut orders = self.heard.clone();
                    orders.mark_unchanged();
                    let (server, link, count) = (self.server, *self.fresh.lock(), Arc::clone(&self.count));
                    connections.spawn(async move {
                        join(client, server, link, orders).await;
                        count.send_modify(|seen| seen.open -= 1);
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Joins a client with the server for as long as the link allows. The client's end closes it whatever the link.
async fn join(mut client: TcpStream, server: SocketAddr, mut link: Link, mut orders: watch::Receiver<Link>) {
    let Ok(mut upstream) = TcpStream::connect(server).await else { return };
    let _small = (client.set_nodelay(true), upstream.set_nodelay(true));
    let (mut up, mut down) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        match link {
            Link::Closes => return,
            Link::Resets => return drop(client.set_zero_linger()),
            Link::Vanishes => return until_gone(&mut client).await,
            Link::Forwards | Link::LosesAnswer => {}
        }
        let passed = tokio::select! {
            biased;
            Ok(()) = orders.changed() => {
                link = *orders.borrow_and_update();
                true
            }
            read = client.read(&mut up) => pass(read, &up, &mut upstream).await,
            read = upstream.read(&mut down) => {
                if link == Link::LosesAnswer {
                    link = Link::Resets;
                    continue;
                }
                pass(read, &down, &mut client).await
            }
        };
        if !passed {
            return;
        }
    }
}

/// Hands a piece on; returns whether there may be more.
async fn pass(read: io::Result<usize>, piece: &[u8], to: &mut TcpStream) -> bool {
    match read {
        Ok(0) | Err(_) => false,
        Ok(count) => to.write_all(&piece[..count]).await.is_ok(),
    }
}

/// Takes what the client still says to nobody, until it gives up.
async fn until_gone(client: &mut TcpStream) {
    let mut nowhere = [0; 4_096];
    while matches!(client.read(&mut nowhere).await, Ok(count) if count > 0) {}
}
