//! Who a presented key belongs to.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use gw_types::{KeyIdentity, KeyStore, Secret};

use super::{KeyDigest, PublicId, StoredKey, public_id};

/// Knows the keys of a configuration: by public id those that gw made, by the digest of the whole key the others.
///
/// Holds digests only. A look-up hashes the presented key once or twice (one block of BLAKE2b each), finds at most one
/// entry, and compares digests in constant time. The maps are filled once and keyed by bits that a caller cannot
/// choose freely against the map, so a fast hash suffices.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    by_id: HashMap<PublicId, (KeyDigest, KeyIdentity), FixedState>,
    by_digest: HashMap<[u8; 32], (KeyDigest, KeyIdentity), FixedState>,
    anonymous: Option<KeyIdentity>,
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
    pub(crate) fn add(&mut self, key: Presented<'_>, identity: KeyIdentity) -> Result<(), KeyIdentity> {
        match key {
            Presented::Stored(stored) => {
                if let Some((_, owner)) = self.by_id.get(&stored.id) {
                    return Err(owner.clone());
                }
                self.by_id.insert(stored.id, (stored.digest, identity));
            }
            Presented::Found(secret) => {
                if let Some(owner) = self.identify(secret) {
                    return Err(owner);
                }
                let digest = KeyDigest::of(&[], secret.expose());
                self.by_digest.insert(*digest.bytes(), (digest, identity));
            }
        }
        Ok(())
    }
}

impl KeyStore for KeyTable {
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity> {
        let key = presented.expose();
        if let Some(id) = public_id(key)
            && let Some((digest, identity)) = self.by_id.get(&id)
        {
            return digest.matches(&KeyDigest::of(&id, key)).then(|| identity.clone());
        }
        if self.by_digest.is_empty() {
            return None;
        }
        let presented = KeyDigest::of(&[], key);
        let (digest, identity) = self.by_digest.get(presented.bytes())?;
        digest.matches(&presented).then(|| identity.clone())
    }

    fn anonymous(&self) -> Option<KeyIdentity> {
        self.anonymous.clone()
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{KeyIdentity, KeyName, KeyStore, Secret, TenantId};

    use super::{KeyTable, Presented};
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
        table.add(Presented::Stored(&StoredKey::parse(key.line()).unwrap()), identity("a")).unwrap();
        table.add(Presented::Found(&secret("any text")), identity("b")).unwrap();
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
        table.add(Presented::Stored(&stored), identity("a")).unwrap();
        assert_eq!(table.add(Presented::Stored(&stored), identity("b")), Err(identity("a")));
        assert_eq!(table.add(Presented::Found(key.shown()), identity("b")), Err(identity("a")));
        table.add(Presented::Found(&secret("x")), identity("c")).unwrap();
        assert_eq!(table.add(Presented::Found(&secret("x")), identity("d")), Err(identity("c")));
    }

    #[test]
    fn a_named_key_may_have_the_shape_of_one_that_gw_made() {
        let key = NewKey::from_entropy([9; NewKey::ENTROPY_BYTES]);
        let mut table = KeyTable::default();
        table.add(Presented::Found(key.shown()), identity("a")).unwrap();
        assert_eq!(table.identify(key.shown()), Some(identity("a")));
    }
}
