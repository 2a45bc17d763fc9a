//! A server that speaks HTTP/2 frame by frame, so that a test says which call was processed and which was not.

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::setup::ANSWER;

/// What the server says once a request has come whole.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Say {
    /// A whole answer to the stream.
    Answer(u32),
    /// The connection ends; the named stream was the last that was processed.
    GoAway { last: u32 },
    /// The stream is reset with this code.
    Reset(u32, u32),
    /// The socket is closed.
    Close,
}

pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;

/// A server on loopback.
pub(crate) struct Frames {
    pub(crate) addr: SocketAddr,
    requests: Arc<Mutex<Vec<(usize, u32)>>>,
    accepting: JoinHandle<()>,
}

type Script = dyn Fn(usize, u32) -> Vec<Say> + Send + Sync;

impl Frames {
    /// Starts a server; `script` says what follows each whole request, by connection (from 0) and stream (1, 3, ...).
    pub(crate) async fn start(script: impl Fn(usize, u32) -> Vec<Say> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script): (_, Arc<Script>) = (Arc::clone(&requests), Arc::new(script));
        let accepting = tokio::spawn(async move {
            for connection in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                tokio::spawn(async move { serve(socket, connection, &*script, &seen).await });
            }
        });
        Self { addr, requests, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// Returns connection and stream of each request that has come whole.
    pub(crate) fn requests(&self) -> Vec<(usize, u32)> {
        self.requests.lock().clone()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, by its place in HPACK's static table.
const STATUS_200: u8 = 0x88;

async fn serve(mut socket: TcpStream, connection: usize, script: &Script, seen: &Mutex<Vec<(usize, u32)>>) {
    let mut preface = [0; PREFACE_BYTES];
    let opens = socket.read_exact(&mut preface).await.is_ok()
        && socket.write_all(&frame(SETTINGS, 0, 0, &[])).await.is_ok();
    if !opens {
        return;
    }
    while let Some((kind, flags, stream, payload)) = read(&mut socket).await {
        let mut answer = Vec::new();
        match kind {
            SETTINGS if flags & ACK == 0 => answer = frame(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => answer = frame(PING, ACK, 0, &payload),
            DATA | HEADERS if flags & END_STREAM != 0 => {
                seen.lock().push((connection, stream));
                for say in script(connection, stream) {
                    match say {
                        Say::Close => {
                            let _sent = socket.write_all(&answer).await;
                            return;
                        }
                        Say::Answer(_) | Say::GoAway { .. } | Say::Reset(..) => answer.extend(bytes(say)),
                    }
                }
            }
            _ => {}
        }
        if socket.write_all(&answer).await.is_err() {
            return;
        }
    }
}

fn bytes(say: Say) -> Vec<u8> {
    match say {
        Say::Answer(stream) => {
            let head = frame(HEADERS, END_HEADERS, stream, &[STATUS_200]);
            [head, frame(DATA, END_STREAM, stream, ANSWER.as_bytes())].concat()
        }
        Say::GoAway { last } => frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat()),
        Say::Reset(stream, code) => frame(RST_STREAM, 0, stream, &code.to_be_bytes()),
        Say::Close => Vec::new(),
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

async fn read(socket: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; HEAD_BYTES];
    socket.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, flags, stream @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    socket.read_exact(&mut payload).await.ok()?;
    Some((kind, flags, u32::from_be_bytes(stream), payload))
}
