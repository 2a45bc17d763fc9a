//! Idempotency keys: what a caller names a request by, and what a ledger keeps of it.

use crate::{RequestId, SealHash, TenantId, UtcTime};

/// A caller's `Idempotency-Key`: 1 to 255 visible ASCII characters.
///
/// Callers put what they like into it, so it is printed as `[redacted]` and only ever stored as a digest.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    /// The longest key, in bytes.
    pub const BYTES_MAX: usize = 255;

    /// Returns the key, or `None` if it is empty, too long or not visible ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.into()))
    }

    /// Returns the digest that stands for the key: another one for each tenant.
    pub fn digest(&self, tenant: &TenantId) -> SealHash {
        SealHash::of_parts(&[b"gw idempotency key 1", tenant.as_str().as_bytes(), self.0.as_bytes()])
    }
}

impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Says how far the request behind a key has come, as a ledger keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// A provider is about to be called, or was called without a known result.
    Dispatched,
    /// It was answered.
    Answered,
    /// Nothing came of it: the key may be used again.
    Released,
}

/// What a ledger keeps of an idempotency key: digests and a state, neither the key nor anything of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNote {
    /// The tenant.
    pub tenant: TenantId,
    /// [`IdempotencyKey::digest`].
    pub key: SealHash,
    /// Digest of the operation and the body.
    pub fingerprint: SealHash,
    /// The request that used the key.
    pub request: RequestId,
    /// How far it has come.
    pub state: KeyState,
    /// When the key was used first.
    pub since: UtcTime,
}

#[cfg(test)]
mod tests {
    use super::IdempotencyKey;
    use crate::TenantId;

    #[test]
    fn keys_are_visible_ascii_and_bounded() {
        let long = "k".repeat(256);
        for (text, expected) in
            [("a", true), ("\"8e03-\"", true), ("", false), ("a b", false), ("\u{e9}", false), (&long, false)]
        {
            assert_eq!(IdempotencyKey::new(text).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn i18_a_key_is_not_printed_and_its_digest_is_the_tenants_own() {
        let key = IdempotencyKey::new("canary").unwrap();
        assert_eq!(format!("{key:?}"), "[redacted]");
        let digest = |tenant: &str| key.digest(&TenantId::new(tenant).unwrap());
        assert_ne!(digest("a"), digest("b"));
        assert_eq!(digest("a"), digest("a"));
    }
}
