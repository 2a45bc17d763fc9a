//! The seam to whoever encrypts the connection: this crate has no TLS of its own.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// What is encrypted, and what comes out of it.
pub trait TlsIo: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> TlsIo for T {}

/// An encrypted connection, once the handshake is done.
pub type TlsFuture = Pin<Box<dyn Future<Output = io::Result<Box<dyn TlsIo>>> + Send>>;

/// Encrypts connections to PostgreSQL servers.
///
/// # Contract
/// The server's certificate is checked against trusted roots and the name.
pub trait PostgresTls: Send + Sync + std::fmt::Debug {
    /// Does the handshake with the server of a name or address.
    fn connect(&self, name: &str, plain: Box<dyn TlsIo>) -> TlsFuture;
}

/// Hands connections to the seam; without one every encrypted connection is refused.
#[derive(Clone, Debug)]
pub(super) struct Maker(pub(super) Option<Arc<dyn PostgresTls>>);

/// One handshake to come.
pub(super) struct Connector {
    tls: Option<Arc<dyn PostgresTls>>,
    name: String,
}

/// An encrypted connection.
pub(super) struct Encrypted(Box<dyn TlsIo>);

impl<S: TlsIo + 'static> MakeTlsConnect<S> for Maker {
    type Stream = Encrypted;
    type TlsConnect = Connector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, name: &str) -> io::Result<Connector> {
        Ok(Connector { tls: self.0.clone(), name: name.to_owned() })
    }
}

impl<S: TlsIo + 'static> TlsConnect<S> for Connector {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, plain: S) -> Self::Future {
        Box::pin(async move {
            let none = || io::Error::new(io::ErrorKind::Unsupported, "this connection has no TLS");
            let tls = self.tls.ok_or_else(none)?;
            tls.connect(&self.name, Box::new(plain)).await.map(Encrypted)
        })
    }
}

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
