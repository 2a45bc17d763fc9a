//! Who a presented key belongs to.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use foldhash::fast::FixedState;
use gw_types::{KeyIdentity, KeyStore, Network, Secret, UtcTime};

use super::{KeyDigest, PublicId, StoredKey, public_id};

/// Knows the keys of a configuration: by public id those that gw made, by the digest of the whole key the others.
///
/// Holds digests only. A look-up hashes the presented key once or twice (one block of BLAKE2b each), finds at most one
/// entry, and compares digests in constant time. The maps are filled once and keyed by bits that a caller cannot
/// choose freely against the map, so a fast hash suffices.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    by_id: HashMap<PublicId, Known, FixedState>,
    by_digest: HashMap<[u8; 32], Known, FixedState>,
    anonymous: Option<KeyIdentity>,
}

#[derive(Debug)]
struct Known {
    digest: KeyDigest,
    identity: KeyIdentity,
    access: Access,
}

/// From where and until when a key may be used; the default is from everywhere and for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// From these networks alone; empty: from everywhere.
    pub(crate) networks: Arc<[Network]>,
    /// Until before this instant.
    pub(crate) expires: Option<UtcTime>,
}

impl Access {
    pub(super) fn permits(&self, from: IpAddr, now: UtcTime) -> bool {
        self.expires.is_none_or(|expires| now < expires)
            && (self.networks.is_empty() || self.networks.iter().any(|network| network.contains(from)))
    }
}

/// A key that may be added.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presented<'a> {
    /// A line of the configuration.
    Stored(&'a StoredKey),
    /// The key itself.
    Found(&'a Secret),
}

impl KeyTable {
    /// Sets the identity of callers without a key.
    pub(crate) fn allow_anonymous(&mut self, identity: KeyIdentity) {
        self.anonymous = Some(identity);
    }

    /// Adds a key; returns whose it is already, if it is somebody's. Stored keys must be added first: only then is a
    /// key that stands once as a line and once as itself found.
    pub(crate) fn add(
        &mut self,
        key: Presented<'_>,
        identity: KeyIdentity,
        access: Access,
    ) -> Result<(), KeyIdentity> {
        match key {
            Presented::Stored(stored) => {
                if let Some(known) = self.by_id.get(&stored.id) {
                    return Err(known.identity.clone());
                }
                self.by_id.insert(stored.id, Known { digest: stored.digest, identity, access });
            }
            Presented::Found(secret) => {
                if let Some(owner) = self.identify(secret) {
                    return Err(owner);
                }
                let digest = KeyDigest::of(&[], secret.expose());
                self.by_digest.insert(*digest.bytes(), Known { digest, identity, access });
            }
        }
        Ok(())
    }

    fn find(&self, presented: &Secret) -> Option<&Known> {
        let key = presented.expose();
        if let Some(id) = public_id(key)
            && let Some(known) = self.by_id.get(&id)
        {
            return known.digest.matches(&KeyDigest::of(&id, key)).then_some(known);
        }
        if self.by_digest.is_empty() {
            return None;
        }
        let presented = KeyDigest::of(&[], key);
        let known = self.by_digest.get(presented.bytes())?;
        known.digest.matches(&presented).then_some(known)
    }
}

impl KeyStore for KeyTable {
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity> {
        self.find(presented).map(|known| known.identity.clone())
    }

    fn identify_at(&self, presented: &Secret, from: IpAddr, now: UtcTime) -> Option<KeyIdentity> {
        let known = self.find(presented)?;
        known.access.permits(from, now).then(|| known.identity.clone())
    }

    fn anonymous(&self) -> Option<KeyIdentity> {
        self.anonymous.clone()
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{KeyIdentity, KeyName, KeyStore, Secret, TenantId, UtcTime};

    use super::{Access, KeyTable, Presented};
    use crate::keys::{NewKey, StoredKey};

    fn identity(tenant: &str) -> KeyIdentity {
        KeyIdentity { tenant: TenantId::new(tenant).unwrap(), key: KeyName::new("k").unwrap() }
    }

    fn secret(text: &str) -> Secret {
        Secret::new(text).unwrap()
    }

    #[test]
    fn keys_are_known_by_hash_and_by_name() {
        let key = NewKey::from_entropy([3; NewKey::ENTROPY_BYTES]);
        let mut table = KeyTable::default();
        table
            .add(Presented::Stored(&StoredKey::parse(key.line()).unwrap()), identity("a"), Access::default())
            .unwrap();
        table.add(Presented::Found(&secret("any text")), identity("b"), Access::default()).unwrap();
        assert_eq!(table.identify(key.shown()), Some(identity("a")));
        assert_eq!(table.identify(&secret("any text")), Some(identity("b")));
        assert_eq!(table.anonymous(), None);
        let shown = key.shown().expose();
        for wrong in
            ["any texts", "null", &shown[..94], &format!("{}0", &shown[..94]), key.line(), &key.line()[22..]]
        {
            assert_eq!(table.identify(&secret(wrong)), None);
        }
    }

    #[test]
    fn one_key_has_one_owner() {
        let key = NewKey::from_entropy([3; NewKey::ENTROPY_BYTES]);
        let stored = StoredKey::parse(key.line()).unwrap();
        let mut table = KeyTable::default();
        table.add(Presented::Stored(&stored), identity("a"), Access::default()).unwrap();
        assert_eq!(
            table.add(Presented::Stored(&stored), identity("b"), Access::default()),
            Err(identity("a"))
        );
        assert_eq!(
            table.add(Presented::Found(key.shown()), identity("b"), Access::default()),
            Err(identity("a"))
        );
        table.add(Presented::Found(&secret("x")), identity("c"), Access::default()).unwrap();
        assert_eq!(
            table.add(Presented::Found(&secret("x")), identity("d"), Access::default()),
            Err(identity("c"))
        );
    }

    #[test]
    fn a_named_key_may_have_the_shape_of_one_that_gw_made() {
        let key = NewKey::from_entropy([9; NewKey::ENTROPY_BYTES]);
        let mut table = KeyTable::default();
        table.add(Presented::Found(key.shown()), identity("a"), Access::default()).unwrap();
        assert_eq!(table.identify(key.shown()), Some(identity("a")));
    }

    #[test]
    fn a_key_holds_where_and_until_when_it_may_be_used() {
        let key = NewKey::from_entropy([3; NewKey::ENTROPY_BYTES]);
        let mut table = KeyTable::default();
        let access = Access {
            networks: ["10.0.0.0/8".parse().unwrap()].into(),
            expires: Some(UtcTime::from_micros(1_000)),
        };
        table.add(Presented::Stored(&StoredKey::parse(key.line()).unwrap()), identity("a"), access).unwrap();
        let find =
            |from: &str, at| table.identify_at(key.shown(), from.parse().unwrap(), UtcTime::from_micros(at));
        assert_eq!(find("10.1.2.3", 999), Some(identity("a")));
        assert_eq!(find("10.1.2.3", 1_000), None);
        assert_eq!(find("11.1.2.3", 999), None);
    }
}
