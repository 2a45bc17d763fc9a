//! A collector of spans and figures, as OpenTelemetry has them, over real sockets.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// Takes messages and keeps them.
#[derive(Clone)]
pub(crate) struct Collector {
    address: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    messages: Vec<Told>,
    /// What is answered to the next messages, 200 otherwise.
    answers: Vec<u16>,
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) path: String,
    pub(crate) authorization: String,
    pub(crate) message: Value,
}

impl Collector {
    /// Listens on a free port; answers the first messages with these statuses.
    pub(crate) async fn start(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answers = answers.iter().rev().copied().collect();
        let seen = Arc::new(Mutex::new(Seen { messages: Vec::new(), answers }));
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, Arc::clone(&kept)));
            }
        });
        Self { address, seen }
    }

    /// Returns the lines of the configuration that tell it ten times a second.
    pub(crate) fn toml(&self) -> String {
        format!("[telemetry]\nendpoint = \"{}\"\ninterval_ms = 100\n", self.address)
    }

    /// Returns what it was sent.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.seen.lock().messages.clone()
    }

    /// Returns the spans that it was sent.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let told = self.told();
        let of = |told: &Told| told.message["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned();
        told.iter().filter(|told| told.path == "/v1/traces").filter_map(of).flatten().collect()
    }
}

/// Reads the messages of one connection.
async fn take(stream: TcpStream, seen: Arc<Mutex<Seen>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length, mut authorization, mut form) =
            (String::new(), 0, String::new(), String::new());
        stream.read_line(&mut head).await.ok().filter(|read| *read > 0)?;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "authorization" => authorization = value.to_owned(),
                "content-type" => form = value.to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        assert_eq!(form, "application/json");
        let path = head.split(' ').nth(1)?.to_owned();
        let message = serde_json::from_slice(&body).unwrap();
        let status = {
            let mut seen = seen.lock();
            let status = seen.answers.pop().unwrap_or(200);
            if status == 200 {
                seen.messages.push(Told { path, authorization, message });
            }
            status
        };
        let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: 2\r\n\r\n{{}}");
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}
