//! Where a PostgreSQL ledger is.

use std::{fmt, net::IpAddr, str::FromStr, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

/// How long a connection may take to be made, unless the address says otherwise (`connect_timeout`).
const CONNECT: Duration = Duration::from_secs(5);
/// When a silent connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The address of a database, as `postgres://user:password@host:port/database`. Shows no password.
///
/// The connection is encrypted, and the server's certificate checked, unless the server is on this machine or the address
/// says `?sslmode=disable`.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    config: Box<Config>,
}

/// Says that a text is no address of a PostgreSQL database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PostgreSQL ledger is named as `postgres://user@host:port/database`")]
pub struct NotPostgres;

impl PostgresUrl {
    /// Returns whether the address holds a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }
}

impl FromStr for PostgresUrl {
    type Err = NotPostgres;

    fn from_str(text: &str) -> Result<Self, NotPostgres> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(NotPostgres);
        }
        // The parser's message may quote the text.
        let mut config: Config = text.parse().map_err(|_| NotPostgres)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() || config.get_user().is_none() {
            return Err(NotPostgres);
        }
        // What libpq calls `prefer` goes on in the clear with whoever asks it to.
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(if is_near(&config) { SslMode::Disable } else { SslMode::Require });
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        config.keepalives_idle(KEEPALIVE);
        if config.get_application_name().is_none() {
            config.application_name("gw");
        }
        Ok(Self { config: Box::new(config) })
    }
}

/// Returns whether every server is on this machine.
fn is_near(config: &Config) -> bool {
    let loopback =
        |name: &str| name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let near = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    near && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        write!(f, "postgres://{}@", config.get_user().unwrap_or_default())?;
        for (at, host) in config.get_hosts().iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            if let Some(port) = config.get_ports().get(at).or(config.get_ports().first()) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", config.get_dbname().unwrap_or_default())?;
        f.write_str(if config.get_ssl_mode() == SslMode::Disable { "?sslmode=disable" } else { "" })
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::{NotPostgres, PostgresUrl};

    fn check(text: &str, shown: &str) {
        let url: PostgresUrl = text.parse().unwrap();
        assert_eq!(url.to_string(), shown);
        assert!(!format!("{url:?}").contains("secret"));
    }

    #[test]
    fn addresses_show_no_password() {
        check("postgres://gw:secret@db.internal:5433/ledger", "postgres://gw@db.internal:5433/ledger");
        check("postgres://gw@127.0.0.1/x", "postgres://gw@127.0.0.1:5432/x?sslmode=disable");
        check("postgres://gw@db/x?sslmode=disable", "postgres://gw@db:5432/x?sslmode=disable");
        check("postgresql://gw@db/ledger?sslmode=require", "postgres://gw@db:5432/ledger");
        check("postgres://gw:secret@a:1,b:2/x", "postgres://gw@a:1,b:2/x");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "postgres://",
            "postgres:///db",
            "mysql://gw@db/x",
            "postgres://db:port/x",
            "host=db user=gw",
        ] {
            assert_eq!(text.parse::<PostgresUrl>(), Err(NotPostgres), "{text}");
        }
    }
}
