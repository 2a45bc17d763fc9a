//! One connection: a minimal reader of HTTP/1.1 requests, and writes without delay.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{CallOutcome, SeenCall};

/// The longest head of a request, and the longest line of a chunked body.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The longest body of a request.
const BODY_BYTES_MAX: usize = 32 << 20;
/// What a client may send ahead of its answer.
const AHEAD_BYTES_MAX: usize = 1 << 20;

/// What came in.
#[derive(Debug)]
pub(super) enum Read {
    /// A whole request.
    Call(Box<SeenCall>),
    /// The client closed the connection.
    Gone,
    /// Something that is no request, or too long.
    Malformed,
}

/// One client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    number: u64,
    buffer: BytesMut,
    /// Whether the next request's first byte has not come yet.
    idle: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, number: u64) -> Self {
        Self { stream, number, buffer: BytesMut::new(), idle: true }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle && self.buffer.is_empty()
    }

    // === Reading ===

    pub(super) async fn read_request(&mut self) -> Read {
        let call = self.read_whole().await;
        self.idle = true;
        match call {
            Ok(call) => Read::Call(Box::new(call)),
            Err(Unread::Gone) => Read::Gone,
            Err(Unread::Malformed) => Read::Malformed,
        }
    }

    async fn read_whole(&mut self) -> Result<SeenCall, Unread> {
        let head = self.read_until(b"\r\n\r\n").await?;
        let mut call = parse_head(&head, self.number).ok_or(Unread::Malformed)?;
        if call.header("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(|_| Unread::Gone)?;
        }
        call.body = match call.header("content-length") {
            Some(length) => self.read_exact(length.parse().map_err(|_| Unread::Malformed)?).await?,
            None if call.header("transfer-encoding").is_some() => self.read_chunks().await?,
            None => Bytes::new(),
        };
        Ok(call)
    }

    /// Returns what stands before the mark and drops the mark.
    async fn read_until(&mut self, mark: &[u8]) -> Result<Bytes, Unread> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                let before = self.buffer.split_to(at).freeze();
                self.buffer.advance(mark.len());
                return Ok(before);
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(Unread::Malformed);
            }
            self.read_more().await?;
        }
    }

    async fn read_exact(&mut self, length: usize) -> Result<Bytes, Unread> {
        if length > BODY_BYTES_MAX {
            return Err(Unread::Malformed);
        }
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn read_chunks(&mut self) -> Result<Bytes, Unread> {
        let mut body = BytesMut::new();
        loop {
            let line = self.read_until(b"\r\n").await?;
            let digits = std::str::from_utf8(&line).ok().and_then(|line| line.split(';').next());
            let length = digits.and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok());
            let length = length.ok_or(Unread::Malformed)?;
            if length == 0 {
                // Trailers end with an empty line.
                while !self.read_until(b"\r\n").await?.is_empty() {}
                return Ok(body.freeze());
            }
            if body.len().saturating_add(length) > BODY_BYTES_MAX {
                return Err(Unread::Malformed);
            }
            body.extend_from_slice(&self.read_exact(length).await?);
            self.read_until(b"\r\n").await?;
        }
    }

    async fn read_more(&mut self) -> Result<(), Unread> {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => Err(Unread::Gone),
            Ok(_) => {
                self.idle = false;
                Ok(())
            }
        }
    }

    /// Waits until the client goes away; what it sends meanwhile waits for its turn.
    pub(super) async fn client_gone(&mut self) {
        while self.buffer.len() < AHEAD_BYTES_MAX && self.read_more().await.is_ok() {}
    }

    /// Returns whether the client is known to be gone, without waiting.
    pub(super) fn is_client_gone(&mut self) -> bool {
        loop {
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => return true,
                Ok(_) if self.buffer.len() >= AHEAD_BYTES_MAX => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
    }

    // === Writing ===

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Ends this side of the connection.
    pub(super) async fn half_close(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Makes the close a reset.
    pub(super) fn reset_on_close(&self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}

/// Why no request was read.
#[derive(Clone, Copy, Debug)]
enum Unread {
    Gone,
    Malformed,
}

/// Reads request line and headers; `None` if they are none.
fn parse_head(head: &[u8], connection: u64) -> Option<SeenCall> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut request_line = lines.next()?.split(' ');
    let (method, path, version) = (request_line.next()?, request_line.next()?, request_line.next()?);
    if !version.starts_with("HTTP/1.") {
        return None;
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some(SeenCall {
        number: 0,
        connection,
        method: method.to_owned(),
        path: path.to_owned(),
        headers: lines.map(header).collect::<Option<_>>()?,
        body: Bytes::new(),
        outcome: CallOutcome::Pending,
        beside: Vec::new(),
    })
}
