//! From what the configuration says of its ledger to where that is.

use gw_stores::LedgerStore;

use crate::{Config, file::Store};

impl Config {
    /// Returns where the records are; `None`: in memory.
    ///
    /// # Errors
    /// What is wrong, and what would be right: the roots of a server's certificate cannot be read.
    pub(crate) fn ledger_store(&self) -> Result<Option<LedgerStore>, (String, &'static str)> {
        match &self.file.ledger.store.value {
            Store::None => Ok(None),
            Store::Sqlite(path) => Ok(Some(LedgerStore::Sqlite(self.folder.join(path)))),
            #[cfg(feature = "postgres")]
            Store::Postgres(entry) => {
                let roots = self.file.ledger.ca_file.as_ref().map(|file| file.value.pem.as_slice());
                let tls = tls::Tls::new(roots).map_err(|_| {
                    let message =
                        "what `ledger.ca_file` names holds no certificate that can be read".to_owned();
                    (message, "write certificates in PEM")
                })?;
                let tls = Some(std::sync::Arc::new(tls) as _);
                Ok(Some(LedgerStore::Postgres { url: entry.url.clone(), tls }))
            }
        }
    }
}

/// Returns the ledger of a store as `[ledger]` names it: `sqlite:PATH` or an address, which may hold a password here.
///
/// # Errors
/// What is wrong with the text, as `what is wrong; what to write`.
pub(crate) fn store_of(store: &str) -> Result<LedgerStore, String> {
    match store.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => Ok(LedgerStore::Sqlite(path.into())),
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => {
            let url =
                store.parse().map_err(|wrong: gw_stores::NotPostgres| format!("unknown store; {wrong}"))?;
            let tls =
                tls::Tls::new(None).map_err(|_| "the system's certificates cannot be read".to_owned())?;
            Ok(LedgerStore::Postgres { url, tls: Some(std::sync::Arc::new(tls)) })
        }
        Some(_) | None => {
            Err(format!("unknown store `{store}`; write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`"))
        }
    }
}

#[cfg(feature = "postgres")]
mod tls {
    //! The adapters' TLS for the stores' connections.

    use gw_adapters::{ClientTls, InvalidProvider};
    use gw_stores::{PostgresTls, TlsFuture, TlsIo};

    #[derive(Debug)]
    pub(super) struct Tls(ClientTls);

    impl Tls {
        pub(super) fn new(more_roots: Option<&[u8]>) -> Result<Self, InvalidProvider> {
            ClientTls::new(more_roots).map(Self)
        }
    }

    impl PostgresTls for Tls {
        fn connect(&self, name: &str, plain: Box<dyn TlsIo>) -> TlsFuture {
            let (tls, name) = (self.0.clone(), name.to_owned());
            Box::pin(async move {
                let encrypted = tls.connect(&name, plain).await?;
                Ok(Box::new(encrypted) as Box<dyn TlsIo>)
            })
        }
    }
}
