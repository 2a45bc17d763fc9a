//! Where the ledgers of a test are: every test of what both databases promise runs on both.

use std::cell::Cell;

use gw_testkit::PostgresServer;

use crate::LedgerStore;

/// Files in a folder, or databases of a server of the test's own.
#[derive(Debug)]
pub(crate) enum Home {
    Files(tempfile::TempDir, Cell<u32>),
    Server(PostgresServer),
}

impl Home {
    pub(crate) fn files() -> Self {
        Self::Files(tempfile::tempdir().unwrap(), Cell::new(0))
    }

    pub(crate) fn server() -> Self {
        Self::Server(PostgresServer::start().unwrap())
    }

    /// Returns a place where no ledger is yet.
    pub(crate) fn store(&self) -> LedgerStore {
        match self {
            Self::Files(folder, made) => {
                made.set(made.get() + 1);
                LedgerStore::from(&folder.path().join(format!("gw-{}.db", made.get())))
            }
            Self::Server(server) => {
                let url = server.database().unwrap();
                LedgerStore::Postgres { url: url.parse().unwrap(), tls: None }
            }
        }
    }
}

/// Runs tests on files, each by itself, and on one server, one after the other.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod files {
            $(#[test]
            fn $name() {
                super::$name(&crate::home::Home::files());
            })+
        }

        #[test]
        fn postgres_keeps_the_same_promises() {
            let home = crate::home::Home::server();
            $($name(&home);)+
        }
    };
}

pub(crate) use on_both;
