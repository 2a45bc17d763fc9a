//! The smallest HTTP client that `gw demo` can show headers with and `gw cache` can ask a gateway with: one request a
//! connection, the bytes as they come.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// An answer: head and body as text.
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends one JSON body and reads the whole answer.
pub(crate) async fn post(
    to: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    send("POST", to, path, headers, body).await
}

/// Asks for a page.
pub(crate) async fn get(to: SocketAddr, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
    send("GET", to, path, headers, "").await
}

async fn send(
    method: &str,
    to: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(to).await?;
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: application/json\r\n"
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Ok(Answer { head: head.to_owned(), body: if chunked { unchunked(body) } else { body.to_owned() } })
}

/// Joins the chunks of a body (RFC 9112, section 7.1).
fn unchunked(mut body: &str) -> String {
    let mut joined = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        joined.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::unchunked;

    #[test]
    fn chunks_are_joined_and_a_cut_body_keeps_what_came() {
        assert_eq!(unchunked("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde");
        assert_eq!(unchunked("3\r\nabc\r\n9\r\nde"), "abc");
    }
}
