//! The load: prepared bytes over kept-alive sockets, so that the generator is not what is measured.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::targets::Target;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Stream,
}

pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) requests: usize,
    pub(crate) kind: Kind,
}

impl Load {
    /// Sends the requests as fast as answers come back and returns how long that took.
    pub(crate) async fn run(&self, target: &Target) -> Duration {
        let left = Arc::new(AtomicUsize::new(self.requests));
        let template: Arc<[u8]> = target.request(self.kind).into();
        let began = Instant::now();
        let workers: Vec<_> = (0..self.connections)
            .map(|_| {
                let (left, mut request, address) =
                    (Arc::clone(&left), template.to_vec(), target.process.address.clone());
                tokio::spawn(async move {
                    let mut client = Client::connect(&address).await;
                    let take = |left: usize| left.checked_sub(1);
                    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                        number(&mut request);
                        client.ask(&request).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        began.elapsed()
    }
}

/// Sends plain requests at a steady rate and returns the median latency in microseconds.
pub(crate) async fn paced(target: &Target, per_second: u32, duration: Duration) -> f64 {
    let request = target.request(Kind::Plain);
    let step = Duration::from_secs(1) / per_second;
    let workers = 8_u32;
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let (mut request, address) = (request.clone(), target.process.address.clone());
            tokio::spawn(async move {
                let mut client = Client::connect(&address).await;
                let mut ticks = tokio::time::interval(step * workers);
                ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                tokio::time::sleep(step * worker).await;
                let (end, mut latencies) = (Instant::now() + duration, Vec::new());
                while Instant::now() < end {
                    ticks.tick().await;
                    number(&mut request);
                    let began = Instant::now();
                    client.ask(&request).await;
                    latencies.push(began.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    latencies.sort_unstable();
    latencies[latencies.len() / 2].as_secs_f64() * 1e6
}

/// Makes a request unlike all others, so that a cache is looked into and never answers.
fn number(request: &mut [u8]) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let at = request.windows(NUMBER.len()).rposition(|bytes| bytes.starts_with(b"number ")).unwrap() + 7;
    let digits = format!("{:010}", NEXT.fetch_add(1, Ordering::Relaxed));
    request[at..at + 10].copy_from_slice(digits.as_bytes());
}

/// What stands in a request for its number.
pub(crate) const NUMBER: &str = "number 0000000000 ";

/// One kept-alive connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::with_capacity(65_536) }
    }

    /// Sends one request and reads its whole answer, which must be a 200.
    pub(crate) async fn ask(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.unwrap();
        self.buffer.clear();
        while !whole(&self.buffer) {
            let read = self.stream.read_buf(&mut self.buffer).await.unwrap();
            assert!(read > 0, "the target closed the connection: {}", String::from_utf8_lossy(&self.buffer));
        }
        assert!(self.buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&self.buffer));
    }
}

/// Says whether a whole answer is in the buffer: by its length, or by the end of its chunks.
fn whole(buffer: &[u8]) -> bool {
    let Some(head) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let length = buffer[..head].split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        let named = name.eq_ignore_ascii_case(b"content-length:");
        std::str::from_utf8(value).ok()?.trim().parse::<usize>().ok().filter(|_| named)
    });
    match length {
        Some(length) => buffer.len() >= head + 4 + length,
        None => buffer.ends_with(b"0\r\n\r\n"),
    }
}
