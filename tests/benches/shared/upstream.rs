//! An OpenAI-compatible server that answers at once, or after a stated time: what gw costs is not hidden behind a model.
//!
//! Answers end with `length`, so that a cache is looked into for every request and keeps nothing: what is measured is
//! the look-up, and memory is what the hop needs.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Events of a streamed answer, usage and the final marker not counted.
const CHUNKS: usize = 64;

struct Answers {
    plain: Vec<u8>,
    chunks: Vec<Vec<u8>>,
    /// How long an answer is held back.
    delay: Duration,
    held: Held,
}

/// How long answers were held back in truth: a timer ticks in milliseconds, and a busy machine is late.
#[derive(Default)]
struct Held {
    micros: AtomicU64,
    answers: AtomicU64,
}

impl Held {
    /// Returns the mean since the last time in microseconds, as an answer to `GET`.
    fn report(&self) -> Vec<u8> {
        let (micros, answers) =
            (self.micros.swap(0, Ordering::Relaxed), self.answers.swap(0, Ordering::Relaxed));
        let mean = (micros / answers.max(1)).to_string();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{mean}", mean.len()).into_bytes()
    }
}

/// Listens on a free port, prints it, and serves until the process is killed.
pub(crate) async fn serve(delay: Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let answers = Arc::new(Answers { plain: plain(), chunks: chunks(), delay, held: Held::default() });
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(connection(stream, Arc::clone(&answers)));
    }
}

async fn connection(mut stream: TcpStream, answers: Arc<Answers>) {
    let mut buffer = Vec::with_capacity(8_192);
    loop {
        let Some(length) = request(&mut stream, &mut buffer).await else { return };
        if buffer.starts_with(b"GET ") {
            buffer.drain(..length);
            drop(stream.write_all(&answers.held.report()).await);
            continue;
        }
        let streamed = buffer[..length].windows(13).any(|bytes| bytes == b"\"stream\":true");
        buffer.drain(..length);
        if !answers.delay.is_zero() {
            let began = Instant::now();
            tokio::time::sleep(answers.delay).await;
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap();
            answers.held.micros.fetch_add(micros, Ordering::Relaxed);
            answers.held.answers.fetch_add(1, Ordering::Relaxed);
        }
        let sent = if streamed {
            send_stream(&mut stream, &answers.chunks).await
        } else {
            stream.write_all(&answers.plain).await
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn send_stream(stream: &mut TcpStream, chunks: &[Vec<u8>]) -> std::io::Result<()> {
    for chunk in chunks {
        stream.write_all(chunk).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Reads one whole request into the buffer and returns its length.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(head) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_lowercase();
            let length =
                text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let whole = head + 4 + length.unwrap_or(0);
            if buffer.len() >= whole {
                return Some(whole);
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn plain() -> Vec<u8> {
    let text = "The hop is measured with an answer of about a kilobyte. ".repeat(12);
    let body = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench-model","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null}},"finish_reason":"length","logprobs":null}}],"usage":{{"prompt_tokens":120,"completion_tokens":150,"total_tokens":270,"prompt_tokens_details":{{"cached_tokens":0}}}},"service_tier":"default"}}"#
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: up-1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn chunks() -> Vec<Vec<u8>> {
    let mut chunks = vec![
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: up-1\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
    ];
    let event = |data: &str| {
        let mut chunk = String::new();
        write!(chunk, "{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8).unwrap();
        chunk.into_bytes()
    };
    let delta = |inner: &str, finish: &str| {
        format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench-model","choices":[{{"index":0,"delta":{inner},"finish_reason":{finish}}}]}}"#
        )
    };
    chunks.extend((0..CHUNKS).map(|_| event(&delta(r#"{"content":" token"}"#, "null"))));
    chunks.push(event(&delta("{}", "\"length\"")));
    chunks.push(event(
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench-model","choices":[],"usage":{"prompt_tokens":120,"completion_tokens":64,"total_tokens":184}}"#,
    ));
    let mut last = event("[DONE]");
    last.extend_from_slice(b"0\r\n\r\n");
    chunks.push(last);
    chunks
}
