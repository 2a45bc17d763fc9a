//! The keys in force, which a reload replaces.

use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use gw_types::{KeyIdentity, KeyStore, Secret, UtcTime};

use super::KeyTable;

/// A key store whose keys change with the configuration. A look-up sees the keys of one configuration, and waits for
/// nobody.
#[derive(Debug)]
pub(crate) struct LiveKeys(ArcSwap<KeyTable>);

impl LiveKeys {
    pub(crate) fn new(keys: KeyTable) -> Self {
        Self(ArcSwap::from_pointee(keys))
    }

    pub(crate) fn replace(&self, keys: KeyTable) {
        self.0.store(Arc::new(keys));
    }
}

impl KeyStore for LiveKeys {
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity> {
        self.0.load().identify(presented)
    }

    fn identify_at(&self, presented: &Secret, from: IpAddr, now: UtcTime) -> Option<KeyIdentity> {
        self.0.load().identify_at(presented, from, now)
    }

    fn anonymous(&self) -> Option<KeyIdentity> {
        self.0.load().anonymous()
    }
}
