//! What the HTTP server needs to know.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use gw_adapters::ServerTls;
use gw_types::Secret;
use serde::Serialize;

use crate::{config::Config, keys::KeyDigest};

/// Addresses, bounds and times of the HTTP server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where requests are taken.
    pub listen: SocketAddr,
    /// Where metrics and admin requests are taken; loopback unless there are admin keys.
    pub admin_listen: SocketAddr,
    /// The largest body of a request, in bytes.
    pub max_body_bytes: usize,
    /// The time budget of a request that names none.
    pub default_deadline: Duration,
    /// The largest time budget that a request may name.
    pub max_deadline: Duration,
    /// The longest from an open connection to a whole request head.
    pub header_timeout: Duration,
    /// The longest from a request's head to its whole body.
    pub body_timeout: Duration,
    /// Connections at once.
    pub max_connections: u32,
    /// Connections at once of one address; `None`: as many as there are.
    pub max_connections_per_address: Option<u32>,
    /// Origins whose pages may call the data plane; `*` stands for all.
    pub cors_origins: Arc<[String]>,
    /// TLS of the data plane.
    pub tls: TlsInForce,
    /// TLS of the admin plane.
    pub admin_tls: TlsInForce,
    /// How long new requests are served after the signal to stop.
    pub drain_grace: Duration,
    /// How long requests in flight may take after the signal to stop.
    pub drain_timeout: Duration,
    /// Who may use the admin plane.
    pub admin_keys: AdminKeys,
}

/// Where a configuration listens that was read for no listener: at a free port of this machine.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl ServerSettings {
    pub(crate) fn of(config: &Config) -> Self {
        let server = &config.file.server;
        // Without the secrets of the listeners, nobody outside this machine may find one.
        let address = |wanted| if config.callers.come_in() { wanted } else { NOWHERE };
        Self {
            listen: address(server.listen.value),
            admin_listen: address(server.admin_listen.value),
            max_body_bytes: server.max_body_bytes,
            default_deadline: server.default_deadline,
            max_deadline: server.max_deadline,
            header_timeout: server.header_timeout,
            body_timeout: server.body_timeout,
            max_connections: server.max_connections,
            max_connections_per_address: server.max_connections_per_address,
            cors_origins: server.cors_origins.clone().into(),
            tls: TlsInForce::new(tls(config)),
            admin_tls: TlsInForce::new(admin_tls(config)),
            drain_grace: server.drain_grace,
            drain_timeout: server.drain_timeout,
            admin_keys: AdminKeys::new(admin_keys(config)),
        }
    }
}

/// What a key of the admin plane may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminRole {
    /// Look, and change nothing.
    Read,
    /// Everything.
    Operate,
}

/// Returns the digests of the admin keys.
pub(crate) fn admin_keys(config: &Config) -> Vec<(KeyDigest, AdminRole)> {
    let keys = config.file.server.admin_keys.iter();
    let digest = |secret: &Secret| KeyDigest::of(&[], secret.expose());
    keys.filter_map(|key| Some((digest(key.secret.value.value.as_ref()?), key.role))).collect()
}

/// Returns what the data plane shows its clients.
pub(crate) fn tls(config: &Config) -> Option<ServerTls> {
    config.file.server.tls.as_ref().and_then(|entry| entry.tls.clone())
}

/// Returns what the admin plane shows its clients.
pub(crate) fn admin_tls(config: &Config) -> Option<ServerTls> {
    config.file.server.admin_tls.as_ref().and_then(|entry| entry.tls.clone())
}

/// The TLS of a listener, if it speaks TLS. Clones share it, and a reload replaces it in all: connections that stand keep
/// the certificate that they began with.
#[derive(Clone, Debug, Default)]
pub struct TlsInForce(Arc<ArcSwapOption<ServerTls>>);

impl TlsInForce {
    pub(crate) fn new(tls: Option<ServerTls>) -> Self {
        Self(Arc::new(ArcSwapOption::from_pointee(tls)))
    }

    pub(crate) fn replace(&self, tls: Option<ServerTls>) {
        self.0.store(tls.map(Arc::new));
    }

    /// Returns what the next connection is to be met with; `None`: plain text.
    pub fn get(&self) -> Option<Arc<ServerTls>> {
        self.0.load_full()
    }
}

/// The keys of the admin plane, as digests. Clones share them, and a reload replaces them in all.
#[derive(Clone, Debug, Default)]
pub struct AdminKeys(Arc<ArcSwap<Vec<(KeyDigest, AdminRole)>>>);

impl AdminKeys {
    pub(crate) fn new(keys: Vec<(KeyDigest, AdminRole)>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(keys)))
    }

    pub(crate) fn replace(&self, keys: Vec<(KeyDigest, AdminRole)>) {
        self.0.store(Arc::new(keys));
    }

    /// Returns whether there is no key: then the admin plane is on loopback and asks for none.
    pub fn is_empty(&self) -> bool {
        self.0.load().is_empty()
    }

    /// Returns what a presented key may do, or `None` if it is none of them; compares with each in constant time. A key
    /// that stands twice may do the more.
    pub fn role_of(&self, presented: &Secret) -> Option<AdminRole> {
        let presented = KeyDigest::of(&[], presented.expose());
        // No early return: how long it takes does not say which key came near.
        let role = |(key, role): &(KeyDigest, AdminRole)| key.matches(&presented).then_some(*role);
        self.0.load().iter().fold(None, |found, key| role(key).max(found))
    }
}

#[cfg(test)]
mod tests {
    use gw_types::Secret;

    use super::{AdminKeys, AdminRole};
    use crate::keys::KeyDigest;

    #[test]
    fn only_the_configured_keys_have_a_role() {
        let key = |text, role| (KeyDigest::of(&[], text), role);
        let keys = AdminKeys::new(vec![key("one", AdminRole::Read), key("two", AdminRole::Operate)]);
        let role = |text: &str| keys.role_of(&Secret::new(text).unwrap());
        assert_eq!(
            [role("one"), role("two"), role("three"), role("on")],
            [Some(AdminRole::Read), Some(AdminRole::Operate), None, None]
        );
        let shared = keys.clone();
        keys.replace(Vec::new());
        assert!(shared.is_empty() && shared.role_of(&Secret::new("one").unwrap()).is_none());
    }
}
