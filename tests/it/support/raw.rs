//! Bytes on a socket, for requests that no HTTP client would send.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{key_of, within};

/// A connection that says exactly what it is told.
#[derive(Debug)]
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        Self(TcpStream::connect(to).await.unwrap())
    }

    /// Sends bytes; a server that has closed already is no fault of the test.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Waits for so long at most; returns whether the server has closed by then. What it says meanwhile is thrown away.
    pub(crate) async fn is_closed(&mut self, patience: std::time::Duration) -> bool {
        let mut piece = [0; 256];
        let closed = async { while self.0.read(&mut piece).await.is_ok_and(|read| read > 0) {} };
        tokio::time::timeout(patience, closed).await.is_ok()
    }

    /// Reads until the server closes; returns the bytes as text.
    pub(crate) async fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        // A reset behind the answer is a way to close, too.
        let _ = within("the end of a connection", self.0.read_to_end(&mut bytes)).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads until the text has come; returns everything so far.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let mut piece = [0; 4_096];
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = within(text, self.0.read(&mut piece)).await.unwrap();
            assert!(read > 0, "closed before `{text}`: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&piece[..read]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }
}

/// Returns the head and body of a chat request of a tenant, closing the connection behind it.
pub(crate) fn raw_chat(tenant: &str, headers: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n",
        key_of(tenant),
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}
