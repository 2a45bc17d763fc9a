//! The clients: kept-alive sockets, and a hang-up where a client does not wait.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{gateway::KEY, traffic};

/// How long a client that was refused waits before its next request, so that refusals are not all that happens.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// What the clients saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    next: AtomicU64,
    over: AtomicBool,
    /// Answers that the limits refused.
    pub(crate) refused: AtomicU64,
    left: AtomicU64,
    statuses: Mutex<BTreeMap<u16, u64>>,
}

impl Seen {
    /// Lets every client end behind the request that it is in.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Returns what the clients saw, in words.
    pub(crate) fn in_words(&self) -> String {
        let mut words = format!("{} left early", self.left.load(Ordering::Relaxed));
        for (status, count) in self.statuses.lock().unwrap().iter() {
            words.push_str(&match status {
                0 => format!(", {count} broken connections"),
                status => format!(", {count} answers {status}"),
            });
        }
        words
    }

    fn count(&self, status: u16) {
        *self.statuses.lock().unwrap().entry(status).or_default() += 1;
        if status == 429 {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Asks one request after the other until it is told to end.
pub(crate) async fn run(address: String, seen: Arc<Seen>) {
    let mut connection: Option<TcpStream> = None;
    while !seen.over.load(Ordering::Relaxed) {
        let number = seen.next.fetch_add(1, Ordering::Relaxed);
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&address).await.unwrap(),
        };
        let asked = ask(&mut stream, number);
        let answer = match traffic::leaves_after(number) {
            Some(stays) => tokio::time::timeout(stays, asked).await.ok(),
            None => Some(asked.await),
        };
        match answer {
            Some(Some(status)) => {
                connection = Some(stream);
                seen.count(status);
                if matches!(status, 429 | 503) {
                    tokio::time::sleep(AFTER_REFUSAL).await;
                }
            }
            Some(None) => seen.count(0),
            // Hanging up is what ends its request.
            None => _ = seen.left.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// Sends one request and reads its whole answer; returns the status, or `None` where the connection broke.
async fn ask(stream: &mut TcpStream, number: u64) -> Option<u16> {
    let body = traffic::body(number).to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::with_capacity(16_384);
    while !is_whole(&answer) {
        if stream.read_buf(&mut answer).await.ok()? == 0 {
            return None;
        }
    }
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

/// Says whether a whole answer is there: by its length, or by the end of its chunks.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&answer[..head]).to_lowercase();
    let length =
        text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    match length {
        Some(length) => answer.len() >= head + 4 + length,
        None => answer.ends_with(b"0\r\n\r\n"),
    }
}
