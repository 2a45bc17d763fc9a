//! TLS towards clients: certificate, key and, where they are asked for one, the roots of the clients' certificates.

use std::{io, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// An encrypted connection of a client.
pub type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// What a listener shows its clients, and what it asks of them. Cheap to clone; `Debug` shows no key.
#[derive(Clone)]
pub struct ServerTls(TlsAcceptor);

/// Why a listener cannot speak TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidServerTls {
    /// No certificate, or one that cannot be read.
    #[error("holds no certificate that can be read")]
    Certificate,
    /// No private key, or one that cannot be read.
    #[error("holds no private key that can be read")]
    Key,
    /// The key belongs to another certificate, or is of a kind that is not taken.
    #[error("does not belong to the certificate")]
    Mismatch,
    /// No root certificate for clients, or one that cannot be read.
    #[error("holds no root certificate that can be read")]
    ClientRoots,
}

impl ServerTls {
    /// Reads PEM texts: the chain with the server's own certificate first, its key, and the roots that clients'
    /// certificates must come from (`None`: clients show none). TLS 1.2 and 1.3; HTTP/2 and HTTP/1.1 by ALPN.
    ///
    /// # Errors
    /// [`InvalidServerTls`], naming the text that is wrong.
    pub fn new(chain: &[u8], key: &[u8], client_roots: Option<&[u8]>) -> Result<Self, InvalidServerTls> {
        let chain = certificates(chain).ok_or(InvalidServerTls::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| InvalidServerTls::Key)?;
        let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&crypto))
            .with_safe_default_protocol_versions()
            .map_err(|_| InvalidServerTls::Mismatch)?;
        let builder = match client_roots {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem).ok_or(InvalidServerTls::ClientRoots)? {
                    roots.add(certificate).map_err(|_| InvalidServerTls::ClientRoots)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto).build();
                builder.with_client_cert_verifier(verifier.map_err(|_| InvalidServerTls::ClientRoots)?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|_| InvalidServerTls::Mismatch)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands with a client. Times nothing: the caller drops the future.
    ///
    /// # Errors
    /// The client speaks no TLS, does not trust the certificate, or shows none that is trusted.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream> {
        self.0.accept(stream).await
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok().filter(|read| !read.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{InvalidServerTls, ServerTls};

    const CERTIFICATE: &[u8] = include_bytes!("../tests/it/certificates/localhost.pem");
    const KEY: &[u8] = include_bytes!("../tests/it/certificates/localhost.key");
    const ROOT: &[u8] = include_bytes!("../tests/it/certificates/root.pem");

    fn check(chain: &[u8], key: &[u8], roots: Option<&[u8]>, expected: Option<InvalidServerTls>) {
        assert_eq!(ServerTls::new(chain, key, roots).err(), expected);
    }

    #[test]
    fn every_text_must_be_what_it_is_taken_for() {
        check(CERTIFICATE, KEY, None, None);
        check(CERTIFICATE, KEY, Some(ROOT), None);
        check(KEY, KEY, None, Some(InvalidServerTls::Certificate));
        check(b"", KEY, None, Some(InvalidServerTls::Certificate));
        check(CERTIFICATE, CERTIFICATE, None, Some(InvalidServerTls::Key));
        check(ROOT, KEY, None, Some(InvalidServerTls::Mismatch));
        check(CERTIFICATE, KEY, Some(b"none"), Some(InvalidServerTls::ClientRoots));
    }
}
