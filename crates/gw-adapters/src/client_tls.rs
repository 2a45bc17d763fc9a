//! TLS towards servers that are no providers: whoever speaks another protocol than HTTP gets it from here.

use std::{io, sync::Arc};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::{InvalidProvider, transport::client_config};

/// An encrypted connection to a server.
pub type ClientTlsStream<S> = tokio_rustls::client::TlsStream<S>;

/// Encrypts connections to servers whose certificate comes from a root of the system, or from one of its own. Cheap to
/// clone.
#[derive(Clone)]
pub struct ClientTls(TlsConnector);

impl ClientTls {
    /// Reads the PEM text of further roots, if there are some.
    ///
    /// # Errors
    /// [`InvalidProvider::CaFile`] if it holds no certificate or one that cannot be read.
    pub fn new(more_roots: Option<&[u8]>) -> Result<Self, InvalidProvider> {
        Ok(Self(TlsConnector::from(Arc::new(client_config(more_roots)?))))
    }

    /// Does the handshake with the server of a name or address, which its certificate must show. TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// The name is none, the certificate is not trusted or the connection ends.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        name: &str,
        plain: S,
    ) -> io::Result<ClientTlsStream<S>> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, plain).await
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientTls")
    }
}
