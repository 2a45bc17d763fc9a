//! Why the server gave no result.

use tokio_postgres::error::SqlState;

/// Says why. Holds the server's own first line and code, never its details, which may quote a row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The server refused.
    #[error("PostgreSQL says: {message} ({code})")]
    Refused {
        /// The first line.
        message: String,
        /// The SQLSTATE.
        code: String,
        /// Whether the connection ends with it.
        is_lost: bool,
    },
    /// The connection could not be made, or is gone.
    #[error("no connection to PostgreSQL: {0}")]
    Lost(String),
    /// The server did not answer in time, and its connection was given up.
    #[error("PostgreSQL has not answered for {seconds} s")]
    Slow {
        /// How long.
        seconds: u64,
    },
    /// A row is not what gw wrote.
    #[error("PostgreSQL sent what gw cannot read: {0}")]
    Unreadable(String),
    /// Every node is held by a gateway, and no more are made.
    #[error("all {0} nodes of the ledger are in use")]
    NoNode(i64),
    /// Another gateway holds the node.
    #[error("node {0} of the ledger is in use")]
    NodeInUse(i64),
}

impl Trouble {
    /// Returns whether the connection is gone, and another may be made.
    pub(crate) const fn is_lost(&self) -> bool {
        match self {
            Self::Refused { is_lost, .. } => *is_lost,
            Self::Lost(_) | Self::Slow { .. } => true,
            Self::Unreadable(_) | Self::NoNode(_) | Self::NodeInUse(_) => false,
        }
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(said) = error.as_db_error() {
            let code = said.code();
            // Class 08 is a broken connection; the others say that the server ends it, starts or has no room.
            let is_lost = code.code().starts_with("08")
                || [
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::CANNOT_CONNECT_NOW,
                    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                    SqlState::TOO_MANY_CONNECTIONS,
                ]
                .contains(code);
            return Self::Refused {
                message: said.message().to_owned(),
                code: code.code().to_owned(),
                is_lost,
            };
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let said = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        let is_io = error.is_closed()
            || std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>());
        let text = error.to_string();
        if is_io || text.starts_with("error c") || text.starts_with("timeout") {
            Self::Lost(said)
        } else {
            Self::Unreadable(said)
        }
    }
}
