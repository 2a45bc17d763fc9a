//! TLS towards providers: one library provider named explicitly, system roots, extra roots.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::InvalidProvider;

/// Returns the TLS settings: the system's roots, or Mozilla's where the system has none, and the extra PEM ones.
///
/// ALPN is left to the connector. The crypto provider is passed by hand, because a process-wide default would be a
/// race between libraries.
///
/// # Errors
/// [`InvalidProvider::CaFile`] if the PEM text holds no certificate or one that cannot be read.
pub(crate) fn client_config(extra_pem: Option<&[u8]>) -> Result<ClientConfig, InvalidProvider> {
    let mut roots = RootCertStore::clone(base_roots());
    if let Some(pem) = extra_pem {
        add_pem(&mut roots, pem)?;
    }
    with_roots(roots)
}

/// Returns TLS settings that trust nobody, for ways that use no TLS.
///
/// # Errors
/// [`InvalidProvider::Tls`], as above.
pub(super) fn rootless_config() -> Result<ClientConfig, InvalidProvider> {
    with_roots(RootCertStore::empty())
}

fn with_roots(roots: RootCertStore) -> Result<ClientConfig, InvalidProvider> {
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(|_| InvalidProvider::Tls)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Reading the system's roots costs milliseconds, so it happens once a process, at the first `https` provider.
fn base_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        let (added, skipped) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        tracing::debug!(added, skipped, "system root certificates read");
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        roots
    })
}

fn add_pem(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), InvalidProvider> {
    let mut added = false;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| InvalidProvider::CaFile)?;
        roots.add(certificate).map_err(|_| InvalidProvider::CaFile)?;
        added = true;
    }
    if added { Ok(()) } else { Err(InvalidProvider::CaFile) }
}

#[cfg(test)]
mod tests {
    use super::client_config;
    use crate::InvalidProvider;

    #[test]
    fn extra_roots_must_be_certificates() {
        assert!(client_config(None).is_ok());
        for pem in [
            "",
            "hello",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\n",
        ] {
            assert_eq!(client_config(Some(pem.as_bytes())).err(), Some(InvalidProvider::CaFile));
        }
    }
}
