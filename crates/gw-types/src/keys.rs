//! The seam that turns a presented key into an identity.

use crate::{KeyName, Secret, TenantId};

/// Who presented a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyIdentity {
    /// The tenant that the key belongs to.
    pub tenant: TenantId,
    /// Which of the tenant's keys it is.
    pub key: KeyName,
}

/// Knows the keys.
///
/// # Contract
/// Compares in constant time over the hash, holds no key in the clear, answers in well under a microsecond per call
/// however many keys there are, and says nothing about why a key is unknown.
pub trait KeyStore: Send + Sync + std::fmt::Debug {
    /// Returns who the key belongs to, or `None` if nobody.
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity>;

    /// Returns the identity of callers without a key, where the configuration allows them (no file, loopback only).
    fn anonymous(&self) -> Option<KeyIdentity>;
}
