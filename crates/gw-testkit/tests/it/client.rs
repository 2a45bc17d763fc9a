//! A client that shows exactly what came over the socket.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// One connection to a fake provider.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn connect(addr: std::net::SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    pub(crate) async fn send(&mut self, body: &str) {
        let length = body.len();
        let head =
            format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
        self.raw(&format!("{head}{body}")).await;
    }

    pub(crate) async fn raw(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until the text ends with the mark.
    pub(crate) async fn read_until(&mut self, mark: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(mark) {
            let mut byte = [0];
            assert_eq!(self.0.read(&mut byte).await.unwrap(), 1, "the connection ended behind {text}");
            text.push(char::from(byte[0]));
        }
        text
    }

    /// Reads a whole answer with a `content-length`; returns status line and body.
    pub(crate) async fn answer(&mut self) -> (String, String) {
        let head = self.read_until("\r\n\r\n").await;
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// Reads to the end: the text, and whether the end was a clean one.
    pub(crate) async fn rest(mut self) -> (String, bool) {
        let mut bytes = Vec::new();
        let clean = self.0.read_to_end(&mut bytes).await.is_ok();
        (String::from_utf8(bytes).unwrap(), clean)
    }
}
