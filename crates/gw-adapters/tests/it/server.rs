//! A scripted HTTP/1.1 server that counts its sockets.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes the bytes and waits for the next request.
    Answer(String),
    /// Waits until the gate is open, writes the bytes and waits for the next request.
    AnswerBehind(watch::Receiver<bool>, String),
    /// Writes the pieces one by one, and waits for the next request.
    Pieces(Vec<Vec<u8>>),
    /// Writes the bytes and then nothing until the client closes.
    AnswerThenSilence(String),
    /// Writes the bytes and closes.
    AnswerThenClose(String),
    /// Writes the head and then body for ever.
    Endless(String),
    /// Reads no further and waits for the client to close.
    Silence,
}

/// A server on loopback.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    sockets: watch::Receiver<Sockets>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sockets {
    pub(crate) accepted: usize,
    pub(crate) open: usize,
    pub(crate) most_open: usize,
}

/// Everything here takes milliseconds; this is only so that a fault fails instead of hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

type Script = dyn Fn(usize, &str) -> Act + Send + Sync;

impl Server {
    /// Starts a server; `script` says what to do with each request, counted from 0.
    pub(crate) async fn start(script: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (count, sockets) = watch::channel(Sockets::default());
        let script: Arc<Script> = Arc::new(script);
        let seen = Arc::clone(&requests);
        let count = Arc::new(count);
        let accepting = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                count.send_modify(|sockets| {
                    sockets.accepted += 1;
                    sockets.open += 1;
                    sockets.most_open = sockets.most_open.max(sockets.open);
                });
                let (script, seen, count) = (Arc::clone(&script), Arc::clone(&seen), Arc::clone(&count));
                tokio::spawn(async move {
                    serve(socket, &*script, &seen).await;
                    count.send_modify(|sockets| sockets.open -= 1);
                });
            }
        });
        Self { addr, requests, sockets, accepting }
    }

    /// Starts a server that does the same with every request.
    pub(crate) async fn always(act: Act) -> Self {
        Self::start(move |_, _| act.clone()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    pub(crate) fn sockets(&self) -> Sockets {
        *self.sockets.borrow()
    }

    /// Waits until the sockets are as said.
    pub(crate) async fn wait_for(&self, is: impl Fn(&Sockets) -> bool) -> Sockets {
        let mut sockets = self.sockets.clone();
        let found = tokio::time::timeout(PATIENCE, sockets.wait_for(is)).await;
        *found.unwrap_or_else(|_| panic!("sockets stay {:?}", self.sockets())).unwrap()
    }

    /// Returns the requests so far, as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let came = async {
            while self.requests.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, came).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut socket: TcpStream, script: &Script, seen: &Mutex<Vec<String>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        let stays = match script(number, &request) {
            Act::Answer(text) => socket.write_all(text.as_bytes()).await.is_ok(),
            Act::AnswerBehind(mut gate, text) => {
                gate.wait_for(|open| *open).await.is_ok() && socket.write_all(text.as_bytes()).await.is_ok()
            }
            Act::Pieces(pieces) => write_pieces(&mut socket, &pieces).await,
            Act::AnswerThenSilence(text) => {
                let _ = socket.write_all(text.as_bytes()).await;
                false
            }
            Act::AnswerThenClose(text) => {
                let _ = socket.write_all(text.as_bytes()).await;
                return;
            }
            Act::Endless(head) => {
                let _ = socket.write_all(head.as_bytes()).await;
                while socket.write_all(&[b'x'; 8_192]).await.is_ok() {}
                false
            }
            Act::Silence => false,
        };
        if !stays {
            // Until the client closes, gracefully or not.
            while socket.read(&mut [0; 4_096]).await.is_ok_and(|count| count > 0) {}
            return;
        }
    }
}

async fn write_pieces(socket: &mut TcpStream, pieces: &[Vec<u8>]) -> bool {
    let _ = socket.set_nodelay(true);
    for piece in pieces {
        if socket.write_all(piece).await.is_err() {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head_text = String::from_utf8_lossy(&buffer[..head]).to_lowercase();
            let length = head_text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            if buffer.len() >= head + 4 + length {
                let request: Vec<u8> = buffer.drain(..head + 4 + length).collect();
                return Some(String::from_utf8(request).unwrap());
            }
        }
        let mut piece = [0; 65_536];
        match socket.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => buffer.extend_from_slice(&piece[..count]),
        }
    }
}

/// Returns an answer with a length.
pub(crate) fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-request-id: up-1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The head of a chunked event stream.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Frames one piece of a chunked body.
pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
